from __future__ import annotations

import asyncio
import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import UsageError
from proctor.cases.suite import EvaluatorSpec, NamedData, Turn
from proctor.compat.holodeck.grader import CodeGrader, GraderContext, grader_context
from proctor.compat.holodeck.test_results import ToolInvocation
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import Evaluation, InvalidScore
from proctor.evaluators.registry import resolve_evaluator

GRADERS = """
import asyncio, threading
from types import SimpleNamespace
from proctor.compat.holodeck.grader import GraderResult

SEEN = []
not_callable = 7

def keeps(context):
    SEEN.append((context, threading.current_thread() is threading.main_thread()))
    return True

async def waits(context):
    await asyncio.sleep(0)
    return 0.25

def makes_a_coroutine(context):
    return waits(context)

class Strict:
    def __call__(self, context):
        return len(context.agent_response) > 3

strict = Strict()

def passes_low(context): return GraderResult(0.1, passed=True, reason="good enough", details={"seen": {3, 1}})
def fails_high(context): return GraderResult(0.9, passed=False)
def explains(context): return GraderResult(0.75, reason="nearly", details={"gap": 0.25})
def quacks(context): return SimpleNamespace(score=0.5, reasoning="half")
def quacks_loosely(context): return SimpleNamespace(score=1, details=[1, 2])
def silent(context): return None
def talks(context): return "good"
def no_score(context): return GraderResult(None)
def text_score(context): return GraderResult("1.0")
def not_a_number(context): return float("nan")
def boasts(context): return 7.0
def raises(context): raise ValueError("no idea")
def runs_dry(context): return next(iter(()))
"""


@pytest.fixture
def graders(tmp_path: Path) -> Path:
    (tmp_path / "graders_here.py").write_text(GRADERS)
    return tmp_path


def grade(base: Path, name: str, evaluable: Evaluable | None = None) -> Evaluation | None:
    grader = CodeGrader(f"graders_here.py:{name}", base)
    return asyncio.run(evaluate(grader, evaluable or Evaluable(eval_output=(NamedData("answer", "word"),))))


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("keeps", 1.0),
        ("waits", 0.25),
        ("makes_a_coroutine", 0.25),
        ("strict", 1.0),
        ("explains", 0.75),
        ("quacks", 0.5),
    ],
)
def test_a_grader_may_be_sync_or_async_and_return_a_bool_a_number_or_a_result(
    graders: Path, name: str, score: float
) -> None:
    evaluation = grade(graders, name)
    assert evaluation is not None
    assert evaluation.score == score


def test_a_result_brings_its_reason_and_its_details(graders: Path) -> None:
    assert grade(graders, "explains") == Evaluation(0.75, "nearly", {"gap": 0.25})
    assert grade(graders, "quacks") == Evaluation(0.5, "half")
    assert grade(graders, "quacks_loosely") == Evaluation(1.0, "", {"details": [1, 2]})


def test_a_grader_that_says_passed_decides_whatever_the_threshold(graders: Path) -> None:
    passed = grade(graders, "passes_low")
    assert passed == Evaluation(0.1, "good enough", {"seen": [1, 3]}, passed=True)
    assert grade(graders, "fails_high") == Evaluation(0.9, passed=False)


@pytest.mark.parametrize("name", ["silent", "talks", "no_score", "text_score", "not_a_number"])
def test_a_grader_that_gives_no_score_is_an_error_not_a_zero(graders: Path, name: str) -> None:
    with pytest.raises(InvalidScore, match="returned"):
        grade(graders, name)


def test_a_score_beyond_the_scale_is_clamped_and_kept(graders: Path) -> None:
    with pytest.warns(RuntimeWarning, match="clamped"):
        assert grade(graders, "boasts") == Evaluation(1.0, "", {"unclamped_score": 7.0})


def test_a_crashing_grader_is_an_error_not_a_zero(graders: Path) -> None:
    with pytest.raises(ValueError, match="no idea"):
        grade(graders, "raises")


def test_a_grader_that_runs_out_of_items_does_not_wait_for_ever(graders: Path) -> None:
    async def graded() -> Any:
        grader = CodeGrader("graders_here.py:runs_dry", graders)
        return await asyncio.wait_for(evaluate(grader, Evaluable()), 30)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(graded())


