"""Compares one actual tool call with one expected call: does it match, what differs, how much is right?

`matches` is the strict answer, `call_differences` says why not, and `credit` gives partial credit by argument. The
matrices apply them to all pairs, as weights for `pairing.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET, Json, to_text
from proctor.cases.matchers import (
    Difference,
    Equals,
    InvalidMatcher,
    Matcher,
    MaybeAbsent,
    ObjectOf,
    accepts,
    describe,
    differences_of,
    hashable_key,
    json_equal,
    literal,
    may_be_absent,
    parse,
    unexpected_keys,
)
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.tools.pairing import MAX_ASSIGNMENT_CELLS

FAILED_CALLS = ("count", "ignore")
"""The values of `failed_calls` and `inner_calls`: compare such calls like others, or ignore them."""


def expected_calls(evaluable: Evaluable) -> tuple[ExpectedCall, ...]:
    """The expected calls. An empty tuple expects no calls; without any expectation, raise `NothingToCompare`."""
    if evaluable.expected_tool_calls is None:
        raise NothingToCompare("the case does not say which tool calls it expects")
    return evaluable.expected_tool_calls


def earlier_calls(evaluable: Evaluable, expected: Sequence[ExpectedCall]) -> list[int]:
    """The indices of expected calls that may have been made in an earlier turn, and were."""
    earlier = [call for exchange in evaluable.turns[:-1] for call in exchange.reply.tool_calls]
    return [
        index
        for index, call in enumerate(expected)
        if call.or_earlier and sum(matches(call, other) for other in earlier) >= call.count
    ]


def require_failed_calls(value: object, name: str = "failed_calls") -> None:
    """Raise `ValueError` unless it is one of `FAILED_CALLS`."""
    if value not in FAILED_CALLS:
        raise ValueError(f"{name} must be count or ignore, not {value!r}")


def counted_calls(calls: Sequence[ToolCall], failed_calls: str, inner_calls: str = "count") -> list[int]:
    """The indices of the calls that count."""
    outer = set(outer_calls(calls)) if inner_calls == "ignore" else range(len(calls))
    return [
        index
        for index, call in enumerate(calls)
        if index in outer and (failed_calls == "count" or not has_failed(call))
    ]


def outer_calls(calls: Sequence[ToolCall]) -> list[int]:
    """The indices of the calls that were not made inside another one, as those of an agent used as a tool are."""
    by_id = {call.id: call for call in calls if call.id is not None}
    return [index for index, call in enumerate(calls) if not _is_inner(call, by_id)]


def _is_inner(call: ToolCall, by_id: Mapping[str, ToolCall]) -> bool:
    """Whether a call was made inside another one; after a handoff it was not, although it has a parent."""
    visited: set[str] = set()
    while call.parent is not None and call.parent not in visited:
        parent = by_id.get(call.parent)
        if parent is None or not parent.handoff:
            return True
        visited.add(call.parent)
        call = parent
    return False


def has_failed(call: ToolCall) -> bool:
    """Whether a call ended in an error: it has one, or its result is an error as tools commonly return it."""
    if call.error is not None:
        return True
    if isinstance(call.result, str):
        return call.result.lstrip()[:6].casefold() == "error:"
    return isinstance(call.result, Mapping) and call.result.get("error") not in (None, False, "", [], {})


def expand_counts(expected: Sequence[ExpectedCall], most: int) -> list[int]:
    """The index of each expected call, repeated as often as it is expected.

    At most `most` times, the number of actual calls, since more could not be paired.
    """
    return [index for index, call in enumerate(expected) for _ in range(min(call.count, most))]


def argument_differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """Each place where the arguments of a call differ from the expected ones."""
    matchers = expected.args
    if matchers is None:
        return
    if call.raw_arguments is not None:
        yield Difference("", f"arguments are not an object: {literal(call.raw_arguments)}")
        return
    arguments = call.arguments
    for name, matcher in matchers.items():
        if name in arguments:
            yield from differences_of(matcher, arguments[name], name)
        elif not may_be_absent(matcher):
            yield Difference(name, f"missing, expected {describe(matcher)}")
    if not expected.extra_args and len(arguments) > 0:
        yield from unexpected_keys(arguments, matchers, "")


def result_differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """Each place where the result of a call differs from the expected one, if there is one."""
    if expected.result is UNSET:
        return
    if call.error is not None:
        yield Difference("result", f"the call ended in an error: {to_text(call.error, 200)}")
        return
    if json_equal(expected.result, call.result):
        return
    try:
        matcher: Matcher = parse(expected.result)
    except InvalidMatcher:  # from a tool where a key with a `$` is an ordinary key
        matcher = Equals(expected.result)
    yield from differences_of(matcher, call.result, "result")


def call_differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """Each place where the arguments or the result of a call differ from the expected ones."""
    yield from argument_differences(expected, call)
    yield from result_differences(expected, call)


def mismatches(expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
    """The differences in words: `payment[1].amount: 5 → 55`."""
    return map(str, call_differences(expected, call))


def wrong_arguments(expected: ExpectedCall, call: ToolCall) -> dict[str, str]:
    """What is wrong, by argument. The empty key holds what is wrong with the arguments as a whole."""
    wrong: dict[str, list[str]] = {}
    for difference in argument_differences(expected, call):
        name = _argument_of(difference.path, expected.args or {}, call.arguments)
        inside = difference.path[len(name) :].removeprefix(".")
        wrong.setdefault(name, []).append(f"{inside}: {difference.reason}" if inside else difference.reason)
    return {
        name: ", ".join(reasons[:4] + (["and more"] if len(reasons) > 4 else [])) for name, reasons in wrong.items()
    }


def _argument_of(path: str, *arguments: Mapping[str, object]) -> str:
    """The argument that a path starts with: the longest name, since names may contain dots and brackets."""
    names = {name for each in arguments for name in each}
    return max(
        (name for name in names if path == name or path.startswith((f"{name}.", f"{name}["))), key=len, default=""
    )


def match_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """A row per expected call and a column per actual call: 1 if they match, else 0. Weights for `best_pairs`.

    Literal expectations are looked up by content instead of compared with each call: an agent in a loop makes thousands
    of calls, and a million comparisons would block the event loop for half a minute.
    """
    places: dict[object, list[int]] = {}
    for column, call in enumerate(actual):
        places.setdefault((call.name, call.raw_arguments, hashable_key(call.arguments)), []).append(column)
    rows = []
    for expected_call in expected:
        key = _literal_key(expected_call)
        if key is None:
            rows.append([float(matches(expected_call, call)) for call in actual])
        else:
            columns = frozenset(places.get(key, ()))
            rows.append([float(column in columns) for column in range(len(actual))])
    return rows


def _literal_key(expected: ExpectedCall) -> object | None:
    """The content of the only calls that match; None if calls with another content may match too."""
    rules = expected.args
    if rules is None or expected.substring or expected.extra_args or expected.result is not UNSET:
        return None
    values = {name: matcher.value for name, matcher in rules.items() if type(matcher) is Equals}
    return (expected.name, None, hashable_key(values)) if len(values) == len(rules) else None


def credit_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The credit of each pair; 0 if the names differ.

    In a matrix of more than `MAX_ASSIGNMENT_CELLS` cells, only full matches earn credit.
    """
    if len(expected) * len(actual) > MAX_ASSIGNMENT_CELLS:
        return match_matrix(expected, actual)
    return [[credit(each, call) if each.accepts_name(call.name) else 0.0 for call in actual] for each in expected]


