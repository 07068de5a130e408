"""Calls an application with one input and turns what was recorded into the input of evaluators.

For the engine the application is an agent, and a call is a conversation with one turn: it has the timeout and the
retries of a suite, and its spans and named outputs are recorded like those of a trial, in the context of the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.reply import Reply
from proctor.agents.runnable_agent import RunnableAgent
from proctor.agents.trial_context import TrialContext, current_trial
from proctor.agents.turn_recorder import TurnRecorder
from proctor.agents.user_code import call_user_function
from proctor.base.errors import AgentFailed, UsageError, one_line
from proctor.base.json_data import UNSET, Json, to_json
from proctor.cases.suite import Case, NamedData, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import root
from proctor.running.agent_lifecycle import running_agent
from proctor.running.conversation import ConversationResult, ScriptedUser, converse
from proctor.running.settings import NO_OPTIONS, TrialLimits
from proctor.running.timeouts import Watchdog
from proctor.tracing.capture import capture_traces
from proctor.tracing.instrumentation import missing_instrumentation
from proctor.tracing.observe import Observation
from proctor.tracing.spans import ObservationNode, Span, build_tree

FromTrace: TypeAlias = "Callable[[list[ObservationNode]], Evaluable]"
"""Chooses the part of a trace to evaluate: `root`, `last_llm_call`, or your own function."""


class NothingToEvaluate(ValueError):
    """The application ran, but recorded nothing to evaluate."""

    def __init__(self) -> None:
        missing = missing_instrumentation()
        super().__init__(
            "No spans captured during runnable execution; add observe() or start_observation(),"
            f" or name its outputs with wrap(){'; ' if missing else ''}{missing}"
        )


@dataclass(frozen=True, slots=True)
class ApplicationInput:
    """One input of an application, and its evaluable before the application runs."""

    arguments: tuple[Any, ...]
    evaluable: Evaluable
    named: Mapping[str, Any] | None = None
    """Keyword arguments to pass instead of `arguments`."""
    inputs: Mapping[str, Json] | None = None
    """What `wrap(purpose="input")` returns in the application; with `None`, the application's own values."""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call of an application: its named outputs, tool calls and spans, or its failure."""

    answer: ConversationResult
    error: BaseException | None = None
    """What the application raised, if it raised."""

    @property
    def problem(self) -> str:
        """Why the call failed; empty if it did not."""
        return "" if self.answer.outcome is None else " ".join(self.answer.reason.split())

    def raise_problem(self) -> None:
        """Raise what the application raised, or `AgentFailed` if it failed otherwise."""
        if self.answer.outcome is not None and isinstance(self.error, Exception):
            raise self.error
        if self.problem:
            raise AgentFailed(self.problem) from self.error


def input_of(eval_input: Any, evaluable: Evaluable | None = None) -> ApplicationInput:
    """The input of an application from a Python value and, if there is one, its evaluable."""
    value = to_json(eval_input)
    own = (NamedData("input", value),)
    if evaluable is None:
        return ApplicationInput((eval_input,), Evaluable(eval_input=own))
    named = tuple(evaluable.eval_input or ())
    is_input_itself = len(named) == 1 and to_json(named[0].value) == value
    inputs = None if is_input_itself or not named else {item.name: item.value for item in named}
    return ApplicationInput((eval_input,), replace(evaluable, eval_input=named or own), inputs=inputs)


def dataset_entry_input(runnable: Callable[..., Any], case: Case, item: Evaluable) -> ApplicationInput:
    """The input of an application from an entry of a dataset: keyword arguments if it accepts them, else the input."""
    value = case.turns[0].input
    inputs = {named.name: named.value for named in case.inputs} if case.inputs else None
    if is_runnable_class(runnable):
        return ApplicationInput((value,), item, inputs=inputs)
    if isinstance(value, Mapping) and _takes(runnable, value):
        return ApplicationInput((), item, value, inputs)
    return ApplicationInput((item.input,), item, inputs=inputs)


class Application(BaseAgent):
    """A callable, or a Runnable class, as an agent: a conversation with it is one call.

    A case can only hold JSON and an application takes any Python object, so the input is passed separately.
    """

    def __init__(self, runnable: Callable[..., Any]) -> None:
        self._runnable = runnable
        self._agent = RunnableAgent(runnable) if is_runnable_class(runnable) else None  # type: ignore[arg-type]
        self.name = getattr(runnable, "__name__", type(runnable).__name__)

    async def start(self) -> None:
        if self._agent is not None:
            await self._agent.start()

    async def stop(self) -> None:
        if self._agent is not None:
            await self._agent.stop()

    async def call(self, item: ApplicationInput) -> None:
        """Call the application once; raises whatever it raises."""
        if self._agent is not None:
            await call_user_function(self._agent.instance.run, *self._agent.arguments(*item.arguments))
        else:
            await call_user_function(self._runnable, *item.arguments, **(item.named or {}))

    async def observe(self, item: ApplicationInput, limits: TrialLimits, watchdog: Watchdog) -> ObservedCall:
        """Call the application with a timeout, retry transient failures, and record the call."""
        inputs = tuple(NamedData(name, value) for name, value in (item.inputs or {}).items())
        case = Case(id="input", turns=(Turn(to_json(item.evaluable.input)),), inputs=inputs)
        one_call = _OneCall(self, item)
        answer = await converse(one_call, case, limits, NO_OPTIONS.backoff, watchdog, lambda: ScriptedUser(case))
        return ObservedCall(answer, one_call.error)


