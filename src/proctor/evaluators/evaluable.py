"""Evaluable: what an evaluator sees of one turn or of a whole conversation."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import UNSET, Json, Unset, to_text
from proctor.cases.suite import ExpectedCall, Keywords, NamedData, Turn


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn and its answer, as an evaluator of the whole conversation sees it."""

    turn: Turn
    reply: Reply


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "eval_input", _named_values(self.eval_input, "input"))
        object.__setattr__(self, "eval_output", _named_values(self.eval_output, "output"))

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


def _named_values(value: Any, name: str) -> list[NamedData]:
    """The input or output as a list of named values; a single value gets the name `name`."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        return [value] if isinstance(value, NamedData) else [NamedData(name, value)]
    return [
        item if isinstance(item, NamedData) else _named_value(item, f"eval_{name}[{i}]") for i, item in enumerate(value)
    ]


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
