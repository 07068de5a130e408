"""Compares the arms of one run: a table of cases and arms, totals with intervals, and a verdict for each pair of arms.

Each case ran on every arm, so pairs of arms are compared case by case, as two runs are (`compare.py`). With more than
two arms there are several pairs, and one of them would look different by luck more often than a single pair does. So
p-values and intervals are corrected for the number of pairs (Bonferroni: the same correction for both, so that they
cannot contradict each other).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Literal

from proctor.base.errors import UsageError
from proctor.base.json_data import to_text
from proctor.cases.identity import CaseAddress
from proctor.results.comparison.compare import Side, compare_sides, read_side
from proctor.results.comparison.comparison import Comparison
from proctor.results.comparison.pairing import CaseTrials
from proctor.results.comparison.significance import Effect, mean_of_cases, median_of_cases
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.statistics import Estimate
from proctor.results.suite_info import SuiteInfo
from proctor.results.verdict import CaseVerdict, SuiteVerdict

ArmVerdict = Literal["better", "worse", "no difference shown", "not comparable"]
ARM_VERDICTS: Mapping[str, ArmVerdict] = {
    "improvement": "better",
    "regression": "worse",
    "no difference": "no difference shown",
    "not comparable": "not comparable",
}
MAX_ANSWER = 300


@dataclass(frozen=True, slots=True)
class ArmCell:
    """One case on one arm."""

    outcome: Outcome
    passed: int
    trials: int
    """Trials that passed or failed."""
    without_verdict: int
    """Trials that neither passed nor failed."""
    answer: str
    """The answer in short, or why there is none: of the first trial that did not pass, else of the first."""
    cost_usd: float | None
    """The mean over its trials; `None` if it is not known."""
    duration_ms: float | None
    scores: Mapping[str, float] = field(default_factory=dict)
    """By evaluator: the mean over its trials."""


@dataclass(frozen=True, slots=True)
class ArmTotals:
    """One arm over all cases of the suite."""

    arm: str
    version: str
    """The git reference and commit; empty for the working folder."""
    suite: str
    """The name under which the run has its suite."""
    outcome: Outcome
    pass_rate: Estimate | None
    evaluators: Mapping[str, Estimate]
    cost_usd: Effect | None
    """The mean cost of a trial."""
    duration_ms: Effect | None
    """The median time of a trial."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """One arm compared with another one."""

    before: str
    after: str
    verdict: ArmVerdict
    comparison: Comparison

    @property
    def sentence(self) -> str:
        """The result in one sentence: `new compared with old: worse: 2 of 9 cases broken, ...`."""
        details = self.comparison.sentence.partition(": ")[2]
        return f"{self.after} compared with {self.before}: {self.verdict}: {details}"


@dataclass(frozen=True, slots=True)
class ArmTable:
    """One suite that ran on several arms."""

    suite: str
    arms: tuple[ArmTotals, ...]
    rows: tuple[tuple[str, tuple[ArmCell | None, ...]], ...]
    """Each case with its cell for each arm; `None` if it did not run there. In the order of the plan."""
    comparisons: tuple[ArmComparison, ...]
    """Each arm compared with each one before it; fewer if nothing can be compared."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(arm.arm for arm in self.arms)

    @property
    def correction(self) -> str:
        """For how many pairs of arms the figures are corrected, in words; empty for one pair."""
        count = len(self.arms) * (len(self.arms) - 1) // 2
        return f"p-values and intervals are corrected for {count} pairs of arms" if count > 1 else ""


def arm_tables(run: Run) -> tuple[ArmTable, ...]:
    """A table for each suite that ran on several arms; empty for an ordinary run."""
    sources = dict.fromkeys(info.source for info in run.suites if info.source)
    verdicts = {suite.name: suite for suite in run.verdict.suites} if sources else {}
    return tuple(_table(run, source, verdicts) for source in sources)


def _table(run: Run, source: str, verdicts: Mapping[str, SuiteVerdict]) -> ArmTable:
    infos = [info for info in run.suites if info.source == source]
    sides = [read_side(run, info.agent, lambda suite, _: suite == source) for info in infos]
    answers = _answers(run, infos)
    outcomes = {(info.name, case.case_id): case for info in infos for case in verdicts[info.name].cases}
    cases = dict.fromkeys(case_id for side in sides for _, case_id in side.cases)
    rows = tuple(
        (
            case_id,
            tuple(
                _cell(side.cases.get((source, case_id)), outcomes.get((info.name, case_id)), answers)
                for info, side in zip(infos, sides, strict=True)
            ),
        )
        for case_id in cases
    )
    totals = tuple(_totals(info, verdicts[info.name], side) for info, side in zip(infos, sides, strict=True))
    count = len(infos) * (len(infos) - 1) // 2
    compared = (_compared(one, other, count) for one, other in combinations(sides, 2))
    return ArmTable(source, totals, rows, tuple(item for item in compared if item is not None))


def _compared(before: Side, after: Side, count: int) -> ArmComparison | None:
    try:
        comparison = compare_sides(before, after, comparisons=count)
    except UsageError:  # one of them has no trials, as in an interrupted run
        return None
    return ArmComparison(before.agent or "", after.agent or "", ARM_VERDICTS[comparison.verdict], comparison)


def _answers(run: Run, infos: list[SuiteInfo]) -> dict[CaseAddress, str]:
    """By suite and case: the answer that the table shows."""
    names = {info.name for info in infos}
    shown: dict[CaseAddress, tuple[bool, str]] = {}
    for trial in run.trials:
        place = trial.suite, trial.case.id
        if trial.suite in names and (place not in shown or (shown[place][0] and not trial.passed)):
            text = trial.reason if trial.output is None else to_text(trial.output)
            shown[place] = trial.passed, " ".join(text[: 4 * MAX_ANSWER].split())[:MAX_ANSWER]
    return {place: text for place, (_, text) in shown.items()}


def _cell(trials: CaseTrials | None, case: CaseVerdict | None, answers: Mapping[CaseAddress, str]) -> ArmCell | None:
    if trials is None or case is None:
        return None
    passed, failed = trials.outcomes[Outcome.PASSED], trials.outcomes[Outcome.FAILED]
    return ArmCell(
        outcome=case.outcome,
        passed=passed,
        trials=passed + failed,
        without_verdict=trials.outcomes.total() - passed - failed,
        answer=answers.get((case.suite, case.case_id), ""),
        cost_usd=_mean(trials.resources.get("cost_usd")),
        duration_ms=_mean(trials.resources.get("duration_ms")),
        scores={name: fmean(values) for name, values in trials.scores.items()},
    )


def _totals(info: SuiteInfo, verdict: SuiteVerdict, side: Side) -> ArmTotals:
    def of_cases(resource: str) -> list[float]:
        return [fmean(values) for case in side.cases.values() if (values := case.resources.get(resource))]

    return ArmTotals(
        arm=info.agent,
        version=info.version,
        suite=info.name,
        outcome=verdict.outcome,
        pass_rate=verdict.pass_rate,
        evaluators={item.evaluator: item.scores for item in verdict.evaluators if item.scores is not None},
        cost_usd=mean_of_cases(of_cases("cost_usd")),
        duration_ms=median_of_cases(of_cases("duration_ms")),
    )


def _mean(values: list[float] | None) -> float | None:
    return fmean(values) if values else None
