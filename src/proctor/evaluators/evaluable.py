"""What evaluators see of one turn or of a whole conversation."""

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
    """It goes by the name of `TestCase` as well, which pytest would take for tests."""
    eval_input: Sequence[NamedData] = ()
    """A list once it is made, whatever it was made from: named values, `{"name": ..., "value": ...}`, or one value."""
    eval_output: Sequence[NamedData] = ()
    expectation: Json | Unset = UNSET
    """The reference answer. `UNSET`: none was given; `None`: the expected answer is nothing."""
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
    def expected_output(self) -> Json | Unset:
        return self.expectation


def _named_values(given: Any, name: str) -> list[NamedData]:
    """The values of one side as a list; a value that is no list is the only one, under the usual name."""
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        return [given] if isinstance(given, NamedData) else [NamedData(name, given)]
    return [
        item if isinstance(item, NamedData) else _named_value(item, f"eval_{name}[{i}]") for i, item in enumerate(given)
    ]


def _named_value(item: Any, place: str) -> NamedData:
    if isinstance(item, Mapping) and item.keys() == {"name", "value"} and isinstance(item["name"], str):
        return NamedData(item["name"], item["value"])
    if hasattr(item, "name") and hasattr(item, "value"):
        return NamedData(str(item.name), item.value)
    raise ValueError(f'{place} must be NamedData or {{"name": ..., "value": ...}}, not {to_text(item, 80)}')


def _accept_expected_output(make: Any) -> Any:
    """The constructor of `Evaluable` under pixie's other name for the expectation."""

    @functools.wraps(make)
    def init(self: Any, *args: Any, expected_output: Any = UNSET, **named: Any) -> None:
        if expected_output is not UNSET:
            if named.get("expectation", UNSET) is not UNSET:
                raise TypeError("expectation and expected_output are the same; give one of them")
            named["expectation"] = expected_output
        make(self, *args, **named)

    return init


Evaluable.__init__ = _accept_expected_output(Evaluable.__init__)  # type: ignore[method-assign]


def collapse(items: Sequence[NamedData]) -> Json:
    """Nothing for none, the value itself for one, an object by name for several."""
    if not items:
        return None
    if len(items) == 1:
        return items[0].value
    return {item.name: item.value for item in items}
