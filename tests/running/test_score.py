from __future__ import annotations

import asyncio
import functools
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, echo, finish, only, outcomes, run, spawn, suite, trials_of

from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, NamedData, Turn
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, NothingToCompare
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

ME = "test_score"


def scored(name: str, *, agent: Any = echo, **spec: Any) -> Trial:
    """One trial of one case, scored by an evaluator of this file."""
    limits = {"evaluator_timeout": 30.0}
    return only(run(suite([case("c")], evaluators=(EvaluatorSpec(f"{ME}:{name}", **spec),), **limits), agent=agent))


def only_score(trial: Trial) -> Score:
    (score,) = trial.scores
    return score


def raising(evaluable: Evaluable) -> float:
    raise KeyError("no such thing")


async def raising_async(evaluable: Evaluable) -> float:
    raise KeyError("no such thing")


def nan(evaluable: Evaluable) -> float:
    return float("nan")


def text(evaluable: Evaluable) -> Any:
    return "good"


def quits(evaluable: Evaluable) -> float:
    sys.exit(3)


async def quits_async(evaluable: Evaluable) -> float:
    sys.exit(3)


async def interrupts_async(evaluable: Evaluable) -> float:
    raise KeyboardInterrupt


def no_details(evaluable: Evaluable) -> Evaluation:
    return Evaluation(1.0, "fine", None)  # type: ignore[arg-type]


def text_score(evaluable: Evaluable) -> Evaluation:
    return Evaluation("1.0")  # type: ignore[arg-type]


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def unspeakable_details(evaluable: Evaluable) -> Evaluation:
    return Evaluation(1.0, "fine", {"what": Unspeakable()})


async def cancels_itself(evaluable: Evaluable) -> float:
    raise asyncio.CancelledError


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising_unspeakably(evaluable: Evaluable) -> float:
    raise Mute


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raising", "raised KeyError: 'no such thing'"),
        ("raising_async", "raised KeyError: 'no such thing'"),
        ("nan", "returned NaN"),
        ("text", "returned 'good' (str); return True, False"),
        ("text_score", "returned the score '1.0'"),
        ("quits", "raised SystemExit: 3"),
        ("quits_async", "raised SystemExit: 3"),
        ("interrupts_async", "raised KeyboardInterrupt"),
        ("cancels_itself", "cancelled itself"),
    ],
)
def test_an_evaluator_that_breaks_is_an_error_not_a_zero(name: str, reason: str) -> None:
    trial = scored(name)

    assert trial.outcome is Outcome.ERROR
    assert only_score(trial).outcome is Outcome.ERROR
    assert only_score(trial).value is None
    assert reason in only_score(trial).reasoning


@pytest.mark.parametrize("name", ["unspeakable_details", "raising_unspeakably"])
def test_an_evaluator_that_says_something_unspeakable_does_not_end_the_run(name: str, tmp_path: Path) -> None:
    broken = case("bad", evaluators=(EvaluatorSpec(f"{ME}:{name}"),))
    found = run(suite([broken, case("good")]), agent=echo, store=tmp_path / "store")

    assert outcomes(found)["bad"] is (Outcome.PASSED if name == "unspeakable_details" else Outcome.ERROR)
    assert outcomes(found)["good"] is Outcome.PASSED


def test_an_evaluation_without_details_is_an_evaluation() -> None:
    assert scored("no_details").outcome is Outcome.PASSED


def test_a_broken_evaluator_says_where_it_failed() -> None:
    assert f"{Path(__file__).name}:" in only_score(scored("raising")).reasoning


def seven(evaluable: Evaluable) -> int:
    return 7


def below_zero(evaluable: Evaluable) -> Evaluation:
    return Evaluation(-0.5, "odd")


def test_scores_out_of_range_are_clamped_and_the_trial_says_so() -> None:
    assert only_score(scored("seven")).value == 1.0
    assert scored("seven").warnings == ("seven: an evaluator returned the score 7; clamped to 1",)
    assert only_score(scored("below_zero")).value == 0.0
    assert scored("below_zero").outcome is Outcome.FAILED


