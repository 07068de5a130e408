"""Which actual tool calls fit which expected ones, and, where they do not, why."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from proctor.agents.agent import ToolCall
from proctor.base.json_data import Json, show
from proctor.cases.matchers import Equals, Ignore, Matcher, same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluation import Evaluable, NothingToCompare
from proctor.evaluators.tools.matching import columns_of

_LOOKUP_PAYS_FROM = 200
"""Comparisons from which an index of the actual calls costs less than comparing every pair."""


def expected_calls(evaluable: Evaluable) -> tuple[ExpectedCall, ...]:
    """The calls to compare with; an empty tuple is an expectation too."""
    if evaluable.expected_tool_calls is None:
        raise NothingToCompare("no tool calls are expected of this turn, nor is it said that none may be made")
    return evaluable.expected_tool_calls


def repeated(expected: Sequence[ExpectedCall], most: int) -> list[int]:
    """The position of each expected call, once per time it is to be made.

    Never more than `most` times, the number of actual calls: more of them could not be paired anyway.
    """
    return [index for index, call in enumerate(expected) for _ in range(min(call.count, most))]


def mismatches(expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
    """Each way in which the arguments of a call differ from what is expected of them."""
    wanted = expected.arguments
    if wanted is None:
        return
    if call.raw_arguments is not None:
        yield f"arguments are not an object: {literal(call.raw_arguments)}"
        return
    given = call.arguments
    for name, matcher in wanted.items():
        if name in given:
            if reason := matcher.mismatch(given[name]):
                yield f"{name} {reason}"
        elif not isinstance(matcher, Ignore):
            yield f"{name} is missing, expected {_matcher_text(matcher)}"
    if not expected.extra_arguments and len(given) > 0:
        for name in given:
            if name not in wanted:
                yield f"{name} was not expected, got {literal(given[name])}"


def fitting_names(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[int]:
    """Per expected call, the actual ones that have its name, as a relation for `pairing`."""
    named: dict[str, int] = {}
    for index, call in enumerate(actual):
        named[call.name] = named.get(call.name, 0) | 1 << index
    return [_named(call, named) for call in expected]


def _named(call: ExpectedCall, named: Mapping[str, int]) -> int:
    if not call.substring:
        return named.get(call.name, 0)
    row = 0
    for name, columns in named.items():
        if call.accepts_name(name):
            row |= columns
    return row


def fitting(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[int]:
    """Per expected call, the actual ones that have its name and arguments, as a relation for `pairing`."""
    rows = fitting_names(expected, actual)
    index = _index(actual) if len(expected) * len(actual) >= _LOOKUP_PAYS_FROM else None
    return [_narrow(call, row, actual, index) for call, row in zip(expected, rows, strict=True)]


def _narrow(call: ExpectedCall, row: int, actual: Sequence[ToolCall], index: Mapping[Hashable, int] | None) -> int:
    if call.arguments is None or not row:
        return row
    if index is not None and (key := literal_key(call)) is not None:
        return row & index.get(key, 0)
    narrowed = 0
    for column in columns_of(row):
        if next(mismatches(call, actual[column]), None) is None:
            narrowed |= 1 << column
    return narrowed


def _index(actual: Sequence[ToolCall]) -> dict[Hashable, int] | None:
    """The actual calls by their arguments, or nothing if some hold a value that cannot be looked up."""
    index: dict[Hashable, int] = {}
    for column, call in enumerate(actual):
        if call.raw_arguments is None:
            try:
                key = value_key(call.arguments)
            except TypeError:
                return None
            index[key] = index.get(key, 0) | 1 << column
    return index


def literal_key(call: ExpectedCall) -> Hashable | None:
    """The key of the only arguments an expected call accepts, or `None` where it accepts more than one."""
    if call.arguments is None or call.extra_arguments:
        return None
    values: dict[str, Json] = {}
    for name, matcher in call.arguments.items():
        if type(matcher) is not Equals:
            return None
        values[name] = matcher.value
    try:
        return value_key(values)
    except TypeError:
        return None


def value_key(value: Json) -> Hashable:
    """Equal for two values exactly when `same` holds for them; raises `TypeError` for what cannot be hashed."""
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, (int, float)):
        return value if value == value else object()
    if isinstance(value, Mapping):
        return (dict, frozenset((name, value_key(item)) for name, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (list, tuple(value_key(item) for item in value))
    hash(value)
    return (kind, value)


def credit(expected: ExpectedCall, call: ToolCall) -> float:
    """The share of the arguments that are as expected, over all that either side names; objects by their parts."""
    wanted = expected.arguments
    if wanted is None:
        return 1.0
    if call.raw_arguments is not None:
        return 0.0
    given = call.arguments
    extra = 0 if expected.extra_arguments else sum(name not in wanted for name in given)
    names = len(wanted) + extra
    if not names:
        return 1.0
    return sum(_argument_credit(wanted[name], name, given) for name in wanted) / names


def _argument_credit(matcher: Matcher, name: str, given: Mapping[str, Json]) -> float:
    if name not in given:
        return 1.0 if isinstance(matcher, Ignore) else 0.0
    if type(matcher) is Equals:
        return _value_credit(matcher.value, given[name])
    return 1.0 if matcher.mismatch(given[name]) is None else 0.0


def _value_credit(wanted: Json, given: Json) -> float:
    if not (isinstance(wanted, Mapping) and isinstance(given, Mapping)):
        return 1.0 if same(wanted, given) else 0.0
    names = wanted.keys() | given.keys()
    if not names:
        return 1.0
    return sum(_value_credit(wanted[name], given[name]) for name in wanted.keys() & given.keys()) / len(names)


def expected_text(call: ExpectedCall) -> str:
    """An expected call as a person would write it: `refund(order=7)`; the bare name if arguments do not matter."""
    if call.arguments is None:
        return call.name
    parts = [f"{name}={_matcher_text(matcher)}" for name, matcher in call.arguments.items()]
    return _call_text(call.name, [*parts, "…"] if call.extra_arguments else parts)


def actual_text(call: ToolCall) -> str:
    """An actual call as a person would write it."""
    if call.raw_arguments is not None:
        return f"{call.name}({literal(call.raw_arguments)})"
    return _call_text(call.name, [f"{name}={literal(value)}" for name, value in call.arguments.items()])


def _call_text(name: str, parts: list[str]) -> str:
    if len(parts) > 8:
        parts = [*parts[:8], "…"]
    return f"{name}({', '.join(parts)})"


def _matcher_text(matcher: Matcher) -> str:
    return literal(matcher.value) if type(matcher) is Equals else literal(matcher.to_json())


def literal(value: Json) -> str:
    """A value short enough for a sentence; text is quoted, so that `'7'` and `7` look different."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:59]}…")
    return show(value, 60)
