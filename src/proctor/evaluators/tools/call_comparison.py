"""Compares actual tool calls with expected ones: which fit, why others do not, what partly right ones earn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from proctor.agents.agent import ToolCall
from proctor.base.json_data import Json
from proctor.cases.matchers import (
    Difference,
    Equals,
    Matcher,
    ObjectOf,
    OptionalValue,
    accepts,
    data_key,
    describe,
    differences_of,
    literal,
    may_be_absent,
    not_expected,
    same,
)
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluation import Evaluable, NothingToCompare

MOST_CREDITED = 90_000
"""Pairs of different calls whose arguments are compared one by one: an agent that makes thousands of calls must not
stop everything else."""
FEW_PAIRS = 100
"""So few are compared sooner than equal calls among them are found."""
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


def compared_calls(calls: Sequence[ToolCall], failed_calls: str) -> list[int]:
    """The indices of the calls that count."""
    return [index for index, call in enumerate(calls) if failed_calls == "count" or not has_failed(call)]


def has_failed(call: ToolCall) -> bool:
    """Whether a call ended in an error: it says so, or its result is an error as tools commonly return one."""
    if call.error is not None:
        return True
    if isinstance(call.result, str):
        return call.result.lstrip()[:6].casefold() == "error:"
    return isinstance(call.result, Mapping) and call.result.get("error") not in (None, False, "", [], {})


def repeated(expected: Sequence[ExpectedCall], most: int) -> list[int]:
    """The index of each expected call, once per time that it is expected.

    Never more than `most` times, the number of actual calls: more of them could not be paired anyway.
    """
    return [index for index, call in enumerate(expected) for _ in range(min(call.count, most))]


def argument_differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """Each place at which the arguments of a call differ from what is expected of them."""
    wanted = expected.arguments
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
    if not expected.extra_arguments and len(given) > 0:
        yield from not_expected(given, wanted, "")


def mismatches(expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
    """The same as sentences: `payment[1].amount: 5 → 55`."""
    return map(str, argument_differences(expected, call))


def wrong_arguments(expected: ExpectedCall, call: ToolCall) -> dict[str, str]:
    """By argument, what is wrong with it; by nothing, what is wrong with all of them."""
    wrong: dict[str, list[str]] = {}
    for found in argument_differences(expected, call):
        name = _argument_of(found.path, expected.arguments or {}, call.arguments)
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


def fitting(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """Per expected and actual call, 1 where name and arguments are as expected, else 0: weights for `best_pairs`.

    Literally expected calls are looked up, others compared once per different call: an agent may make thousands.
    """
    if len(expected) * len(actual) <= FEW_PAIRS:
        return [[float(fits(wanted, call)) for call in actual] for wanted in expected]
    groups = _EqualCalls(actual)
    return [groups.row(wanted, lambda wanted, call: float(fits(wanted, call)), look_up=True) for wanted in expected]


def crediting(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The same with the credit of each pair; none where the names differ.

    Where more than `MOST_CREDITED` pairs would have to be looked at, only calls that fit earn anything.
    """

    def worth(wanted: ExpectedCall, call: ToolCall) -> float:
        return credit(wanted, call) if wanted.accepts_name(call.name) else 0.0

    if len(expected) * len(actual) <= FEW_PAIRS:
        return [[worth(wanted, call) for call in actual] for wanted in expected]
    groups = _EqualCalls(actual)
    if groups.count * len({_written_key(wanted) for wanted in expected}) > MOST_CREDITED:
        return fitting(expected, actual)
    return [groups.row(wanted, worth) for wanted in expected]


