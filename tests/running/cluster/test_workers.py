"""Trials on workers of this machine, with the real scheduler and real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from engine_helpers import outcomes, trials_of

from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import ClusterOptions, RunOptions

AGENT = '''
import asyncio
import ctypes
import json
import os
import sys
import time

import psutil

from proctor import Reply, tool


@tool
def look(key):
    return key + "!"


class Counted:
    """Writes down when it starts and stops, and on what addresses its process and the run's own listen."""

    name = "counted"

    async def start(self):
        self.note("start")

    async def stop(self):
        self.note("stop")

    def note(self, what):
        with open("life.txt", "a") as file:
            file.write(f"{what} {os.getpid()}\\n")

    def session(self, case):
        return Talk()


class Talk:
    async def __aenter__(self):
        self.heard = []
        return self

    async def __aexit__(self, *error):
        return

    async def send(self, turn):
        self.heard.append(turn.input)
        look(turn.input)
        await asyncio.sleep(0.02)
        print("the agent prints")
        own = [psutil.Process(), psutil.Process().parent()]
        listening = sorted({c.laddr.ip for p in own for c in p.net_connections() if c.status == "LISTEN"})
        state = {"pid": os.getpid(), "listening": listening, "heard": list(self.heard)}
        return Reply(turn.input, state=state)


counted = Counted()


def hold_the_interpreter():
    """Nothing else in this process runs any more, as in a pattern that backtracks, but without its computing."""
    libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(256)
    libc.pthread_mutex_init(mutex, None)
    for _ in range(2):  # the second time waits for ever, and no signal ends it
        libc.pthread_mutex_lock(mutex)


async def rough(question):
    if question == "dies":
        os._exit(0)
    if question == "sleeps":
        time.sleep(60)
    if question == "holds":
        hold_the_interpreter()
    if question == "raises":
        raise ValueError("a bug")
    await asyncio.sleep(0.05)
    return question


class Noting:
    """Writes down every turn that it receives, and by which process."""

    name = "noting"

    def session(self, case):
        return NotingSession(case.id)


class NotingSession:
    def __init__(self, case):
        self.case = case

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return

    async def send(self, turn):
        with open("turns.txt", "a") as file:
            file.write(f"{self.case} {turn.input.split()[-1] if ' ' in turn.input else 0} {os.getpid()}\\n")
        await asyncio.sleep(0.4)
        return Reply(turn.input)


noting = Noting()
RUNNING = []


async def crowded(question):
    RUNNING.append(question)
    at_once = len(RUNNING)
    await asyncio.sleep(0.1)
    RUNNING.remove(question)
    return Reply(question, state={"at_once": at_once})


def needs_key(question):
    return os.environ["SHOP_API_KEY"]


async def slow(question):
    await asyncio.sleep(0.5)
    return question


async def takes_turns(question):
    time.sleep(0.5)
    await asyncio.sleep(0)
    return question


async def late(question):
    look(question)
    await asyncio.sleep(60)


class Broken:
    name = "broken"

    async def start(self):
        raise RuntimeError("no database")

    def session(self, case):
        return Talk()


broken = Broken()


def numbered(question, trial):
    return str(trial)


class Own:
    name = "own"
    fingerprint = f"of process {os.getpid()}"

    def session(self, case):
        return Talk()


