"""What agents and evaluators print and log is stored with their own trial, and never mixes with that of others."""

from __future__ import annotations

import asyncio
import builtins
import getpass
import io
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, cases, only, run, suite, trials_of

import proctor
from proctor.base.output_capture import HEAD_CHARS, TAIL_CHARS, BoundedText, capture_output, route_output
from proctor.cases.suite import EvaluatorSpec
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.running.rescore import rescore
from proctor.running.settings import RunOptions
from proctor.tracing.thread_context import carry_context_into_pools

LOG = logging.getLogger("captured")


def printing(question: str) -> str:
    for step in range(5):
        print(f"{question}/{step}")
        time.sleep(0.002)
    print(f"to stderr {question}", file=sys.stderr, flush=True)
    sys.stdout.buffer.write(f"é {question}\n".encode())
    LOG.warning("logged %s", question)
    return question


async def printing_async(question: str) -> str:
    for step in range(5):
        print(f"{question}/{step}")
        await asyncio.sleep(0.002)
    print(f"to stderr {question}", file=sys.stderr, flush=True)
    sys.stdout.buffer.write(f"é {question}\n".encode())
    LOG.warning("logged %s", question)
    return question


@pytest.mark.parametrize("agent", [printing, printing_async])
def test_trials_that_run_at_once_each_have_their_own_output(agent: Any, capfd: pytest.CaptureFixture[str]) -> None:
    found = run(suite(cases(16), parallel=16), agent=agent)

    for trial in trials_of(found):
        id_ = trial.case.id
        assert trial.captured.stdout == "".join(f"{id_}/{step}\n" for step in range(5)) + f"é {id_}\n"
        assert trial.captured.stderr == f"to stderr {id_}\n"
        assert f"logged {id_}\n" in trial.captured.log and trial.captured.log.count("\n") == 1
    assert capfd.readouterr() == ("", "")


def test_output_of_threads_and_pools_that_the_agent_starts_belongs_to_its_trial() -> None:
    def agent(question: str) -> str:
        def nested() -> None:
            inner = threading.Thread(target=print, args=(f"nested {question}",))
            inner.start()
            inner.join()

        thread = threading.Thread(target=nested)
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(print, f"pool {question}").result()
        return question

    for trial in trials_of(run(suite(cases(8), parallel=8), agent=agent)):
        assert trial.captured.stdout == f"nested {trial.case.id}\npool {trial.case.id}\n"


def test_a_stream_that_somebody_took_before_the_run_is_captured_too(capsys: pytest.CaptureFixture[str]) -> None:
    early, handler = sys.stdout, logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("early")
    logger.addHandler(handler)
    try:

        def agent(question: str) -> str:
            early.write("through the old object\n")
            logger.warning("through the old handler")
            return question

        captured = only(run(suite([case("a")]), agent=agent)).captured
    finally:
        logger.removeHandler(handler)
    assert captured.stdout == "through the old object\n"
    assert captured.stderr == "through the old handler\n"
    assert captured.log == ""  # it would be there twice
    assert capsys.readouterr() == ("", "")


def test_the_streams_are_the_same_after_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    def parts() -> list[Any]:
        streams = [sys.stdout, sys.stderr, sys.stdin, list(logging.root.handlers)]
        return [*streams, sys.breakpointhook, logging.basicConfig, builtins.input, getpass.getpass]

    before = parts()
    run(suite([case("a")]), agent=printing)
    after = parts()

    assert after == before
    assert "write" not in vars(sys.stdout) and "write" not in vars(sys.stdout.buffer)
    print("as always")
    assert capsys.readouterr().out == "as always\n"


def test_an_agent_that_replaces_stdout_gets_what_it_prints() -> None:
    def agent(question: str) -> str:
        before, sys.stdout = sys.stdout, io.StringIO()
        try:
            print("into the agent's own object")
            return sys.stdout.getvalue()
        finally:
            sys.stdout = before

    trial = only(run(suite([case("a")]), agent=agent))
    assert trial.replies[0].text == "into the agent's own object\n"
    assert trial.captured.stdout == ""


def test_basic_config_in_a_trial_has_its_effect() -> None:
    level, handlers = logging.root.level, list(logging.root.handlers)
    for handler in handlers:
        logging.root.removeHandler(handler)
    try:

        def agent(question: str) -> str:
            logging.basicConfig(level=logging.INFO, format="mine: %(message)s")
            logging.getLogger("basic").info("a detail")
            return question

        captured = only(run(suite([case("a")]), agent=agent)).captured
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
    assert captured.stderr == "mine: a detail\n"


