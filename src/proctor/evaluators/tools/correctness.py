"""How much of the expected tool use happened, and whether the tools still answer what the agent was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.agents.tool_rerun import SECONDS, Reexecution, reexecute
from proctor.agents.tools import toolbox
from proctor.base.errors import ProctorError
from proctor.base.json_data import UNSET, plain, show
from proctor.cases.matchers import BadForm, Difference, Equals, Matcher, differences_of, parse, same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare, require_flags
from proctor.evaluators.judged_evaluator import NAMED
from proctor.evaluators.tools.calls import (
    compared_calls,
    crediting,
    expected_calls,
    expected_text,
    fitting_names,
    mismatches,
    repeated,
    require_failed_calls,
    wrong_arguments,
)
from proctor.evaluators.tools.differences import Differences, differences, fault
from proctor.evaluators.tools.pairing import Pairs, Weights, best_pairs, best_pairs_in_order, is_exact


@evaluator(family="tools", needs="tools", variant_of="ExpectedTools")
@dataclass(frozen=True, slots=True)
class ToolCorrectness:
    """The share of the expected tool calls that were made; further calls cost nothing unless `exact`.

    The share of expected calls that were made, by name; `ordered`: as far as they come in order; `exact`: 0 unless
    these calls, in this order, and no others; `compare_arguments`: each counts by the share of its arguments that are
    right; `compare_results`: only with the expected result, where one is given.
    """

    ordered: bool = False
    """Whether only calls that come in the expected order count."""
    exact: bool = False
    """Whether anything but the expected calls, all of them, in their order and nothing else, scores 0."""
    compare_arguments: bool = False
    """Whether a call counts only as far as its arguments are the expected ones."""
    compare_results: bool = False
    """Whether a call counts only if its result is the expected one, where one is given."""
    failed_calls: str = "count"
    """`ignore` leaves calls that ended in an error out of the comparison."""

    def __post_init__(self) -> None:
        require_flags(
            ordered=self.ordered,
            exact=self.exact,
            compare_arguments=self.compare_arguments,
            compare_results=self.compare_results,
        )
        require_failed_calls(self.failed_calls)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = expected_calls(evaluable)
        places = compared_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            reason = "tools were called and none was to be" if actual else "no tool was to be called, and none was"
            return Evaluation(float(not actual), reason, differences(expected, actual, []).details(places=places))
        fit = self._fitting(expected, actual)
        worth = self._worths(expected, actual, fit)
        units = repeated(expected, len(actual))
        weights = [worth[index] for index in units]
        found = self._pair([fit[index] for index in units], weights)
        pairs = [(units[unit], column) for unit, column in found]
        earned = [worth[i][c] for i, c in pairs]
        left = differences(expected, actual, pairs, fit if self.ordered or self.exact else (), self._reasons)
        evaluation = self._verdict(left, earned, places)
        if self.ordered or self.exact or is_exact(weights):
            return evaluation
        return replace(evaluation, details={**evaluation.details, "approximate": True})

    def _fitting(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[list[float]]:
        """Which calls may be paired at all."""
        if not self.compare_results:
            return fitting_names(expected, actual)
        return [[float(self._fits(wanted, call)) for call in actual] for wanted in expected]

    def _worths(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], fit: Weights) -> Weights:
        if not self.compare_arguments:
            return fit
        earned = crediting(expected, actual)
        if not self.compare_results:
            return earned
        return [[f * c for f, c in zip(row, credit, strict=True)] for row, credit in zip(fit, earned, strict=True)]

    def _fits(self, expected: ExpectedCall, call: ToolCall) -> bool:
        """Whether the two may be paired at all."""
        if not expected.accepts_name(call.name):
            return False
        return not self.compare_results or not any(_differences(expected, call))

    def _pair(self, fit: Weights, worth: Weights) -> Pairs:
        if self.exact:
            places = range(min(len(fit), len(fit[0]) if fit else 0))
            return [(index, index) for index in places if fit[index][index]]
        return (best_pairs_in_order if self.ordered else best_pairs)(worth)

    def _verdict(self, left: Differences, earned: list[float], places: Sequence[int]) -> Evaluation:
        wanted = sum(call.count for call in left.expected)
        share = fsum(earned) / wanted if wanted else 1.0
        details = {**left.details(extra_allowed=not self.exact, places=places), "credit": earned}
        if share == 1.0 and not (self.exact and len(left.actual) > wanted):
            return Evaluation(1.0, f"all {wanted} expected calls were made", details)
        partly = [pair for pair, worth in zip(left.pairs, earned, strict=True) if worth < 1.0]
        phrases = [left.explain(extra_allowed=not self.exact)]
        for index, column in partly[:8]:
            likely, call = left.expected[index], left.actual[column]
            phrases.append(f"{call.name}: {', '.join(self._reasons(likely, call))}")
            wrong = wrong_arguments(likely, call)
            details["faults"].append(
                fault("arguments", call.name, places[column], call=expected_text(likely), arguments=wrong)
            )
        return Evaluation(0.0 if self.exact else share, "; ".join(filter(None, phrases)), details)

    def _reasons(self, expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
        if self.compare_arguments:
            yield from mismatches(expected, call)
        if self.compare_results:
            yield from map(str, _differences(expected, call))


def _differences(expected: ExpectedCall, call: ToolCall) -> Iterator[Difference]:
    """How the result of a call differs from what is expected of it, in which matchers may stand."""
    if expected.result is UNSET or same(expected.result, call.result):
        return
    try:
        matcher: Matcher = parse(expected.result)
    except BadForm:  # not from a file of ours, so that a key with a `$` is only a key
        matcher = Equals(expected.result)
    yield from differences_of(matcher, call.result, "result")


LONGEST = 120


class CannotRepeat(ProctorError):
    """Tools could not be called again, so that nothing is known about them."""


@evaluator(family="tools", needs="tool calls", threshold=1.0)
@dataclass(frozen=True, slots=True)
class ToolConsistency:
    """The share of tool calls that, made again with the agent's own arguments, give what the agent was given.

    The share of calls that, made again with the agent's own arguments, give what the agent was given; see below.
    Skipped if no call can be compared.
    """

    tools: Any = None
    """A table of names and functions, a list of functions, or a reference to one: `tools.py:TOOLS`."""
    seconds: float = SECONDS
    """How long one call may take."""
    base: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)) or not self.seconds > 0:
            raise ValueError(f"seconds must be a number above 0, not {self.seconds!r}")
        if self.tools is not None:
            object.__setattr__(self, "tools", toolbox(self.tools, self.base))

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        if not evaluable.tool_calls:
            raise NothingToCompare("no tools were used, so that none can be called again")
        tools = toolbox(None, self.base) if self.tools is None else self.tools
        again = await reexecute(evaluable.tool_calls, tools, seconds=self.seconds)
        return _verdict(again)


def _verdict(again: Sequence[Reexecution]) -> Evaluation:
    """What differs is a finding, whatever else went wrong; what could not be called again is none."""
    told = [item for item in again if item.differs is not None]
    differing = [item for item in told if item.differs]
    failed = [item for item in again if item.error is not None and item.differs is None]
    if failed and not differing:
        raise CannotRepeat(f"could not be called again: {_listed(failed)}")
    if not told:
        raise NothingToCompare(f"no call could be compared: {_listed(again)}")
    said = f"{len(told) - len(differing)} of {len(told)} calls give what the agent was given"
    parts = [said, _listed(differing), f"not compared: {_listed(rest)}" if (rest := _rest(again)) else ""]
    score = (len(told) - len(differing)) / len(told)
    return Evaluation(score, "; ".join(filter(None, parts)), {"calls": [plain(item) for item in again]})


def _rest(again: Sequence[Reexecution]) -> list[Reexecution]:
    return [item for item in again if item.differs is None]


def _listed(items: Sequence[Reexecution]) -> str:
    named = [describe(item) for item in items[:NAMED]]
    return "; ".join([*named, f"and {len(items) - NAMED} more"] if len(items) > NAMED else named)


def describe(item: Reexecution) -> str:
    """One call and what came of it, in a line."""
    call = f"{item.name}({', '.join(f'{name}={show(value, 40)}' for name, value in item.arguments.items())})"
    if item.skipped is not None:
        return f"{call}: {item.skipped}"
    if item.error is not None:
        return f"{call}: {show(item.error, LONGEST)}"
    if item.differs is None:
        return f"{call}: it is not known what the agent was given"
    verb = "gives" if item.differs else "still gives"
    return f"{call} {verb} {show(item.result, LONGEST)}; the agent was given {show(item.seen, LONGEST)}"
