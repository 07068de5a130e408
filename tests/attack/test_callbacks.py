"""Hooks and callbacks that raise what is no `Exception`: told in a line or to the caller, and no trial is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.formats.loading import load
from proctor.results.store.store import Store
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions


class Own(BaseException):
    """A class of one's own."""


RAISED = (SystemExit(0), GeneratorExit(), Own("own"), ValueError("usual"))
NAMES = [type(error).__name__ for error in RAISED]
Command = Callable[..., Any]

APP = """
class Own(BaseException):
    pass


def _hooks(error, where):
    class App:
        @classmethod
        def create(cls):
            return cls()

        async def setup(self):
            if where == "setup":
                raise error

        async def run(self, args):
            return args

        async def teardown(self):
            if where == "teardown":
                raise error

    return App


for _error in (SystemExit(0), GeneratorExit(), Own("own"), ValueError("x")):
    for _where in ("setup", "teardown"):
        globals()[f"{type(_error).__name__}_{_where}"] = _hooks(_error, _where)
"""


def cases(*ids: str) -> str:
    return "".join(f"- {{id: {name}, input: {name}, expected: {name}}}\n" for name in ids)


@pytest.mark.parametrize("where", ["setup", "teardown"])
def test_a_hook_of_an_application_that_raises_is_reported_and_no_suite_is_lost(
    proctor_process: Command, project: Path, where: str
) -> None:
    (project / "app.py").write_text(APP)
    for name in NAMES:
        (project / f"{name}.yaml").write_text(f"name: {name}\nagent: app.py:{name}_{where}\ncases:\n{cases('a', 'b')}")
    (project / "good.yaml").write_text(f"name: good\nagent: agents.py:echo\ncases:\n{cases('a', 'b')}")
    ended = proctor_process("test", *(f"{name}.yaml" for name in NAMES), "good.yaml", "--json", "r.json")
    report = json.loads((project / "r.json").read_text(encoding="utf-8"))
    assert len(report["trials"]) == 2 * len(NAMES) + 2
    assert ended.code in (1, 4)
    assert f".{where}() raised " in ended.out
    good = [trial["outcome"] for trial in report["trials"] if trial["suite"] == "good"]
    assert good == ["passed", "passed"]
    assert ended.err == ""


@pytest.mark.parametrize("error", RAISED, ids=NAMES)
def test_a_listener_that_raises_reaches_its_caller_and_every_finished_trial_is_stored(
    tmp_path: Path, error: BaseException
) -> None:
    (tmp_path / "suite.yaml").write_text(f"name: desk\nsettings: {{parallel: 1}}\ncases:\n{cases('a', 'b', 'c')}")

    class Listener:
        def started(self, run: Any, planned: int, kept: int) -> None: ...

        def trial_done(self, trial: Any) -> None:
            raise error

        def finished(self, run: Any, verdict: Any) -> None: ...

    request = RunRequest(
        load([tmp_path / "suite.yaml"]), RunOptions(), "oracle", lambda suite, case: True, tmp_path / "kept"
    )
    with pytest.raises(type(error)):
        run_suites(request, Listener())
    kept = list(Store(tmp_path / "kept").find_run("last").trials)
    assert kept and [trial.case.id for trial in kept] == ["a", "b", "c"][: len(kept)]


@pytest.mark.needs("holodeck")
@pytest.mark.parametrize("error", RAISED, ids=NAMES)
def test_a_progress_callback_that_raises_is_a_warning_and_every_test_is_in_the_report(
    tmp_path: Path, error: BaseException
) -> None:
    import asyncio

    from proctor.compat.holodeck import ExecutionResult, TestExecutor

    tests = "".join(f"- {{name: {name}, input: {name}, ground_truth: {name}}}\n" for name in "abc")
    head = "name: desk\nmodel: {provider: openai, name: gpt-x}\ninstructions: {inline: Echo.}\n"
    metrics = "evaluations:\n  metrics: [{type: standard, metric: bleu}]\n"
    (tmp_path / "agent.yaml").write_text(f"{head}{metrics}test_cases:\n{tests}")

    def failing(result: Any) -> None:
        raise error

    class Echo:
        async def invoke_once(self, message: str, **more: Any) -> Any:
            return ExecutionResult(response=message)

    executor = TestExecutor(tmp_path / "agent.yaml", backend=Echo(), progress_callback=failing, on_test_start=failing)
    report = asyncio.run(executor.execute_tests())
    assert len(report.results) == 3
    assert any(f"progress_callback raised {type(error).__name__}" in warning for warning in report.warnings)


@pytest.mark.needs("deepeval")
@pytest.mark.parametrize("error", RAISED, ids=NAMES)
def test_a_metric_that_raises_is_only_its_own_error_and_the_others_are_measured(error: BaseException) -> None:
    from proctor.compat.deepeval import BaseMetric, DisplayConfig, ErrorConfig, LLMTestCase, evaluate

    class Failing(BaseMetric):
        threshold = 0.5
        async_mode = True

        def measure(self, test_case: Any) -> float:
            raise error

        async def a_measure(self, test_case: Any, **more: Any) -> float:
            raise error

        def is_successful(self) -> bool:
            return False

    class Fine(Failing):
        async def a_measure(self, test_case: Any, **more: Any) -> float:
            self.score, self.success = 1.0, True
            return 1.0

        def is_successful(self) -> bool:
            return True

    result = evaluate(
        [LLMTestCase(input="a", actual_output="a")],
        [Failing(), Fine()],
        error_config=ErrorConfig(ignore_errors=True),
        display_config=DisplayConfig(print_results=False, show_indicator=False),
    )
    [found] = result.test_results
    failed, fine = found.metrics_data
    assert type(error).__name__ in (failed.error or "")
    assert fine.success


CONFTEST = """
import pytest


class Own(BaseException):
    pass


def pytest_runtest_setup(item):
    if "bad-setup" in item.name:
        raise GeneratorExit


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if "bad-teardown" in item.name:
        raise Own("own")
"""
AGENT = """
class Own(BaseException):
    pass


def agent(question):
    if question in ("GeneratorExit", "SystemExit"):
        raise {"GeneratorExit": GeneratorExit, "SystemExit": SystemExit}[question]
    if question == "Own":
        raise Own("own")
    return question
"""


def test_in_pytest_a_hook_or_an_agent_that_raises_fails_its_own_case_and_the_others_are_run(
    project: Path, environment: dict[str, str]
) -> None:
    import subprocess
    import sys

    (project / "app.py").write_text(AGENT)
    (project / "conftest.py").write_text(CONFTEST)
    ids = ("GeneratorExit", "SystemExit", "Own", "bad-setup", "bad-teardown", "good")
    (project / "desk.proctor.yaml").write_text(f"name: desk\nagent: app.py:agent\ncases:\n{cases(*ids)}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", "desk.proctor.yaml"]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    summary = done.stdout.partition("short test summary")[2]
    assert summary.count("FAILED") == 3
    assert "PASSED desk.proctor.yaml::good" in summary
