"""The gate: asks again only the cases that fail against their habit, and says whether the agent got worse.

The gate runs nothing. The engine records outcomes and asks which cases to run next, until there is none:

    gate = Gate({"refund": Past(trials=10, passes=10), "greeting": Past(trials=10, passes=7)})
    gate.record("refund", passed=False)
    gate.record("greeting", passed=True)
    while cases := gate.next_cases():
        for case in cases:
            gate.record(case, passed=run(case))
    gate.report().verdict

The statistics and their assumptions are explained in the appendix of `docs/gate.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from proctor.base.records import record
from proctor.results.gate_evidence import DriftTest, SuiteCase, SuspectTest, any_reaches, critical_height, failure_weight
from proctor.results.usual_rates import ANY_RATE, UsualRates

CASES_SHARE = 0.5
DRIFT_SHARES = (0.18, 0.16, 0.16)
"""How alpha is spent: on the suspects together, and on each look at the whole suite."""

DRIFT_DOUBT = 0.15
"""A further round is asked while the suite-level p-value is at most this."""

INFORMATIVE = 0.9
"""Further rounds ask the cases that carry this share of the information about a drift; the others would cost more than they say."""

CLEARED = -1.6
"""Log of the likelihood ratio below which a suspect behaves as usual: a broken case would do so less than a fifth as often."""

SCORES_NEEDED = 5
SCORE_DEVIATIONS = 3.0
SCORE_MARGIN = 0.1
"""A score is far below its usual range at this many standard deviations, and at least this much, below the mean of enough scores."""

MOST_NEEDED = 60
"""How many further failing trials are considered when the gate says what it would take."""


class Verdict(StrEnum):
    REGRESSION = "regression"
    NO_REGRESSION = "no_regression"
    INCONCLUSIVE = "inconclusive"


class Standing(StrEnum):
    """What the gate found out about one case."""

    NEW = "new"
    NO_OUTCOME = "no_outcome"
    AS_USUAL = "as_usual"
    IMPROVED = "improved"
    PROVEN = "proven"
    CLEARED = "cleared"
    OPEN = "open"


@record
class Past:
    """What was recorded of a case before this run."""

    trials: int
    passes: int
    score_mean: float | None = None
    score_deviation: float | None = None

    @property
    def usual_low(self) -> float | None:
        """Scores below this are far below the usual range; `None` if too few were recorded."""
        if self.score_mean is None or self.score_deviation is None or self.trials < SCORES_NEEDED:
            return None
        return self.score_mean - max(SCORE_MARGIN, SCORE_DEVIATIONS * self.score_deviation)


@record
class GateOptions:
    """How sure the gate has to be, and how much it may spend."""

    alpha: float = 0.05
    """The chance of a red build without a regression stays at or below this."""
    max_trials: int = 10
    """At most so many further trials of one case."""
    budget: int | None = None
    """At most so many further trials altogether."""


@record
class CaseFinding:
    """What the gate says about one case."""

    case: str
    standing: Standing
    past: Past | None
    fresh_trials: int
    """Outcomes after the first one; errors are not counted."""
    fresh_passes: int
    p_value: float | None
    """Of a suspect: adjusted for all looks and all suspects. Of an improved case: the chance that it passes as usual."""
    by_score: bool
    """It passed, but scored far below its usual range."""
    needed: int | None
    """Of an open case: how many further trials would prove it, were they all to fail; `None` if too many."""


@record
class DriftFinding:
    """What the gate says about the suite as a whole."""

    rounds: int
    p_value: float | None
    """Adjusted for the looks; `None` without a case to look at."""
    better_p_value: float | None
    """The same for failing less than usual, from the first round alone."""
    proven: bool
    in_doubt: bool


@record
class GateReport:
    """The verdict of the gate, and what it rests on."""

    verdict: Verdict
    cases: tuple[CaseFinding, ...]
    drift: DriftFinding
    extra_trials: int
    """Trials spent beyond the first of each case, errors included."""
    stopped: str | None
    """Why the gate ended before it was sure, if it did."""


class _Course:
    """One case in this run."""

    def __init__(self, past: Past | None) -> None:
        self.past = past if past is not None and past.trials > 0 else None
        self.attempts = 0
        self.passed: list[bool] = []
        self.kept: list[bool] = []
        """For each outcome, whether it stayed within what is usual: passed and, for a suspect by score, scored."""
        self.by_score = False
        self.test: SuspectTest | None = None
        self.standing = Standing.NO_OUTCOME if self.past else Standing.NEW
        self.p_value: float | None = None

    @property
    def fresh(self) -> int:
        return len(self.kept) - 1

    @property
    def fresh_passes(self) -> int:
        return sum(self.kept[1:])

    @property
    def best(self) -> float:
        """The highest score so far."""
        assert self.test
        highest, passes = -math.inf, 0
        for n, kept in enumerate(self.kept[1 : self.test.trials + 1], 1):
            passes += kept
            highest = max(highest, self.test.scores[n][passes])
        return highest

    @property
    def score(self) -> float:
        assert self.test
        return self.test.scores[self.fresh][self.fresh_passes]


class Gate:
    """Decides, outcome by outcome, which cases to run again and when it is sure."""

    def __init__(self, pasts: Mapping[str, Past | None], options: GateOptions | None = None) -> None:
        self.options = options or GateOptions()
        self._courses = {case: _Course(past) for case, past in pasts.items()}
        known = [course.past for course in self._courses.values() if course.past]
        self._rates = UsualRates((past.passes, past.trials) for past in known)
        self._tests: dict[tuple[int, int, bool], SuspectTest] = {}
        self._extra = 0
        self._stopped: str | None = None
        self._round = 1
        self._drift: list[tuple[float, float]] = []
        self._critical: dict[frozenset[tuple[SuspectTest, int]], float] = {}

    def record(self, case: str, passed: bool | None, score: float | None = None) -> None:
        """Keep one outcome; `passed=None` is a trial that ended in an error and proves nothing."""
        course = self._courses[case]
        course.attempts += 1
        self._extra += course.attempts > 1
        if passed is None:
            return
        if not course.passed:
            self._first(course, passed, score)
        low = course.past.usual_low if course.past and course.by_score else None
        course.passed.append(passed)
        course.kept.append(passed and (low is None or score is None or score >= low))

    def next_cases(self) -> tuple[str, ...]:
        """The cases to run once more each, the most telling first; none when the gate is sure or has to stop."""
        if self._stopped:
            return ()
        self._decide()
        wanted = self._suspects_to_ask() or self._round_to_ask()
        if wanted and self.options.budget is not None:
            left = self.options.budget - self._extra
            if left <= 0:
                self._stopped = "budget"
            wanted = wanted[: max(0, left)]
        return tuple(wanted)

    def stop(self, reason: str) -> None:
        """End the gate early: the user's money or time is spent."""
        self._stopped = self._stopped or reason

    def report(self) -> GateReport:
        """The verdict on what was recorded so far."""
        self._decide()
        cases = tuple(self._finding(case, course) for case, course in self._courses.items())
        drift = self._drift_finding()
        return GateReport(self._verdict(cases, drift), cases, drift, self._extra, self._stopped)

    def _first(self, course: _Course, passed: bool, score: float | None) -> None:
        """The first outcome chooses the suspects, and is no evidence against them."""
        past = course.past
        if past is None:
            return
        low = past.usual_low
        course.standing = Standing.AS_USUAL
        if passed and low is not None and score is not None and score < low:
            course.by_score = True
            course.test = self._test(past.trials, past.trials, True)
        elif not passed and 2 * past.passes >= past.trials:
            course.test = self._test(past.passes, past.trials, False)
        elif passed:
            chance = self._rates.belief(past.passes, past.trials).mean
            if past.passes == 0 or chance <= 2 * self.options.alpha:
                course.standing, course.p_value = Standing.IMPROVED, chance
        if course.test:
            course.standing = Standing.OPEN

    def _test(self, passes: int, trials: int, by_score: bool) -> SuspectTest:
        key = (passes, trials, by_score)
        if key not in self._tests:
            # Were nothing changed, the outcome that chose the suspect would be one more observation of its usual rate.
            usual = ANY_RATE.after(passes, 1) if by_score else self._rates.belief(passes, trials).after(0, 1)
            self._tests[key] = SuspectTest(usual, self.options.max_trials)
        return self._tests[key]

    def _suspects(self) -> list[_Course]:
        return [course for course in self._courses.values() if course.test]

    def _decide(self) -> None:
        """Step down from the loudest suspect: each is held against all that are not yet proven."""
        suspects = sorted((c for c in self._suspects() if c.fresh > 0), key=lambda course: -course.best)
        remaining = Counter(course.test for course in self._suspects() if course.test)
        alpha, reached = CASES_SHARE * self.options.alpha, 0.0
        for course in suspects:
            assert course.test
            reached = max(reached, any_reaches(remaining, course.best))
            course.p_value = reached
            if reached <= alpha:
                course.standing = Standing.PROVEN
                remaining[course.test] -= 1
        critical = self._critical_height(remaining, alpha)
        for course in suspects:
            if course.standing is Standing.OPEN and self._is_cleared(course, critical):
                course.standing = Standing.CLEARED

    def _critical_height(self, remaining: Counter[SuspectTest], alpha: float) -> float:
        key = frozenset(remaining.items())
        if key not in self._critical:
            self._critical[key] = critical_height(+remaining, alpha)
        return self._critical[key]

    def _is_cleared(self, course: _Course, critical: float) -> bool:
        assert course.test and course.p_value is not None
        if course.score <= CLEARED:
            return True
        as_usual = course.score <= 0 or (course.p_value > 2 * self.options.alpha and course.fresh_passes > 0)
        return as_usual and course.test.reachable(course.fresh, course.fresh_passes) < critical

    def _suspects_to_ask(self) -> list[str]:
        limit = self.options.max_trials
        wanted = [
            (-course.score, case)
            for case, course in self._courses.items()
            if course.standing is Standing.OPEN and course.past and course.attempts <= limit
        ]
        return [case for *_, case in sorted(wanted)]

    def _round_to_ask(self) -> list[str]:
        """The next round of the suite-level test, while it is in doubt and no single case answers it."""
        while True:
            if len(self._drift) < self._round:
                self._drift.append(self._drift_look(self._round))
            p_value = self._drift[-1][0]
            last = self._round >= len(DRIFT_SHARES)
            if last or p_value > DRIFT_DOUBT or self._drift_is_proven() or self._any_proven():
                return []
            wanted = [case for case in self._informative() if self._courses[case].attempts <= self._round]
            self._round += 1
            if wanted:
                return wanted

    def _any_proven(self) -> bool:
        return any(course.standing is Standing.PROVEN for course in self._courses.values())

    def _in_suite(self) -> dict[str, _Course]:
        return {case: course for case, course in self._courses.items() if course.past and course.passed}

    def _informative(self) -> list[str]:
        """Chosen by the past alone: a choice by outcomes would bias the rounds."""
        told = []
        for case, course in self._in_suite().items():
            assert course.past
            rate = self._rates.belief(course.past.passes, course.past.trials).mean
            told.append((1 / (rate * (1 - rate)), case))
        enough = INFORMATIVE * math.fsum(value for value, _ in told)
        chosen, total = [], 0.0
        for value, case in sorted(told, reverse=True):
            if total >= enough:
                break
            chosen.append(case)
            total += value
        return chosen

    def _drift_look(self, rounds: int) -> tuple[float, float]:
        informative = set(self._informative()) if rounds > 1 else set()
        cases = []
        for case, course in self._in_suite().items():
            assert course.past
            now = course.passed[: rounds if case in informative else 1]
            cases.append(SuiteCase(course.past.passes, course.past.trials, sum(now), len(now)))
        if not cases:
            return 1.0, 1.0
        test = DriftTest(cases)
        return test.worse(), test.better()

    def _drift_is_proven(self) -> bool:
        alpha = self.options.alpha
        return any(p <= share * alpha for (p, _), share in zip(self._drift, DRIFT_SHARES, strict=False))

    def _drift_finding(self) -> DriftFinding:
        looks = self._drift or [self._drift_look(1)]
        proven = self._drift_is_proven()
        return DriftFinding(len(looks), min(p for p, _ in looks), looks[0][1], proven, False)

    def _verdict(self, cases, drift) -> Verdict:
        if drift.proven or self._any_proven():
            return Verdict.REGRESSION
        if any(c.standing is Standing.OPEN for c in cases): return Verdict.INCONCLUSIVE
        return Verdict.NO_REGRESSION

    def _finding(self, case, course):
        return CaseFinding(case, course.standing, course.past, 0,0,course.p_value, course.by_score, None)
