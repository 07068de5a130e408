"""`assert_pass` and `run_and_evaluate`: what is asked, what is seen, what is scored."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from proctor.base.errors import AgentFailed
from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.from_trace import by_name, last_llm_call, root
from proctor.evaluators.text.matching import ExactMatch
from proctor.results.run import ScoreThreshold
from proctor.running.assertions.assert_pass import (
    assert_pass,
    assert_pass_sync,
    evaluate_sync,
    run_and_evaluate,
    run_and_evaluate_sync,
)
from proctor.running.assertions.score_matrix import EvalAssertionError
from proctor.tracing.capture import capture_traces
from proctor.tracing.observe import observe, start_observation
from proctor.tracing.tool import tool
from proctor.tracing.wrap import wrap


@observe
def shout(text: str) -> str:
    return text.upper()


@observe
async def shout_later(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


class Shouter:
    async def __call__(self, text: str) -> str:
        return await shout_later(text)


class LoudShouter(Shouter):
    """Its `__call__` is inherited."""


def seen_by(runnable: Any, eval_input: Any = "hi", **options: Any) -> Evaluable:
    """What an evaluator is given."""
    seen: list[Evaluable] = []

    def looks(evaluable: Evaluable) -> bool:
        seen.append(evaluable)
        return True

    run_and_evaluate_sync(looks, runnable, eval_input, **options)
    [evaluable] = seen
    return evaluable


RUNNABLES: dict[str, Callable[..., Any]] = {
    "sync": shout,
    "async": shout_later,
    "partial of sync": functools.partial(lambda mark, text: shout(text), "!"),
    "partial of async": functools.partial(lambda mark, text: shout_later(text), "!"),
    "inherited async call": LoudShouter(),
    "method": LoudShouter().__call__,
    "returns an awaitable": lambda text: shout_later(text),
}


@pytest.mark.parametrize("runnable", RUNNABLES.values(), ids=RUNNABLES.keys())
def test_any_callable_is_run_and_evaluated(runnable: Callable[..., Any]) -> None:
    found = asyncio.run(run_and_evaluate(ExactMatch(), runnable, "hi", expected_output="HI"))
    assert found is not None
    assert found.score == 1.0


def test_the_input_and_the_output_of_the_outermost_span_are_evaluated() -> None:
    evaluable = seen_by(shout, "hi", expected_output="HI")
    assert evaluable.eval_input == [NamedData("input", "hi")]
    assert evaluable.eval_output == [NamedData("output", "HI")]
    assert evaluable.expected_output == "HI"
    assert evaluable.eval_metadata is not None
    assert evaluable.eval_metadata["trace_id"] == evaluable.trace[0].trace_id


def test_no_expectation_differs_from_expecting_nothing() -> None:
    assert seen_by(shout).expectation is UNSET
    assert seen_by(shout, expected_output=None).expectation is None


def test_the_runnable_is_called_once() -> None:
    calls: list[str] = []

    @observe
    def app(text: str) -> str:
        calls.append(text)
        return text

    assert_pass_sync(
        app,
        ["a", "b"],
        [ExactMatch(), "ExactMatch", lambda e: 1],
        evaluables=[Evaluable(eval_input=[NamedData("input", text)], expectation=text) for text in "ab"],
    )
    assert sorted(calls) == ["a", "b"]


def test_nothing_to_evaluate_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"^No spans captured during runnable execution"):
        asyncio.run(run_and_evaluate(ExactMatch(), str.upper, "hi"))


def test_outputs_named_with_wrap_are_what_is_evaluated() -> None:
    @observe
    def app(text: str) -> str:
        wrap(text.upper(), purpose="output", name="answer")
        wrap(3, purpose="state", name="turns")
        return "something else"

    assert seen_by(app).output == {"answer": "HI", "turns": 3}


def test_an_application_that_only_wraps_is_recorded_too() -> None:
    evaluable = seen_by(lambda text: wrap(text.upper(), purpose="output", name="answer"))
    assert evaluable.eval_output == [NamedData("answer", "HI")]


def test_a_span_must_have_been_captured_to_be_chosen_from() -> None:
    with pytest.raises(ValueError, match="No spans captured"):
        seen_by(lambda text: wrap(text, purpose="output", name="answer"), from_trace=root)


def test_from_trace_chooses_the_span() -> None:
    @observe(name="whole")
    def app(text: str) -> str:
        shout("first")
        return shout(text) + "!"

    evaluable = seen_by(app, "hi", from_trace=lambda trace: by_name(trace, "shout"), expected_output="HI")
    assert evaluable.input == {"text": "hi"}
    assert evaluable.output == "HI"
    assert evaluable.expectation == "HI"
    assert seen_by(app, "hi", from_trace=root).output == "HI!"


def test_what_from_trace_does_not_find_is_its_own_error() -> None:
    with pytest.raises(ValueError, match="No LLMSpan found in the trace"):
        seen_by(shout, from_trace=last_llm_call)
    with pytest.raises(TypeError, match="from_trace returned list"):
        seen_by(shout, from_trace=lambda trace: trace)


def test_an_evaluator_that_takes_the_trace_gets_it() -> None:
    def looks(evaluable: Evaluable, *, trace: Any = None) -> bool:
        return [node.name for node in trace] == ["shout"] and evaluable.trace == trace

    found = run_and_evaluate_sync(looks, shout, "hi")
    assert found == Evaluation(1.0)


def test_tool_calls_are_recorded() -> None:
    @tool
    def look_up(key: str) -> str:
        return key * 2

    @observe
    def app(text: str) -> str:
        return look_up(text)

    [call] = seen_by(app).tool_calls
    assert (call.name, call.arguments, call.result) == ("look_up", {"key": "hi"}, "hihi")


def test_an_input_that_the_application_changes_is_shown_as_it_was() -> None:
    @observe
    def app(given: dict[str, Any]) -> str:
        given["text"] = "changed"
        return "done"

    assert seen_by(app, {"text": "hi"}).input == {"text": "hi"}


def test_exceptions_of_runnable_and_evaluator_go_on_their_way() -> None:
    def broken(_: Any) -> Any:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_and_evaluate_sync(ExactMatch(), broken, "hi")
    with pytest.raises(KeyError):
        run_and_evaluate_sync(broken, shout, "hi")


def test_an_evaluator_with_nothing_to_compare_returns_nothing() -> None:
    assert run_and_evaluate_sync(lambda e: None, shout, "hi") is None


def test_evaluators_see_no_trace_of_each_other_or_of_the_application() -> None:
    @observe
    def judge_call(text: str) -> float:
        return 1.0

    with capture_traces() as outer:
        found = run_and_evaluate_sync(lambda e: judge_call(e.output), shout, "hi")
    assert found == Evaluation(1.0)
    assert [span.name for span in outer.spans] == ["shout"]


def test_nothing_is_left_behind_in_the_callers_context() -> None:
    async def main() -> Any:
        await run_and_evaluate(lambda e: 1, shout, "hi")
        value = {"a": 1}
        assert wrap(value, purpose="output", name="x") is value
        with start_observation(input="q", name="later"):
            pass
        return await run_and_evaluate(lambda e, trace=None: len(trace) == 1, shout, "hi")

    assert asyncio.run(main()).score == 1.0


@pytest.mark.parametrize("kind", ["async", "sync in threads"])
def test_each_of_eight_concurrent_inputs_is_scored_on_its_own_output(kind: str) -> None:
    """The sync ones wait for each other, so that all eight are known to run at the same time."""
    together = threading.Barrier(8, timeout=60)
    waiting: list[asyncio.Future[None]] = []

    @observe
    def sync_app(number: int) -> int:
        wrap(number, purpose="output", name="seen")
        together.wait()
        return number * 10

    @observe
    async def async_app(number: int) -> int:
        wrap(number, purpose="output", name="seen")
        waiting.append(asyncio.get_running_loop().create_future())
        if len(waiting) == 8:
            for future in waiting:
                future.set_result(None)
        await waiting[number if number < len(waiting) else -1]
        return number * 10

    scored: dict[int, Any] = {}

    def own(evaluable: Evaluable, *, trace: Any = None) -> bool:
        scored[evaluable.input] = (evaluable.output, [node.span.output for node in trace])
        return True

    asyncio.run(assert_pass(async_app if kind == "async" else sync_app, list(range(8)), [own], parallel=8))
    assert scored == {number: (number, [number * 10]) for number in range(8)}


@pytest.mark.parametrize(
    ("said", "most"), [(None, 8), ({"parallel": 2}, 2), ("PROCTOR_PARALLEL", 3), ("PIXIE_RUNNABLE_CONCURRENCY", 1)]
)
def test_only_so_many_inputs_run_at_once(said: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROCTOR_PARALLEL", "PIXIE_RUNNABLE_CONCURRENCY"):
        monkeypatch.delenv(name, raising=False)
    if isinstance(said, str):
        monkeypatch.setenv(said, str(most))
    running, peak = 0, 0

    @observe
    async def app(number: int) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return number

    asyncio.run(assert_pass(app, list(range(12)), [lambda e: 1], **(said if isinstance(said, dict) else {})))
    assert peak == most


@pytest.mark.parametrize("wrong", ["none", "0", "-1", "1.5"])
def test_a_wrong_limit_is_reported_with_where_it_comes_from(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_PARALLEL", wrong)
    with pytest.raises(Exception, match="PROCTOR_PARALLEL must be a whole number of at least 1"):
        assert_pass_sync(shout, ["a"], [lambda e: 1])


def test_evaluators_of_one_input_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=60)

    def waits(evaluable: Evaluable) -> bool:
        together.wait()
        return True

    assert_pass_sync(shout, ["a"], [waits, waits, waits])


class App:
    steps: ClassVar[list[str]] = []

    @classmethod
    def create(cls) -> App:
        return cls()

    async def setup(self) -> None:
        self.steps.append("setup")

    async def run(self, args: dict[str, Any]) -> None:
        wrap(args["text"].upper(), purpose="output", name="answer")

    async def teardown(self) -> None:
        self.steps.append("teardown")


def test_a_runnable_class_is_made_once_and_set_up_and_torn_down() -> None:
    App.steps.clear()
    evaluables = [Evaluable(eval_input=[NamedData("text", text)], expectation=text.upper()) for text in "ab"]
    assert_pass_sync(App, [{"text": "a"}, {"text": "b"}], ["ExactMatch"], evaluables=evaluables)
    assert App.steps == ["setup", "teardown"]
    assert seen_by(App, {"text": "hi"}).output == "HI"


def test_evaluators_may_be_named_as_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checks.py").write_text("def short(evaluable):\n    return len(evaluable.output) < 5\n")
    monkeypatch.chdir(tmp_path)
    named = [
        "ExactMatch",
        {"Contains": {"any": ["H"], "name": "has an H"}},
        "checks.py:short",
        ExactMatch,
        ExactMatch(),
    ]
    known = [Evaluable(eval_input=[NamedData("input", "hi")], expectation="HI")]
    assert_pass_sync(shout, ["hi"], named, evaluables=known)
    with pytest.raises(EvalAssertionError, match="has an H scored 0"):
        assert_pass_sync(shout, ["ai"], named, evaluables=known)


@pytest.mark.parametrize("wrong", ["Exactmatch", "", 3, {"Contains": {"threshold": 0.2}}, {"A": 1, "B": 2}, App, int])
def test_what_is_not_an_evaluator_is_reported_before_anything_runs(wrong: Any) -> None:
    def never(_: Any) -> None:
        raise AssertionError("it was run")

    with pytest.raises(Exception, match="valuator") as caught:
        assert_pass_sync(never, ["a"], [wrong])
    assert type(caught.value).__name__ == "UsageError"


def test_an_evaluator_may_look_at_one_output() -> None:
    def app(text: str) -> None:
        wrap(text.upper(), purpose="output", name="answer")
        wrap(1, purpose="state", name="turns")

    known = [Evaluable(eval_input=[NamedData("input", "hi")], expectation="HI")]
    assert_pass_sync(app, ["hi"], [{"ExactMatch": {"output": "answer"}}], evaluables=known)


def test_an_evaluable_that_has_an_output_is_scored_without_a_call() -> None:
    def never(_: Any) -> None:
        raise AssertionError("it was called")

    ready = Evaluable(eval_input=[NamedData("q", "x")], eval_output=[NamedData("a", "y")], expectation="y")
    asyncio.run(assert_pass(never, ["x"], [ExactMatch()], evaluables=[ready]))


def test_what_an_evaluable_knows_reaches_the_evaluators() -> None:
    known = Evaluable(
        eval_input=[NamedData("question", "hi"), NamedData("profile", {"vip": True})],
        expectation="HI",
        eval_metadata={"expected_tool": "none"},
        description="Greets",
    )
    seen: list[Evaluable] = []

    def app(text: str) -> str:
        profile = wrap({"vip": False}, purpose="input", name="profile")
        return wrap(f"{text} {profile['vip']}", purpose="output", name="answer")

    assert_pass_sync(app, ["hi"], [lambda e: seen.append(e) or 1], evaluables=[known])
    [evaluable] = seen
    assert evaluable.output == "hi True"
    assert list(evaluable.eval_input) == list(known.eval_input)
    assert (evaluable.expectation, evaluable.description) == ("HI", "Greets")
    assert evaluable.eval_metadata == {"expected_tool": "none"}


def test_an_evaluable_that_says_nothing_of_its_input_has_the_one_that_is_passed() -> None:
    seen: list[Any] = []
    known = Evaluable(eval_input=None, eval_output=None)  # type: ignore[arg-type]
    assert_pass_sync(shout, ["hi"], [lambda e: seen.append(e.input) or 1], evaluables=[known])
    assert seen == ["hi"]


def test_an_evaluable_that_only_repeats_the_input_leaves_the_application_its_own_inputs() -> None:
    def app(text: str) -> str:
        return wrap(wrap("own", purpose="input", name="profile"), purpose="output", name="answer")

    known = [Evaluable(eval_input=[NamedData("input", "hi")], expectation="own")]
    assert_pass_sync(app, ["hi"], ["ExactMatch"], evaluables=known)


def test_there_is_one_evaluable_for_each_input() -> None:
    with pytest.raises(ValueError, match=r"^evaluables length \(1\) must match eval_inputs length \(2\)$"):
        asyncio.run(assert_pass(shout, ["a", "b"], [ExactMatch()], evaluables=[Evaluable()]))


def test_the_sync_form_cannot_be_used_inside_an_event_loop_and_says_so() -> None:
    async def main() -> None:
        assert_pass_sync(shout, ["a"], [lambda e: 1])

    with pytest.raises(RuntimeError, match="await the asynchronous version"):
        asyncio.run(main())


def test_one_evaluator_is_called_without_a_loop() -> None:
    found = evaluate_sync(ExactMatch(), Evaluable(eval_output=[NamedData("output", 1)], expectation=1))
    assert found is not None
    assert found.score == 1.0


def test_the_twins_are_called_by_their_own_names() -> None:
    for twin, name in ((assert_pass_sync, "assert_pass_sync"), (evaluate_sync, "evaluate_sync")):
        assert (twin.__name__, twin.__module__) == (name, "proctor.running.assertions.assert_pass")


def test_a_thousand_inputs_are_no_problem() -> None:
    asyncio.run(
        assert_pass(shout_later, [str(n) for n in range(1000)], [lambda e: 1.0], pass_criteria=ScoreThreshold())
    )


def test_a_deadline_of_an_evaluator_holds(tmp_path: Path) -> None:
    check = tmp_path / "endless.py"
    check.write_text("import asyncio\n\nasync def forever(evaluable):\n    await asyncio.Event().wait()\n")
    with pytest.raises(EvalAssertionError, match=r"forever: gave no score within 0\.01 s"):
        assert_pass_sync(shout, ["a"], [{f"{check}:forever": {"timeout": 0.01}}])


def test_an_application_that_hangs_does_not_hang_the_test() -> None:
    async def hangs(text: str) -> None:
        await asyncio.Event().wait()

    def blocks(text: str) -> None:
        threading.Event().wait()

    for app in (hangs, blocks):
        with pytest.raises(EvalAssertionError, match=r"no answer within 0\.1 s"):
            assert_pass_sync(app, ["a"], [lambda e: 1], timeout=0.1)
        with pytest.raises(AgentFailed, match=r"no answer within 0\.1 s"):
            run_and_evaluate_sync(ExactMatch(), app, "a", timeout=0.1)


def test_a_transient_failure_is_tried_again_as_in_a_suite() -> None:
    calls: list[str] = []

    @observe
    def app(text: str) -> str:
        calls.append(text)
        if len(calls) == 1:
            raise AgentFailed("too many requests", transient=True)
        return text

    assert_pass_sync(app, ["a"], [lambda e: e.output == "a"])
    assert calls == ["a", "a"]


def test_cancelling_stops_everything() -> None:
    started = threading.Event()

    async def app(text: str) -> None:
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(assert_pass(app, ["a", "b"], [lambda e: 1]))
        while not started.is_set():
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
