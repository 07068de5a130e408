"""How much of the expected tool use happened: a share between 0 and 1, with credit for partly right arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from proctor.agents.agent import ToolCall
from proctor.base.json_data import UNSET
from proctor.base.records import record
from proctor.cases.matchers import same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.compared_values import require_flags
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.tools.call_comparison import credit, expected_calls, literal, mismatches, repeated
from proctor.evaluators.tools.differences import Differences, differences
from proctor.evaluators.tools.matching import Pairs, Weights, best_pairs, best_pairs_in_order


@record
class ToolCorrectness:
    """The share of the expected tool calls that were made; further calls cost nothing unless `exact`."""

    ordered: bool = False
    """Whether only calls that come in the expected order count."""
    exact: bool = False
    """Whether anything but the expected calls, all of them, in their order and nothing else, scores 0."""
    compare_arguments: bool = False
    """Whether a call counts only as far as its arguments are the expected ones."""
    compare_results: bool = False
    """Whether a call counts only if its result is the expected one, where one is given."""

    def __post_init__(self) -> None:
        require_flags(
            ordered=self.ordered,
            exact=self.exact,
            compare_arguments=self.compare_arguments,
            compare_results=self.compare_results,
        )

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, actual = expected_calls(evaluable), evaluable.tool_calls
        if not expected:
            reason = "tools were called and none was to be" if actual else "no tool was to be called, and none was"
            return Evaluation(float(not actual), reason, differences(expected, actual, []).details())
        fit = [[float(self._fits(wanted, call)) for call in actual] for wanted in expected]
        units = repeated(expected, len(actual))
        found = self._pair([fit[index] for index in units], [expected[index] for index in units], actual)
        pairs = [(units[unit], column) for unit, column in found]
        earned = [self._worth(expected[i], actual[c]) for i, c in pairs]
        left = differences(expected, actual, pairs, fit if self.ordered or self.exact else (), self._reasons)
        return self._verdict(left, earned)

    def _fits(self, expected: ExpectedCall, call: ToolCall) -> bool:
        """Whether the two may be paired at all."""
        if not expected.accepts_name(call.name):
            return False
        return not self.compare_results or expected.result is UNSET or same(expected.result, call.result)

    def _worth(self, expected: ExpectedCall, call: ToolCall) -> float:
        return credit(expected, call) if self.compare_arguments else 1.0

    def _pair(self, fit: Weights, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> Pairs:
        if self.exact:
            return [(index, index) for index in range(min(len(expected), len(actual))) if fit[index][index]]
        weights = [
            [self._worth(wanted, call) if fits else 0.0 for fits, call in zip(row, actual, strict=True)]
            for row, wanted in zip(fit, expected, strict=True)
        ]
        return (best_pairs_in_order if self.ordered else best_pairs)(weights)

    def _verdict(self, left: Differences, earned: list[float]) -> Evaluation:
        wanted = sum(call.count for call in left.expected)
        share = fsum(earned) / wanted if wanted else 1.0
        details = {**left.details(), "credit": earned}
        if share == 1.0 and not (self.exact and len(left.actual) > wanted):
            return Evaluation(1.0, f"all {wanted} expected calls were made", details)
        partly = [pair for pair, worth in zip(left.pairs, earned, strict=True) if worth < 1.0]
        phrases = [left.explain(extra_allowed=not self.exact)]
        for index, column in partly[:8]:
            call = left.actual[column]
            phrases.append(f"{call.name}: {', '.join(self._reasons(left.expected[index], call))}")
        return Evaluation(0.0 if self.exact else share, "; ".join(filter(None, phrases)), details)

    def _reasons(self, expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
        if self.compare_arguments:
            yield from mismatches(expected, call)
        if self.compare_results and expected.result is not UNSET and not same(expected.result, call.result):
            yield f"result expected {literal(expected.result)}, got {literal(call.result)}"
