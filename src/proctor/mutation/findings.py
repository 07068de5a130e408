"""The result of mutating a suite: what was killed and by which evaluator, what survived, what is ineffective."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

from proctor.cases.formats.native.parts import FORMER_MUTANT_KINDS
from proctor.cases.suite import Waiver
from proctor.mutation.mutants import Mutant
from proctor.results.statistics import wilson

MIN_MUTANTS_PER_PAIR = 8
"""Mutants that two evaluators must both see before they can be called redundant."""
MIN_MUTANTS_PER_CASE = 3


class MutantStatus(StrEnum):
    """The result of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    """It neither passed nor failed: an evaluator ended in an error or is pending."""
    WAIVED = "waived"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """A mutant with its result."""

    mutant: Mutant
    status: MutantStatus
    detections: Mapping[str, bool]
    """For each evaluator that could see the change and passed or failed the mutant: whether it failed it."""
    note: str = ""
    """Why it is undecided or waived."""


@dataclass(frozen=True, slots=True)
class KillRate:
    """How many of a set of mutants were killed, with Wilson's interval."""

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
    """How many of the mutants it could see an evaluator killed."""

    evaluator: str
    rate: KillRate
    alone: int
    """Mutants that no other evaluator killed."""
    gates: bool = True

    @property
    def is_ineffective(self) -> bool:
        """Whether it killed none of the mutants that it could see."""
        return self.rate.total > 0 and not self.rate.killed


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to add to a case to kill survivors, checked by running it. The fields are also the keys of its JSON."""

    case: str
    turn: int | None
    """The index of the turn, if the case has several."""
    expected: Mapping[str, object]
    evaluators: Sequence[object]
    lines: str
    kills: int
    of: int


@dataclass(frozen=True, slots=True)
class KindFinding:
    """How many mutants of a kind were killed, and what would kill the others."""

    kind: str
    rate: KillRate
    survivors: tuple[MutantResult, ...] = ()
    left_out: int = 0
    """Places that were not tried because of the limit."""
    proposal: Proposal | None = None
    """The shortest expectation that kills the survivors of this kind in the case that has the most of them."""


@dataclass(frozen=True, slots=True)
class Controls:
    """How the suite scores an agent that gives the expected answers (oracle), and one that says nothing (nop)."""

    oracle_fails: tuple[str, ...] = ()
    """Cases that the expected answer itself fails."""
    nop_passes: tuple[str, ...] = ()
    """Cases that an empty answer passes."""
    broken: str = ""
    """Why the suite cannot be trusted; empty if it can."""


@dataclass(frozen=True, slots=True)
class SuiteFindings:
    """The results of one suite."""

    suite: str
    controls: Controls
    results: tuple[MutantResult, ...] = ()
    rate: KillRate = KillRate(0, 0)
    cases: tuple[tuple[str, KillRate], ...] = ()
    kinds: tuple[KindFinding, ...] = ()
    """The kinds with survivors first."""
    evaluators: tuple[EvaluatorFinding, ...] = ()
    never_failing: tuple[str, ...] = ()
    """Cases with no killed mutant."""
    redundant: tuple[tuple[str, str, int], ...] = ()
    """Pairs of evaluators that agree on all mutants both could see, and the number of these mutants."""
    unused_waivers: tuple[Waiver, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    allowed: Mapping[str, int] = field(default_factory=dict)
    """Kinds of mutants that the expectations explicitly allow, and how many."""
    skipped_trials: Mapping[str, int] = field(default_factory=dict)
    """How many trials were not mutated, by reason."""
    unmutated_cases: Mapping[str, str] = field(default_factory=dict)
    """The cases without any mutant, with the reason."""
    notes: tuple[str, ...] = ()

    def with_status(self, status: MutantStatus) -> list[MutantResult]:
        return [item for item in self.results if item.status is status]

    @property
    def left_out(self) -> int:
        """How many more mutants there would be without the limit."""
        return sum(kind.left_out for kind in self.kinds)

    @property
    def is_complete(self) -> bool:
        """Whether every case was mutated at every place, and every mutant was killed or waived."""
        open_statuses = (MutantStatus.SURVIVED, MutantStatus.UNDECIDED)
        is_mutated = self.rate.total > 0 and not self.left_out and not self.unmutated_cases
        return is_mutated and not self.controls.broken and not any(map(self.with_status, open_statuses))


@dataclass(frozen=True, slots=True)
class MutationReport:
    """The results of mutating a run."""

    run: str
    seed: int
    max_per_trial: int
    suites: tuple[SuiteFindings, ...]
    min_kill: float | None = None

    @property
    def rate(self) -> KillRate:
        return KillRate(sum(s.rate.killed for s in self.suites), sum(s.rate.total for s in self.suites))

    @property
    def is_complete(self) -> bool:
        """Whether every suite is complete: the strongest result there is."""
        return bool(self.suites) and all(suite.is_complete for suite in self.suites)

    @property
    def broken(self) -> list[SuiteFindings]:
        return [suite for suite in self.suites if suite.controls.broken]

    @property
    def below(self) -> list[SuiteFindings]:
        """Suites that kill less than `min_kill`."""
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
    suite: str,
    results: Sequence[MutantResult],
    waivers: Sequence[Waiver],
    gating: Mapping[str, bool],
    controls: Controls,
    left_out: Mapping[str, int],
) -> SuiteFindings:
    """Kill rates by suite, case, kind and evaluator, without waived survivors.

    `left_out` has the number of places that were not tried, by kind.
    """
    results, unused = _apply_waivers(results, waivers)
    unwaived = [item for item in results if item.status is not MutantStatus.WAIVED]
    cases = _rates((item.mutant.case, item) for item in unwaived)
    return SuiteFindings(
        suite=suite,
        controls=controls,
        results=tuple(results),
        rate=KillRate(_count_killed(unwaived), len(unwaived)),
        cases=tuple(sorted(cases.items(), key=lambda pair: (pair[1].share, pair[0]))),
        kinds=_kinds(unwaived, left_out),
        evaluators=_evaluators(unwaived, gating),
        never_failing=tuple(c for c, rate in cases.items() if not rate.killed and rate.total >= MIN_MUTANTS_PER_CASE),
        redundant=_redundant(unwaived),
        unused_waivers=unused,
    )


def _apply_waivers(
    results: Sequence[MutantResult], waivers: Sequence[Waiver]
) -> tuple[list[MutantResult], tuple[Waiver, ...]]:
    """The results with waived survivors marked, and the waivers that match none."""
    used: set[Waiver] = set()
    marked = []
    for item in results:
        waiver = None if item.status is MutantStatus.KILLED else _waiver_for(item.mutant, waivers)
        if waiver is not None:
            used.add(waiver)
            item = MutantResult(item.mutant, MutantStatus.WAIVED, item.detections, waiver.reason)
        marked.append(item)
    return marked, tuple(waiver for waiver in waivers if waiver not in used)


def _waiver_for(mutant: Mutant, waivers: Sequence[Waiver]) -> Waiver | None:
    return next((w for w in waivers if _covers(w, mutant.kind) and w.case in (None, mutant.case)), None)


def _covers(waiver: Waiver, kind: str) -> bool:
    return kind in FORMER_MUTANT_KINDS.get(waiver.mutant, (waiver.mutant,))


def _count_killed(results: Iterable[MutantResult]) -> int:
    return sum(item.status is MutantStatus.KILLED for item in results)


def _rates(pairs: Iterable[tuple[str, MutantResult]]) -> dict[str, KillRate]:
    totals: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    for name, item in pairs:
        totals[name] += 1
        killed[name] += item.status is MutantStatus.KILLED
    return {name: KillRate(killed[name], total) for name, total in totals.items()}


def _kinds(results: Sequence[MutantResult], left_out: Mapping[str, int]) -> tuple[KindFinding, ...]:
    rates = _rates((item.mutant.kind, item) for item in results)
    survivors: dict[str, list[MutantResult]] = defaultdict(list)
    for item in results:
        if item.status is MutantStatus.SURVIVED:
            survivors[item.mutant.kind].append(item)
    kinds = [
        KindFinding(kind, rates.get(kind, KillRate(0, 0)), tuple(survivors[kind]), left_out.get(kind, 0))
        for kind in dict.fromkeys([*rates, *left_out])
    ]
    return tuple(sorted(kinds, key=lambda item: (-len(item.survivors), item.rate.share)))


def _evaluators(results: Sequence[MutantResult], gating: Mapping[str, bool]) -> tuple[EvaluatorFinding, ...]:
    totals: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for item in results:
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


def _redundant(results: Sequence[MutantResult]) -> tuple[tuple[str, str, int], ...]:
    both: Counter[tuple[str, str]] = Counter()
    killed: Counter[tuple[str, str]] = Counter()
    differ: dict[tuple[str, str], bool] = defaultdict(bool)
    for item in results:
        if len(item.mutant.parts) > 1:  # both evaluators may have seen a change, but not the same one
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