def test_a_rich_console_and_a_terminal_check_see_no_terminal() -> None:
    from rich.console import Console

    def agent(question: str) -> str:
        Console().print("[red]colored[/red]")
        print("\x1b[31mred\x1b[0m")
        print("10%\r50%\r100%")
        return str(sys.stdout.isatty() or sys.stdin.isatty())

    trial = only(run(suite([case("a")]), agent=agent))
    assert trial.replies[0].text == "False"
    assert trial.captured.stdout == "colored\nred\n100%\n"


# Reading from the keyboard


def _asks(question: str) -> str:
    return input("Your name? ")


def _reads(question: str) -> str:
    return sys.stdin.read()


def _breaks(question: str) -> str:
    breakpoint()
    return question


def _loops(question: str) -> str:
    return "".join(sys.stdin)


def _wants_password(question: str) -> str:
    return getpass.getpass()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (_wants_password, ["asked for keyboard input at test_captured_output.py:", "getpass.getpass()"]),
        (_asks, ["asked for keyboard input at test_captured_output.py:", 'input("Your name? ")']),
        (_reads, ["asked for keyboard input at test_captured_output.py:", "sys.stdin.read()"]),
        (_loops, ["asked for keyboard input at test_captured_output.py:"]),
        (_breaks, ["called breakpoint() at test_captured_output.py:"]),
    ],
)
@pytest.mark.parametrize("isolate", [False, True])
def test_an_agent_that_waits_for_a_person_is_an_error_that_says_where(
    agent: Any, words: list[str], isolate: bool
) -> None:
    trial = only(run(suite([case("a")]), agent=agent, isolate=isolate))

    assert trial.outcome is Outcome.ERROR
    assert all(word in trial.end_reason for word in words), trial.end_reason
    assert "-s" in trial.end_reason


def test_the_input_of_a_notebook_is_not_asked_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "input", lambda *_: "from the box of the notebook")
    trial = only(run(suite([case("a")]), agent=_asks))
    assert trial.outcome is Outcome.ERROR
    assert "asked for keyboard input" in trial.end_reason
    assert trial.captured.stdout == "Your name? "


def test_an_agent_that_goes_on_without_its_input_is_scored_with_a_warning() -> None:
    def agent(question: str) -> str:
        try:
            return input()
        except Exception:
            return question

    trial = only(run(suite([case("a")]), agent=agent))
    assert trial.outcome is Outcome.PASSED
    assert "asked for keyboard input" in trial.warnings[0]


def test_without_capture_everything_is_shown_and_input_is_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Bo\n"))

    def agent(question: str) -> str:
        LOG.warning("a record")
        print("shown", question)
        return input()

    [trial] = proctor.run([{"id": "a", "input": "x", "expected": "Bo"}], agent, capture=False).trials
    assert trial.passed
    assert trial.captured.stdout == "shown x\n"
    shown = capsys.readouterr()
    assert shown.out == "shown x\n" and "a record" in shown.err


# Bounds, secrets, the store


def test_the_beginning_and_the_end_of_endless_output_are_stored() -> None:
    def agent(question: str) -> str:
        for number in range(20_000):
            print(f"line {number}")
        return question

    stored = only(run(suite([case("a")]), agent=agent)).captured.stdout
    assert stored.startswith("line 0\nline 1\n") and stored.endswith("line 19998\nline 19999\n")
    assert "lines omitted" in stored
    assert len(stored) < HEAD_CHARS + TAIL_CHARS + 100


@pytest.mark.parametrize("pieces", [["x" * 100_000], ["x"] * 100_000, ["word "] * 50_000, ["a\n", "b" * 60_000, "\nc"]])
def test_bounded_text_is_never_larger_than_its_bounds(pieces: list[str]) -> None:
    text = BoundedText()
    for piece in pieces:
        text.add(piece)
    assert len(text.result()) <= HEAD_CHARS + TAIL_CHARS + 100
    assert "omitted" in text.result()


def test_text_that_fits_is_stored_as_it_is() -> None:
    text = BoundedText()
    for number in range(1000):
        text.add(f"{number}\n")
    assert text.result() == "".join(f"{number}\n" for number in range(1000))