def nothing(evaluable: Evaluable) -> None:
    return None


def nothing_said(evaluable: Evaluable) -> None:
    raise NothingToCompare("there is no reference")


def pending(evaluable: Evaluable) -> float:
    raise EvaluationPending("ask Ada")


def test_an_evaluator_with_nothing_to_compare_is_skipped_and_does_not_pass_the_case() -> None:
    assert only_score(scored("nothing")).outcome is Outcome.SKIPPED
    assert only_score(scored("nothing_said")).reasoning == "there is no reference"
    assert scored("nothing").outcome is Outcome.ERROR
    assert "skipped" in scored("nothing").reason


def test_a_skipped_evaluator_leaves_the_verdict_to_the_others() -> None:
    specs = (EvaluatorSpec(f"{ME}:nothing"), EvaluatorSpec("ExactMatch"))
    trial = only(run(suite([case("c")], evaluators=specs), agent=echo))

    assert trial.outcome is Outcome.PASSED
    assert [score.outcome for score in trial.scores] == [Outcome.SKIPPED, Outcome.PASSED]


def test_a_verdict_that_a_person_has_to_give_leaves_the_run_inconclusive() -> None:
    found = run(suite([case("c")], evaluators=(EvaluatorSpec(f"{ME}:pending"),)), agent=echo)

    assert only(found).outcome is Outcome.PENDING
    assert only_score(only(found)).reasoning == "ask Ada"
    assert found[1].exit_code == 3


def hangs(evaluable: Evaluable) -> bool:
    threading.Event().wait()
    return True


async def hangs_async(evaluable: Evaluable) -> bool:
    await asyncio.Event().wait()
    return True


async def refuses_to_be_cancelled(evaluable: Evaluable) -> bool:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


async def blocks_the_loop(evaluable: Evaluable) -> bool:
    time.sleep(3600)
    return True


@pytest.mark.process
@pytest.mark.parametrize("name", ["hangs", "hangs_async", "refuses_to_be_cancelled", "blocks_the_loop"])
def test_an_evaluator_that_hangs_is_an_error_and_the_process_ends(name: str, tmp_path: Path) -> None:
    script = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import engine_helpers as under_test
from proctor.cases.suite import EvaluatorSpec