def fitting_names(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The same for the names alone."""
    names = {call.name for call in actual}
    accepted = [frozenset(name for name in names if wanted.accepts_name(name)) for wanted in expected]
    rows = {accepts: [float(call.name in accepts) for call in actual] for accepts in set(accepted)}
    return [rows[accepts] for accepts in accepted]


class _EqualCalls:
    """The actual calls, equal ones together: comparing one of them is enough."""

    def __init__(self, actual: Sequence[ToolCall]) -> None:
        self._actual = actual
        self._columns: dict[object, list[int]] = {}
        self._rows: dict[object, list[float]] = {}
        for column, call in enumerate(actual):
            self._columns.setdefault((call.name, call.raw_arguments, data_key(call.arguments)), []).append(column)

    @property
    def count(self) -> int:
        """How many different calls there are."""
        return len(self._columns)

    def row(
        self, wanted: ExpectedCall, worth: Callable[[ExpectedCall, ToolCall], float], *, look_up: bool = False
    ) -> list[float]:
        """What each call is worth; `look_up`: only calls that are literally the expected one are worth anything."""
        key, written = _literal_key(wanted), _written_key(wanted)
        if written in self._rows:
            return self._rows[written]
        row = self._rows[written] = [0.0] * len(self._actual)
        found = [self._columns.get(key, [])] if look_up and key is not None else self._columns.values()
        for columns in found:
            value = worth(wanted, self._actual[columns[0]]) if columns else 0.0
            if value:
                for column in columns:
                    row[column] = value
        return row


def _written_key(wanted: ExpectedCall) -> object:
    """Equal for expected calls that ask for the same; those with a matcher of a user's own stay apart."""
    rules = wanted.arguments
    if rules is None:
        return wanted.name, wanted.substring, None
    if not all(type(matcher).__module__.startswith("proctor.") for matcher in rules.values()):
        return id(wanted)
    written = data_key({name: matcher.to_json() for name, matcher in rules.items()})
    return wanted.name, wanted.substring, wanted.extra_arguments, written


def _literal_key(wanted: ExpectedCall) -> object:
    """The key of the only calls that fit; `None` where others fit as well."""
    rules = wanted.arguments
    if rules is None or wanted.substring or wanted.extra_arguments:
        return None
    if not all(type(matcher) is Equals for matcher in rules.values()):
        return None
    return wanted.name, None, data_key({name: getattr(matcher, "value", None) for name, matcher in rules.items()})


def fits(expected: ExpectedCall, call: ToolCall) -> bool:
    """Whether a call has the expected name and arguments."""
    return expected.accepts_name(call.name) and next(argument_differences(expected, call), None) is None


def credit(expected: ExpectedCall, call: ToolCall) -> float:
    """The share of the arguments that are as expected, over all that either side names; objects by their parts."""
    wanted = expected.arguments
    if wanted is None:
        return 1.0
    if call.raw_arguments is not None:
        return 0.0
    return _object_credit(wanted, call.arguments, extra=expected.extra_arguments)


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
    if isinstance(matcher, OptionalValue):
        matcher = matcher.matcher
    if type(matcher) is Equals:
        return _value_credit(matcher.value, given)
    if isinstance(matcher, ObjectOf) and isinstance(given, Mapping):
        return _object_credit(matcher.fields, given, extra=matcher.extra)
    return float(accepts(matcher, given))


def _value_credit(wanted: Json, given: Json) -> float:
    if not (isinstance(wanted, Mapping) and isinstance(given, Mapping)):
        return 1.0 if same(wanted, given) else 0.0
    names = wanted.keys() | given.keys()
    if not names:
        return 1.0
    return sum(_value_credit(wanted[name], given[name]) for name in wanted.keys() & given.keys()) / len(names)


def expected_text(call: ExpectedCall) -> str:
    """An expected call as people write it: `refund(order=7)`; the bare name if arguments do not matter."""
    if call.arguments is None:
        return call.name
    parts = [f"{name}={describe(matcher)}" for name, matcher in call.arguments.items()]
    return _call_text(call.name, [*parts, "…"] if call.extra_arguments else parts)


def actual_text(call: ToolCall) -> str:
    """An actual call as people write it."""
    if call.raw_arguments is not None:
        return f"{call.name}({literal(call.raw_arguments)})"
    return _call_text(call.name, [f"{name}={literal(value)}" for name, value in call.arguments.items()])


def _call_text(name: str, parts: list[str]) -> str:
    if len(parts) > 8:
        parts = [*parts[:8], "…"]
    return f"{name}({', '.join(parts)})"
