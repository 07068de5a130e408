"""The cases of a run: read once, filtered and sorted in memory, and added up.

The outcome of a case comes from the verdict of the run; this module only counts and arranges. The search for words is
done by the store, since it reads every answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from proctor.cases.identity import CaseAddress
from proctor.reporting.failure_causes import cause_name
from proctor.reporting.html.run_view import GateView, NamedValue, gate_view, judge_facts
from proctor.reporting.plots import BarPlot, distribution_plots
from proctor.results.comparison.arms import ArmTable, arm_tables
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.statistics import Estimate
from proctor.results.trial import TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict

CASES_PER_PAGE = 50
"""Cases on one page."""
MAX_QUERY_VALUE = 500
"""Maximum characters of a value in the query."""
MAX_CHOICES = 50
"""Maximum tags and evaluators that a filter offers."""
MAX_TRIALS_FOR_CAUSES = 2_000
"""Failed trials that are read to group them by cause: more would take too long, and the first ones show the causes."""
LARGE_RUN = 5_000
"""With more trials than this, a page does not show caveats about judges, which would need every answer to be read."""
FAILED_OR_ERROR = (Outcome.FAILED, Outcome.ERROR)
NOT_PASSED = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING)


@dataclass(frozen=True, slots=True)
class SuiteTotals:
    """The cases of one suite in one run, added up."""

    suite: str
    outcomes: Mapping[Outcome, int]
    """Cases by outcome."""
    trials: int
    cost_usd: float | None
    mean_ms: float
    flaky: int
    rate: Estimate | None
    """Of the cases that passed or failed and are not in quarantine."""


@dataclass(frozen=True, slots=True)
class RunTotals:
    """What is cached of a run: totals per suite, and the outcome of each case."""

    suites: Mapping[str, SuiteTotals]
    cases: Mapping[CaseAddress, tuple[CaseVerdict, float]]
    """The verdict of each case, and the mean milliseconds of its trials."""

    @property
    def trials(self) -> int:
        return sum(item.trials for item in self.suites.values())


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case of a run, with its trials."""

    verdict: CaseVerdict
    trials: Sequence[TrialSummary]
    tags: Sequence[str]
    mean_ms: float
    """Of a trial."""
    mean_usd: float | None

    @property
    def address(self) -> CaseAddress:
        return self.verdict.suite, self.verdict.case_id

    @property
    def position(self) -> int:
        return self.trials[0].position


class RunCases:
    """One run with its cases, in suite order. What takes long is computed once, when it is first needed."""

    def __init__(self, run: Run, verdict: RunVerdict, tags: Mapping[CaseAddress, Sequence[str]]) -> None:
        self.run = run
        self.verdict = verdict
        trials: dict[CaseAddress, list[TrialSummary]] = {}
        for summary in run.summaries:
            trials.setdefault((summary.suite, summary.case_id), []).append(summary)
        verdicts = {(case.suite, case.case_id): case for suite in verdict.suites for case in suite.cases}
        rows = [_case_row(verdicts[address], own, tags.get(address, ())) for address, own in trials.items()]
        self.by_address = {row.address: row for row in sorted(rows, key=lambda row: row.position)}

    @property
    def cases(self) -> list[CaseRow]:
        return list(self.by_address.values())

    @cached_property
    def totals(self) -> RunTotals:
        suites = {suite.name: self._suite_totals(suite) for suite in self.verdict.suites if suite.cases}
        cases = {address: (row.verdict, row.mean_ms) for address, row in self.by_address.items()}
        return RunTotals(suites, cases)

    def _suite_totals(self, suite: SuiteVerdict) -> SuiteTotals:
        own = [summary for summary in self.run.summaries if summary.suite == suite.name]
        costs = [summary.cost_usd for summary in own if summary.cost_usd is not None]
        return SuiteTotals(
            suite=suite.name,
            outcomes=Counter(case.outcome for case in suite.cases),
            trials=len(own),
            cost_usd=sum(costs) if costs else None,
            mean_ms=sum(summary.duration_ms for summary in own) / len(own),
            flaky=sum(case.is_flaky for case in suite.cases),
            rate=suite.pass_rate,
        )

    @cached_property
    def tags(self) -> list[tuple[str, int]]:
        """The tags with how many cases have them, the most common first."""
        counts = Counter(tag for row in self.by_address.values() for tag in set(row.tags))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHOICES]

    @cached_property
    def evaluators(self) -> list[tuple[str, int]]:
        """The evaluators with how many of their scores did not pass."""
        counts: dict[str, int] = {}
        for summary in self.run.summaries:
            for score in summary.scores:
                counts[score.evaluator] = counts.get(score.evaluator, 0) + (score.outcome in NOT_PASSED)
        return sorted(counts.items())[:MAX_CHOICES]

    @cached_property
    def causes(self) -> dict[CaseAddress, list[str]]:
        """The causes of each case's failures; reads the trials that failed."""
        failing = [summary for summary in self.run.summaries if summary.outcome in FAILED_OR_ERROR]
        failing = failing[:MAX_TRIALS_FOR_CAUSES]
        positions = {summary.position for summary in failing}
        causes: dict[CaseAddress, list[str]] = {}
        for trial in self.run.trials_of({(summary.suite, summary.case_id) for summary in failing}):
            if trial.position in positions:
                names = causes.setdefault((trial.suite, trial.case.id), [])
                names.extend(name for name in (cause_name(trial),) if name not in names)
        return causes

    @cached_property
    def gate(self) -> GateView | None:
        return gate_view(self.run)

    @cached_property
    def arm_tables(self) -> tuple[ArmTable, ...]:
        """The comparison of the run's arms; reads every trial."""
        return arm_tables(self.run) if self.run.compares_agents else ()

    @cached_property
    def judges(self) -> list[NamedValue]:
        """The judges of the run; for a large run without caveats."""
        return judge_facts(self.run, with_caveats=len(self.run.summaries) <= LARGE_RUN)

    @cached_property
    def plots(self) -> list[BarPlot]:
        return distribution_plots(self.run.summaries)


