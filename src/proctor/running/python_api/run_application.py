"""Runs an application on one input and turns what was seen meanwhile into what evaluators see.

Each call is told apart from all others, also across threads, by its context and not by the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from proctor.agents.agent import BaseAgent, Reply
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.json_data import UNSET, Json, plain
from proctor.base.records import record
from proctor.base.references import describe
from proctor.base.threads import invoke
from proctor.cases.suite import Case, NamedData, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.tracing.capture import capture_traces
from proctor.tracing.observing import Observation
from proctor.tracing.spans import Span
from proctor.tracing.trial_recording import CURRENT, Recording
from proctor.tracing.watching import missing_instrumentation

if TYPE_CHECKING:
    from proctor.tracing.spans import ObservationNode, Span

FromTrace: TypeAlias = "Callable[[list[ObservationNode]], Evaluable]"
"""Chooses what evaluators see of a trace: `root`, `last_llm_call`, or a function of your own."""


class NothingSeen(ValueError):
    """The application ran, and there is nothing to evaluate."""

    def __init__(self) -> None:
        missing = missing_instrumentation()
        super().__init__(
            "No spans captured during runnable execution; mark what is to be seen with observe() or"
            f" start_observation(), or name its outputs with wrap(){'; ' if missing else ''}{missing}"
        )


@record
class Question:
    """One input on its way to the application, and what is known of it before."""

    arguments: tuple[Any, ...]
    known: Evaluable
    named: Mapping[str, Any] | None = None
    """Arguments by name instead, where the application takes them so."""
    inputs: Mapping[str, Json] | None = None
    """What `wrap(purpose="input")` gives the application; `None` leaves it its own."""


@record
class Sighting:
    """What one call of the application brought to light."""

    recording: Recording
    spans: tuple[Span, ...]
    duration_ms: float


def question_of(eval_input: Any, known: Evaluable | None = None) -> Question:
    """A question in Python: the input as it is, and what an evaluable says of it besides."""
    value = plain(eval_input)
    own = (NamedData("input", value),)
    if known is None:
        return Question((eval_input,), Evaluable(eval_input=own))
    named = tuple(known.eval_input or ())
    is_input_itself = len(named) == 1 and plain(named[0].value) == value
    inputs = None if is_input_itself or not named else {item.name: item.value for item in named}
    return Question((eval_input,), replace(known, eval_input=named or own), inputs=inputs)


def question_of_entry(runnable: Callable[..., Any], case: Case, item: Evaluable) -> Question:
    """A dataset's entry: its arguments by name if the application takes them, else its inputs."""
    given = case.turns[0].input
    inputs = {named.name: named.value for named in case.inputs} if case.inputs else None
    if is_runnable_class(runnable):
        return Question((given,), item, inputs=inputs)
    if isinstance(given, Mapping) and _takes(runnable, given):
        return Question((), item, given, inputs)
    return Question((item.input,), item, inputs=inputs)


class Application:
    """Whatever is asked: any callable, or a Runnable class, which is made and set up when it is first needed."""

    def __init__(self, runnable: Callable[..., Any]) -> None:
        self._runnable = runnable
        self._agent: Any = None
        if is_runnable_class(runnable):
            from proctor.agents.runnable import RunnableAgent

            self._agent = RunnableAgent(runnable)  # type: ignore[arg-type]

    async def start(self) -> None:
        if self._agent is not None:
            await self._agent.start()

    async def stop(self) -> None:
        if self._agent is not None:
            await self._agent.stop()

    async def watch(self, question: Question) -> Sighting:
        """Ask once; raises whatever the application raises."""
        recording = Recording(question.inputs)
        clock = time.perf_counter()
        with capture_traces() as seen:
            token = CURRENT.set(recording)
            try:
                await self._asked(question)
            finally:
                recording.over = True
                CURRENT.reset(token)
        return Sighting(recording, tuple(seen.spans), (time.perf_counter() - clock) * 1000)

    async def _asked(self, question: Question) -> None:
        try:
            if self._agent is not None:
                await invoke(self._agent.instance.run, *self._agent.arguments(*question.arguments))
            else:
                await invoke(self._runnable, *question.arguments, **(question.named or {}))
        except SystemExit as error:
            raise AgentFailed(f"raised {describe(error)}") from error
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            raise AgentFailed("cancelled its own task") from None


