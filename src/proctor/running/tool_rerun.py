"""Re-runs the tools of an answer, so that evaluators compare the answer with the real results (`rerun_tools:`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from proctor.agents.reply import Reply
from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.tool_rerun import rerun_tools, results_as_context
from proctor.agents.tools import Tool, find_tools
from proctor.agents.trial_context import TrialContext, current_trial
from proctor.cases.suite import Case
from proctor.evaluators.tools.consistency import describe
from proctor.running.conversation import ConversationResult
from proctor.running.plan import PlannedSuite
from proctor.tracing.capture import suppress_tracing


@contextmanager
def mocked_tools(case: Case) -> Iterator[None]:
    """While a case is scored, its doubles answer for the tools they stand for."""
    token = current_trial.set(TrialContext(mocks=ToolMocks(case.mocks)))
    try:
        yield
    finally:
        current_trial.reset(token)


async def with_rerun_tools(answer: ConversationResult, case: Case, planned: PlannedSuite) -> ConversationResult:
    """The conversation with the re-run results as retrieval context, and a warning for each result that differs."""
    tools = find_tools(planned.suite.rerun_tools, planned.suite.base, planned.agent)
    replies: list[Reply] = []
    warnings: list[str] = []
    with mocked_tools(case), suppress_tracing():
        for reply in answer.replies:
            passages, notes = await _passages(reply, tools)
            replies.append(replace(reply, retrieval_context=passages))
            warnings += notes
    return replace(answer, replies=tuple(replies), warnings=answer.warnings + tuple(dict.fromkeys(warnings)))


async def _passages(reply: Reply, tools: dict[str, Tool]) -> tuple[tuple[str, ...] | None, list[str]]:
    """The retrieval context of a reply with the re-run results added, and warnings."""
    reruns = await rerun_tools(reply.tool_calls, tools)
    passages = dict.fromkeys([*(reply.retrieval_context or ()), *results_as_context(reruns)])
    suspicious = [item for item in reruns if item.changed or (item.error is not None and item.changed is None)]
    return tuple(passages) or reply.retrieval_context, [f"re-run: {describe(item)}" for item in suspicious]