def _case_row(verdict: CaseVerdict, trials: Sequence[TrialSummary], tags: Sequence[str]) -> CaseRow:
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    mean_ms = sum(trial.duration_ms for trial in trials) / len(trials)
    ordered = sorted(trials, key=lambda trial: trial.position)
    return CaseRow(verdict, ordered, tags, mean_ms, sum(costs) / len(trials) if costs else None)


def is_broken(case: CaseVerdict, before: CaseVerdict | None) -> bool:
    """Whether a case that passed in the run before does not pass now."""
    return before is not None and before.outcome is Outcome.PASSED and case.outcome in FAILED_OR_ERROR


def is_fixed(case: CaseVerdict, before: CaseVerdict | None) -> bool:
    """Whether a case that did not pass in the run before passes now."""
    return before is not None and before.outcome in FAILED_OR_ERROR and case.outcome is Outcome.PASSED


def _has_outcome(outcome: Outcome) -> Callable[[CaseVerdict, CaseVerdict | None], bool]:
    return lambda case, _: case.outcome is outcome


FILTERS: Mapping[str, Callable[[CaseVerdict, CaseVerdict | None], bool]] = {
    **{outcome.value: _has_outcome(outcome) for outcome in Outcome},
    "flaky": lambda case, _: case.is_flaky,
    "broken": is_broken,
    "fixed": is_fixed,
}
"""The values of `show` in a query, each with its condition on the case now and in the earlier run."""


def _worst_first(row: CaseRow) -> tuple[Any, ...]:
    rank = row.verdict.outcome.rank if row.verdict.outcome in NOT_PASSED else len(NOT_PASSED)
    return rank, not row.verdict.is_flaky


def _flakiest(row: CaseRow) -> tuple[Any, ...]:
    return (abs(0.5 - row.verdict.passed / max(1, row.verdict.passed + row.verdict.failed)),)


SORTS: Mapping[str, tuple[str, Callable[[CaseRow], tuple[Any, ...]]]] = {
    "worst": ("failures first", _worst_first),
    "plan": ("suite order", lambda row: ()),
    "case": ("name", lambda row: (row.verdict.case_id,)),
    "slowest": ("slowest first", lambda row: (-row.mean_ms,)),
    "expensive": ("most expensive first", lambda row: (-(row.mean_usd or 0.0),)),
    "flakiest": ("flakiest first", _flakiest),
}
"""The values of `sort` in a query, with their label and key; equal cases stay in suite order."""
FORMER_SORTS = {"dearest": "expensive"}
"""Values of `sort` in links from earlier releases."""
GROUPS = {"": "nothing", "tag": "tag", "cluster": "cause of failure"}


@dataclass(frozen=True, slots=True)
class CaseQuery:
    """The filters and the order of a run's page, as its address has them."""

    show: str = ""
    tag: str = ""
    evaluator: str = ""
    suite: str = ""
    q: str = ""
    cost: str = ""
    """Minimum cost per trial in dollars."""
    slower: str = ""
    """Minimum time per trial in milliseconds."""
    sort: str = "worst"
    group: str = ""
    page: int = 1

    @property
    def is_filtered(self) -> bool:
        return any((self.show, self.q, self.has_more_filters))

    @property
    def has_more_filters(self) -> bool:
        """Whether one of the filters under "More filters" is used."""
        return any((self.tag, self.evaluator, self.suite, self.cost, self.slower))

    @property
    def words(self) -> list[str]:
        return self.q.split()[:10]

    def address(self, **changes: Any) -> str:
        """The query of a link to the same page with changes, without values at their default."""
        changed = replace(self, **{"page": 1, **changes})
        pairs = [(item.name, getattr(changed, item.name), item.default) for item in fields(changed)]
        differing = [(name, value) for name, value, default in pairs if value != default]
        return "?" + urlencode(differing, errors="surrogatepass") if differing else "?"


