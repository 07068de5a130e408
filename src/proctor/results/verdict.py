"""From scores to the outcome of a trial, from trials to the outcome of a case, and to the verdict of suites and runs.

One rule holds on every level: what is not known (an error, a pending score, a missing trial) leaves the result open
only if it could still change it. The obvious rule, "any error makes the result an error", would hide failures that are
certain: a case that failed twice out of three required passes has failed, whatever the third trial would have said.
So each level compares the best and the worst that is still possible, and if both agree, that is the result.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proctor.cases.suite import Criteria
from proctor.cases.threshold import passes
from proctor.results.gate_result import GatedSuite
from proctor.results.score import MEAN_OVER_TURNS, Outcome, Score, ScoreRow, worst_outcome
from proctor.results.statistics import (
    Estimate,
    EvaluatorSummary,
    Reliability,
    evaluator_summaries,
    mean_probability,
    pass_at_k,
    pass_hat_k,
    reliability_by_trials,
    share_of,
)
from proctor.results.suite_info import QuarantinedCase, SuiteInfo
from proctor.results.trial import TrialSummary

if TYPE_CHECKING:
    from proctor.results.run import Run

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome

EXIT_CODES = {PASSED: 0, FAILED: 1, PENDING: 3, ERROR: 4, SKIPPED: 4}
INTERRUPTED = 130


def verdict_word(outcome: Outcome) -> str:
    """The word for the verdict on a suite or a run: a run that depends on pending scores is inconclusive."""
    return "inconclusive" if outcome is PENDING else outcome.value


NOTHING_SCORES = "nothing scores this case"


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The outcome of a case over all its trials."""

    suite: str
    case_id: str
    outcome: Outcome
    trials: int
    passed: int
    failed: int = 0
    quarantined: bool = False
    """Whether it ran and is reported, but does not affect the verdict."""

    @property
    def is_flaky(self) -> bool:
        """Whether it both passed and failed."""
        return self.passed > 0 and self.failed > 0


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """The verdict of one suite, with the figures that reports show."""

    name: str
    outcome: Outcome
    reason: str
    counts: dict[Outcome, int]
    """Cases by outcome."""
    pass_rate: Estimate | None
    """Over the cases that passed or failed."""
    cases: Sequence[CaseVerdict]
    evaluators: tuple[EvaluatorSummary, ...]
    repeats: int
    pass_hat_k: float | None
    """The mean probability that all repeats of a case pass; `None` without repeats."""
    pass_at_k: float | None
    """The mean probability that at least one repeat of a case passes; `None` without repeats."""
    reliability: tuple[Reliability, ...] = ()
    """The same for every number of trials up to the repeats; empty without repeats."""

    @property
    def word(self) -> str:
        """`passed`, `failed`, `inconclusive`, `error`, or `skipped` if every case was."""
        return verdict_word(self.outcome)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict of a run, with the figures that reports show."""

    outcome: Outcome
    reason: str
    exit_code: int
    suites: tuple[SuiteVerdict, ...]
    counts: dict[Outcome, int]
    """Trials by outcome."""
    tokens: int | None
    cost_usd: float | None
    estimated: bool = False
    """Whether any of the cost comes from a price list."""

    def __str__(self) -> str:
        """One line, such as `FAILED  1 of 2 cases passed`."""
        return f"{self.word.upper()}  {self.reason}"

    @property
    def word(self) -> str:
        """`passed`, `failed`, `inconclusive` or `error`."""
        return verdict_word(self.outcome)


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """The verdict of a run when it ended or was last graded, for lists that read no trials."""

    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None

    @property
    def word(self) -> str:
        return verdict_word(self.outcome)


def trial_outcome(scores: Sequence[Score], criteria: Criteria) -> tuple[Outcome, str]:
    """The outcome of a trial with these scores, and the reason if it is neither a plain pass nor a plain failure."""
    return _outcome_of(scores, criteria)


def verdict(run: Run) -> RunVerdict:
    """The verdict of a run. This is the only code that decides whether a run passed."""
    by_suite: dict[str, list[TrialSummary]] = {}
    counts: Counter[Outcome] = Counter()
    tokens: int | None = None
    costs: list[float] = []
    estimated = False
    old = suites_of_old_version(run)
    for trial in run.summaries:
        by_suite.setdefault(trial.suite, []).append(trial)
        counts[trial.outcome] += trial.suite not in old
        tokens = tokens if trial.tokens is None else (tokens or 0) + trial.tokens
        costs += [] if trial.cost_usd is None else [trial.cost_usd]
        estimated = estimated or trial.estimated
    suites = tuple(suite_verdict(info, by_suite.get(info.name, ())) for info in run.suites)
    outcome, reason = _run_outcome(run, suites)
    if run.gate is not None:
        gated = {suite.name: suite for suite in run.gate.suites}
        suites = tuple(
            _compared_suite_verdict(suite, run.gate.against)
            if suite.name in old
            else _gated_suite_verdict(suite, gated[suite.name])
            if suite.name in gated
            else suite
            for suite in suites
        )
        outcome, reason = run.gate.outcome, run.gate.reason
    return RunVerdict(
        outcome=outcome,
        reason=reason,
        exit_code=INTERRUPTED if run.interrupted else EXIT_CODES[outcome],
        suites=suites,
        counts=_count_per_outcome(counts),
        tokens=tokens,
        cost_usd=math.fsum(costs) if costs else None,
        estimated=estimated,
    )


def suites_of_old_version(run: Run) -> set[str]:
    """The names of the suites with the old version of the agent, in a gate that compares two.

    Their trials are evidence about the new version. A failure there does not fail this run.
    """
    if run.gate is None or not run.gate.against:
        return set()
    return {info.name for info in run.suites} - {suite.name for suite in run.gate.suites}


def _compared_suite_verdict(suite: SuiteVerdict, against: str) -> SuiteVerdict:
    """The verdict of a suite with the old version: none, since it is there for comparison."""
    reason = f"{against}, for comparison: {suite.reason}"
    return replace(suite, outcome=SKIPPED, reason=reason, pass_hat_k=None, pass_at_k=None, reliability=())


def _gated_suite_verdict(suite: SuiteVerdict, gated: GatedSuite) -> SuiteVerdict:
    """The verdict of a suite in a gated run.

    It has no pass^k: the gate repeats only the cases that look worse, so the repeats say nothing about the others.
    """
    return replace(suite, outcome=gated.outcome, reason=gated.reason, pass_hat_k=None, pass_at_k=None, reliability=())


def judge(run: Run) -> RunVerdict:
    """The earlier public name of `verdict`. A judge is a model everywhere else."""
    warnings.warn("proctor.judge(run) is now proctor.verdict(run)", DeprecationWarning, stacklevel=2)
    return verdict(run)


def record_verdict(run: Run, verdict: RunVerdict) -> None:
    """Set the verdict and the counts that are stored with the run, for lists of runs."""
    run.stored_verdict = StoredVerdict(verdict.outcome, verdict.reason, verdict.exit_code)
    run.counts = {outcome.value: count for outcome, count in verdict.counts.items()}


def verdict_on_part(run: Run, part: Run) -> RunVerdict:
    """The verdict of `run` with the figures of `part`, which has some of its trials.

    Showing only some trials does not change the outcome of a case, a suite or the run.
    """
    whole, figures = verdict(run), verdict(part)
    suites = []
    for partial, complete in zip(figures.suites, whole.suites, strict=True):
        case_ids = {case.case_id for case in partial.cases}
        cases = [case for case in complete.cases if case.case_id in case_ids]
        counts = _count_per_outcome(Counter(case.outcome for case in cases))
        suites.append(replace(partial, outcome=complete.outcome, reason=complete.reason, cases=cases, counts=counts))
    return replace(figures, outcome=whole.outcome, reason=whole.reason, exit_code=whole.exit_code, suites=tuple(suites))


def suite_verdict(info: SuiteInfo, trials: Iterable[TrialSummary]) -> SuiteVerdict:
    """The verdict of one suite."""
    by_case: dict[str, list[TrialSummary]] = {}
    for trial in trials:
        by_case.setdefault(trial.case_id, []).append(trial)
    quarantined = {item.case for item in info.quarantined}
    cases = [_case_verdict(info, case_id, group, case_id in quarantined) for case_id, group in by_case.items()]
    counts = Counter(case.outcome for case in cases)
    deciding = Counter(case.outcome for case in cases if not case.quarantined)
    outcome, reason = _suite_outcome(deciding, info, sum(map(len, by_case.values())))
    if quarantined:
        outcome, reason = _with_quarantines(info, outcome, reason)
    repeats = max((case.trials for case in cases), default=0)
    decided = deciding[PASSED] + deciding[FAILED]
    return SuiteVerdict(
        name=info.name,
        outcome=outcome,
        reason=reason,
        counts=_count_per_outcome(counts),
        pass_rate=share_of(deciding[PASSED], decided) if decided else None,
        cases=cases,
        evaluators=evaluator_summaries(by_case.values()),
        repeats=repeats,
        pass_hat_k=mean_probability(by_case, repeats, pass_hat_k),
        pass_at_k=mean_probability(by_case, repeats, pass_at_k),
        reliability=reliability_by_trials(by_case, repeats),
    )


def _case_verdict(info: SuiteInfo, case_id: str, trials: Sequence[TrialSummary], quarantined: bool) -> CaseVerdict:
    outcomes = Counter(trial.outcome for trial in trials)
    outcome = case_outcome(trials, info.criteria)
    return CaseVerdict(info.name, case_id, outcome, len(trials), outcomes[PASSED], outcomes[FAILED], quarantined)


def _with_quarantines(info: SuiteInfo, outcome: Outcome, reason: str) -> tuple[Outcome, str]:
    """An expired quarantine fails the suite, so that it is not forgotten."""
    expired = [item for item in info.quarantined if item.expired]
    if expired:
        return FAILED, expired_quarantine_text(expired[0])
    return outcome, f"{reason}; {len(info.quarantined)} quarantined"


def expired_quarantine_text(item: QuarantinedCase) -> str:
    """Why an expired quarantine fails the suite, and what to do."""
    owner = f" (owner: {item.owner})" if item.owner else ""
    advice = "fix the case and remove the quarantine, or extend it"
    return f"the quarantine of {item.case} expired on {item.until}{owner}: {item.reason}; {advice}"


def case_outcome(trials: Sequence[TrialSummary], criteria: Criteria) -> Outcome:
    """The outcome of a case from its trials, by the rule that its suite sets."""
    outcomes = [trial.outcome for trial in trials if trial.outcome is not SKIPPED]
    if not outcomes:
        return SKIPPED
    if criteria.trials == "mean":
        return _outcome_over_trials(trials, criteria)
    passed = outcomes.count(PASSED)
    unknown = outcomes.count(ERROR) + outcomes.count(PENDING)
    needed = {"all": len(outcomes), "any": 1, "majority": len(outcomes) // 2 + 1}[criteria.trials]
    if passed >= needed:
        return PASSED
    if passed + unknown < needed:
        return FAILED
    return ERROR if ERROR in outcomes else PENDING


def _outcome_over_trials(trials: Sequence[TrialSummary], criteria: Criteria) -> Outcome:
    """The outcome of a case whose evaluators are compared by their means over all trials.

    A trial in which the agent failed without scores fails the case. A trial that ended in an error could have had any
    score.
    """
    unscored = [trial.outcome for trial in trials if not trial.scores and trial.outcome is not SKIPPED]
    if FAILED in unscored:
        return FAILED
    rows = [row for trial in trials for row in trial.scores]
    missing = [replace(row, outcome=outcome, value=None) for outcome in unscored for row in _typical_scores(trials)]
    return _outcome_of([*rows, *missing], criteria)[0]


def _typical_scores(trials: Sequence[TrialSummary]) -> list[ScoreRow]:
    """The scores that count of the trial that has most of them: those that a trial without scores would have had."""
    longest = max((trial.scores for trial in trials), key=len, default=())
    return [row for row in longest if not row.report_only and row.outcome is not SKIPPED]


def _outcome_of(rows: Sequence[Score | ScoreRow], criteria: Criteria) -> tuple[Outcome, str]:
    counting = [row for row in rows if not row.report_only]
    outcomes = _mean_outcomes(counting) if criteria.trials == "mean" else [row.outcome for row in counting]
    outcome = worst_outcome(outcomes)
    if outcome is not SKIPPED:
        return outcome, ""
    if not rows:
        return ERROR, NOTHING_SCORES
    if not counting:
        return ERROR, "nothing decides this case: all of its evaluators are report only"
    return ERROR, _skip_reason(counting)


def _skip_reason(rows: Sequence[Score | ScoreRow]) -> str:
    """That nothing was compared, and why: the reason of the first evaluator that gave one."""
    row = next((row for row in rows if isinstance(row, Score) and row.reasoning), None)
    if row is None:
        return "every evaluator was skipped, so nothing was compared"
    reason = row.reasoning if row.reasoning.startswith(row.evaluator) else f"{row.evaluator}: {row.reasoning}"
    return f"every evaluator was skipped, so nothing was compared ({reason})"


def apply_mean_thresholds(scores: Sequence[Score]) -> tuple[Score, ...]:
    """The scores of a trial in a suite whose evaluators are compared by their means: the mean over turns decides.

    All turns of an evaluator then have the same outcome. A single turn below the threshold is not a failure, and one
    above it is not a pass.
    """
    rows: dict[str, list[Score]] = {}
    for score in scores:
        if score.value is not None and score.turn is not None:
            rows.setdefault(score.evaluator, []).append(score)
    decided: dict[str, tuple[Outcome, float]] = {}
    for name, turns in rows.items():
        (outcome,) = _mean_outcomes([score for score in scores if score.evaluator == name])
        if len(turns) > 1 and outcome in (PASSED, FAILED):
            decided[name] = outcome, math.fsum(score.value or 0.0 for score in turns) / len(turns)
    if not decided:
        return tuple(scores)
    return tuple(
        score
        if score.evaluator not in decided or score.value is None
        else replace(
            score,
            outcome=decided[score.evaluator][0],
            details={**score.details, MEAN_OVER_TURNS: decided[score.evaluator][1]},
        )
        for score in scores
    )


def _mean_outcomes(rows: Sequence[Score | ScoreRow]) -> list[Outcome]:
    """One outcome per evaluator: its mean against its threshold, open only if missing scores could change that."""
    names = dict.fromkeys(row.evaluator for row in rows)
    outcomes = []
    for name in names:
        own = [row for row in rows if row.evaluator == name and row.outcome is not SKIPPED]
        if not own:
            outcomes.append(SKIPPED)
            continue
        values = [row.value for row in own if row.value is not None]
        threshold = own[0].threshold or 0.0
        worst = math.fsum(values) / len(own)
        best = (math.fsum(values) + len(own) - len(values)) / len(own)
        if values and passes(worst, threshold):
            outcomes.append(PASSED)
        elif not passes(best, threshold):
            outcomes.append(FAILED)
        else:
            outcomes.append(ERROR if any(row.outcome is ERROR for row in own) else PENDING)
    return outcomes


def _suite_outcome(counts: Mapping[Outcome, int], info: SuiteInfo, trials: int) -> tuple[Outcome, str]:
    passed, unknown, missing = counts[PASSED], counts[ERROR] + counts[PENDING], max(0, info.planned - trials)
    total = passed + counts[FAILED] + unknown
    if total == 0:
        return SKIPPED, "every case was skipped" if counts[SKIPPED] else "no case ran"
    share = f"{passed:,} of {total:,} cases passed"
    rule = "" if info.criteria.pct == 1 else f" ({info.criteria.pct:.0%} required)"
    errors = f"; {counts[ERROR]:,} ended in errors" if counts[ERROR] else ""
    if not _meets_share(
        passed + unknown + missing + _recoverable(counts, info, missing), total + missing, info.criteria.pct
    ):
        return FAILED, share + rule + errors
    if missing:
        return ERROR, f"{share}{rule}; {missing} of {info.planned} trials did not run"
    if not _meets_share(passed, total, info.criteria.pct):
        if errors:
            return ERROR, share + rule + errors
        return PENDING, f"{share}{rule}; {counts[PENDING]} pending (use `proctor grade` or a judge model)"
    return PASSED, share + rule + errors


def _meets_share(passed: int, total: int, pct: float) -> bool:
    """Whether at least the required share passed, and at least one case."""
    return passed >= 1 and passes(passed / total, pct)


def _recoverable(counts: Mapping[Outcome, int], info: SuiteInfo, missing: int) -> int:
    """How many failed cases could still pass through missing trials, at most; none if all trials must pass."""
    return 0 if info.criteria.trials == "all" else min(counts[FAILED], missing)


_SEVERAL = {FAILED: "failed", ERROR: "ended in errors", PENDING: "are inconclusive"}


def deciding_suites(infos: Sequence[SuiteInfo]) -> set[str]:
    """The names of the suites that decide the verdict of a run.

    If a suite ran on several arms, only the last one decides, unless its criteria say that all of them do. The others
    are there for comparison.
    """
    last = {info.source: info.name for info in infos if info.source}
    return {
        info.name for info in infos if not info.source or info.criteria.arms == "all" or last[info.source] == info.name
    }


def _run_outcome(run: Run, verdicts: Sequence[SuiteVerdict]) -> tuple[Outcome, str]:
    deciding = deciding_suites(run.suites)
    suites = [suite for suite in verdicts if suite.name in deciding]
    outcomes = [suite.outcome for suite in suites]
    if run.ended_because:
        return FAILED if FAILED in outcomes else ERROR, run.ended_because
    if FAILED not in outcomes and (reason := _missing_comparison(run, verdicts, deciding)):
        return ERROR, reason
    outcome = worst_outcome(outcomes)
    if outcome in _SEVERAL:
        first, *others = [suite for suite in suites if suite.outcome is outcome]
        if len(suites) == 1:
            return outcome, first.reason
        several = f"{1 + len(others)} of {len(suites)} suites {_SEVERAL[outcome]}; " if others else ""
        broken = [suite.name for suite in suites if suite.outcome is ERROR is not outcome]
        errors = f"; {broken[0] if len(broken) == 1 else f'{len(broken)} suites'} ended in errors" if broken else ""
        return outcome, f"{several}{first.name}: {first.reason}{errors}"
    if outcome is SKIPPED:
        return ERROR, "nothing ran that could pass or fail"
    if len(suites) == 1:
        return PASSED, suites[0].reason
    skipped = outcomes.count(SKIPPED)
    return PASSED, f"every suite passed ({skipped} skipped)" if skipped else "every suite passed"


def _missing_comparison(run: Run, verdicts: Sequence[SuiteVerdict], deciding: set[str]) -> str:
    """Why a run that compares arms has nothing to compare with; empty if it has."""
    arms = {info.name: info.arm for info in run.suites}
    for suite in verdicts:
        if suite.name not in deciding and suite.counts[ERROR] and not suite.counts[PASSED] + suite.counts[FAILED]:
            return f"the arm {arms[suite.name]} has no result to compare with: {suite.reason}"
    return ""


def _count_per_outcome(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    return {outcome: counts[outcome] for outcome in Outcome}
