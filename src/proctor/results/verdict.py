"""Turns outcomes into the verdict of a trial, of a case over its trials, of a suite and of a run.

One rule holds throughout: an error leaves a verdict open only if it could still change it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.cases.suite import Criteria
from proctor.cases.threshold import passes
from proctor.results.run import (
    MEAN_OVER_TURNS,
    Outcome,
    Run,
    Score,
    ScoreRow,
    StoredVerdict,
    SuiteInfo,
    TrialSummary,
    worst_outcome,
)
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

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome

EXIT_CODES = {PASSED: 0, FAILED: 1, PENDING: 3, ERROR: 4, SKIPPED: 4}
INTERRUPTED = 130

NOTHING_SCORES = "nothing scores this case"


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """What all trials of one case say together."""

    suite: str
    case_id: str
    outcome: Outcome
    trials: int
    passed: int
    failed: int = 0
    quarantined: bool = False
    """It was run and is reported, but decides nothing."""

    @property
    def is_flaky(self) -> bool:
        """Whether it both passed and failed."""
        return self.passed > 0 and self.failed > 0


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """What a suite says of its agent."""

    name: str
    outcome: Outcome
    reason: str
    counts: dict[Outcome, int]
    """Cases by outcome."""
    pass_rate: Estimate | None
    """Over the cases that have a verdict."""
    cases: Sequence[CaseVerdict]
    evaluators: tuple[EvaluatorSummary, ...]
    repeats: int
    pass_hat_k: float | None
    """The mean chance that all repeats of a case pass; `None` without repeats."""
    pass_at_k: float | None
    """The mean chance that at least one repeat of a case passes."""
    reliability: tuple[Reliability, ...] = ()
    """The same for every number of trials up to the repeats; nothing without repeats."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What a run says."""

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


def trial_outcome(scores: Sequence[Score], criteria: Criteria) -> tuple[Outcome, str]:
    """The outcome that scores add up to, and why it is not a plain pass or fail."""
    return _outcome_of(scores, criteria)


def verdict(run: Run) -> RunVerdict:
    """The verdict of a run: the only code that says whether it passed."""
    by_suite: dict[str, list[TrialSummary]] = {}
    counts: Counter[Outcome] = Counter()
    tokens: int | None = None
    costs: list[float] = []
    estimated = False
    for trial in run.summaries:
        by_suite.setdefault(trial.suite, []).append(trial)
        counts[trial.outcome] += 1
        tokens = tokens if trial.tokens is None else (tokens or 0) + trial.tokens
        costs += [] if trial.cost_usd is None else [trial.cost_usd]
        estimated = estimated or trial.estimated
    suites = tuple(suite_verdict(info, by_suite.get(info.name, ())) for info in run.suites)
    outcome, reason = _run_outcome(run, suites)
    if run.gate is not None:
        gated = {suite.name: suite for suite in run.gate.suites}
        suites = tuple(replace(s, outcome=gated[s.name].outcome, reason=gated[s.name].reason) for s in suites)
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


judge = verdict
"""The public name for the same, from when a verdict was not yet distinguished from what a judge says."""


def record_verdict(run: Run, found: RunVerdict) -> None:
    """Let the run say what it came to, as the store lists it."""
    run.stored_verdict = StoredVerdict(found.outcome, found.reason, found.exit_code)
    run.counts = {outcome.value: count for outcome, count in found.counts.items()}


def verdict_on_part(run: Run, part: Run) -> RunVerdict:
    """The verdict of a run, with the figures of those of its trials that `part` has: a choice of trials changes no
    outcome of a case, a suite or the run.
    """
    whole, figures = verdict(run), verdict(part)
    suites = []
    for own, known in zip(figures.suites, whole.suites, strict=True):
        shown = {case.case_id for case in own.cases}
        cases = [case for case in known.cases if case.case_id in shown]
        counts = _count_per_outcome(Counter(case.outcome for case in cases))
        suites.append(replace(own, outcome=known.outcome, reason=known.reason, cases=cases, counts=counts))
    return replace(figures, outcome=whole.outcome, reason=whole.reason, exit_code=whole.exit_code, suites=tuple(suites))


