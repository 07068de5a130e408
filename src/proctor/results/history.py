"""The history of one suite: how each of its runs went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proctor.results.run import Outcome, SuiteInfo
from proctor.results.run_info import RunRow
from proctor.results.store.store import Store
from proctor.results.verdict import judge_suite


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of one suite."""

    row: RunRow
    agent: str
    agent_fingerprint: str
    outcome: Outcome
    trials: int
    planned: int
    """How many trials it was to have."""
    passed: int
    """Cases."""
    cases: int
    """Cases that have a verdict."""
    scores: dict[str, float]
    """The mean of each evaluator that gave any."""

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.cases if self.cases else None


def runs_of(store: Store, suite: str) -> Iterator[SuiteRun]:
    """Every run in which the suite took part, the latest first."""
    for row in store.runs():
        for info in row.info.suites:
            if suite in (info.name, info.source):  # once for each agent, where there were several
                yield _suite_run(store, row, info)


def suites_in(store: Store) -> list[str]:
    """Every suite that any run knows, by name."""
    return sorted(
        {name for row in store.runs() for info in row.info.suites for name in (info.name, info.source) if name}
    )


def _suite_run(store: Store, row: RunRow, info: SuiteInfo) -> SuiteRun:
    summaries = [summary for summary in store.summaries(row.no) if summary.suite == info.name]
    verdict = judge_suite(info, summaries)
    return SuiteRun(
        row=row,
        agent=info.agent,
        agent_fingerprint=info.agent_fingerprint,
        outcome=verdict.outcome,
        trials=len(summaries),
        planned=info.planned,
        passed=verdict.counts[Outcome.PASSED],
        cases=verdict.counts[Outcome.PASSED] + verdict.counts[Outcome.FAILED],
        scores={item.evaluator: item.scores.mean for item in verdict.evaluators if item.scores is not None},
    )