def name_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """1 for each pair whose names match, else 0."""
    return [[float(each.accepts_name(call.name)) for call in actual] for each in expected]


def matches(expected: ExpectedCall, call: ToolCall) -> bool:
    """Whether a call has the expected name and arguments, and the expected result if there is one."""
    return expected.accepts_name(call.name) and next(call_differences(expected, call), None) is None


def credit(expected: ExpectedCall, call: ToolCall) -> float:
    """The share of all arguments of either side that are as expected. Objects are compared part by part."""
    matchers = expected.args
    if matchers is None:
        return 1.0
    if call.raw_arguments is not None:
        return 0.0
    return _object_credit(matchers, call.arguments, extra=expected.extra_args)


def _object_credit(expected: Mapping[str, Matcher], actual: Mapping[str, Json], *, extra: bool) -> float:
    names = len(expected) + (0 if extra else sum(name not in expected for name in actual))
    if not names:
        return 1.0
    earned = (
        _matcher_credit(matcher, actual[name]) if name in actual else float(may_be_absent(matcher))
        for name, matcher in expected.items()
    )
    return sum(earned) / names


def _matcher_credit(matcher: Matcher, actual: Json) -> float:
    if isinstance(matcher, MaybeAbsent):
        matcher = matcher.matcher
    if type(matcher) is Equals:
        return _value_credit(matcher.value, actual)
    if isinstance(matcher, ObjectOf) and isinstance(actual, Mapping):
        return _object_credit(matcher.fields, actual, extra=matcher.extra)
    return float(accepts(matcher, actual))


def _value_credit(expected: Json, actual: Json) -> float:
    if not (isinstance(expected, Mapping) and isinstance(actual, Mapping)):
        return 1.0 if json_equal(expected, actual) else 0.0
    names = expected.keys() | actual.keys()
    if not names:
        return 1.0
    return sum(_value_credit(expected[name], actual[name]) for name in expected.keys() & actual.keys()) / len(names)


def expected_text(call: ExpectedCall) -> str:
    """An expected call as people write it: `refund(order=7)`, or the name if arguments do not matter."""
    if call.args is None:
        return call.name
    parts = [f"{name}={describe(matcher)}" for name, matcher in call.args.items()]
    return _call_text(call.name, [*parts, "…"] if call.extra_args else parts)


def actual_text(call: ToolCall) -> str:
    """An actual call as people write it."""
    if call.raw_arguments is not None:
        return f"{call.name}({literal(call.raw_arguments)})"
    return _call_text(call.name, [f"{name}={literal(value)}" for name, value in call.arguments.items()])


def _call_text(name: str, parts: list[str]) -> str:
    if len(parts) > 8:
        parts = [*parts[:8], "…"]
    return f"{name}({', '.join(parts)})"
