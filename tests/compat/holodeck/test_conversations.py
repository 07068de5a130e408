"""Conversations that break: what was answered is never asked again, and nothing of an answer is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from holodeck_tokens import tokens

from proctor.cases.formats.loading import load
from proctor.compat.holodeck import (
    BackendSessionError,
    ExecutionResult,
    TestCaseModel,
    TestExecutor,
    TestReport,
    TestResult,
    generate_markdown_report,
)
from proctor.reporting.json_report import trial_data
from proctor.running.rescore import rescore
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

Send = Callable[[str], ExecutionResult]


class Desk:
    """A backend that notes every message, whether it answers it or not."""

    def __init__(self, send: Send = ExecutionResult) -> None:
        self.heard: list[str] = []
        self.sessions = 0
        self._send = send

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        self.heard.append(message)
        return self._send(message)

    async def create_session(self, *, eager_connect: bool = True) -> Desk:
        self.sessions += 1
        return self

    async def send(self, message: str) -> ExecutionResult:
        return await self.invoke_once(message)


def failing(on: dict[str, Exception], times: int = 1) -> Send:
    """Raises for some messages, so many times each."""
    left = dict.fromkeys(on, times)

    def send(message: str) -> ExecutionResult:
        if left.get(message, 0) > 0:
            left[message] -= 1
            raise on[message]
        return ExecutionResult(message)

    return send


def write(folder: Path, tests: list[dict[str, Any]], **more: Any) -> str:
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    (folder / "agent.yaml").write_text(json.dumps({"name": "a", "evaluations": metrics, "test_cases": tests, **more}))
    return str(folder / "agent.yaml")


def turns(*said: str) -> list[dict[str, Any]]:
    return [{"name": "talk", "turns": [{"input": text, "ground_truth": text} for text in said]}]


def run_tests(path: str, backend: Any, **given: Any) -> TestReport:
    return asyncio.run(TestExecutor(path, backend=backend, **given).execute_tests())


def test_a_turn_that_breaks_fails_and_the_next_ones_are_sent_once_each(tmp_path: Path) -> None:
    desk = Desk(failing({"pay": ConnectionError("reset")}))
    report = run_tests(write(tmp_path, turns("buy", "pay", "bye")), desk)
    [found] = report.results
    assert (desk.heard, desk.sessions) == (["buy", "pay", "bye"], 1)
    assert found.turns is not None
    assert [(t.response, t.passed, t.skipped) for t in found.turns] == [
        ("buy", True, False),
        (None, False, False),
        ("bye", True, False),
    ]
    assert not found.passed
    assert report.outcome == "error"
    [told] = found.errors
    assert told.startswith("[turn 2] the agent raised ConnectionError: reset")
    assert found.turns[1].metric_results == []


def test_a_first_turn_that_breaks_is_not_sent_again_in_a_conversation(tmp_path: Path) -> None:
    desk = Desk(failing({"buy": ConnectionError("reset")}))
    [found] = run_tests(write(tmp_path, turns("buy", "pay")), desk).results
    assert desk.heard == ["buy", "pay"]
    assert found.turns is not None
    assert [t.passed for t in found.turns] == [False, True]


def test_two_session_errors_in_a_row_skip_the_rest(tmp_path: Path) -> None:
    desk = Desk(failing({"b": BackendSessionError("gone"), "c": BackendSessionError("gone")}))
    [found] = run_tests(write(tmp_path, turns("a", "b", "c", "d", "e")), desk).results
    assert desk.heard == ["a", "b", "c"]
    assert found.turns is not None
    assert [(t.passed, t.skipped) for t in found.turns] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
        (False, True),
    ]
    assert found.outcome == "failed"
    assert "BackendSessionError: gone" in found.turns[2].errors[0]
    assert found.turns[3].errors == ["not sent: the session was unrecoverable"]


def test_session_errors_that_are_not_in_a_row_skip_nothing(tmp_path: Path) -> None:
    desk = Desk(failing({"a": BackendSessionError("gone"), "c": BackendSessionError("gone")}))
    run_tests(write(tmp_path, turns("a", "b", "c", "d")), desk)
    assert desk.heard == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("error", "outcome"), [(ValueError("no"), "failed"), (TimeoutError(), "error")])
def test_other_errors_in_a_row_skip_nothing(tmp_path: Path, error: Exception, outcome: str) -> None:
    desk = Desk(failing({"a": error, "b": error}))
    [found] = run_tests(write(tmp_path, turns("a", "b", "c")), desk).results
    assert desk.heard == ["a", "b", "c"]
    assert found.outcome == outcome


def test_a_test_of_one_message_that_was_asked_again_says_so_and_why(tmp_path: Path) -> None:
    desk = Desk(failing({"x": ConnectionError("reset")}))
    report = run_tests(write(tmp_path, [{"name": "one", "input": "x", "ground_truth": "x"}]), desk)
    [found] = report.results
    assert found.passed
    assert found.attempts == 2
    [told] = found.warnings
    assert told.startswith("the agent was called again (attempt 2), since the agent raised ConnectionError: reset")
    assert "called again" in generate_markdown_report(report)


NATIVE = """
name: shop
agent: shop.py:Shop
cases:
  - id: order
    turns:
      - {input: buy, expected: buy}
      - {input: pay, expected: pay}
      - {input: bye, expected: bye}