def is_being_cancelled() -> bool:
    """Whether the caller has given up, as opposed to code that cancelled its own task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_runnable_class(runnable: Any) -> bool:
    return isinstance(runnable, type) and all(callable(getattr(runnable, name, None)) for name in ("create", "run"))


def _takes(runnable: Callable[..., Any], named: Mapping[str, Any]) -> bool:
    import inspect

    try:
        inspect.signature(runnable).bind(**named)
    except (TypeError, ValueError):
        return False
    return True


def evaluable_of(known: Evaluable, sighting: Sighting, from_trace: FromTrace | None = None) -> Evaluable:
    """What evaluators see of a call; raises `NothingSeen` if that would be nothing."""
    from proctor.tracing.spans import build_tree, tool_calls_of, usage_of

    spans, recording = sighting.spans, sighting.recording
    if not spans and (from_trace is not None or not recording.outputs):
        raise NothingSeen
    trace = build_tree(spans)
    seen = _whole(known, trace, recording) if from_trace is None else _chosen(known, trace, from_trace)
    return replace(
        seen,
        eval_metadata={**(seen.eval_metadata or {}), **(known.eval_metadata or {})} or None,
        tool_calls=seen.tool_calls or tuple(recording.tool_calls) or tool_calls_of(spans),
        usage=seen.usage or usage_of(spans),
        duration_ms=sighting.duration_ms if seen.duration_ms is None else seen.duration_ms,
        trace=trace,
    )


def _whole(known: Evaluable, trace: list[ObservationNode], recording: Recording) -> Evaluable:
    """The outputs that the application named; else what came out of its outermost step."""
    from proctor.evaluators.from_trace import root

    top = root(trace) if trace else Evaluable()
    return replace(known, eval_output=tuple(recording.outputs) or top.eval_output, eval_metadata=top.eval_metadata)


def _chosen(known: Evaluable, trace: list[ObservationNode], from_trace: FromTrace) -> Evaluable:
    """The span that the caller wants evaluated, with what is known of the question."""
    chosen = from_trace(trace)
    if not isinstance(chosen, Evaluable):
        raise TypeError(f"from_trace returned {type(chosen).__name__}; it must return an Evaluable")
    return replace(
        known,
        eval_input=chosen.eval_input,
        eval_output=chosen.eval_output,
        expectation=chosen.expectation if known.expectation is UNSET else known.expectation,
        eval_metadata=chosen.eval_metadata,
        description=known.description or chosen.description,
        tool_calls=chosen.tool_calls,
        usage=chosen.usage,
        duration_ms=chosen.duration_ms,
    )


ROOT = "run"
"""The span that holds everything else; its input is what the application was given."""


@record
class Once:
    """What came of one run of an application."""

    spans: tuple[Span, ...]
    problem: str | None = None
    """Why the application gave no answer, if it gave none."""


async def run_once(agent: BaseAgent, arguments: Mapping[str, Json]) -> Once:
    """Call the application with `arguments`, as a trial would; what it wraps is seen as well, inputs included."""
    case = Case("once", (Turn(dict(arguments)),))
    if (reason := agent.check(case)) is not None:
        raise UsageError(reason)
    problem = None
    with capture_traces() as seen:
        CURRENT.set(Recording(wraps_are_spans=True))
        step = Observation(ROOT, dict(arguments))
        try:
            with step.lasting():
                step.set_output(_said(await _answered(agent, case)))
        except (Exception, SystemExit) as error:
            problem = str(error) if isinstance(error, AgentFailed) else f"the application raised {describe(error)}"
    return Once(tuple(seen.spans), problem)


async def _answered(agent: BaseAgent, case: Case) -> Reply:
    await agent.start()
    try:
        async with agent.session(case) as session:
            return await session.send(case.turns[0])
    finally:
        await agent.stop()


def _said(reply: Reply) -> Json:
    """What the application returned; nothing, where it only wraps what it has to say."""
    return reply.text or None if reply.structured is None else reply.structured
