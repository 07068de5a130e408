"""Generated function-calling cases against a checker of its own that tries everything."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import function_calling as generated
import pytest

import proctor
from proctor.agents.reply import ToolCall
from proctor.cases.formats.loading import load
from proctor.cases.suite import EvaluatorSpec, Suite
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.tools.checks import ExpectedTools, ToolTrajectory
from proctor.evaluators.tools.trajectory import Trajectory

CASES = 80


def tools_of(expected: list[generated.Expected]) -> list[dict[str, Any]]:
    return [
        {"name": call.tool, "args": {name: generated.form(rule) for name, rule in call.rules.items()}}
        for call in expected
    ]


@pytest.fixture(scope="module")
def expected_calls() -> list[list[generated.Expected]]:
    rng = random.Random(20_14)
    return [generated.generate(rng) for _ in range(CASES)]


@pytest.fixture(scope="module")
def suite_file(expected_calls: list[list[generated.Expected]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [
        {"id": f"case-{number}", "input": "go", "expected": {"tools": tools_of(expected)}}
        for number, expected in enumerate(expected_calls)
    ]
    evaluators = [{"ToolTrajectory": {"match": "ANY_ORDER", "extra": False}}]
    path = tmp_path_factory.mktemp("generated") / "suite.json"
    path.write_text(json.dumps({"evaluators": evaluators, "cases": cases}))
    return path


@pytest.fixture(scope="module")
def suite(suite_file: Path) -> Suite:
    [found] = load([suite_file])
    return found


def answers(expected: list[generated.Expected], rng: random.Random) -> list[tuple[str, list[generated.Call]]]:
    found = [("right", generated.right_calls(expected)), ("acceptable", generated.acceptable_calls(expected, rng))]
    for kind, spoil in generated.MISTAKES.items():
        calls = generated.right_calls(expected)
        spoil(calls, rng)
        found.append((kind, calls))
    return found


def test_no_verdict_differs_from_that_of_a_checker_that_tries_everything(
    suite: Suite, expected_calls: list[list[generated.Expected]]
) -> None:
    rng = random.Random(14)
    seen: Counter[tuple[str, bool]] = Counter()
    for case, expected in zip(suite.cases, expected_calls, strict=True):
        wanted = case.turns[0].expected.tools
        trajectory = Trajectory(steps=tools_of(expected), extra=False)
        for kind, calls in answers(expected, rng):
            made = tuple(ToolCall(name, arguments) for name, arguments in calls)
            evaluable = Evaluable(tool_calls=made, expected_tool_calls=wanted)
            right = generated.accepts_calls(expected, calls)
            contained = generated.contains_calls(expected, calls)
            told = ToolTrajectory("ANY_ORDER", extra=False)(evaluable)
            context = f"{case.id}, {kind}: {told.reasoning}"
            assert (told.score == 1.0) is right, context
            assert (trajectory(evaluable).score == 1.0) is right, context
            assert (ExpectedTools()(evaluable).score == 1.0) is contained, context
            seen[kind, right] += 1
    assert seen == {
        **{(kind, True): CASES for kind in ("right", "acceptable")},
        **{(kind, False): CASES for kind in generated.MISTAKES},
    }


@pytest.mark.needs("deepeval")
def test_tool_correctness_gives_no_other_verdict_either(
    suite: Suite, expected_calls: list[list[generated.Expected]]
) -> None:
    rng = random.Random(14)
    evaluator = resolve_evaluator(EvaluatorSpec("ToolCorrectness", {"compare_arguments": True})).call
    for case, expected in zip(suite.cases, expected_calls, strict=True):
        for kind, calls in answers(expected, rng):
            made = tuple(ToolCall(name, arguments) for name, arguments in calls)
            evaluable = Evaluable(tool_calls=made, expected_tool_calls=case.turns[0].expected.tools)
            contained = generated.contains_calls(expected, calls)
            assert (evaluator(evaluable).score == 1.0) is contained, f"{case.id}, {kind}"


@pytest.mark.parametrize(("agent", "passed"), [("oracle", CASES), ("nop", 0)])
def test_the_oracle_passes_all_of_them_and_an_agent_that_does_nothing_none(
    suite: Suite, tmp_path: Path, agent: str, passed: int
) -> None:
    run = proctor.run(suite, agent=agent, store=tmp_path / "store")
    counts = Counter(trial.outcome.value for trial in run.summaries)
    assert counts == {"passed": passed} if passed else {"failed": CASES}
