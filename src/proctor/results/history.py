"""The history of one suite: how each of its runs went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proctor.results.run import Outcome, Run, SuiteInfo
from proctor.results.store.store import Store
from proctor.results.verdict import SuiteVerdict, verdict


@dataclass(frozen=True, slots=True)
class SuiteHistoryEntry:
    """One run of one suite."""

    row: Run
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


def suite_history(store: Store, suite: str) -> Iterator[SuiteHistoryEntry]:
    """Every run in which the suite took part, the latest first."""
    for run in store.runs():
        if any(suite in (info.name, info.source) for info in run.suites):
            for info, found in zip(run.suites, verdict(run).suites, strict=True):
                if suite in (info.name, info.source):  # once for each agent, where there were several
                    yield _suite_run(run, info, found)


def suite_names(store: Store) -> list[str]:
    """Every suite that any run knows, by name."""
    return sorted({name for row in store.runs() for info in row.suites for name in (info.name, info.source) if name})


def _suite_run(run: Run, info: SuiteInfo, found: SuiteVerdict) -> SuiteHistoryEntry:
    return SuiteHistoryEntry(
        row=run,
        agent=info.agent,
        agent_fingerprint=info.agent_fingerprint,
        outcome=found.outcome,
        trials=sum(case.trials for case in found.cases),
        planned=info.planned,
        passed=found.counts[Outcome.PASSED],
        cases=found.counts[Outcome.PASSED] + found.counts[Outcome.FAILED],
        scores={item.evaluator: item.scores.mean for item in found.evaluators if item.scores is not None},
    )
