"""The gate with two versions of the agent: did this change make it worse, or is it only a bad day?

    gate = TwoArmGate({("desk", "refund"): None, ("desk", "greeting"): None})
    while requests := gate.next_trials():
        for request in requests:  # in this order: it mixes the versions at random
            gate.record(request.case, run(request), arm=request.arm)
    gate.result().verdict

The new version runs every case once. A case that fails is a *suspect*, unless it failed in most trials of the baseline;
the failure that made it one does not count as evidence. Suspects then run in *pairs*, on the new and on the old version
in the same minutes, and each pair moves the evidence (`pair_evidence`). A suspect is regressed when its evidence
reaches a bar that accounts for all suspects, cleared when it falls low, and otherwise stops at a limit of pairs. Then,
while a drop of all rates is still believable (`drop_model`), the whole suite runs in pairs, half of it at a time, with
a look at the evidence after each half. If the old version fails now where the baseline did not, *the world changed*: a
model, a service or the data behind the agent, but not the agent.

Why pairs, and not the new version against the recorded rates of the old one? Because providers have good and bad days:
the recorded rates are those of other days, and a bad day looks like a regression in every case. A day moves both trials
of a pair. That holds only if the versions take turns, so requests are in random order.

The verdict needs no baseline. If there is one, it tells which cases fail anyway, and how much searching is worth it.

The steps are a generator (`_steps`): it yields the trials it waits for and goes on when they were recorded. A resumed
run records the stored trials first, and the steps pass over what they find.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.cases.identity import CaseAddress
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import TrialRequest
from proctor.gate.drop_model import VersionCounts, drop_odds, trial_variance
from proctor.gate.other_days import Counts, chance_of_failures, days_differ
from proctor.gate.pair_evidence import CaseEvidence, DropEvidence, Pair, drop_bets
from proctor.gate.settings import MAX_ROUNDS, WORLD_TRIALS, GateSettings
from proctor.results.gate_result import (
    NEW_ARM,
    OLD_ARM,
    CaseStatus,
    GatedCaseResult,
    GateResult,
    GateVerdict,
    SuiteWideResult,
    WorldChange,
)
from proctor.results.score import Outcome

CASE_SHARE = 0.4
"""The stake on single cases; the rest is staked on a drop of the whole suite."""

CLEARED, CLEARED_IF_SURE = 0.45, 0.3
"""A suspect is cleared when its evidence falls to the first of these; to the second if it nearly always passed in the
baseline, because its failure is more surprising."""

DOUBTFUL = 8.0
"""A suspect that is at its limit of pairs with at least this evidence is undecided."""

UNMEASURABLE_AFTER = 4
"""A suspect cannot be measured if it has this many pairs with an error, and they are three of four."""

PART = 0.5
"""The share of the suite that runs between two looks at a drop of all rates."""

WANTED_DROP, VISIBLE_DROP = 0.10, 3.0
"""The drop of all rates that is searched for; at least this many standard errors of three rounds, since a small or
flaky suite cannot show ten points."""

OTHER_DAY = 0.03
"""If the old version fails this improbably often, the baseline comes from other days and no longer leads the search."""

WORLD_ALPHA = 0.01
"""The probability of "the world changed" when it did not."""

FEW_RECORDED = 5
"""With at least this many recorded trials, all of them passed, a case may be taken for one that never varies."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How low the odds of a drop must be to end the search for it, and how far a day may be from the baseline."""

    before_rounds: float
    during_rounds: float
    day_deviation: float


LEAN, THOROUGH = Effort(1.0, 0.05, 0.3), Effort(0.10, 0.04, 0.7)
WITHOUT_BASELINE = Effort(0.20, 0.03, 0.3)
"""`THOROUGH` if the recorded runs show that days differ."""


@dataclass(slots=True)
class _Arm:
    """What one version of the agent did with one case."""

    outcomes: list[Outcome] = field(default_factory=list)
    """All trials, errors included."""
    passed: list[bool | None] = field(default_factory=list)
    """Whether each passed; `None` for one that is not evidence, such as an error."""
    scores: list[float | None] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)
    """What identifies each answer; `None` if it is not known."""
    used: int = 0
    """How many of them the steps have used."""