def suite_verdict(info: SuiteInfo, trials: Iterable[TrialSummary]) -> SuiteVerdict:
    """The verdict of one suite."""
    by_case: dict[str, list[TrialSummary]] = {}
    for trial in trials:
        by_case.setdefault(trial.case_id, []).append(trial)
    left_out = {item.case for item in info.quarantined}
    cases = [_case_verdict(info, case_id, group, case_id in left_out) for case_id, group in by_case.items()]
    counts = Counter(case.outcome for case in cases)
    deciding = Counter(case.outcome for case in cases if not case.quarantined)
    outcome, reason = _suite_outcome(deciding, info, sum(map(len, by_case.values())))
    if left_out:
        outcome, reason = _with_quarantines(info, outcome, reason)
    repeats = max((case.trials for case in cases), default=0)
    settled = deciding[PASSED] + deciding[FAILED]
    return SuiteVerdict(
        name=info.name,
        outcome=outcome,
        reason=reason,
        counts=_count_per_outcome(counts),
        pass_rate=share_of(deciding[PASSED], settled) if settled else None,
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
    """A quarantine whose date has passed fails the suite, so that it is not forgotten."""
    over = [item for item in info.quarantined if item.expired]
    if over:
        first = over[0]
        owner = f" (owner: {first.owner})" if first.owner else ""
        why = f"{first.reason}; mend the case and lift the quarantine, or extend it"
        return FAILED, f"the quarantine of {first.case} ended on {first.until}{owner}: {why}"
    return outcome, f"{reason}; {len(info.quarantined)} in quarantine"


def case_outcome(trials: Sequence[TrialSummary], criteria: Criteria) -> Outcome:
    """What the trials of one case say together, by the rule the suite chose."""
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
    """Each evaluator on its mean over all trials.

    A trial in which the agent broke down fails the case; one that could not be measured might have scored anything.
    """
    broken = [trial.outcome for trial in trials if not trial.scores and trial.outcome is not SKIPPED]
    if FAILED in broken:
        return FAILED
    rows = [row for trial in trials for row in trial.scores]
    unmeasured = [replace(row, outcome=outcome, value=None) for outcome in broken for row in _typical_scores(trials)]
    return _outcome_of([*rows, *unmeasured], criteria)[0]


def _typical_scores(trials: Sequence[TrialSummary]) -> list[ScoreRow]:
    """The gating scores of the trial that has most of them: what a trial that broke would have been scored by."""
    longest = max((trial.scores for trial in trials), key=len, default=())
    return [row for row in longest if row.gates and row.outcome is not SKIPPED]


def _outcome_of(rows: Sequence[Score | ScoreRow], criteria: Criteria) -> tuple[Outcome, str]:
    gating = [row for row in rows if row.gates]
    outcomes = _mean_outcomes(gating) if criteria.trials == "mean" else [row.outcome for row in gating]
    found = worst_outcome(outcomes)
    if found is not SKIPPED:
        return found, ""
    if not rows:
        return ERROR, NOTHING_SCORES
    if not gating:
        return ERROR, "nothing gates it: all of its evaluators only inform (gate: false)"
    return ERROR, "every evaluator was skipped, so nothing was compared"


def apply_mean_thresholds(scores: Sequence[Score]) -> tuple[Score, ...]:
    """The scores of one trial where evaluators are judged by their mean: each row says whether its criterion was met.

    A turn below the threshold is then no failure, and one above it no success, of a criterion about their mean.
    """
    rows: dict[str, list[Score]] = {}
    for score in scores:
        if score.value is not None and score.turn is not None:
            rows.setdefault(score.evaluator, []).append(score)
    settled: dict[str, tuple[Outcome, float]] = {}
    for name, own in rows.items():
        (outcome,) = _mean_outcomes([score for score in scores if score.evaluator == name])
        if len(own) > 1 and outcome in (PASSED, FAILED):
            settled[name] = outcome, math.fsum(score.value or 0.0 for score in own) / len(own)
    if not settled:
        return tuple(scores)
    return tuple(
        score
        if score.evaluator not in settled or score.value is None
        else replace(
            score,
            outcome=settled[score.evaluator][0],
            details={**score.details, MEAN_OVER_TURNS: settled[score.evaluator][1]},
        )
        for score in scores
    )


def _mean_outcomes(rows: Sequence[Score | ScoreRow]) -> list[Outcome]:
    """Per evaluator: its mean against its threshold, left open only if missing scores could tip it."""
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


def _suite_outcome(counts: Mapping[Outcome, int], info: SuiteInfo, made: int) -> tuple[Outcome, str]:
    passed, unknown, missing = counts[PASSED], counts[ERROR] + counts[PENDING], max(0, info.planned - made)
    total = passed + counts[FAILED] + unknown
    if total == 0:
        return SKIPPED, "every case was skipped" if counts[SKIPPED] else "no case was run"
    share = f"{passed:,} of {total:,} cases passed"
    rule = "" if info.criteria.pct == 1 else f" (at least {info.criteria.pct:.0%} must)"
    if not _meets_share(
        passed + unknown + missing + _recoverable(counts, info, missing), total + missing, info.criteria.pct
    ):
        return FAILED, share + rule
    if missing:
        return ERROR, f"{share}{rule}; {missing} of {info.planned} trials were not made"
    if not _meets_share(passed, total, info.criteria.pct):
        if counts[ERROR]:
            return ERROR, f"{share}{rule}; {counts[ERROR]} could not be measured"
        return PENDING, f"{share}{rule}; {counts[PENDING]} wait for a verdict"
    return PASSED, share + rule


def _meets_share(passed: int, total: int, pct: float) -> bool:
    """At least the share that must pass, and never nothing at all."""
    return passed >= 1 and passes(passed / total, pct)


def _recoverable(counts: Mapping[Outcome, int], info: SuiteInfo, missing: int) -> int:
    """How many failed cases further trials could still turn, at most; where all trials must pass, none."""
    return 0 if info.criteria.trials == "all" else min(counts[FAILED], missing)


_SEVERAL = {FAILED: "failed", ERROR: "ended in errors", PENDING: "are pending"}


def _run_outcome(run: Run, suites: Sequence[SuiteVerdict]) -> tuple[Outcome, str]:
    outcomes = [suite.outcome for suite in suites]
    if run.ended_because:
        return FAILED if FAILED in outcomes else ERROR, run.ended_because
    outcome = worst_outcome(outcomes)
    if outcome in _SEVERAL:
        first, *others = [suite for suite in suites if suite.outcome is outcome]
        if len(suites) == 1:
            return outcome, first.reason
        several = f"{1 + len(others)} of {len(suites)} suites {_SEVERAL[outcome]}; " if others else ""
        return outcome, f"{several}{first.name}: {first.reason}"
    if outcome is SKIPPED:
        return ERROR, "nothing was run that could pass or fail"
    if len(suites) == 1:
        return PASSED, suites[0].reason
    skipped = outcomes.count(SKIPPED)
    return PASSED, f"every suite passed that was not skipped ({skipped} were)" if skipped else "every suite passed"


def _count_per_outcome(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    return {outcome: counts[outcome] for outcome in Outcome}