def test_a_grader_that_blocks_does_not_block_the_others(graders: Path) -> None:
    grade(graders, "keeps")
    # Earlier tests may have left a module of the same name: the latest is ours.
    module = [module for name, module in sys.modules.items() if name.startswith("_proctor_graders_here")][-1]
    assert module.SEEN[-1][1] is False


def test_the_context_tells_everything_about_the_turn() -> None:
    asked = Exchange(Turn("hello"), Reply("hi"))
    calls = (
        ToolCall("lookup", {"id": 7}, result={"name": "é"}, duration_ms=12.0),
        ToolCall("refund", error="refused"),
    )
    evaluable = Evaluable(
        eval_input=(NamedData("input", "how much?"),),
        eval_output=(NamedData("output", {"total": 3}),),
        expectation="3",
        description="a refund",
        tool_calls=calls,
        retrieval_context=("a fact",),
        turns=(asked, asked),
        turn_metadata={"tolerance": 0.1},
    )
    assert grader_context(evaluable) == GraderContext(
        turn_input="how much?",
        agent_response='{"total": 3}',
        ground_truth="3",
        tool_invocations=(
            ToolInvocation(
                name="lookup",
                args={"id": 7},
                result={"name": "é"},
                bytes=len('{"name": "é"}'.encode()),
                duration_ms=12.0,
            ),
            ToolInvocation(name="refund", error="refused"),
        ),
        retrieval_context=("a fact",),
        turn_index=1,
        test_case_name="a refund",
        turn_config={"tolerance": 0.1},
    )


def test_what_is_not_there_is_none_or_empty() -> None:
    assert grader_context(Evaluable()) == GraderContext(turn_input="", agent_response="")
    assert grader_context(Evaluable(expectation=None)).ground_truth is None
    assert grader_context(Evaluable(expectation=0)).ground_truth == "0"


def test_a_grader_cannot_change_what_is_kept() -> None:
    call = ToolCall("a", {"ids": [1]}, result=[1])
    context = grader_context(Evaluable(tool_calls=(call,)))
    context.tool_invocations[0].args["ids"].append(2)
    context.tool_invocations[0].result.append(2)
    assert call == ToolCall("a", {"ids": [1]}, result=[1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.turn_index = 3  # type: ignore[misc]


def test_text_that_no_encoding_can_hold_is_still_measured() -> None:
    context = grader_context(Evaluable(tool_calls=(ToolCall("a", result="\ud800"),)))
    assert context.tool_invocations[0].bytes == 3


@pytest.mark.parametrize("reference", ["graders_here.py:absent", "nowhere.py:f", "no_such_module_here:f", "f", 7, None])
def test_a_grader_that_cannot_be_found_is_reported_before_anything_runs(graders: Path, reference: Any) -> None:
    with pytest.raises(UsageError):
        resolve_evaluator(EvaluatorSpec("CodeGrader", {"grader": reference}), graders)


def test_a_grader_that_cannot_be_called_is_refused(graders: Path) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        CodeGrader("graders_here.py:not_callable", graders)


def test_a_suite_file_finds_its_grader_next_to_it_and_runs_it_apart_from_the_event_loop(graders: Path) -> None:
    bound = resolve_evaluator(EvaluatorSpec("CodeGrader", {"grader": "graders_here:explains"}), graders)
    assert (bound.threshold, bound.runs_inline) == (0.5, False)
    assert asyncio.run(evaluate(bound.call, Evaluable())) == Evaluation(0.75, "nearly", {"gap": 0.25})


def test_the_version_follows_the_code_of_the_grader(graders: Path) -> None:
    before = CodeGrader("graders_here.py:explains", graders)
    first = before.version
    (graders / "graders_here.py").write_text(GRADERS + "\n# another tolerance\n")
    assert CodeGrader("graders_here.py:explains", graders).version != first


def test_graders_of_the_same_name_and_place_are_equal(graders: Path) -> None:
    assert CodeGrader("graders_here.py:keeps", graders) == CodeGrader("graders_here.py:keeps", graders)
