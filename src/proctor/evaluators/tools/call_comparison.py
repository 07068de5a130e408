"""Compares actual tool calls with expected ones: which fit, why others do not, what partly right ones earn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proctor.agents.agent import ToolCall
from proctor.base.json_data import Json, show
from proctor.cases.matchers import Equals, Ignore, Matcher, same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluation import Evaluable, NothingToCompare


def expected_calls(evaluable: Evaluable) -> tuple[ExpectedCall, ...]:
    """The calls to compare with; an empty tuple is an expectation too."""
    if evaluable.expected_tool_calls is None:
        raise NothingToCompare("no tool calls are expected of this turn, nor is it said that none may be made")
    return evaluable.expected_tool_calls


def repeated(expected: Sequence[ExpectedCall], most: int) -> list[int]:
    """The index of each expected call, once per time that it is expected.

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


def fitting(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """Per expected and actual call, 1 where name and arguments are as expected, else 0: weights for `best_pairs`."""
    return [[float(fits(wanted, call)) for call in actual] for wanted in expected]


def fitting_names(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
    """The same for the names alone."""
    return [[float(wanted.accepts_name(call.name)) for call in actual] for wanted in expected]


def fits(expected: ExpectedCall, call: ToolCall) -> bool:
    """Whether a call has the expected name and arguments."""
    return expected.accepts_name(call.name) and credit(expected, call) == 1.0


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
    """An expected call as people write it: `refund(order=7)`; the bare name if arguments do not matter."""
    if call.arguments is None:
        return call.name
    parts = [f"{name}={_matcher_text(matcher)}" for name, matcher in call.arguments.items()]
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


def _matcher_text(matcher: Matcher) -> str:
    return literal(matcher.value) if type(matcher) is Equals else literal(matcher.to_json())


def literal(value: Json) -> str:
    """A value short enough for a sentence; text is quoted, so that `'7'` and `7` look different."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:59]}…")
    return show(value, 60)
