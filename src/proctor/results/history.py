"""The history of one suite: its verdict, pass rate and mean scores in each stored run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.suite_info import SuiteInfo
from proctor.results.verdict import SuiteVerdict, verdict


@dataclass(frozen=True, slots=True)
class SuiteHistoryEntry:
    """One suite in one run."""

    run: Run
    agent: str
    agent_fingerprint: str
    outcome: Outcome
    trials: int
    planned: int
    """Number of planned trials."""
    passed: int
    """Number of cases that passed."""
    cases: int
    """Number of cases that passed or failed."""
    scores: dict[str, float]
    """The mean score of each evaluator that has one."""

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.cases if self.cases else None


def suite_history(store: Store, suite: str) -> Iterator[SuiteHistoryEntry]:
    """Every run of the suite, the latest first."""
    for run in store.runs():
        if any(suite in (info.name, info.source) for info in run.suites):
            for info, suite_verdict in zip(run.suites, verdict(run).suites, strict=True):
                if suite in (info.name, info.source):  # once per agent
                    yield _entry(run, info, suite_verdict)


def suite_names(store: Store) -> list[str]:
    """The names of all suites in the store."""
    return sorted({name for run in store.runs() for info in run.suites for name in (info.name, info.source) if name})


def _entry(run: Run, info: SuiteInfo, suite_verdict: SuiteVerdict) -> SuiteHistoryEntry:
    return SuiteHistoryEntry(
        run=run,
        agent=info.agent,
        agent_fingerprint=info.agent_fingerprint,
        outcome=suite_verdict.outcome,
        trials=sum(case.trials for case in suite_verdict.cases),
        planned=info.planned,
        passed=suite_verdict.counts[Outcome.PASSED],
        cases=suite_verdict.counts[Outcome.PASSED] + suite_verdict.counts[Outcome.FAILED],
        scores={item.evaluator: item.scores.mean for item in suite_verdict.evaluators if item.scores is not None},
    )
