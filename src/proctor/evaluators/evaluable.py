"""Evaluable: what an evaluator sees of one turn or of a whole conversation."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from proctor.agents.reply import HiddenCalls, Reply, ToolCall, Usage
from proctor.base.json_data import UNSET, Json, Unset, to_json, to_text
from proctor.cases.suite import ExpectedCall, Keywords, NamedData, Turn


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn and its answer, as an evaluator of the whole conversation sees it."""

    turn: Turn
    reply: Reply


class NamedValues(list[NamedData]):
    """A list of named values; one with a single value also equals this value, and contains what it contains.

    Evaluators for pixie 0.4 know only one input and one output and write `evaluable.eval_output == "Paris"`. With a
    plain list, that would be false for every answer.
    """

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) is True or (len(self) == 1 and bool(self[0].value == other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, item: object) -> bool:
        if super().__contains__(item) or len(self) != 1:
            return super().__contains__(item)
        value = self[0].value
        if isinstance(value, str):
            return isinstance(item, str) and item in value
        return isinstance(value, list | dict) and item in value

    def __getattr__(self, name: str) -> Any:
        hint = "; it is a list of named values, use .input or .output of the evaluable" if hasattr(str, name) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")


@dataclass(frozen=True, slots=True)
class Evaluable:
    """What an evaluator sees of one turn or of a whole trial."""

    __test__: ClassVar[bool] = False
    """It is also exported as `TestCase`, which pytest would collect as a test class."""
    eval_input: Sequence[NamedData] = ()
    """A list of named values. The constructor also takes `{"name": ..., "value": ...}`, or one value alone."""
    eval_output: Sequence[NamedData] = ()
    expectation: Json | Unset = UNSET
    """The expected output. `UNSET`: the case has none. `None`: the agent should return nothing."""
    eval_metadata: Mapping[str, Json] | None = None
    description: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    expected_tool_calls: tuple[ExpectedCall, ...] | None = None
    """`None` asserts nothing; an empty tuple asserts that no tool is called."""
    keywords: Keywords | None = None
    context: tuple[str, ...] | None = None
    retrieval_context: tuple[str, ...] | None = None
    turns: tuple[Exchange, ...] = ()
    """The conversation so far, this turn included."""
    usage: Usage | None = None
    duration_ms: float | None = None
    state: Mapping[str, Json] | None = None
    expected_state: Mapping[str, Json] | None = None
    turn_metadata: Mapping[str, Json] = field(default_factory=dict)
    trace: Any = None
    hidden_calls: HiddenCalls | None = None
    """Why `tool_calls` may be incomplete; `None` if nothing hints at that."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "eval_input", _to_named_values(self.eval_input, "input"))
        object.__setattr__(self, "eval_output", _to_named_values(self.eval_output, "output"))

    @property
    def input(self) -> Json:
        return collapse(self.eval_input)

    @property
    def output(self) -> Json:
        return collapse(self.eval_output)

    @property
    def expected(self) -> Json | Unset:
        """The expected output; `UNSET` if the case has none."""
        return self.expectation

    @property
    def expected_output(self) -> Json | Unset:
        return self.expectation

    @property
    def metadata(self) -> Mapping[str, Json]:
        return self.eval_metadata or {}

    def model_dump(self, *, mode: str = "python", exclude_none: bool = False) -> dict[str, Any]:
        """The input, output, expectation, metadata and description, as pixie's evaluators know them.

        With `mode="json"`, a missing expectation is the text `UNSET`, as in pixie.
        """
        fields = {
            "eval_input": [{"name": item.name, "value": item.value} for item in self.eval_input] or None,
            "expectation": self.expectation,
            "eval_metadata": None if self.eval_metadata is None else dict(self.eval_metadata),
            "description": self.description,
            "eval_output": [{"name": item.name, "value": item.value} for item in self.eval_output] or None,
        }
        if mode == "json":
            fields = to_json(fields)
        return {name: value for name, value in fields.items() if not exclude_none or value is not None}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values for some fields; `expected_output` is the expectation."""
        changes = dict(update or {})
        if "expected_output" in changes:
            changes["expectation"] = changes.pop("expected_output")
        return replace(copy.deepcopy(self) if deep else self, **changes)


def _to_named_values(value: Any, name: str) -> NamedValues:
    """The input or output as a list of named values; a single value gets the name `name`."""
    if value is None:
        return NamedValues()
    if not isinstance(value, (list, tuple)):
        return NamedValues([value if isinstance(value, NamedData) else NamedData(name, value)])
    return NamedValues(
        item if isinstance(item, NamedData) else _named_value(item, f"eval_{name}[{i}]") for i, item in enumerate(value)
    )


def _named_value(item: Any, place: str) -> NamedData:
    if isinstance(item, Mapping) and item.keys() == {"name", "value"} and isinstance(item["name"], str):
        return NamedData(item["name"], item["value"])
    if hasattr(item, "name") and hasattr(item, "value"):
        return NamedData(str(item.name), item.value)
    raise ValueError(f'{place} must be NamedData or {{"name": ..., "value": ...}}, not {to_text(item, 80)}')


def _accept_expected_output(make: Any) -> Any:
    """A constructor that also takes `expected_output`, pixie's other name for the expectation."""

    @functools.wraps(make)
    def init(self: Any, *args: Any, expected_output: Any = UNSET, **named: Any) -> None:
        if expected_output is not UNSET:
            if named.get("expectation", UNSET) is not UNSET:
                raise TypeError("expectation and expected_output mean the same; pass one of them")
            named["expectation"] = expected_output
        make(self, *args, **named)

    return init


Evaluable.__init__ = _accept_expected_output(Evaluable.__init__)  # type: ignore[method-assign]


def collapse(items: Sequence[NamedData]) -> Json:
    """None if there are no items, the value itself for one, an object by name for several."""
    if not items:
        return None
    if len(items) == 1:
        return items[0].value
    return {item.name: item.value for item in items}


collapse_named_data = collapse
"""pixie's name for it."""
