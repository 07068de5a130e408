"""Workflows of one's own in LlamaIndex: steps between a start event and a stop event, with agents and tools inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.agents.frameworks.llama_index import Watched, start_watching
from proctor.agents.frameworks.sessions import FrameworkAgent, FrameworkSession, text_of
from proctor.agents.model import Agent, Reply
from proctor.agents.replies import to_reply
from proctor.cases.model import Case, Turn
from proctor.plain import Json, plain, show
from proctor.references import source_fingerprint

QUESTION = ("input", "query", "question", "user_msg", "message", "topic")
"""What people call the question; a start event without fields of its own is given it under all of these."""


def adapt_workflow(target: Any, name: str) -> Agent | None:
    from llama_index.core.workflow import Workflow

    if not isinstance(target, Workflow):
        return None
    return LlamaIndexWorkflow(target, name or type(target).__name__, source_fingerprint(target))


class LlamaIndexWorkflow(FrameworkAgent):
    """Runs the workflow itself: what a run knows is in its context, and each trial has one."""

    def session(self, case: Case) -> WorkflowSession:
        return WorkflowSession(self.target, case)

    def check(self, case: Case) -> str | None:
        fields = start_fields(self.target)
        if not fields:
            return None
        for turn in case.turns:
            if start_arguments(fields, turn.input) is None:
                kind = self.target.start_event_class.__name__
                return f"the input must be an object with the fields of {kind}: {', '.join(fields)}"
        return None


class WorkflowSession(FrameworkSession):
    """One context, which the turns of a case share; the case's state is what it holds at first."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._workflow = target

    async def open(self) -> None:
        from llama_index.core.workflow import Context

        start_watching()
        self._context = Context(self._workflow)
        for name, value in plain(self.case.state).items():
            await self._context.store.set(name, value)

    async def send(self, turn: Turn) -> Reply:
        watched = Watched()
        fields = start_fields(self._workflow)
        given = start_arguments(fields, plain(turn.input)) or dict.fromkeys(QUESTION, text_of(turn))
        result = await watched.run(lambda: self._workflow.run(ctx=self._context, **given))
        reply = read_result(result)
        return Reply(
            reply.text,
            watched.log.calls,
            watched.log.usage,
            structured=reply.structured,
            state=await self._state(),
            retrieval_context=tuple(watched.passages) or None,
        )

    async def _state(self) -> Mapping[str, Json] | None:
        state = await self._context.store.get_state()
        told = plain(dict(state.items())) if hasattr(state, "items") else plain(state)
        return told if isinstance(told, Mapping) else None


def start_fields(workflow: Any) -> dict[str, bool]:
    """The fields of the start event, where it has any of its own, and whether each must be given."""
    fields = workflow.start_event_class.model_fields
    return {name: field.is_required() for name, field in fields.items() if not name.startswith("_")}


def start_arguments(fields: Mapping[str, bool], question: Json) -> dict[str, Any] | None:
    """What to start a workflow with: an object of its fields, or the question under the one that it can be."""
    if isinstance(question, Mapping):
        return dict(question) if not fields or question.keys() <= fields.keys() else None
    needed = [name for name, is_needed in fields.items() if is_needed]
    usual = [name for name in QUESTION if name in fields]
    receiver = needed[0] if len(needed) == 1 else usual[0] if usual and not needed else None
    return None if receiver is None else {receiver: question}


def read_result(result: Any) -> Reply:
    """The answer in what a workflow stops with: a stop event of one's own is data, an engine's response is words."""
    if hasattr(result, "source_nodes"):
        return Reply(str(result))
    if hasattr(result, "model_dump"):
        result = plain(result)
    reply = to_reply(result)
    return reply if reply.text else Reply("" if result is None else show(plain(result)), structured=plain(result))