class _OneCall(BaseAgent):
    """One call of an application, as an agent for the engine; remembers what the application raised."""

    def __init__(self, application: Application, item: ApplicationInput) -> None:
        self.name = application.name
        self.error: BaseException | None = None
        self._application = application
        self._item = item

    def session(self, case: Case) -> _CallSession:
        return _CallSession(case, self)

    async def run(self) -> None:
        self.error = None
        try:
            await self._application.call(self._item)
        except (Exception, SystemExit) as error:
            self.error = error
            raise


class _CallSession(BaseSession):
    def __init__(self, case: Case, one_call: _OneCall) -> None:
        super().__init__(case)
        self._call = one_call

    async def send(self, turn: Turn) -> Reply:
        """An empty reply: the engine adds the outputs that the application named and its tool calls."""
        await self._call.run()
        return Reply()


def is_runnable_class(runnable: Any) -> bool:
    return isinstance(runnable, type) and all(callable(getattr(runnable, name, None)) for name in ("create", "run"))


def _takes(runnable: Callable[..., Any], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(runnable).bind(**named)
    except (TypeError, ValueError):
        return False
    return True


def evaluable_of(initial: Evaluable, call: ObservedCall, from_trace: FromTrace | None = None) -> Evaluable:
    """What evaluators see of a call that succeeded; raises `NothingSeen` if that would be nothing."""
    reply, spans = call.answer.replies[-1], call.answer.spans
    if not spans and (from_trace is not None or not reply.outputs):
        raise NothingToEvaluate
    trace = build_tree(spans)
    if from_trace is None:
        evaluable = _with_named_outputs(initial, trace, reply.outputs)
    else:
        evaluable = _with_chosen_span(initial, trace, from_trace)
    return replace(
        evaluable,
        eval_metadata={**(evaluable.eval_metadata or {}), **(initial.eval_metadata or {})} or None,
        tool_calls=evaluable.tool_calls or reply.tool_calls,
        usage=evaluable.usage or reply.usage,
        duration_ms=reply.duration_ms if evaluable.duration_ms is None else evaluable.duration_ms,
        trace=trace,
    )


def _with_named_outputs(initial: Evaluable, trace: list[ObservationNode], outputs: tuple[NamedData, ...]) -> Evaluable:
    """The evaluable with the outputs that the application named, else the output of its outermost span."""
    top = root(trace) if trace else Evaluable()
    return replace(initial, eval_output=outputs or top.eval_output, eval_metadata=top.eval_metadata)


def _with_chosen_span(initial: Evaluable, trace: list[ObservationNode], from_trace: FromTrace) -> Evaluable:
    """The evaluable with the span that `from_trace` chooses."""
    chosen = from_trace(trace)
    if not isinstance(chosen, Evaluable):
        raise TypeError(f"from_trace returned {type(chosen).__name__}; it must return an Evaluable")
    return replace(
        initial,
        eval_input=chosen.eval_input,
        eval_output=chosen.eval_output,
        expectation=chosen.expectation if initial.expectation is UNSET else initial.expectation,
        eval_metadata=chosen.eval_metadata,
        description=initial.description or chosen.description,
        tool_calls=chosen.tool_calls,
        usage=chosen.usage,
        duration_ms=chosen.duration_ms,
    )


ROOT_SPAN = "run"
"""The name of the outermost span; its input is the input of the application."""


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The trace of one call of an application."""

    spans: tuple[Span, ...]
    problem: str | None = None
    """Why the application failed, if it did."""


async def trace_application(agent: BaseAgent, arguments: Mapping[str, Json]) -> TracedRun:
    """Call the application with `arguments`, as a trial would, and trace it, including the values it wraps."""
    case = Case(id="once", turns=(Turn(dict(arguments)),))
    if (reason := agent.check(case)) is not None:
        raise UsageError(reason)
    problem = None
    with capture_traces() as capture:
        current_trial.set(TrialContext(turn=TurnRecorder(trace_wraps=True)))
        step = Observation(ROOT_SPAN, dict(arguments))
        try:
            with step.span():
                step.set_output(_return_value(await _send_once(agent, case)))
        except (Exception, SystemExit) as error:
            problem = str(error) if isinstance(error, AgentFailed) else f"the application raised {one_line(error)}"
    return TracedRun(tuple(capture.spans), problem)


async def _send_once(agent: BaseAgent, case: Case) -> Reply:
    async with running_agent(agent), agent.session(case) as session:
        return await session.send(case.turns[0])


def _return_value(reply: Reply) -> Json:
    """The return value of the application; `None` if it only wraps its outputs."""
    return reply.text or None if reply.structured is None else reply.structured