class _Case:
    """One case: its baseline, its trials on both versions, and its status."""

    def __init__(self, record: BaselineRecord | None, *, is_quarantined: bool) -> None:
        self.record = record if record is not None and record.trials > 0 else None
        self.is_quarantined = is_quarantined
        self.arms = {NEW_ARM: _Arm(), OLD_ARM: _Arm()}
        self.first: bool | None = None
        """Whether the first trial of the new version passed; it never counts as evidence against a suspect."""
        self.counts = VersionCounts()
        """All pairs."""
        self.whole_counts = VersionCounts()
        """Pairs in rounds of the whole suite: nothing selected these."""
        self.lowest_score: float | None = None
        """For a suspect that passed with a low score: on both versions, lower scores count as failures."""
        self.evidence: CaseEvidence | None = None
        self.pairs = self.void_pairs = 0
        self.is_measurable = True
        self.status = CaseStatus.QUARANTINED if is_quarantined else CaseStatus.UNMEASURED

    @property
    def recorded(self) -> Counts:
        return Counts(0, 0) if self.record is None else Counts(self.record.passes, self.record.trials)

    @property
    def usually_passed(self) -> bool:
        return 2 * self.recorded.passes >= self.recorded.trials

    def recorded_at_least(self, rate: float) -> bool:
        """Whether it has a baseline with at least this pass rate."""
        return self.record is not None and self.recorded.passes >= rate * self.recorded.trials

    @property
    def repeats_itself(self) -> bool:
        """Whether each version gave the same answer with the same outcome every time, and was asked at least twice."""
        return all(
            len(arm.outcomes) > 1
            and len(set(zip(arm.outcomes, arm.answers, strict=True))) == 1
            and arm.answers[0] is not None
            for arm in self.arms.values()
        )

    @property
    def only_new_fails(self) -> bool:
        """Whether in every pair the new version failed and the old one passed."""
        counts = self.counts
        return counts.new_failures > 0 and not counts.new_passes and not counts.old_failures and counts.old_passes > 0

    @property
    def is_open(self) -> bool:
        return self.status is CaseStatus.UNDECIDED and self.is_measurable


Steps = Generator[list[TrialRequest], None, None]
Asked = Generator[list[TrialRequest], None, dict[CaseAddress, Pair | None]]