own = Own()
'''


TWO = ClusterOptions(workers=2)
CHECKS = """
import threading
import time

from proctor import Evaluation

RUNNING = []


def crowded(evaluable):
    RUNNING.append(evaluable)
    at_once = len(RUNNING)
    time.sleep(0.3)
    RUNNING.remove(evaluable)
    return Evaluation(1.0, str(at_once))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("workers")
    (made / "agents.py").write_text(AGENT, encoding="utf-8")
    before = Path.cwd()
    os.chdir(made)
    yield made
    os.chdir(before)


def write(
    folder: Path, name: str, agent: str, questions: list[str], more: str = "", evaluators: str = "ExactMatch"
) -> Path:
    lines = [f"name: {name}", f"agent: agents.py:{agent}", f"evaluators: [{evaluators}]", "cases:"]
    lines += [f"  - {{id: {text}, input: {text}, expected: {text}}}" for text in questions]
    path = folder / f"{name}.yaml"
    path.write_text("\n".join(lines) + "\n" + more, encoding="utf-8")
    return path


def run(*paths: Path, cluster: ClusterOptions = TWO, **options: object) -> tuple[Run, RunVerdict]:
    chosen = RunOptions(cluster=cluster, backoff=0.0, **options)  # type: ignore[arg-type]
    return run_suites(RunRequest(load(list(paths)), chosen, store=paths[0].parent / ".proctor"))


@contextlib.contextmanager
def workers_killed(turns: Path, kills: int) -> Iterator[None]:
    """Meanwhile, the worker that received the latest turn is killed in the middle of it, again and again."""
    over = threading.Event()

    def kill() -> None:
        killed: set[int] = set()
        while len(killed) < kills and not over.wait(0.2):
            lines = turns.read_text(encoding="utf-8").splitlines() if turns.exists() else []
            pid = int(lines[-1].split()[-1]) if len(lines) > 3 else 0
            if pid and pid not in killed:
                killed.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert len(killed) >= kills

    with ThreadPoolExecutor(1) as threads:
        killer = threads.submit(kill)
        try:
            yield
        finally:
            over.set()
        killer.result()


@pytest.fixture(scope="module")
def many(folder: Path) -> tuple[Run, RunVerdict]:
    talk = "  - {id: talk, turns: [{input: a, expected: a}, {input: b, expected: b}]}\n"
    return run(write(folder, "many", "counted", [f"q{number}" for number in range(24)], talk))


def test_every_trial_is_run_once_by_processes_that_are_not_the_runs_own(many: tuple[Run, RunVerdict]) -> None:
    trials = trials_of(many)
    makers = {trial.replies[0].state["pid"] for trial in trials}  # type: ignore[index]

    assert many[1].exit_code == 0
    assert sorted(trial.case.id for trial in trials) == sorted([*(f"q{number}" for number in range(24)), "talk"])
    assert len(makers) == 2
    assert os.getpid() not in makers


def test_what_was_recorded_on_the_worker_comes_back_with_the_reply(many: tuple[Run, RunVerdict]) -> None:
    for trial in trials_of(many):
        for reply in trial.replies:
            assert [(call.name, call.result) for call in reply.tool_calls] == [("look", reply.text + "!")]
        assert trial.captured.stdout == "the agent prints\n" * len(trial.replies)


def test_the_turns_of_a_conversation_are_held_in_one_session(many: tuple[Run, RunVerdict]) -> None:
    (talk,) = [trial for trial in trials_of(many) if trial.case.id == "talk"]

    assert talk.replies[-1].state["heard"] == ["a", "b"]  # type: ignore[index]


def test_an_agent_starts_once_on_each_worker_and_is_stopped_there(many: tuple[Run, RunVerdict], folder: Path) -> None:
    life = (folder / "life.txt").read_text(encoding="utf-8").splitlines()
    makers = {str(trial.replies[0].state["pid"]) for trial in trials_of(many)}  # type: ignore[index]

    assert sorted(life) == sorted(f"{what} {pid}" for what in ("start", "stop") for pid in makers)


def test_nothing_listens_on_any_address_but_the_loopback(many: tuple[Run, RunVerdict]) -> None:
    assert {tuple(trial.replies[0].state["listening"]) for trial in trials_of(many)} == {("127.0.0.1",)}  # type: ignore[index]


@pytest.fixture(scope="module")
def rough(folder: Path) -> tuple[Run, RunVerdict]:
    questions = ["dies", "sleeps", "holds", "raises", *(f"q{number}" for number in range(20))]
    return run(write(folder, "rough", "rough", questions), overrides=Settings(timeout=1.0, parallel=4))


def test_a_trial_that_raises_or_blocks_its_worker_fails_alone(rough: tuple[Run, RunVerdict]) -> None:
    wrong = {name: outcome for name, outcome in outcomes(rough).items() if outcome is not Outcome.PASSED}
    reasons = {trial.case.id: trial.reason for trial in trials_of(rough)}

    assert wrong == {
        "dies": Outcome.ERROR,
        "sleeps": Outcome.FAILED,
        "holds": Outcome.FAILED,
        "raises": Outcome.FAILED,
    }
    assert "a bug" in reasons["raises"]
    assert "within 1 s" in reasons["sleeps"]
    assert "blocked its worker" in reasons["holds"]


def test_a_trial_whose_worker_died_each_time_is_an_error_that_names_isolate(rough: tuple[Run, RunVerdict]) -> None:
    (dies,) = [trial for trial in trials_of(rough) if trial.case.id == "dies"]

    assert dies.attempts == 3
    assert "--isolate" in dies.reason


def test_trials_next_to_one_that_ended_its_worker_say_that_they_were_called_again(
    rough: tuple[Run, RunVerdict],
) -> None:
    again = [trial for trial in trials_of(rough) if trial.attempts > 1 and trial.outcome is Outcome.PASSED]

    assert all("since the worker" in trial.warnings[0] for trial in again)


def test_a_turn_that_was_answered_is_never_sent_again_whatever_dies(folder: Path) -> None:
    talks = [f"t{number}" for number in range(12)]
    turns = ", ".join(f"{{input: say {turn}, expected: say {turn}}}" for turn in range(3))
    more = "".join(f"  - {{id: {name}, turns: [{turns}]}}\n" for name in talks)
    path = write(folder, "talks", "noting", ["q"], more)
    with workers_killed(folder / "turns.txt", kills=3):
        found = run(path, overrides=Settings(parallel=3, retries=5))

    received = [line.split() for line in (folder / "turns.txt").read_text(encoding="utf-8").splitlines()]
    for name in talks:
        turns_of_case = [int(turn) for case, turn, _ in received if case == name]
        later = [turn for turn in turns_of_case if turn > 0]
        assert turns_of_case == sorted(turns_of_case), name
        assert len(later) == len(set(later)), name
    by_outcome = {trial.case.id: trial for trial in trials_of(found)}
    assert set(by_outcome) == {"q", *talks}
    assert {trial.outcome for trial in by_outcome.values()} <= {Outcome.PASSED, Outcome.ERROR}
    for trial in by_outcome.values():
        if trial.outcome is Outcome.ERROR:
            assert "the worker" in trial.reason


def test_a_worker_makes_j_sessions_at_once_and_the_run_j_evaluations(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CHECKS, encoding="utf-8")
    path = write(
        folder, "counts", "crowded", [f"q{n}" for n in range(12)], evaluators=f"'{tmp_path / 'checks.py'}:crowded'"
    )
    found = run(path, cluster=ClusterOptions(workers=1), overrides=Settings(parallel=2))

    assert found[1].exit_code == 0
    assert max(trial.replies[0].state["at_once"] for trial in trials_of(found)) == 2  # type: ignore[index]
    assert max(int(trial.scores[0].reasoning) for trial in trials_of(found)) == 2


def test_waiting_for_a_worker_is_not_the_agents_time(folder: Path) -> None:
    paths = [write(folder, name, "slow", [f"q{n}" for n in range(4)]) for name in ("queue", "other")]
    found = run(*paths, cluster=ClusterOptions(workers=1), overrides=Settings(parallel=1, timeout=2.0))

    assert {trial.outcome for trial in trials_of(found)} == {Outcome.PASSED}
    assert all(trial.duration_ms < 2000 for trial in trials_of(found))


def test_trials_are_not_late_because_another_one_blocks_the_event_loop(folder: Path) -> None:
    found = run(
        write(folder, "turns", "takes_turns", [f"q{n}" for n in range(6)]),
        cluster=ClusterOptions(workers=1),
        overrides=Settings(parallel=6, timeout=2.0),
    )

    assert set(outcomes(found).values()) == {Outcome.PASSED}


def test_of_two_cases_with_the_same_id_the_one_that_blocks_fails(folder: Path) -> None:
    suite = (
        "name: {0}\nagent: agents.py:rough\nevaluators: [ExactMatch]\ncases: [{{id: same, input: {1}, expected: {1}}}]"
    )
    for name, question in (("blocking", "sleeps"), ("harmless", "q")):
        (folder / f"{name}.yaml").write_text(suite.format(name, question), encoding="utf-8")
    paths = [folder / "blocking.yaml", folder / "harmless.yaml"]
    found = run(*paths, cluster=ClusterOptions(workers=1), overrides=Settings(timeout=1.0))

    assert {trial.suite: trial.outcome for trial in trials_of(found)} == {
        "blocking": Outcome.FAILED,
        "harmless": Outcome.PASSED,
    }


def test_a_turn_that_took_too_long_keeps_the_calls_it_had_made(folder: Path) -> None:
    path = write(folder, "late", "late", ["q"])
    found = run(path, cluster=ClusterOptions(workers=1), overrides=Settings(timeout=1.5))

    (trial,) = trials_of(found)
    assert trial.outcome is Outcome.FAILED
    assert [(call.name, call.result) for call in trial.replies[0].tool_calls] == [("look", "q!")]


def test_an_agent_that_cannot_start_is_an_error_and_not_its_failure(folder: Path) -> None:
    found = run(write(folder, "broken", "broken", ["q0", "q1"]), cluster=ClusterOptions(workers=1))

    assert found[1].exit_code == 4
    assert {trial.reason for trial in trials_of(found)} == {
        "the agent broken could not start: RuntimeError: no database"
    }


def test_every_trial_has_its_own_number(folder: Path) -> None:
    found = run(
        write(folder, "numbers", "numbered", ["q"]), cluster=ClusterOptions(workers=1), overrides=Settings(repeat=3)
    )

    assert sorted(trial.replies[0].text for trial in trials_of(found)) == ["1", "2", "3"]


def test_a_worker_whose_agent_is_another_is_refused_with_both_fingerprints(folder: Path) -> None:
    with pytest.raises(UsageError) as refused:
        run(write(folder, "own", "own", ["q"]), cluster=ClusterOptions(workers=1))

    assert f"here of process {os.getpid()}" in str(refused.value)
    assert "(fingerprint of process" in str(refused.value)


def test_ctrl_c_ends_the_workers_too_and_resume_runs_the_rest(folder: Path) -> None:
    path = write(folder, "long", "rough", [f"q{number}" for number in range(80)])
    command = [sys.executable, "-m", "proctor", "test", path.name, "--workers", "2", "-j", "2", "--json", "long.json"]
    printed: list[str] = []
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for line in iter(process.stdout.readline, ""):
            printed.append(line)
            if line.startswith("PASS"):
                break
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        printed += process.stdout.read().splitlines()
        assert process.wait(60) == 130
    _, left = psutil.wait_procs([one for one in psutil.process_iter() if _session(one.pid) == process.pid], 30)
    assert left == []

    before = {line.split()[1].removeprefix("long/") for line in printed if line.startswith("PASS")}
    assert 0 < len(before) < 80
    again = subprocess.run([*command, "--resume"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "already stored" in again.stdout.splitlines()[0]
    report = json.loads((folder / "long.json").read_text(encoding="utf-8"))
    assert sorted(trial["case"]["id"] for trial in report["trials"]) == sorted(f"q{number}" for number in range(80))


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def test_a_missing_key_stops_the_run_on_workers_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_API_KEY", raising=False)
    path = write(folder, "locked-out", "needs_key", [f"q{number}" for number in range(30)], "settings: {parallel: 1}\n")
    run_, verdict = run(path)
    assert verdict.exit_code == 4
    assert len(run_.summaries) < 10
    assert run_.note.startswith("SHOP_API_KEY is not set; the other ")
