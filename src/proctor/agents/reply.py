"""`Reply`, what an agent returns for one turn, with its parts: `ToolCall` and `Usage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from proctor.agents.pricing import estimate_cost
from proctor.base.deprecation import renamed_fields
from proctor.base.json_data import Json, parse_json_or_keep, to_json
from proctor.cases.suite import NamedData

UNFINISHED_CALL = "had not come back when the turn broke off"
"""The error of a tool call that had not finished when its turn ended. Reports recognize stored calls by these words."""


@renamed_fields({"known": "to_json"})
@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of an answer and, if known, its cost. `None` means unknown, which differs from zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    model: str | None = None
    """The model that was called; `None` if it is unknown or if there were several."""
    estimated: bool = False
    """Whether the cost comes from a price list instead of from the provider."""

    @classmethod
    def of_counts(cls, input_tokens: int | None, output_tokens: int | None, model: str | None = None) -> Usage:
        """The usage of one model call, from a library that reports zero tokens when it does not know the counts."""
        if not input_tokens and not output_tokens:
            return cls(model_calls=1)
        return cls(input_tokens, output_tokens, model_calls=1, model=model)

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Json]:
        """The fields that are known, as JSON; `estimated` only if it is true."""
        return {name: value for name, value in to_json(self).items() if value is not None and value is not False}

    def __add__(self, other: Usage) -> Usage:
        """The sum. A field that is unknown in one part is unknown in the sum, except that `Usage()` adds nothing.

        The cost of two models is estimated before they are added: there is no price for a mixture of tokens.
        """
        if self == _NO_USAGE or other == _NO_USAGE:
            return other if self == _NO_USAGE else self
        left, right = self, other
        if left.model is not None and right.model is not None and left.model != right.model:
            left, right = with_estimated_cost(left), with_estimated_cost(right)
        return Usage(
            _sum(left.input_tokens, right.input_tokens),
            _sum(left.output_tokens, right.output_tokens),
            _sum(left.cost_usd, right.cost_usd),
            _sum(left.model_calls, right.model_calls),
            _common_model(left, right),
            left.estimated or right.estimated,
        )


_NO_USAGE = Usage()
_Number = TypeVar("_Number", int, float)


def _sum(left: _Number | None, right: _Number | None) -> _Number | None:
    return None if left is None or right is None else left + right


def _common_model(left: Usage, right: Usage) -> str | None:
    """The model of all tokens, or None if there are several. A part without tokens need not name a model."""
    models = {part.model for part in (left, right) if part.input_tokens or part.output_tokens or part.model}
    return models.pop() if len(models) == 1 else None


def with_estimated_cost(usage: Usage, model: str | None = None) -> Usage:
    """The usage with an estimated cost, or unchanged if the cost is already known or cannot be estimated.

    `model` is the agent's model; it counts if the usage does not name one.
    """
    name = usage.model or model
    if usage.cost_usd is not None or name is None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    cost = estimate_cost(name, usage.input_tokens, usage.output_tokens)
    return usage if cost is None else replace(usage, cost_usd=cost, model=name, estimated=True)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of the agent."""

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    result: Json = None
    error: str | None = None
    id: str | None = None
    started_at: float | None = None
    """Seconds since the epoch."""
    duration_ms: float | None = None
    raw_arguments: str | None = None
    """The arguments as the model wrote them, if they are not a JSON object."""
    parent: str | None = None
    """The id of the surrounding call, if an agent is used as a tool, or of the handoff to the agent that calls."""
    handoff: bool = False
    """Whether another agent took over with this call. Its calls have this one as `parent`, but are not inside it."""

    @property
    def args(self) -> Mapping[str, Json]:
        """The same as `arguments`."""
        return self.arguments

    @classmethod
    def parse(cls, name: str, arguments: Json, **rest: Any) -> ToolCall:
        """A call from arguments that are an object, JSON text, or text that was meant to be JSON."""
        if isinstance(arguments, Mapping):
            return cls(name, dict(arguments), **rest)
        if arguments is None or arguments == "":
            return cls(name, **rest)
        if isinstance(arguments, (str, bytes)):
            text = arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace")
            data = parse_json_or_keep(text)
            return cls(name, dict(data), **rest) if isinstance(data, Mapping) else cls(name, raw_arguments=text, **rest)
        return cls(name, raw_arguments=repr(arguments), **rest)


@dataclass(frozen=True, slots=True)
class HiddenCalls:
    """Why tool calls of a turn may be missing from its reply, and how to make them visible.

    "Not observed" is not "not called": evaluators of tool calls take this into account.
    """

    reason: str
    fix: str
    """What to do about it, as the end of a message."""
    visible: tuple[str, ...] = ()
    """The tools whose calls are recorded all the same: those that are marked with `@proctor.tool`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The agent's answer to one turn, and what it did on the way."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    outputs: tuple[NamedData, ...] = ()
    """Values that the application named with `wrap`. If there are any, they are the output that is scored."""
    structured: Json = None
    """The answer as data, if the agent answers with data."""
    state: Mapping[str, Json] | None = None
    """The session's state after this turn, if the agent reports it."""
    retrieval_context: tuple[str, ...] | None = None
    duration_ms: float | None = None
    thoughts: str = ""
    """What the model thought before the answer, if the framework reports it. It is not part of the answer."""
    raw: Any = None
    """The framework's result object; never stored."""
    returned_none: bool = False
    """Whether the agent's code returned None, so that there is no answer unless it named outputs."""
    error: str | None = None
    """Why the turn failed, if it did. The other fields then hold the part of the answer that had arrived."""
    hidden_calls: HiddenCalls | None = None
    """Why `tool_calls` may be incomplete; `None` if nothing hints at that."""
    from_cache: bool = False
    """Whether the answer is known to be an earlier one that a cache repeats. The gate does not count it as evidence."""
    reports_calls: bool = field(default=False, compare=False, repr=False)
    """Whether the agent itself said which tools it called, so that no calls means none. Never stored."""

    @property
    def answer(self) -> Json:
        """The answer that is scored and shown: the named outputs, else the data, else the text.

        One named output is the answer itself; several become an object of values by name.
        """
        if len(self.outputs) == 1:
            return self.outputs[0].value
        if self.outputs:
            return {output.name: output.value for output in self.outputs}
        return self.text if self.structured is None else self.structured

    @property
    def named_outputs(self) -> Sequence[NamedData]:
        """The answer as named values: the named outputs, or one called `output` with the data or the text."""
        return self.outputs or (NamedData("output", self.answer),)
