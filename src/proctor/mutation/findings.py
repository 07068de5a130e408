"""What mutants say about a suite: what is killed and by whom, what survives, what is vacuous or redundant."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

from proctor.cases.suite import Waiver
from proctor.mutation.mutants import Mutant
from proctor.results.statistics import wilson

MIN_MUTANTS_PER_PAIR = 8
"""Mutants that two evaluators must both see before their agreement says something."""
MIN_MUTANTS_PER_CASE = 3


class MutantStatus(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    """It did not pass, and no evaluator failed it: an error, or a verdict that is still to come."""
    WAIVED = "waived"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """A mutant and what the suite said of it."""

    mutant: Mutant
    status: MutantStatus
    detections: Mapping[str, bool]
    """By evaluator that could see the change and came to a verdict: whether it failed the mutant."""
    note: str = ""
    """Why it is unsettled or waived."""


@dataclass(frozen=True, slots=True)
class KillRate:
    """How many of some mutants were killed, with Wilson's interval."""

    killed: int
    total: int

    @property
    def share(self) -> float:
        return self.killed / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.share, self.total)


@dataclass(frozen=True, slots=True)
class EvaluatorFinding:
    """What one evaluator killed of what it could see."""

    evaluator: str
    rate: KillRate
    alone: int
    """Mutants that no other evaluator killed."""
    gates: bool = True

    @property
    def is_ineffective(self) -> bool:
        """Whether it killed nothing, though there was something to be seen."""
        return self.rate.total > 0 and not self.rate.killed


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to add to a case so that survivors are killed; it has been tried on them."""

    case: str
    turn: int | None
    """The index of the turn, where the case has several."""
    expected: Mapping[str, object]
    evaluators: Sequence[object]
    lines: str
    kills: int
    of: int


@dataclass(frozen=True, slots=True)
class Controls:
    """What the suite says of an agent that gives what is expected, and of one that says nothing."""

    oracle_fails: tuple[str, ...] = ()
    """Cases that the expected answer itself fails."""
    nop_passes: tuple[str, ...] = ()
    """Cases that an empty answer passes."""
    broken: str = ""
    """Why the suite cannot be believed; empty if it can."""


@dataclass(frozen=True, slots=True)
class SuiteFindings:
    """Everything that is known of one suite."""

    suite: str
    controls: Controls
    tried: tuple[MutantResult, ...] = ()
    rate: KillRate = KillRate(0, 0)
    cases: tuple[tuple[str, KillRate], ...] = ()
    kinds: tuple[tuple[str, KillRate], ...] = ()
    evaluators: tuple[EvaluatorFinding, ...] = ()
    never_failing: tuple[str, ...] = ()
    """Cases of which no mutant was killed."""
    redundant: tuple[tuple[str, str, int], ...] = ()
    """Pairs of evaluators that said the same of all mutants both could see, and how many these were."""
    unused_waivers: tuple[Waiver, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    allowed: Mapping[str, int] = field(default_factory=dict)
    """Kinds that were not made, since expectations allow them in so many words."""
    skipped_trials: Mapping[str, int] = field(default_factory=dict)
    """Trials of which no mutants were made, by the reason why."""
    notes: tuple[str, ...] = ()

    def with_status(self, fate: MutantStatus) -> list[MutantResult]:
        return [item for item in self.tried if item.status is fate]


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What the mutants of a run say."""

    run: str
    seed: int
    max_per_trial: int
    suites: tuple[SuiteFindings, ...]
    min_kill: float | None = None

    @property
    def rate(self) -> KillRate:
        return KillRate(sum(s.rate.killed for s in self.suites), sum(s.rate.total for s in self.suites))

    @property
    def broken(self) -> list[SuiteFindings]:
        return [suite for suite in self.suites if suite.controls.broken]

    @property
    def below(self) -> list[SuiteFindings]:
        """Suites that kill less than is asked for."""
        if self.min_kill is None:
            return []
        return [s for s in self.suites if s.rate.total and s.rate.share < self.min_kill - 1e-12]

    @property
    def exit_code(self) -> int:
        """0 unless a suite is broken or kills too little (1), or there was nothing to mutate (3)."""
        if self.broken or self.below:
            return 1
        return 0 if self.rate.total else 3


