"""Runs an application once, to see what happens inside it: no case, no evaluators, no verdict."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.agents.model import Agent, Reply
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed, UsageError
from proctor.plain import Json
from proctor.records import record
from proctor.references import describe
from proctor.tracing.capture import capture_traces, listen_to_opentelemetry
from proctor.tracing.observing import Observation
from proctor.tracing.recording import CURRENT, Recording
from proctor.tracing.spans import Span
from proctor.tracing.threads import carry_context_into_threads

ROOT = "run"
"""The span that holds everything else; its input is what the application was given."""


@record
class Once:
    """What came of one run of an application."""

    spans: tuple[Span, ...]
    problem: str | None = None
    """Why the application gave no answer, if it gave none."""


async def run_once(agent: Agent, arguments: Mapping[str, Json]) -> Once:
    """Call the application with `arguments`, as a trial would; what it wraps is seen as well, inputs included."""
    case = Case("once", (Turn(dict(arguments)),))
    check = getattr(agent, "check", None)
    reason = None if check is None else check(case)
    if reason is not None:
        raise UsageError(str(reason))
    _instrument()
    problem = None
    with capture_traces() as seen, carry_context_into_threads():
        CURRENT.set(Recording(wraps_are_spans=True))
        step = Observation(ROOT, dict(arguments))
        try:
            with step.lasting():
                step.set_output(_said(await _answered(agent, case)))
        except (Exception, SystemExit) as error:
            problem = str(error) if isinstance(error, AgentFailed) else f"the application raised {describe(error)}"
    return Once(tuple(seen.spans), problem)


async def _answered(agent: Agent, case: Case) -> Reply:
    start, stop = getattr(agent, "start", None), getattr(agent, "stop", None)
    if start is not None:
        await start()
    try:
        async with agent.session(case) as session:
            return await session.send(case.turns[0])
    finally:
        if stop is not None:
            await stop()


def _said(reply: Reply) -> Json:
    """What the application returned; nothing, where it only wraps what it has to say."""
    return reply.text or None if reply.structured is None else reply.structured


def _instrument() -> None:
    """Model calls are seen without a line in the application, where an instrumentation is installed."""
    if listen_to_opentelemetry():
        from proctor.tracing.otel import enable_llm_tracing

        enable_llm_tracing()