bad = under_test.case("bad", evaluators=(EvaluatorSpec("{ME}:{name}"), EvaluatorSpec("ExactMatch")))
found = under_test.run(
    under_test.suite([bad, under_test.case("good")], evaluator_timeout=0.2), agent=under_test.echo_async
)
print(json.dumps([[t.outcome, [[s.outcome, s.reasoning] for s in t.scores]] for t in found[0].trials]))
"""
    code, out, err = finish(spawn(script, cwd=tmp_path), seconds=40)

    assert (code, err) == (0, "")
    bad, good = json.loads(out)
    assert bad[0] == "error"
    assert bad[1][0] == ["error", "gave no score within 0.2 s"]
    assert bad[1][1][0] == "passed"
    assert good[0] == "passed"


def test_an_evaluator_may_have_its_own_timeout() -> None:
    assert only_score(scored("hangs", timeout=0.05)).reasoning == "gave no score within 0.05 s"


def raises_timeout(evaluable: Evaluable) -> bool:
    raise TimeoutError("the judge is slow")


def test_an_evaluator_that_raises_its_own_timeout_did_not_run_out_of_our_time() -> None:
    assert "raised TimeoutError: the judge is slow" in only_score(scored("raises_timeout")).reasoning


def test_a_pattern_that_never_ends_is_an_error_and_the_others_go_on() -> None:
    endless = EvaluatorSpec("Regex", {"pattern": "(a|aa)+$"}, label="endless")
    specs = (endless, EvaluatorSpec("ExactMatch"))
    bad = Case(id="bad", turns=(Turn("a" * 40 + "b", Expected(output="a" * 40 + "b")),))
    found = run(suite([bad, case("good", "aaa")], evaluators=specs, evaluator_timeout=0.3), agent=short)

    bad_trial, good_trial = trials_of(found)
    assert [score.outcome for score in bad_trial.scores] == [Outcome.ERROR, Outcome.PASSED]
    assert any(words in bad_trial.scores[0].reasoning for words in ("gave no score within", "took more than"))
    assert good_trial.outcome is Outcome.PASSED


async def short(question: str) -> str:
    return "aaa" if question == "good" else question


async def good_async(evaluable: Evaluable) -> bool:
    await asyncio.sleep(0)
    return evaluable.output == evaluable.expectation


def weighted(evaluable: Evaluable, weight: float) -> float:
    return weight


class Base:
    def __call__(self, evaluable: Evaluable) -> bool:
        return True


class Inherits(Base):
    pass


class AsyncCall:
    def __init__(self, answer: bool = True) -> None:
        self.answer = answer

    async def __call__(self, evaluable: Evaluable) -> bool:
        return self.answer


def lazily_async(evaluable: Evaluable) -> Any:
    return good_async(evaluable)


bound_method = Base().__call__
partial = functools.partial(weighted, weight=1.0)


@pytest.mark.parametrize("name", ["good_async", "Inherits", "AsyncCall", "lazily_async", "bound_method", "partial"])
def test_evaluators_may_be_written_in_any_way(name: str) -> None:
    assert scored(name).outcome is Outcome.PASSED


def test_evaluators_take_arguments_from_the_suite() -> None:
    assert only_score(scored("weighted", arguments={"weight": 0.25})).value == 0.25
    assert scored("AsyncCall", arguments={"answer": False}).outcome is Outcome.FAILED


def wants_trace(evaluable: Evaluable, trace: Any = "absent") -> Evaluation:
    return Evaluation(1.0, f"trace is {trace!r}")


async def wants_anything(evaluable: Evaluable, **rest: Any) -> Evaluation:
    return Evaluation(1.0, f"{sorted(rest)}")


def test_evaluators_that_want_the_trace_get_it() -> None:
    assert only_score(scored("wants_trace")).reasoning == "trace is None"
    assert only_score(scored("wants_anything")).reasoning == "['trace']"


def test_an_output_that_the_agent_does_not_name_is_an_error() -> None:
    score = only_score(scored("good_async", output="summary"))

    assert score.outcome is Outcome.ERROR
    assert "scores the output 'summary', which the agent did not return; it returned output" in score.reasoning


def test_an_evaluator_looks_at_the_output_it_names() -> None:
    from proctor.agents.reply import Reply

    def agent(question: str) -> Reply:
        return Reply("x", outputs=(NamedData("summary", "c"), NamedData("title", "no")))

    assert scored("good_async", agent=agent, output="summary").outcome is Outcome.PASSED
    assert scored("good_async", agent=agent, output="title").outcome is Outcome.FAILED


def test_an_evaluator_that_only_informs_never_decides() -> None:
    def outcome_of(*specs: EvaluatorSpec) -> Outcome:
        return only(run(suite([case("c")], evaluators=specs), agent=echo)).outcome

    informs = EvaluatorSpec(f"{ME}:below_zero", report_only=True)
    broken = EvaluatorSpec(f"{ME}:raising", report_only=True)
    assert outcome_of(informs, broken, EvaluatorSpec("ExactMatch")) is Outcome.PASSED
    assert outcome_of(EvaluatorSpec("ExactMatch", report_only=True)) is Outcome.ERROR


def test_the_threshold_of_the_suite_beats_that_of_the_evaluator() -> None:
    spec = EvaluatorSpec(f"{ME}:weighted", {"weight": 0.6}, threshold=0.5)
    strict = Criteria(threshold=0.7)

    assert only(run(suite([case("c")], evaluators=(spec,)), agent=echo)).outcome is Outcome.PASSED
    assert only(run(suite([case("c")], evaluators=(spec,), criteria=strict), agent=echo)).outcome is Outcome.FAILED
