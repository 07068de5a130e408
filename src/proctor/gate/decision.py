"""The decision: which trials to run next, and what the outcomes prove.

The gate runs nothing. Its caller runs the trials it requests and records the outcomes, until it requests none:

    gate = Gate({("desk", "refund"): BaselineRecord(trials=10, passes=10)})
    while requests := gate.next_trials():
        for request in requests:
            gate.record(request.case, run(request))
    gate.result().verdict

Every case runs once, and the first outcome selects the suspects. Suspects are re-run, those with the highest score
first, until each is regressed, cleared or at its limit of trials. If then no case is proven but the suite as a whole
looks worse, every case runs again, for up to three looks at the suite without its first round.

Why not simply repeat every failed case five times and call it regressed if it fails three times? Because with many
cases and many looks, some unchanged flaky case will do that on most days. `_decide` therefore uses a step-down test:
the suspect with the highest score is compared with what any of the suspects would reach by chance; if it is proven, it
leaves the group, and the next one is compared with the rest. The constants below say how alpha is spent. The tests are
behind `CaseTest` and `SuiteTest`. `two_arm` is the gate for two versions of an agent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from proctor.cases.identity import CaseAddress
from proctor.gate.beliefs import ANY_RATE, BaselineRecord, SuitePrior
from proctor.gate.new_cases import needs_another_trial
from proctor.gate.settings import SUITE_TEST_SHARES, GateSettings
from proctor.gate.suite_test import BaselineSuiteTest, CaseCounts, SuiteTest
from proctor.gate.suspect_test import (
    BaselineCaseTest,
    CaseTest,
    NullModel,
    ScoreTable,
    critical_score,
    probability_any_crosses,
)
from proctor.results.gate_result import NEW_ARM, CaseStatus, GatedCaseResult, GateResult, GateVerdict, SuiteWideResult
from proctor.results.score import Outcome

SUSPECTS_SHARE = 0.33
"""The share of alpha that is spent on all suspects together; `SUITE_TEST_SHARES` has the others."""

SUITE_DOUBT = 0.2
"""The whole suite runs again while the p-value of the last look at it is at most this."""

DOUBT_FACTOR = 2.0
"""A suspect that passed a re-run is no longer in doubt if its p-value is above this many times alpha."""

IMPROVED_BELOW = 0.1
"""A case that passed has improved if its baseline gave a pass at most this probability."""

FORECAST_TRIALS = 60
"""The most re-runs that are considered in the forecast of how many would decide an undecided case."""


class TrialRequest(NamedTuple):
    """A trial that the gate requests: one execution of a case by one version of the agent."""

    case: CaseAddress
    arm: str = NEW_ARM


class CaseProgress:
    """One case in this run: the outcomes of its trials, and its status after them."""

    def __init__(self, record: BaselineRecord | None, *, is_quarantined: bool = False) -> None:
        self.record = record if record is not None and record.trials > 0 else None
        self.is_quarantined = is_quarantined
        self.outcomes: list[Outcome] = []
        """The outcomes of all trials, errors included."""
        self.first_score: float | None = None
        self.passed: list[bool] = []
        """For each trial that passed or failed, whether it passed."""
        self.within_usual: list[bool] = []
        """For each of those, whether it is as good as the baseline: it passed and, for a suspect by score, did not
        score far below it."""
        self.new_checks: list[bool] = []
        """For each trial with evaluators that the baseline does not know, whether it passed them."""
        self.by_score = False
        self.test: CaseTest | None = None
        self.potential_score = 0.0
        """The highest score that the test of a suspect could reach when it became one."""
        self.p_value: float | None = None
        self.status = CaseStatus.UNMEASURED if self.record else CaseStatus.NEW
        if is_quarantined:
            self.status = CaseStatus.QUARANTINED

    @property
    def attempts(self) -> int:
        return len(self.outcomes)

    @property
    def first_outcome(self) -> Outcome | None:
        return self.outcomes[0] if self.outcomes else None

    @property
    def errors(self) -> int:
        return self.outcomes.count(Outcome.ERROR)

    @property
    def rerun_trials(self) -> int:
        return max(0, len(self.within_usual) - 1)

    @property
    def rerun_passes(self) -> int:
        return sum(self.within_usual[1:])

    @property
    def is_regressed(self) -> bool:
        return self.status is CaseStatus.REGRESSED


class Gate:
    """Decides after each round which cases to re-run, and when the result is certain."""

    def __init__(
        self,
        records: Mapping[CaseAddress, BaselineRecord | None],
        settings: GateSettings | None = None,
        quarantined: Collection[CaseAddress] = (),
    ) -> None:
        """`records`: the baseline of each case of the run. Cases in `quarantined` are counted but never decide."""
        self.settings = settings or GateSettings()
        self._cases = {
            case: CaseProgress(record, is_quarantined=case in quarantined) for case, record in records.items()
        }
        self._gated = {case: progress for case, progress in self._cases.items() if not progress.is_quarantined}
        known = [progress.record for progress in self._gated.values() if progress.record]
        self._prior = SuitePrior((record.passes, record.trials) for record in known)
        self._tables: dict[tuple[BaselineRecord, bool, int], ScoreTable] = {}
        self._critical: dict[frozenset[tuple[NullModel, int]], float] = {}
        self._first_round: SuiteTest | None = None
        """A look at the first outcome of every case. It is never evidence, since what it shows may be an outage."""
        self._looks: list[SuiteTest] = []
        self._stopped: str | None = None

    def record(
        self,
        case: CaseAddress,
        outcome: Outcome,
        score: float | None = None,
        arm: str = NEW_ARM,
        *,
        new_checks: Outcome | None = None,
    ) -> None:
        """Count one outcome. Only a trial that passed or failed is evidence.

        `outcome` is that of the evaluators which the baseline knows, and `new_checks` that of all others.
        """
        progress = self._cases[case]
        progress.outcomes.append(outcome)
        if new_checks in (Outcome.PASSED, Outcome.FAILED):
            progress.new_checks.append(new_checks is Outcome.PASSED)
        if progress.attempts == 1:
            progress.first_score = score
        if progress.is_quarantined or outcome not in (Outcome.PASSED, Outcome.FAILED):
            return
        passed = outcome is Outcome.PASSED
        if not progress.passed:
            self._classify(progress, passed, score)
        lowest = progress.record.lowest_expected_score if progress.record and progress.by_score else None
        within_usual = passed and (lowest is None or score is None or score >= lowest)
        if progress.passed and progress.test is not None:
            progress.test.record(arm, within_usual)
        progress.passed.append(passed)
        progress.within_usual.append(within_usual)

    def attempts(self, case: CaseAddress, arm: str = NEW_ARM) -> int:
        """How many trials of the case were recorded, errors included. This gate runs one version only."""
        return self._cases[case].attempts

    def next_trials(self) -> list[TrialRequest]:
        """The trials to run next, the most informative first: every case at the beginning, none when it is decided."""
        if self._stopped:
            return []
        if first := [TrialRequest(case) for case, progress in self._gated.items() if not progress.attempts]:
            return first
        self._decide()
        requests = self._suspect_trials() + self._new_case_trials() or self._suite_round()
        if requests and self.settings.budget is not None:
            left = self.settings.budget - self._extra_trials
            if left <= 0:
                self.stop("the budget of extra trials is spent")
            requests = requests[: max(0, left)]
        return requests

    def stop(self, reason: str) -> None:
        """End the gate early, for example because the budget is spent; undecided cases stay undecided."""
        self._stopped = self._stopped or reason

    def result(self) -> GateResult:
        """The result so far. `proctor.gate.verdict` adds what else decides a run, and the reason."""
        self._decide()
        suite_wide = self._suite_wide()
        return GateResult(
            verdict=self._verdict(suite_wide),
            reason="",
            baseline="",
            alpha=self.settings.alpha,
            max_trials=self.settings.max_trials,
            extra_trials=self._extra_trials,
            stopped=self._stopped,
            suite_wide=suite_wide,
            cases=tuple(self._case_result(case, progress) for case, progress in self._cases.items()),
        )

    @property
    def _extra_trials(self) -> int:
        return sum(max(0, progress.attempts - 1) for progress in self._gated.values())

    def _classify(self, progress: CaseProgress, passed: bool, score: float | None) -> None:
        """Set the status of a case after its first outcome, which selects suspects but is not evidence against them."""
        record = progress.record
        if record is None:
            return
        lowest = record.lowest_expected_score
        progress.status = CaseStatus.UNCHANGED
        progress.by_score = passed and lowest is not None and score is not None and score < lowest
        if progress.by_score or (not passed and 2 * record.passes >= record.trials):
            progress.status = CaseStatus.UNDECIDED
            progress.test = self._case_test(record, progress.by_score)
            progress.potential_score = progress.test.reachable_score
        elif passed:
            probability = self._prior.belief(record.passes, record.trials).mean
            if record.passes == 0 or probability <= IMPROVED_BELOW:
                progress.status, progress.p_value = CaseStatus.IMPROVED, probability

    def _case_test(self, record: BaselineRecord, by_score: bool) -> CaseTest:
        return BaselineCaseTest(self._table(record, by_score, self.settings.max_trials))

    def _table(self, record: BaselineRecord, by_score: bool, trials: int) -> ScoreTable:
        """The scores of a suspect. Suspects with the same baseline share a table."""
        key = (BaselineRecord(record.trials, record.trials if by_score else record.passes), by_score, trials)
        if key not in self._tables:
            # All recorded scores were within the range, so a suspect by score has only passes in its baseline.
            unchanged = (
                ANY_RATE.updated(record.trials, 0) if by_score else self._prior.belief(record.passes, record.trials)
            )
            # If nothing changed, the outcome that made it a suspect is one more observation of its rate.
            self._tables[key] = ScoreTable(unchanged.updated(0, 1), trials)
        return self._tables[key]

    def _suspects(self) -> list[tuple[CaseProgress, CaseTest]]:
        return [(progress, progress.test) for progress in self._gated.values() if progress.test]

    def _decide(self) -> None:
        """Step down from the suspect with the highest score: each is compared with all that are not yet proven."""
        suspects = self._suspects()
        remaining: Counter[NullModel] = Counter(test.null for _, test in suspects)
        measured = sorted(
            ((test.highest_score, progress, test) for progress, test in suspects if test.highest_score is not None),
            key=lambda item: -item[0],
        )
        reached = 0.0
        for highest, progress, test in measured:
            reached = max(reached, min(1.0, probability_any_crosses(remaining, highest) / SUSPECTS_SHARE))
            progress.p_value = reached
            if reached <= self.settings.alpha:
                progress.status = CaseStatus.REGRESSED
                remaining[test.null] -= 1
        critical = self._critical_score(+remaining)
        for _, progress, test in measured:
            if progress.status is CaseStatus.UNDECIDED and self._is_cleared(progress, test, critical):
                progress.status = CaseStatus.CLEARED

    def _critical_score(self, remaining: Counter[NullModel]) -> float:
        key = frozenset(remaining.items())
        if key not in self._critical:
            self._critical[key] = critical_score(remaining, SUSPECTS_SHARE * self.settings.alpha)
        return self._critical[key]

    def _is_cleared(self, progress: CaseProgress, test: CaseTest, critical: float) -> bool:
        """Whether its re-runs are as good as the baseline, or cannot prove a regression any more."""
        if test.is_unchanged:
            return True
        doubtful = progress.rerun_passes == 0 or (progress.p_value or 0.0) <= DOUBT_FACTOR * self.settings.alpha
        if test.score > 0 and doubtful:
            return False
        return test.is_exhausted or test.reachable_score < critical

    def _suspect_trials(self) -> list[TrialRequest]:
        candidates = [
            (-progress.test.score, -progress.potential_score, at, case, progress.test.next_arms())
            for at, (case, progress) in enumerate(self._gated.items())
            if progress.test
            and progress.status is CaseStatus.UNDECIDED
            and progress.attempts <= self.settings.max_trials
        ]
        return [TrialRequest(case, arm) for *_, case, arms in sorted(candidates) for arm in arms]

    def _new_case_trials(self) -> list[TrialRequest]:
        return [
            TrialRequest(case)
            for case, progress in self._gated.items()
            if needs_another_trial(progress.new_checks if progress.record else progress.passed, progress.attempts)
        ]

    def _suite_round(self) -> list[TrialRequest]:
        """The next round of the whole suite, while its test is in doubt and no single case has regressed.

        A round runs every case. Choosing the cases with the best baselines would be wrong: some of those were just
        lucky, so the suite would look worse than it is. The first round only decides whether more are worth it. An
        outage during it, from which every case has recovered since, is then no evidence at all.
        """
        self._first_round = self._first_round or self._suite_test(0, 1)
        while self._wants_another_look():
            rounds = len(self._looks) + 2
            requests = [TrialRequest(case) for case, progress in self._measured().items() if progress.attempts < rounds]
            if requests:
                return requests
            self._looks.append(self._suite_test(1, rounds))
        return []

    def _wants_another_look(self) -> bool:
        if self._any_regressed() or self._suite_p_value() <= self.settings.alpha:
            return False
        max_looks = min(len(SUITE_TEST_SHARES), self.settings.max_trials)
        last = self._last_test()
        # A single failing case is a suspect and not worth another round of the whole suite.
        return len(self._looks) < max_looks and last.failing > 1 and last.p_worse <= SUITE_DOUBT

    def _last_test(self) -> SuiteTest:
        return self._looks[-1] if self._looks else self._first_round or self._suite_test(0, 1)

    def _suite_test(self, first: int, last: int) -> SuiteTest:
        """Test the suite on these outcomes of every case. Suspects have more, but only equal numbers are fair."""
        cases = []
        for progress in self._measured().values():
            assert progress.record
            now = progress.passed[first:last]
            cases.append(CaseCounts(progress.record.passes, progress.record.trials, sum(now), len(now)))
        return BaselineSuiteTest(cases)

    def _measured(self) -> dict[CaseAddress, CaseProgress]:
        """The cases that have a baseline, and passed or failed in this run."""
        return {case: progress for case, progress in self._gated.items() if progress.record and progress.passed}

    def _any_regressed(self) -> bool:
        return any(progress.is_regressed for progress in self._gated.values())

    def _suite_p_value(self) -> float:
        looks = zip(self._looks, SUITE_TEST_SHARES, strict=False)
        return min([1.0, *(look.p_worse / share for look, share in looks)])

    def _suite_wide(self) -> SuiteWideResult:
        p_value, last = self._suite_p_value(), self._last_test()
        proven = p_value <= self.settings.alpha
        limit = SUITE_DOUBT if self._stopped or not self._looks else self.settings.alpha
        in_doubt = not proven and last.failing > 1 and last.p_worse <= limit
        better = (self._first_round or last).p_better
        return SuiteWideResult(1 + len(self._looks), p_value, better, proven, in_doubt)

    def _verdict(self, suite_wide: SuiteWideResult) -> GateVerdict:
        if suite_wide.proven or self._any_regressed():
            return GateVerdict.REGRESSION
        undecided = any(progress.status is CaseStatus.UNDECIDED for progress in self._gated.values())
        if undecided or suite_wide.in_doubt or not self._measured():
            return GateVerdict.INCONCLUSIVE
        return GateVerdict.NO_REGRESSION

    def _case_result(self, case: CaseAddress, progress: CaseProgress) -> GatedCaseResult:
        record, gated = progress.record, not progress.is_quarantined
        return GatedCaseResult(
            *case,
            status=progress.status,
            first_outcome=progress.first_outcome,
            baseline_trials=0 if record is None else record.trials,
            baseline_passes=0 if record is None else record.passes,
            rerun_trials=progress.rerun_trials,
            rerun_passes=progress.rerun_passes,
            errors=progress.errors,
            p_value=progress.p_value,
            by_score=progress.by_score,
            baseline_score=record.score_mean if gated and record is not None else None,
            score=progress.first_score,
            trials_to_decide=self._trials_to_decide(progress) if progress.status is CaseStatus.UNDECIDED else None,
        )

    def _trials_to_decide(self, progress: CaseProgress) -> int | None:
        """The fewest more trials that would prove an undecided case regressed if all of them failed."""
        assert progress.record
        table = self._table(progress.record, progress.by_score, FORECAST_TRIALS)
        models: Counter[NullModel] = Counter(
            test.null for other, test in self._suspects() if other is not progress and not other.is_regressed
        )
        models[table] += 1
        counts = range(progress.rerun_trials + 1, FORECAST_TRIALS + 1)

        def proves(trials: int) -> bool:
            score = table.scores[trials][progress.rerun_passes]
            return probability_any_crosses(models, score) <= SUSPECTS_SHARE * self.settings.alpha

        at = bisect_left(counts, True, key=proves)
        return at + 1 if at < len(counts) else None