evaluators: [ExactMatch]
"""

SHOP = """
from contextlib import asynccontextmanager
from pathlib import Path

from proctor import Reply


class Session:
    async def send(self, turn):
        with Path(__file__).with_name("heard").open("a") as log:
            log.write(turn.input + " ")
        if turn.input == "pay" and Path(__file__).with_name("heard").read_text().count("pay") == 1:
            raise ConnectionError("reset")
        return Reply(turn.input)


class Shop:
    name = "shop"

    @asynccontextmanager
    async def session(self, case):
        yield Session()
"""


def test_in_any_format_only_the_turn_that_broke_is_sent_again_and_the_trial_says_why(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(NATIVE)
    (tmp_path / "shop.py").write_text(SHOP)
    run, verdict = run_suites(RunRequest(load([tmp_path / "suite.yaml"]), RunOptions(backoff=0.001)))
    [trial] = run.trials
    assert (tmp_path / "heard").read_text().split() == ["buy", "pay", "pay", "bye"]
    assert (verdict.exit_code, trial.attempts) == (0, 2)
    [told] = trial.warnings
    assert told.startswith("turn 2 was sent again (attempt 2), since the agent raised ConnectionError: reset")
    assert trial_data(trial)["warnings"] == [told]


def test_a_turn_that_keeps_breaking_leaves_the_answers_before_it(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(NATIVE)
    (tmp_path / "shop.py").write_text(SHOP.replace('.count("pay") == 1', '.count("pay")'))
    run, verdict = run_suites(RunRequest(load([tmp_path / "suite.yaml"]), RunOptions(backoff=0.001)))
    [trial] = run.trials
    assert (tmp_path / "heard").read_text().split() == ["buy", "pay", "pay", "pay"]
    assert (verdict.exit_code, trial.attempts, len(trial.warnings)) == (4, 3, 2)
    assert [reply.text for reply in trial.replies if reply.error is None] == ["buy"]
    assert trial.reason.endswith("(after 3 attempts)")


def test_a_failed_turn_is_the_same_when_a_run_is_scored_again(tmp_path: Path) -> None:
    path = write(tmp_path, turns("buy", "pay", "bye"), agent="shop.py:Shop")
    (tmp_path / "shop.py").write_text(SHOP.replace("ConnectionError", "ValueError"))
    store = tmp_path / ".proctor"
    run, verdict = run_suites(RunRequest(load([path]), store=store))
    again, verdict_again = rescore(store, run.id, options=RunOptions())
    [first], [second] = list(run.trials), list(again.trials)
    assert (tmp_path / "heard").read_text().split() == ["buy", "pay", "bye"]
    assert first.reason.startswith("turn 2: the agent raised ValueError: reset")
    assert (first.outcome, first.reason) == (second.outcome, second.reason)
    assert [score.turn for score in first.scores] == [score.turn for score in second.scores] == [0, 2]
    assert verdict.exit_code == verdict_again.exit_code == 1


def test_turns_with_one_element_are_a_conversation(tmp_path: Path) -> None:
    desk = Desk()
    tests = [*turns("hello"), {"name": "plain", "input": "x", "ground_truth": "x"}]
    seen: list[TestCaseModel] = []
    report = run_tests(write(tmp_path, tests), desk, on_test_start=seen.append)
    conversation, plain = report.results
    assert desk.sessions == 1
    assert conversation.turns is not None
    assert [(t.input, [m.metric_name for m in t.metric_results]) for t in conversation.turns] == [
        ("hello", ["equality"])
    ]
    assert conversation.passed
    assert plain.turns is None
    assert seen[0].turns is not None
    assert seen[1].turns is None


def test_a_partial_answer_keeps_its_text_its_calls_and_its_usage(tmp_path: Path) -> None:
    def half(message: str) -> ExecutionResult:
        return ExecutionResult(
            "Let me see",
            [{"name": "search", "arguments": {"q": 1}, "call_id": "1"}],
            [{"name": "search", "result": "found", "call_id": "1"}],
            tokens(3, 4, 7),
            is_error=True,
            error_reason="max turns reached",
        )

    report = run_tests(
        write(tmp_path, [{"name": "one", "input": "x", "ground_truth": "x"}, *turns("a", "b")]), Desk(half)
    )
    one, several = report.results
    assert (one.agent_response, one.tool_calls, one.token_usage) == (
        "Let me see",
        ["search"],
        tokens(3, 4, 7),
    )
    assert one.tool_invocations[0].result == "found"
    assert (one.outcome, one.passed, one.errors) == ("failed", False, ["max turns reached"])
    assert several.turns is not None
    assert [(t.response, t.tool_calls, t.errors) for t in several.turns] == [
        ("Let me see", ["search"], ["max turns reached"])
    ] * 2
    assert several.token_usage == tokens(6, 8, 14)
    assert several.errors == ["[turn 1] max turns reached", "[turn 2] max turns reached"]


def test_tests_follow_each_other_where_one_may_run_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def done(result: TestResult) -> None:
        order.append(f"done {result.test_name}")

    tests = [{"name": f"t{i}", "input": "x", "ground_truth": "x"} for i in range(5)]
    path = write(tmp_path, tests)
    run_tests(path, Desk(), on_test_start=lambda test: order.append(f"start {test.name}"), progress_callback=done)
    assert order == [f"{step} t{i}" for i in range(5) for step in ("start", "done")]