def read_query(query: Mapping[str, str]) -> CaseQuery:
    """The filters in a query; invalid values are ignored."""
    sort = FORMER_SORTS.get(query.get("sort", ""), query.get("sort", ""))
    texts = {name: query.get(name, "")[:MAX_QUERY_VALUE] for name in ("tag", "evaluator", "suite", "q")}
    page = query.get("page", "1")
    return CaseQuery(
        show=query.get("show", "") if query.get("show") in FILTERS else "",
        **texts,
        cost=_amount(query.get("cost", "")),
        slower=_amount(query.get("slower", "")),
        sort=sort if sort in SORTS else "worst",
        group=query["group"] if query.get("group") in GROUPS else "",
        page=min(int(page), 10**6) or 1 if page.isdecimal() and page.isascii() and len(page) < 8 else 1,
    )


def _amount(text: str) -> str:
    try:
        number = float(text[:32])
    except ValueError:
        return ""
    return f"{number:g}" if math.isfinite(number) and number > 0 else ""


def find_cases(
    run: RunCases,
    query: CaseQuery,
    before: Mapping[CaseAddress, tuple[CaseVerdict, float]],
    with_words: set[CaseAddress] | None,
) -> list[tuple[str, CaseRow]]:
    """The cases that match the query, in its order, each with the name of its group.

    `before` has the cases of the earlier run; `with_words` are the cases in which the words of the query occur.
    """
    rows = [row for row in run.by_address.values() if with_words is None or row.address in with_words]
    rows = [row for row in rows if _matches(row, query, before)]
    rows.sort(key=SORTS[query.sort][1])
    if not query.group:
        return [("", row) for row in rows]
    grouped = [(group, row) for row in rows for group in _groups(run, row, query.group)]
    return sorted(grouped, key=lambda item: (item[0] == UNTAGGED, item[0]))


UNTAGGED = "no tag"


def _groups(run: RunCases, row: CaseRow, by: str) -> Sequence[str]:
    return list(dict.fromkeys(row.tags)) or [UNTAGGED] if by == "tag" else run.causes.get(row.address, [])


def _matches(row: CaseRow, query: CaseQuery, before: Mapping[CaseAddress, tuple[CaseVerdict, float]]) -> bool:
    if query.show and not FILTERS[query.show](row.verdict, before[row.address][0] if row.address in before else None):
        return False
    if (query.suite and row.verdict.suite != query.suite) or (query.tag and query.tag not in row.tags):
        return False
    if query.evaluator and not _has_failing_score(row, query.evaluator):
        return False
    if query.cost and (row.mean_usd is None or row.mean_usd < float(query.cost)):
        return False
    return not query.slower or row.mean_ms >= float(query.slower)


def _has_failing_score(row: CaseRow, evaluator: str) -> bool:
    """Whether a score of the evaluator did not pass."""
    scores = (score for trial in row.trials for score in trial.scores if score.evaluator == evaluator)
    return any(score.outcome in NOT_PASSED for score in scores)


def changes(before: RunTotals, after: RunTotals, *, is_complete: bool) -> dict[str, int]:
    """How many cases are broken, fixed, new or gone since an earlier run.

    In a run that is not complete, a missing case is not gone: it has not run yet.
    """
    pairs = [(case, before.cases[address][0]) for address, (case, _) in after.cases.items() if address in before.cases]
    return {
        "broken": sum(is_broken(case, earlier) for case, earlier in pairs),
        "fixed": sum(is_fixed(case, earlier) for case, earlier in pairs),
        "new": len(after.cases.keys() - before.cases.keys()),
        "gone": len(before.cases.keys() - after.cases.keys()) if is_complete else 0,
    }


def outcome_groups(before: RunTotals, after: RunTotals) -> Iterator[tuple[str, Outcome, list[tuple[CaseAddress, str]]]]:
    """The cases that both runs have, by how their outcome changed, each with how many trials passed."""

    def stayed(outcome: Outcome) -> Callable[[CaseVerdict, CaseVerdict | None], bool]:
        return lambda case, earlier: earlier is not None and case.outcome is earlier.outcome is outcome

    groups = {
        "broken": (is_broken, Outcome.FAILED),
        "fixed": (is_fixed, Outcome.PASSED),
        "still failing": (stayed(Outcome.FAILED), Outcome.FAILED),
        "still passing": (stayed(Outcome.PASSED), Outcome.PASSED),
    }
    for name, (condition, outcome) in groups.items():
        cases = []
        for address, (case, _) in after.cases.items():
            earlier = before.cases[address][0] if address in before.cases else None
            if earlier is not None and condition(case, earlier):
                old = f"{earlier.passed}/{earlier.passed + earlier.failed}"
                cases.append((address, f"{old} → {case.passed}/{case.passed + case.failed}"))
        yield name, outcome, cases
