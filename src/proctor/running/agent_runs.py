"""One question put to an agent, as tests look at it: the answer, the tools called, and what they gave back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from proctor.agents.model import Reply, ToolCall
from proctor.agents.reexecution import Reexecution
from proctor.agents.reexecution import passages_of as reexecuted_passages
from proctor.cases.model import NamedData, Turn
from proctor.errors import AgentFailed
from proctor.evaluators.model import Evaluable, Exchange, collapse
from proctor.plain import Json, plain
from proctor.results.model import TrialResult


class AgentRun(dict[str, Any]):
    """A dict whose keys are attributes as well, so that `run["actual_output"]` and `run.actual_output` are the same.

    Where the agent broke down there is no answer, and looking at one raises `AgentFailed` with the reason.
    """

    __slots__ = ("trial",)
    __test__ = False

    def __init__(self, trial: TrialResult, **keys: Any) -> None:
        super().__init__(keys)
        self.trial = trial

    def __missing__(self, key: str) -> Any:
        __tracebackhide__ = True
        if key in ANSWERED and self.trial.reason:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.reason}")
        raise KeyError(key)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a run of an agent has no {name!r}; it has {', '.join(self)}") from None

    @property
    def evaluable(self) -> Evaluable:
        """What evaluators see of it, for `assert_pass` and `evaluate`."""
        __tracebackhide__ = True
        if not self.trial.replies:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.reason}")
        turn, reply = self.trial.case.turns[-1], self.trial.replies[-1]
        return Evaluable(
            eval_input=(NamedData("input", turn.input),),
            eval_output=_outputs(reply),
            expectation=turn.expected.output,
            eval_metadata=self.trial.case.told or None,
            description=self.trial.case.description or None,
            tool_calls=_calls(self.trial.replies),
            expected_tool_calls=turn.expected.tool_calls,
            keywords=turn.expected.keywords,
            context=turn.expected.context,
            retrieval_context=tuple(self["retrieval_context"]) or None,
            turns=tuple(map(Exchange, self.trial.case.turns, self.trial.replies)),
            usage=self.trial.usage,
            duration_ms=self.trial.duration_ms,
        )


ANSWERED = ("actual_output", "tools_called", "tool_calls_with_args", "tool_results", "retrieval_context")


def run_of(trial: TrialResult, again: Sequence[Reexecution] | None = None) -> AgentRun:
    """The run that a trial tells of; what its tools gave when they were called `again` replaces what they gave then."""
    case = trial.case
    known: dict[str, Any] = {"id": case.id, "input": case.turns[-1].input, **_expectations(case.turns[-1])}
    broke = len(trial.replies) < len(case.turns)
    known["error"] = trial.reason or "the agent gave no answer" if broke else None
    if broke:
        return AgentRun(trial, **known)
    calls = _calls(trial.replies)
    context = passages_of(trial.replies) if again is None else reexecuted_passages(again)
    if again is not None:
        known["reexecuted"] = [plain(item) for item in again]
    return AgentRun(
        trial,
        **known,
        actual_output=_text(trial.replies[-1]),
        tools_called=[call.name for call in calls],
        tool_calls_with_args=[_call(call) for call in calls],
        tool_results=[call.result if call.error is None else {"error": call.error} for call in calls],
        retrieval_context=context,
    )


def passages_of(replies: Sequence[Reply]) -> list[str]:
    """What the answer may rest on: passages the agent reports, else what its tools gave back, in order."""
    given = [passage for reply in replies for passage in reply.retrieval_context or ()]
    return given or [
        as_passage({"error": call.error} if call.error is not None else call.result)
        for call in _calls(replies)
        if call.error is not None or call.result is not None
    ]


def as_passage(result: Any) -> str:
    """A tool's result as text: text as it is, everything else as JSON."""
    value: Json = plain(result)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _expectations(turn: Turn) -> dict[str, Any]:
    words = turn.expected.keywords
    return {} if words is None else {"expected_output_contains": [*words.any_of, *words.all_of]}


def _calls(replies: Sequence[Reply]) -> tuple[ToolCall, ...]:
    return tuple(call for reply in replies for call in reply.tool_calls)


def _call(call: ToolCall) -> dict[str, Any]:
    """Arguments that are no JSON object are kept as the model wrote them."""
    known: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments)}
    return known if call.raw_arguments is None else {**known, "raw_arguments": call.raw_arguments}


def _outputs(reply: Reply) -> tuple[NamedData, ...]:
    return reply.outputs or (NamedData("output", reply.text if reply.structured is None else reply.structured),)


def _text(reply: Reply) -> str:
    if reply.text or not reply.outputs:
        return reply.text
    return as_passage(collapse(reply.outputs))