def summarize(
    suite: str, tried: Sequence[MutantResult], waivers: Sequence[Waiver], gating: Mapping[str, bool], controls: Controls
) -> SuiteFindings:
    """Rates by suite, case, kind and evaluator; waived survivors count for nothing."""
    settled, unused = _apply_waivers(tried, waivers)
    counted = [item for item in settled if item.status is not MutantStatus.WAIVED]
    cases = _rates((item.mutant.case, item) for item in counted)
    return SuiteFindings(
        suite=suite,
        controls=controls,
        tried=tuple(settled),
        rate=KillRate(_count_killed(counted), len(counted)),
        cases=tuple(sorted(cases.items(), key=lambda pair: (pair[1].share, pair[0]))),
        kinds=tuple(sorted(_rates((i.mutant.kind, i) for i in counted).items(), key=lambda pair: pair[1].share)),
        evaluators=_evaluators(counted, gating),
        never_failing=tuple(c for c, rate in cases.items() if not rate.killed and rate.total >= MIN_MUTANTS_PER_CASE),
        redundant=_redundant(counted),
        unused_waivers=unused,
    )


def _apply_waivers(
    tried: Sequence[MutantResult], waivers: Sequence[Waiver]
) -> tuple[list[MutantResult], tuple[Waiver, ...]]:
    """Survivors that a waiver is about, and the waivers that are about none."""
    used: set[Waiver] = set()
    settled = []
    for item in tried:
        found = None if item.status is MutantStatus.KILLED else _waiver_for(item.mutant, waivers)
        if found is not None:
            used.add(found)
            item = MutantResult(item.mutant, MutantStatus.WAIVED, item.detections, found.reason)
        settled.append(item)
    return settled, tuple(waiver for waiver in waivers if waiver not in used)


def _waiver_for(mutant: Mutant, waivers: Sequence[Waiver]) -> Waiver | None:
    return next((w for w in waivers if w.mutant == mutant.kind and w.case in (None, mutant.case)), None)


def _count_killed(tried: Iterable[MutantResult]) -> int:
    return sum(item.status is MutantStatus.KILLED for item in tried)


def _rates(pairs: Iterable[tuple[str, MutantResult]]) -> dict[str, KillRate]:
    totals: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    for name, item in pairs:
        totals[name] += 1
        killed[name] += item.status is MutantStatus.KILLED
    return {name: KillRate(killed[name], total) for name, total in totals.items()}


def _evaluators(tried: Sequence[MutantResult], gating: Mapping[str, bool]) -> tuple[EvaluatorFinding, ...]:
    totals: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for item in tried:
        totals.update(item.detections.keys())
        killers = [name for name, failed in item.detections.items() if failed]
        killed.update(killers)
        deciding = [name for name in killers if gating.get(name, True)]
        if len(deciding) == 1:
            alone[deciding[0]] += 1
    return tuple(
        EvaluatorFinding(name, KillRate(killed[name], totals[name]), alone[name], gates)
        for name, gates in gating.items()
    )


def _redundant(tried: Sequence[MutantResult]) -> tuple[tuple[str, str, int], ...]:
    both: Counter[tuple[str, str]] = Counter()
    killed: Counter[tuple[str, str]] = Counter()
    differ: dict[tuple[str, str], bool] = defaultdict(bool)
    for item in tried:
        if len(item.mutant.parts) > 1:  # where both saw something, but not the same
            continue
        for pair in combinations(sorted(item.detections), 2):
            first, second = item.detections[pair[0]], item.detections[pair[1]]
            both[pair] += 1
            killed[pair] += first and second
            differ[pair] |= first is not second
    return tuple(
        (first, second, count)
        for (first, second), count in both.items()
        if count >= MIN_MUTANTS_PER_PAIR and killed[first, second] and not differ[first, second]
    )
