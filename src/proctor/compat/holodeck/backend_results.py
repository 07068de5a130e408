"""What HoloDeck's backends bring back, to and from the replies that Proctor works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proctor.agents.agent import Reply, ToolCall, Usage
from proctor.base.errors import ProctorError, UnreadableReply
from proctor.base.json_data import Json, plain, show
from proctor.compat.holodeck.model_base import HoloDeckModel


class BackendError(ProctorError):
    """A backend could not do what it is for."""


class BackendInitError(BackendError):
    """A backend could not be made: a package, a key or the description of the agent is missing or wrong."""


class BackendSessionError(BackendError):
    """A conversation could not go on."""

    breaks_session = True
    """Two of these in a row end the conversation; after one, the next turn is still sent."""


class BackendTimeoutError(BackendError):
    """A backend took too long."""


@dataclass(frozen=True)
class TokenUsage(HoloDeckModel):
    """How many tokens an answer took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    @classmethod
    def zero(cls) -> TokenUsage:
        return cls()

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )


@dataclass
class ExecutionResult:
    """What came back for one message."""

    response: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    token_usage: TokenUsage = field(default_factory=TokenUsage.zero)
    structured_output: Any | None = None
    num_turns: int = 1
    is_error: bool = False
    error_reason: str | None = None
    thinking: str = ""


def result_of(reply: Reply, turns: int = 1) -> ExecutionResult:
    """A reply in HoloDeck's shape; calls and results share an id, and need not be paired by position."""
    calls = [
        {"name": c.name, "arguments": dict(c.arguments), "call_id": _id(c, i)} for i, c in enumerate(reply.tool_calls)
    ]
    results = [
        {
            "name": c.name,
            "result": c.error if c.error is not None else c.result,
            "call_id": _id(c, i),
            "is_error": c.error is not None,
        }
        for i, c in enumerate(reply.tool_calls)
    ]
    return ExecutionResult(reply.text, calls, results, _tokens(reply.usage), reply.structured, turns)


def reply_of(result: Any) -> Reply:
    """A backend's result as a reply; where it says that something went wrong, with what there is of an answer."""
    if not hasattr(result, "response"):
        raise UnreadableReply(f"the backend returned {type(result).__name__}, which is no ExecutionResult")
    error = None
    if getattr(result, "is_error", False):
        error = str(getattr(result, "error_reason", None) or "the backend gave no reason")
    answers = _Answers(_told(result, "tool_results"))
    calls = tuple(_call(call, answers) for call in _told(result, "tool_calls"))
    spent: Any = getattr(result, "token_usage", None)
    given, written = getattr(spent, "prompt_tokens", None), getattr(spent, "completion_tokens", None)
    usage = Usage(given, written) if given or written else None
    structured = plain(getattr(result, "structured_output", None))
    if not isinstance(result.response, str | None):
        raise UnreadableReply(f"the response of the backend is {type(result.response).__name__}, not str")
    return Reply(result.response or "", calls, usage, structured=structured, raw=result, error=error)


def _told(result: Any, name: str) -> list[dict[str, Any]]:
    told = getattr(result, name, None) or []
    if not isinstance(told, (list, tuple)) or not all(isinstance(item, dict) for item in told):
        raise UnreadableReply(f"the {name} of the backend are not a list of dictionaries: {told!r:.80}")
    return list(told)


class _Answers:
    """Results of tools, found by the call's id, else the next one of the same name."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self._left = list(results)

    def take(self, name: str, identity: Any) -> dict[str, Any] | None:
        fits = [item for item in self._left if identity is not None and item.get("call_id") == identity]
        fits = fits or [item for item in self._left if item.get("name") == name and item.get("call_id") is None]
        if not fits:
            return None
        self._left.remove(fits[0])
        return fits[0]


def _call(call: dict[str, Any], answers: _Answers) -> ToolCall:
    name, identity = str(call.get("name", "")), call.get("call_id")
    given: Json = plain(call.get("arguments", call.get("args")))
    answer = answers.take(name, identity) or {}
    result, failed = plain(answer.get("result")), bool(answer.get("is_error"))
    error = (result if isinstance(result, str) else show(result)) if failed else None
    mark = None if identity is None else str(identity)
    return ToolCall.parse(name, given, result=None if failed else result, error=error, id=mark)


def _id(call: ToolCall, index: int) -> str:
    return call.id or f"{call.name}-{index + 1}"


def _tokens(usage: Usage | None) -> TokenUsage:
    given, written = (usage.input_tokens or 0, usage.output_tokens or 0) if usage is not None else (0, 0)
    return TokenUsage(given, written, given + written)