class TwoArmGate:
    """Decides after each round which trials to run on which version, and when the verdict is certain."""

    def __init__(
        self,
        records: Mapping[CaseAddress, BaselineRecord | None],
        settings: GateSettings | None = None,
        quarantined: Collection[CaseAddress] = (),
        *,
        recorded_runs: Sequence[Mapping[CaseAddress, Counts]] = (),
        seed: int | str = 0,
    ) -> None:
        """`records`: the baseline of each case of the run. Cases in `quarantined` are counted but never decide.

        `recorded_runs` are the runs of the baseline, which tell whether days differ. `seed` fixes the random order, so
        that a resumed run requests the same trials.
        """
        self.settings = settings or GateSettings()
        self._cases = {case: _Case(record, is_quarantined=case in quarantined) for case, record in records.items()}
        self._gated = {address: case for address, case in self._cases.items() if not case.is_quarantined}
        self._recorded_runs = recorded_runs
        self._rng = random.Random(seed)  # noqa: S311  an order, not a secret
        self._suspects: list[CaseAddress] = []
        self._drop_evidence = DropEvidence()
        self._drop = WANTED_DROP
        self._rounds = 0.0
        self._is_red = False
        self._drop_is_open = False
        self._is_deterministic = False
        self._world: WorldChange | None = None
        self._stopped: str | None = None
        self._steps_left = self._steps()

    # Trials in, requests out

    def record(
        self,
        case: CaseAddress,
        outcome: Outcome,
        score: float | None = None,
        arm: str = NEW_ARM,
        *,
        answer: str | None = None,
    ) -> None:
        """Count one trial. Only a trial that passed or failed is evidence.

        `answer` identifies what the agent did, to tell whether it repeats itself.
        """
        side = self._cases[case].arms[arm]
        side.outcomes.append(outcome)
        side.passed.append(outcome is Outcome.PASSED if outcome in (Outcome.PASSED, Outcome.FAILED) else None)
        side.scores.append(score)
        side.answers.append(answer)

    def attempts(self, case: CaseAddress, arm: str = NEW_ARM) -> int:
        """How many trials of the case were recorded for an arm, errors included."""
        return len(self._cases[case].arms[arm].outcomes)

    def next_trials(self) -> list[TrialRequest]:
        """The trials to run next, in the order in which they should start; empty when the verdict is certain."""
        if self._stopped:
            return []
        requests = next(self._steps_left, [])
        budget = self.settings.budget
        if requests and budget is not None and self._extra_trials + len(requests) > budget + len(self._unasked()):
            self.stop("the budget of extra trials is spent")
            return []
        return requests

    def stop(self, reason: str) -> None:
        """End the gate early, for example because the budget is spent; undecided cases stay undecided."""
        self._stopped = self._stopped or reason

    def _unasked(self) -> list[CaseAddress]:
        return [address for address in self._gated if not self.attempts(address)]

    @property
    def _extra_trials(self) -> int:
        trials = sum(len(arm.outcomes) for case in self._gated.values() for arm in case.arms.values())
        return max(0, trials - len(self._gated))

    def _ask(self, requests: list[TrialRequest]) -> Generator[list[TrialRequest], None, None]:
        """Wait until all requests were recorded, each request being the next trial of its case and arm."""
        wanted = [(request, self._cases[request.case].arms[request.arm].used) for request in requests]
        while missing := [request for request, used in wanted if self.attempts(*request) <= used]:
            yield missing
        for request, used in wanted:
            self._cases[request.case].arms[request.arm].used = used + 1

    def _ask_pairs(self, addresses: Sequence[CaseAddress]) -> Asked:
        """Run each case once on both versions, in random order, and count the evidence. `None` is a void pair."""
        bets = {address: drop_bets(rate) for address, rate in self._expected_rates(addresses).items()}
        requests = [TrialRequest(address, arm) for address in addresses for arm in (NEW_ARM, OLD_ARM)]
        self._rng.shuffle(requests)
        yield from self._ask(requests)
        pairs: dict[CaseAddress, Pair | None] = {}
        for address in addresses:
            case = self._cases[address]
            new, old = self._latest(case, NEW_ARM), self._latest(case, OLD_ARM)
            case.counts = _with_outcomes(case.counts, new, old)
            case.pairs += 1
            if new is None or old is None:
                case.void_pairs += 1
                pairs[address] = None
                continue
            pair = pairs[address] = Pair(new, old)
            self._drop_evidence.add(address, bets[address], pair)
            if case.evidence is not None:
                case.evidence.add(pair)
        return pairs

    def _latest(self, case: _Case, arm: str) -> bool | None:
        """Whether the last used trial passed; for a suspect by score, whether it also scored high enough."""
        side = case.arms[arm]
        passed, score = side.passed[side.used - 1], side.scores[side.used - 1]
        if passed and case.lowest_score is not None and score is not None:
            return score >= case.lowest_score
        return passed

    def _expected_rates(self, addresses: Sequence[CaseAddress]) -> dict[CaseAddress, float]:
        """The rates that all trials so far suggest, drawn towards their mean. Bets are made with them."""
        sums = {}
        for address, case in self._gated.items():
            passes = case.recorded.passes + case.counts.passes + (case.first is True)
            trials = case.recorded.trials + case.counts.passes + case.counts.failures + (case.first is not None)
            sums[address] = passes, trials
        all_passes, all_trials = (sum(column) for column in zip(*sums.values(), strict=True))
        mean = min(0.97, max(0.5, all_passes / max(all_trials, 1)))
        return {address: (sums[address][0] + 1.5 * mean) / (sums[address][1] + 1.5) for address in addresses}

    # The steps

    def _steps(self) -> Steps:
        yield from self._run_every_case()
        yield from self._confirm_suspects()
        if not self._is_red and not self._is_deterministic:
            yield from self._search_drop()
        yield from self._compare_with_baseline()

    def _run_every_case(self) -> Steps:
        requests = [TrialRequest(address) for address in self._gated]
        self._rng.shuffle(requests)
        for attempt in range(2):  # a trial that ended in an error runs once more
            yield from self._ask(requests)
            for request in requests:
                case = self._cases[request.case]
                case.first = self._latest(case, NEW_ARM)
            requests = [request for request in requests if self._cases[request.case].first is None]
            if attempt or not requests:
                break
        for address, case in self._gated.items():
            self._classify(address, case)

    def _classify(self, address: CaseAddress, case: _Case) -> None:
        """Set the status of a case after its first trial."""
        if case.first is None:
            return
        case.status = CaseStatus.UNCHANGED
        score = case.arms[NEW_ARM].scores[case.arms[NEW_ARM].used - 1]
        lowest = None if case.record is None else case.record.lowest_expected_score
        if case.first and lowest is not None and score is not None and score < lowest:
            case.lowest_score = lowest
        elif case.first or not case.usually_passed:
            return
        case.status, case.evidence = CaseStatus.UNDECIDED, CaseEvidence()
        self._suspects.append(address)

    def _confirm_suspects(self) -> Steps:
        """Run the suspects in pairs until each is regressed, cleared or at its limit."""
        suspects = [self._cases[address] for address in self._suspects]
        limit = self.settings.max_pairs
        for asked in range(1, limit + 1):
            addresses = [address for address in self._suspects if self._cases[address].is_open]
            if not addresses:
                break
            yield from self._ask_pairs(addresses)
            for address in addresses:
                self._judge_suspect(self._cases[address], is_last=asked == limit)
            self._look()
            if self._never_varies(suspects, asked):
                break
        self._is_deterministic = bool(suspects) and all(case.repeats_itself for case in suspects)

    def _judge_suspect(self, case: _Case, *, is_last: bool) -> None:
        assert case.evidence is not None
        evidence = case.evidence.value
        case.is_measurable = case.void_pairs < UNMEASURABLE_AFTER or 4 * case.void_pairs <= 3 * case.pairs
        if self._p_value(case) <= self.settings.alpha:
            case.status = CaseStatus.REGRESSED
        elif evidence <= (CLEARED_IF_SURE if case.recorded_at_least(0.9) else CLEARED):
            case.status = CaseStatus.CLEARED
        elif is_last and case.is_measurable and evidence < DOUBTFUL:
            case.status = CaseStatus.CLEARED

    def _never_varies(self, suspects: Sequence[_Case], asked: int) -> bool:
        """Whether the answers of both versions do not vary, so that more trials would only repeat them.

        Then a case that only the new version fails is regressed. Two identical answers are weak evidence of that, since
        short answers repeat by chance: so there must be two such cases, or a baseline that never varied, or a third
        pair.
        """
        if asked < 2 or not all(case.repeats_itself for case in suspects):
            return False
        broken = [case for case in suspects if case.only_new_fails]
        never_failed = all(case.recorded_at_least(1.0) and case.recorded.trials >= FEW_RECORDED for case in broken)
        if not broken or (len(broken) < 2 and not never_failed and asked < 3):
            return False
        for case in suspects:
            case.status = CaseStatus.REGRESSED if case.only_new_fails else CaseStatus.CLEARED
        self._is_red = True
        return True

    def _look(self) -> None:
        """The gate is red once the whole evidence reaches 1 / alpha, at whatever moment that is."""
        self._is_red = self._is_red or 1 / self._evidence <= self.settings.alpha

    @property
    def _evidence(self) -> float:
        """The evidence that anything is worse: of single cases and of the whole suite together."""
        return self._case_evidence + (1 - CASE_SHARE) * self._drop_evidence.value

    @property
    def _case_evidence(self) -> float:
        values = [case.evidence.value for case in self._cases.values() if case.evidence is not None]
        return CASE_SHARE * (math.fsum(values) / len(values) if values else 1.0)

    def _p_value(self, case: _Case) -> float:
        """Of one suspect, adjusted for all of them and for every look."""
        assert case.evidence is not None
        return min(1.0, len(self._suspects) / (CASE_SHARE * case.evidence.value))

    # A drop of the whole suite

    def _search_drop(self) -> Steps:
        """Run the whole suite in pairs while a drop of all rates is believable."""
        effort = self._effort()
        queue: list[CaseAddress] = []
        size = math.ceil(PART * len(self._gated))
        while True:
            counts = [self._counts_for_model(case) for case in self._gated.values()]
            if sum(case.new_failures for case in counts) <= 1:
                return
            self._drop = self._visible_drop(counts)
            if self._chance_of_old_failures() <= OTHER_DAY:
                counts = [case._replace(baseline_passes=0, baseline_failures=0) for case in counts]
            odds = drop_odds(counts, self._drop, effort.day_deviation)
            if odds <= (effort.during_rounds if self._rounds else effort.before_rounds):
                return
            if self._rounds >= MAX_ROUNDS - 1e-9:
                self._drop_is_open = True
                return
            if not queue:
                queue = list(self._gated)
                self._rng.shuffle(queue)
            part, queue = queue[:size], queue[size:]
            measured = yield from self._run_part(part)
            self._look()
            if self._is_red:
                return
            if measured < 0.5:
                self._drop_is_open = True
                return

    def _run_part(self, addresses: Sequence[CaseAddress]) -> Generator[list[TrialRequest], None, float]:
        """Run a part of the suite in pairs; returns the share of pairs that were not void."""
        before = {address: self._cases[address].counts for address in addresses}
        pairs = yield from self._ask_pairs(addresses)
        for address in addresses:
            case = self._cases[address]
            now = zip(case.whole_counts, case.counts, before[address], strict=True)
            case.whole_counts = VersionCounts(*(whole + count - earlier for whole, count, earlier in now))
        self._rounds += len(addresses) / len(self._gated)
        return sum(pair is not None for pair in pairs.values()) / len(pairs)

    def _counts_for_model(self, case: _Case) -> VersionCounts:
        counts = case.counts._replace(baseline_passes=case.recorded.passes, baseline_failures=case.recorded.failures)
        # The old version did not run beside the first trial, so it counts only until a whole round has run.
        if not any(case.whole_counts):
            counts = counts._replace(
                new_passes=counts.new_passes + (case.first is True),
                new_failures=counts.new_failures + (case.first is False),
            )
        return counts

    def _effort(self) -> Effort:
        if not any(case.record for case in self._gated.values()):
            return WITHOUT_BASELINE
        runs = [[run.get(address, Counts(0, 0)) for address in self._gated] for run in self._recorded_runs]
        return THOROUGH if days_differ(runs) else LEAN

    def _visible_drop(self, counts: Sequence[VersionCounts]) -> float:
        error = math.sqrt(2 * trial_variance(counts) / (3 * len(counts)))
        return min(0.5, max(WANTED_DROP, VISIBLE_DROP * error))

    # Comparison with the baseline: did the world change?

    def _chance_of_old_failures(self, *, both: bool = False) -> float:
        """The probability of so many failures of the old version (or `both`) in whole rounds at the recorded rates."""
        if not self._rounds:
            return 1.0
        cases = []
        for case in self._gated.values():
            counts = case.whole_counts
            passes, failures = counts.old_passes, counts.old_failures
            if both:
                passes, failures = passes + counts.new_passes, failures + counts.new_failures
            if case.record:
                cases.append((case.recorded, Counts(passes, passes + failures)))
        return chance_of_failures(cases)

    def _compare_with_baseline(self) -> Steps:
        """Whether the old version fails now where the baseline did not: everywhere a little, or one case outright."""
        level = WORLD_ALPHA / 2
        if self._chance_of_old_failures() <= OTHER_DAY:
            chance = self._chance_of_old_failures(both=True)
            if chance <= level:
                self._world = WorldChange(min(1.0, 2 * chance), ())
        failing = [
            address
            for address in self._suspects
            if self._cases[address].recorded_at_least(0.8) and not self._cases[address].counts.old_passes
        ]
        while asking := [address for address in failing if self._needs_old_trials(self._cases[address])]:
            yield from self._ask([TrialRequest(address, OLD_ARM) for address in asking])
            for address in asking:
                case = self._cases[address]
                passed = self._latest(case, OLD_ARM)
                case.counts = _with_outcomes(case.counts, None, passed)
                if passed is None:
                    failing.remove(address)
        broken = []
        for address in failing:
            case = self._cases[address]
            now = Counts(case.counts.old_passes, case.counts.old_passes + case.counts.old_failures)
            chance = chance_of_failures([(case.recorded, now)])
            if chance <= level / len(self._suspects) and case.status is not CaseStatus.REGRESSED:
                case.status = CaseStatus.FAILS_ON_BOTH
                broken.append((address, min(1.0, 2 * len(self._suspects) * chance)))
        if broken:
            p_value = min(p for _, p in broken)
            if self._world is not None:
                p_value = min(p_value, self._world.p_value)
            self._world = WorldChange(p_value, tuple(address for address, _ in broken))

    def _needs_old_trials(self, case: _Case) -> bool:
        return not case.counts.old_passes and case.counts.old_failures < WORLD_TRIALS

    # The result

    def result(self) -> GateResult:
        """The result so far. `proctor.gate.verdict` adds what else decides a run, and the reason."""
        regressed = any(case.status is CaseStatus.REGRESSED for case in self._gated.values())
        p_value = min(1.0, 1 / self._evidence)
        suite_wide = SuiteWideResult(
            rounds=math.ceil(self._rounds),
            p_value=p_value,
            better_p_value=1.0,
            proven=self._is_red and not regressed,
            in_doubt=self._drop_is_open and not self._is_red,
        )
        return GateResult(
            verdict=self._verdict(),
            reason="",
            baseline="",
            alpha=self.settings.alpha,
            max_trials=self.settings.max_pairs,
            extra_trials=self._extra_trials,
            stopped=self._stopped,
            suite_wide=suite_wide,
            cases=tuple(self._case_result(address, case) for address, case in self._cases.items()),
            against=self.settings.against or "",
            world=self._world,
            visible_drop=self._drop,
            answers_vary=not self._is_deterministic,
            looks_cached=self._looks_cached(),
            strict_world=self.settings.strict_world,
        )

    def _verdict(self) -> GateVerdict:
        if self._is_red:
            return GateVerdict.REGRESSION
        measured = any(case.first is not None for case in self._gated.values())
        undecided = any(case.status is CaseStatus.UNDECIDED for case in self._gated.values())
        if undecided or self._drop_is_open or self._stopped or not measured:
            return GateVerdict.INCONCLUSIVE
        return GateVerdict.NO_REGRESSION if self._world is None else GateVerdict.WORLD_CHANGED

    def _looks_cached(self) -> bool:
        """Whether answers repeat word for word on both versions, although the baseline of the same cases varies."""
        return any(
            case.repeats_itself and case.recorded_at_least(0.2) and not case.recorded_at_least(0.8)
            for case in (self._cases[address] for address in self._suspects)
        )

    def _case_result(self, address: CaseAddress, case: _Case) -> GatedCaseResult:
        new, old = case.arms[NEW_ARM], case.arms[OLD_ARM]
        counts = case.counts
        return GatedCaseResult(
            *address,
            status=case.status,
            first_outcome=new.outcomes[0] if new.outcomes else None,
            baseline_trials=case.recorded.trials,
            baseline_passes=case.recorded.passes,
            rerun_trials=counts.new_passes + counts.new_failures,
            rerun_passes=counts.new_passes,
            old_trials=counts.old_passes + counts.old_failures,
            old_passes=counts.old_passes,
            errors=(*new.outcomes, *old.outcomes).count(Outcome.ERROR),
            p_value=None if case.evidence is None else self._p_value(case),
            by_score=case.lowest_score is not None,
            baseline_score=None if case.record is None else case.record.score_mean,
            score=new.scores[0] if new.scores else None,
        )


def _with_outcomes(counts: VersionCounts, new: bool | None, old: bool | None) -> VersionCounts:
    return counts._replace(
        new_passes=counts.new_passes + (new is True),
        new_failures=counts.new_failures + (new is False),
        old_passes=counts.old_passes + (old is True),
        old_failures=counts.old_failures + (old is False),
    )