def test_secrets_are_masked_also_where_the_output_is_cut(tmp_path: Path) -> None:
    key = "sk-" + "proj-" + "A1b2C3d4E5f6G7h8" * 3

    def agent(question: str) -> str:
        for _ in range(2_000):
            print(f"using key {key} for the call")
        LOG.warning("key %s", key)
        return question

    run(suite([case("a")]), agent=agent, store=tmp_path)
    store = Store(tmp_path)
    [trial] = store.trials(store.find_run("last").no)
    assert trial.captured.stdout and trial.captured.log
    assert "A1b2" not in trial.captured.stdout + trial.captured.log


def noisy_check(evaluable: proctor.Evaluable) -> bool:
    print("checked", evaluable.output)
    return False


def test_output_is_stored_and_survives_a_rescore(tmp_path: Path) -> None:
    noisy = (EvaluatorSpec(f"{__file__}:noisy_check"),)
    run(suite([case("a")], evaluators=noisy), agent=printing, store=tmp_path)
    [before] = trials_of(rescore(tmp_path, "last", options=RunOptions()))
    [after] = trials_of(rescore(tmp_path, "last", options=RunOptions()))

    assert after.captured == before.captured
    assert after.captured.stdout.startswith("a/0\n")
    assert after.captured.evaluators == "checked a\n"


# Other processes


def _crashes(question: str) -> str:
    print("about to crash")
    os.write(2, b"from C code\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    os._exit(3)


def test_a_process_of_its_own_captures_child_processes_and_the_last_words_before_a_crash(
    capfd: pytest.CaptureFixture[str],
) -> None:
    trial = only(run(suite([case("a")]), agent=_crashes, isolate=True))

    assert "ended before the agent answered" in trial.end_reason
    assert trial.captured.stdout == "about to crash\nfrom a child\n"
    assert trial.captured.stderr.startswith("from C code\n")
    assert capfd.readouterr() == ("", "")


def _forks(question: str) -> str:
    pid = os.fork()
    if pid == 0:
        print("from a fork")
        os._exit(0)
    os.waitpid(pid, 0)
    return question


def test_a_process_that_the_agent_forks_prints_as_without_a_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert only(run(suite([case("a")]), agent=_forks, isolate=True)).captured.stdout == "from a fork\n"
    assert only(run(suite([case("a")]), agent=_forks)).captured.stdout == ""
    assert capfd.readouterr().out == "from a fork\n"


def test_a_destructor_that_prints_while_something_is_printed_does_not_block() -> None:
    class Loud:
        def __str__(self) -> str:
            return "x"

        def __del__(self) -> None:
            print("gone")

    class Text(str):
        def count(self, *_: object) -> int:  # called while the capture is locked
            del self.loud
            return 0

    def agent(question: str) -> str:
        text = Text("written\n")
        text.loud = Loud()
        sys.stdout.write(text)
        return question

    assert "gone\n" in only(run(suite([case("a")], timeout=20), agent=agent)).captured.stdout


def test_isolated_trials_have_the_same_output_as_others() -> None:
    def outputs(**options: Any) -> list[Any]:
        return [trial.captured for trial in trials_of(run(suite(cases(4)), agent=printing, **options))]

    assert outputs(isolate=True) == outputs()


@pytest.mark.process
def test_what_a_program_writes_to_stderr_belongs_to_its_trial(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "turn = json.loads(sys.stdin.readline())\n"
        "print('note about', turn['input'], file=sys.stderr)\n"
        "print(json.dumps({'text': turn['input']}))\n"
    )
    for trial in proctor.run(cases(3), agent={"command": [sys.executable, str(program)]}).trials:
        assert trial.captured.stderr == f"note about {trial.case.id}\n"


# The parts


def test_a_thread_that_outlives_its_trial_prints_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()

    def late() -> None:
        release.wait(10)
        print("too late")

    carry_context_into_pools()
    with route_output():
        with capture_output() as output:
            thread = threading.Thread(target=late)
            thread.start()
        release.set()
        thread.join()
        print("outside")
    assert output.result().stdout == ""
    assert capsys.readouterr().out == "outside\n"


def test_text_from_outside_a_trial_is_not_flushed_into_one(capfd: pytest.CaptureFixture[str]) -> None:
    with route_output():
        sys.stdout.write("outside, not flushed")
        with capture_output() as output:
            print("inside", flush=True)
        sys.stdout.flush()
    assert output.result().stdout == "inside\n"
    assert capfd.readouterr().out == "outside, not flushed"


def test_warnings_outside_a_trial_reach_the_terminal_as_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    handlers, logging.root.handlers[:] = list(logging.root.handlers), []
    try:
        with route_output():
            logging.getLogger("nobody").warning("as always")
    finally:
        logging.root.handlers[:] = handlers
    assert capsys.readouterr().err == "as always\n"
