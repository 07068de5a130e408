"""Trials on workers of this machine, with the real scheduler and real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from agents_under_test import outcomes, trials_of

from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict
from proctor.running.options import ClusterOptions, RunOptions
from proctor.running.run_suites import Request, run_suites

AGENT = '''
import asyncio
import json
import os
import sys
import time

import psutil

from proctor import tool


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
        from proctor import Reply

        self.heard.append(turn.input)
        look(turn.input)
        await asyncio.sleep(0.02)
        print("the agent prints")
        own = [psutil.Process(), psutil.Process().parent()]
        listening = sorted({c.laddr.ip for p in own for c in p.net_connections() if c.status == "LISTEN"})
        state = {"pid": os.getpid(), "listening": listening, "heard": list(self.heard)}
        return Reply(turn.input, state=state)


counted = Counted()


async def rough(question):
    if question == "dies":
        os._exit(0)
    if question == "holds":
        time.sleep(60)
    if question == "raises":
        raise ValueError("a bug")
    await asyncio.sleep(0.05)
    return question


class Own:
    name = "own"
    fingerprint = f"of process {os.getpid()}"

    def session(self, case):
        return Talk()


own = Own()
'''


TWO = ClusterOptions(workers=2)
CHECKS = """
import os


def where(evaluable):
    from proctor import Evaluation

    return Evaluation(1.0, str(os.getpid()))


def judged(evaluable):
    return where(evaluable)


judged.needs_judge = True
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("workers")
    (made / "agents.py").write_text(AGENT, encoding="utf-8")
    (made / "checks.py").write_text(CHECKS, encoding="utf-8")
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


def run(path: Path, cluster: ClusterOptions = TWO, **options: object) -> tuple[Run, RunVerdict]:
    chosen = RunOptions(cluster=cluster, backoff=0.0, **options)  # type: ignore[arg-type]
    return run_suites(Request(load([path]), chosen, store=path.parent / ".proctor"))


@pytest.fixture(scope="module")
def many(folder: Path) -> tuple[Run, RunVerdict]:
    talk = "  - {id: talk, turns: [{input: a, expected: a}, {input: b, expected: b}]}\n"
    return run(write(folder, "many", "counted", [f"q{number}" for number in range(60)], talk))


def test_every_trial_is_made_once_by_processes_that_are_not_the_runs_own(many: tuple[Run, RunVerdict]) -> None:
    trials = trials_of(many)
    makers = {trial.replies[0].state["pid"] for trial in trials}  # type: ignore[index]

    assert many[1].exit_code == 0
    assert sorted(trial.case.id for trial in trials) == sorted([*(f"q{number}" for number in range(60)), "talk"])
    assert len(makers) == 2
    assert os.getpid() not in makers


def test_what_was_seen_on_the_worker_comes_back_with_the_reply(many: tuple[Run, RunVerdict]) -> None:
    for trial in trials_of(many):
        for reply in trial.replies:
            assert [(call.name, call.result) for call in reply.tool_calls] == [("look", reply.text + "!")]


def test_the_turns_of_a_conversation_are_held_in_one_session(many: tuple[Run, RunVerdict]) -> None:
    (talk,) = [trial for trial in trials_of(many) if trial.case.id == "talk"]

    assert talk.replies[-1].state["heard"] == ["a", "b"]  # type: ignore[index]


def test_an_agent_starts_once_on_each_worker_and_is_stopped_there(many: tuple[Run, RunVerdict], folder: Path) -> None:
    life = (folder / "life.txt").read_text(encoding="utf-8").splitlines()
    makers = {str(trial.replies[0].state["pid"]) for trial in trials_of(many)}  # type: ignore[index]

    assert sorted(life) == sorted(f"{what} {pid}" for what in ("start", "stop") for pid in makers)


def test_nothing_listens_on_any_address_but_the_loopback(many: tuple[Run, RunVerdict]) -> None:
    assert {tuple(trial.replies[0].state["listening"]) for trial in trials_of(many)} == {("127.0.0.1",)}  # type: ignore[index]


def test_a_trial_that_ends_or_blocks_its_worker_fails_alone(folder: Path) -> None:
    questions = ["dies", "holds", "raises", *(f"q{number}" for number in range(20))]
    found = run(write(folder, "rough", "rough", questions), given=_settings(timeout=0.5))

    wrong = {name: outcome for name, outcome in outcomes(found).items() if outcome is not Outcome.PASSED}
    assert wrong == {"dies": Outcome.FAILED, "holds": Outcome.FAILED, "raises": Outcome.FAILED}
    said = {trial.case.id: trial for trial in trials_of(found)}
    assert "ended each of the 3 times" in said["dies"].reason
    assert said["dies"].attempts == 3
    assert "held the interpreter" in said["holds"].reason
    assert "a bug" in said["raises"].reason
    again = [trial for trial in trials_of(found) if trial.attempts > 1 and trial.case.id.startswith("q")]
    assert all("since the worker" in trial.warnings[0] for trial in again)


def test_evaluators_run_on_workers_where_asked_unless_a_judge_is_among_them(folder: Path) -> None:
    more = "  - {id: judged, input: judged, expected: judged, evaluators: ['checks.py:where', 'checks.py:judged']}\n"
    path = write(folder, "scored", "counted", ["q0", "q1", "q2"], more, "ExactMatch, 'checks.py:where'")
    found = run(path, ClusterOptions(workers=1, score=True))

    assert found[1].exit_code == 0
    scored = {trial.case.id: trial for trial in trials_of(found)}
    workers = {str(trial.replies[0].state["pid"]) for trial in scored.values()}  # type: ignore[index]
    for name in ("q0", "q1", "q2"):
        exact, where = scored[name].scores
        assert (exact.evaluator, exact.outcome) == ("ExactMatch", Outcome.PASSED)
        assert where.reasoning in workers
    assert {score.reasoning for score in scored["judged"].scores} == {str(os.getpid())}


def test_a_worker_whose_agent_is_another_is_refused_with_both_fingerprints(folder: Path) -> None:
    with pytest.raises(UsageError) as refused:
        run(write(folder, "own", "own", ["q"]), ClusterOptions(workers=1))

    assert f"here it is of process {os.getpid()}" in str(refused.value)
    assert "its fingerprint is of process" in str(refused.value)


def test_ctrl_c_ends_the_workers_too_and_resume_makes_the_rest(folder: Path) -> None:
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
    assert "of which" in again.stdout.splitlines()[0]
    report = json.loads((folder / "long.json").read_text(encoding="utf-8"))
    assert sorted(trial["case"]["id"] for trial in report["trials"]) == sorted(f"q{number}" for number in range(80))


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _settings(**given: float) -> object:
    from proctor.cases.suite import Settings

    return Settings(**given)  # type: ignore[arg-type]
