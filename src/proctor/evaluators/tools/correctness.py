"""How much of the expected tool use happened: a share between 0 and 1, with credit for partly right arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from proctor.agents.model import ToolCall
from proctor.cases.matchers import same
from proctor.cases.model import UNSET, ExpectedCall
from proctor.evaluators.comparands import require_flags
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.evaluators.tools.calls import credit, expected_calls, fitting_names, literal, mismatches, repeated
from proctor.evaluators.tools.crediting import most_credit, most_credit_in_order
from proctor.evaluators.tools.differences import Differences, differences
from proctor.evaluators.tools.pairing import Pairs, columns_of, most_pairs, most_pairs_in_order
from proctor.records import record


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
        rows = self._rows(expected, actual)
        units = repeated(expected, len(actual))
        found = self._pair([expected[index] for index in units], actual, [rows[index] for index in units])
        pairs = [(units[unit], column) for unit, column in found]
        earned = [credit(expected[i], actual[c]) if self.compare_arguments else 1.0 for i, c in pairs]
        left = differences(expected, actual, pairs, rows if self.ordered or self.exact else (), self._reasons)
        return self._verdict(left, earned)

    def _rows(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[int]:
        rows = fitting_names(expected, actual)
        if self.compare_results:
            for index, call in enumerate(expected):
                if call.result is not UNSET:
                    fits = (c for c in columns_of(rows[index]) if same(call.result, actual[c].result))
                    rows[index] = sum(1 << column for column in fits)
        return rows

    def _pair(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], rows: Sequence[int]) -> Pairs:
        if self.exact:
            return [(index, index) for index, row in enumerate(rows) if row >> index & 1]
        if self.compare_arguments:
            return (most_credit_in_order if self.ordered else most_credit)(expected, actual, rows)
        return most_pairs_in_order(rows) if self.ordered else most_pairs(rows)

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
