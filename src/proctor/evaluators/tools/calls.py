"""Compares actual tool calls with expected ones: which fit, why others do not, what partly right ones earn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proctor.agents.reply import ToolCall
from proctor.base.json_data import Json
from proctor.cases.matchers import (
    Difference,
    Equals,
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
    unexpected_keys,
)
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.tools.pairing import MAX_ASSIGNMENT_CELLS

FAILED_CALLS = ("count", "ignore")
"""What `failed_calls` may say: calls that ended in an error are compared like others, or left out."""


def expected_calls(evaluable: Evaluable) -> tuple[ExpectedCall, ...]:
    """The calls to compare with; an empty tuple is an expectation too."""
    if evaluable.expected_tool_calls is None:
        raise NothingToCompare("no tool calls are expected of this turn, nor is it said that none may be made")
    return evaluable.expected_tool_calls


def require_failed_calls(value: object) -> None:
    """Raises `ValueError` for anything but the known ways to treat calls that failed."""
    if value not in FAILED_CALLS:
        raise ValueError(f"failed_calls must be count or ignore, not {value!r}")


def counted_calls(calls: Sequence[ToolCall], failed_calls: str) -> list[int]:
    """The indices of the calls that count."""
    return [index for index, call in enumerate(calls) if failed_calls == "count" or not has_failed(call)]


def has_failed(call: ToolCall) -> bool:
    """Whether a call ended in an error: it says so, or its result is an error as tools commonly return one."""
    if call.error is not None:
        return True
    if isinstance(call.result, str):
        return call.result.lstrip()[:6].casefold() == "error:"
    return isinstance(call.result, Mapping) and call.result.get("error") not in (None, False, "", [], {})


def expand_counts(expected: Sequence[ExpectedCall], most: int) -> list[int]:
    """The index of each expected call, once per time that it is expected.

    Never more than `most` times, the number of actual calls: more of them could not be paired anyway.
    """
    return [index for index, call in enumerate(expected) for _ in range(min(call.count, most))]


def argument_differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """Each place at which the arguments of a call differ from what is expected of them."""
    wanted = expected.args
    if wanted is None:
        return
    if call.raw_arguments is not None:
        yield Difference("", f"arguments are not an object: {literal(call.raw_arguments)}")
        return
    given = call.arguments
    for name, matcher in wanted.items():
        if name in given:
            yield from differences_of(matcher, given[name], name)
        elif not may_be_absent(matcher):
            yield Difference(name, f"missing, expected {describe(matcher)}")
    if not expected.extra_args and len(given) > 0:
        yield from unexpected_keys(given, wanted, "")


def mismatches(expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
    """The same as sentences: `payment[1].amount: 5 → 55`."""
    return map(str, argument_differences(expected, call))


def wrong_arguments(expected: ExpectedCall, call: ToolCall) -> dict[str, str]:
    """By argument, what is wrong with it; by nothing, what is wrong with all of them."""
    wrong: dict[str, list[str]] = {}
    for found in argument_differences(expected, call):
        name = _argument_of(found.path, expected.args or {}, call.arguments)
        inside = found.path[len(name) :].removeprefix(".")
        wrong.setdefault(name, []).append(f"{inside}: {found.reason}" if inside else found.reason)
    return {
        name: ", ".join(reasons[:4] + (["and more"] if len(reasons) > 4 else [])) for name, reasons in wrong.items()
    }


def _argument_of(path: str, *arguments: Mapping[str, object]) -> str:
    """The argument that a path begins with; the longest, since a name may have dots and brackets of its own."""
    names = {name for given in arguments for name in given}
    return max(
        (name for name in names if path == name or path.startswith((f"{name}.", f"{name}["))), key=len, default=""
    )


def match_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """Per expected and actual call, 1 where name and arguments are as expected, else 0: weights for `best_pairs`.

    Literally expected calls are looked up by their content and not compared with each call: an agent in a loop makes
    thousands, and a thousand times a thousand comparisons would stop everything else for half a minute.
    """
    places: dict[object, list[int]] = {}
    for column, call in enumerate(actual):
        places.setdefault((call.name, call.raw_arguments, hashable_key(call.arguments)), []).append(column)
    rows = []
    for wanted in expected:
        key = _literal_key(wanted)
        if key is None:
            rows.append([float(matches(wanted, call)) for call in actual])
        else:
            columns = frozenset(places.get(key, ()))
            rows.append([float(column in columns) for column in range(len(actual))])
    return rows


def _literal_key(wanted: ExpectedCall) -> object | None:
    """The content of the only calls that fit; None where others may fit as well."""
    rules = wanted.args
    if rules is None or wanted.substring or wanted.extra_args:
        return None
    values = {name: matcher.value for name, matcher in rules.items() if type(matcher) is Equals}
    return (wanted.name, None, hashable_key(values)) if len(values) == len(rules) else None


def credit_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The same with the credit of each pair; none where the names differ.

    Of more than `MAX_ASSIGNMENT_CELLS` pairs only those that fit earn anything.
    """
    if len(expected) * len(actual) > MAX_ASSIGNMENT_CELLS:
        return match_matrix(expected, actual)
    return [[credit(wanted, call) if wanted.accepts_name(call.name) else 0.0 for call in actual] for wanted in expected]


def name_matrix(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The same for the names alone."""
    return [[float(wanted.accepts_name(call.name)) for call in actual] for wanted in expected]


def matches(expected: ExpectedCall, call: ToolCall) -> bool:
    """Whether a call has the expected name and arguments."""
    return expected.accepts_name(call.name) and next(argument_differences(expected, call), None) is None


def credit(expected: ExpectedCall, call: ToolCall) -> float:
    """The share of the arguments that are as expected, over all that either side names; objects by their parts."""
    wanted = expected.args
    if wanted is None:
        return 1.0
    if call.raw_arguments is not None:
        return 0.0
    return _object_credit(wanted, call.arguments, extra=expected.extra_args)


def _object_credit(wanted: Mapping[str, Matcher], given: Mapping[str, Json], *, extra: bool) -> float:
    names = len(wanted) + (0 if extra else sum(name not in wanted for name in given))
    if not names:
        return 1.0
    earned = (
        _matcher_credit(matcher, given[name]) if name in given else float(may_be_absent(matcher))
        for name, matcher in wanted.items()
    )
    return sum(earned) / names


def _matcher_credit(matcher: Matcher, given: Json) -> float:
    if isinstance(matcher, MaybeAbsent):
        matcher = matcher.matcher
    if type(matcher) is Equals:
        return _value_credit(matcher.value, given)
    if isinstance(matcher, ObjectOf) and isinstance(given, Mapping):
        return _object_credit(matcher.fields, given, extra=matcher.extra)
    return float(accepts(matcher, given))


def _value_credit(wanted: Json, given: Json) -> float:
    if not (isinstance(wanted, Mapping) and isinstance(given, Mapping)):
        return 1.0 if json_equal(wanted, given) else 0.0
    names = wanted.keys() | given.keys()
    if not names:
        return 1.0
    return sum(_value_credit(wanted[name], given[name]) for name in wanted.keys() & given.keys()) / len(names)


def expected_text(call: ExpectedCall) -> str:
    """An expected call as people write it: `refund(order=7)`; the bare name if arguments do not matter."""
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
