"""The gate: asks again only the cases that fail against their habit, and says whether the agent got worse.

The gate runs nothing. The engine records outcomes and asks which cases to run next, until there is none:

    gate = Gate({"refund": Past(trials=10, passes=10), "greeting": Past(trials=10, passes=7)})
    while cases := gate.next_cases():
        for case in cases:
            gate.record(case, passed=run(case))
    gate.report().verdict

The statistics and their assumptions are explained in the appendix of `docs/gate.md`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from proctor.results.gate_evidence import (
    ANY_RATE,
    DriftTest,
    SuiteCase,
    SuspectTest,
    UsualRates,
    any_reaches,
    critical_height,
)

CASES_SHARE = 0.33
DRIFT_SHARES = (0.07, 0.07, 0.07)
"""How alpha is spent: on all suspects together, and on each look at the whole suite. The rest is a reserve for what the
suspects' test assumes about the rates of a suite; it keeps the measured false alarms below alpha for other mixtures."""

DRIFT_DOUBT = 0.2
"""A further round is asked while the suite-level p-value of the last one is at most this."""

CLEARED = -2.8
"""Log of the likelihood ratio at which a suspect behaves as usual: a broken case would do so a sixteenth as often."""

DOUBTFUL = 2.0
"""Times alpha: a suspect that passed again and whose p-value is above this is no longer in doubt."""

IMPROVED = 0.1
"""A case that passed with at most this chance has improved."""

SCORES_NEEDED = 5
SCORE_DEVIATIONS = 3.0
SCORE_MARGIN = 0.1
"""With enough recorded scores, one is far below the usual range at so many standard deviations below their mean, and at
least so much."""

FORESEEN = 60
"""How many trials of an open case are considered when the gate says what it would take."""


class GateVerdict(StrEnum):
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


@dataclass(frozen=True, slots=True)
class Past:
    """What was recorded of a case before this run."""

    trials: int
    passes: int
    score_mean: float | None = None
    score_deviation: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.passes <= self.trials:
            raise ValueError(f"{self.passes} passes of {self.trials} trials cannot have been recorded")

    @property
    def usual_low(self) -> float | None:
        """Scores below this are far below the usual range; `None` if too few were recorded."""
        if self.score_mean is None or self.score_deviation is None or self.trials < SCORES_NEEDED:
            return None
        return self.score_mean - max(SCORE_MARGIN, SCORE_DEVIATIONS * self.score_deviation)


@dataclass(frozen=True, slots=True)
class GateOptions:
    """How sure the gate has to be, and how much it may spend."""

    alpha: float = 0.05
    """The chance of a red build without a regression stays at or below this."""
    max_trials: int = 10
    """At most so many further trials of one case."""
    budget: int | None = None
    """At most so many further trials altogether."""


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """What the gate says about one case."""

    case: str
    standing: Standing
    past: Past | None
    fresh_trials: int
    """Outcomes after the first one; errors are not counted."""
    fresh_passes: int
    p_value: float | None
    """Of a suspect: held against alpha as it is, every look and every suspect is accounted for.
    Of an improved case: the chance that it passes as usual."""
    by_score: bool
    """It passed, but scored far below its usual range."""
    needed: int | None
    """Of an open case: how many further trials would prove it, were they all to fail; `None` if too many."""


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """What the gate says about the suite as a whole."""

    rounds: int
    p_value: float
    """Held against alpha as it is: every look is accounted for."""
    better_p_value: float
    """The chance to fail as little as in the first round, were nothing changed."""
    proven: bool
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict of the gate, and what it rests on."""

    verdict: GateVerdict
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
        return max(0, len(self.kept) - 1)

    @property
    def fresh_passes(self) -> int:
        return sum(self.kept[1:])

    @property
    def is_proven(self) -> bool:
        return self.standing is Standing.PROVEN

    @property
    def scores(self) -> list[float]:
        """How much spoke for a broken case after each fresh trial; trials beyond the limit do not count."""
        assert self.test
        passes = accumulate(self.kept[1 : self.test.trials + 1])
        return [self.test.scores[n][count] for n, count in enumerate(passes, 1)]

    @property
    def score(self) -> float:
        return self.scores[-1] if self.fresh and self.scores else 0.0


class Gate:
    """Decides, outcome by outcome, which cases to run again and when it is sure."""

    def __init__(self, pasts: Mapping[str, Past | None], options: GateOptions | None = None) -> None:
        self.options = options or GateOptions()
        self._courses = {case: _Course(past) for case, past in pasts.items()}
        known = [course.past for course in self._courses.values() if course.past]
        self._rates = UsualRates((past.passes, past.trials) for past in known)
        self._tests: dict[tuple[Past, bool, int], SuspectTest] = {}
        self._critical: dict[frozenset[tuple[SuspectTest, int]], float] = {}
        self._looks: list[DriftTest] = []
        self._extra = 0
        self._stopped: str | None = None

    def record(self, case: str, passed: bool | None, score: float | None = None) -> None:
        """Keep one outcome; `passed=None` is a trial that ended in an error and is evidence of nothing."""
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
        """The cases to run once each, the most telling first: all of them at first, none when the gate is sure."""
        unasked = tuple(case for case, course in self._courses.items() if not course.attempts)
        if unasked or self._stopped:
            return () if self._stopped else unasked
        self._decide()
        wanted = self._suspects_to_ask() or self._round_to_ask()
        if wanted and self.options.budget is not None:
            left = self.options.budget - self._extra
            if left <= 0:
                self.stop("the budget of further trials is spent")
            wanted = wanted[: max(0, left)]
        return tuple(wanted)

    def stop(self, reason: str) -> None:
        """End the gate early, because the user's money or time is spent; what is open stays open."""
        self._stopped = self._stopped or reason

    def report(self) -> GateReport:
        """The verdict on what was recorded so far."""
        self._decide()
        cases = tuple(self._finding(case, course) for case, course in self._courses.items())
        drift = self._drift_finding()
        return GateReport(self._verdict(drift), cases, drift, self._extra, self._stopped)

    def _first(self, course: _Course, passed: bool, score: float | None) -> None:
        """The first outcome chooses the suspects, and is no evidence against them."""
        past = course.past
        if past is None:
            return
        low = past.usual_low
        course.standing = Standing.AS_USUAL
        course.by_score = passed and low is not None and score is not None and score < low
        if course.by_score or (not passed and 2 * past.passes >= past.trials):
            course.standing = Standing.OPEN
            course.test = self._test(past, course.by_score, self.options.max_trials)
        elif passed:
            chance = self._rates.belief(past.passes, past.trials).mean
            if past.passes == 0 or chance <= IMPROVED:
                course.standing, course.p_value = Standing.IMPROVED, chance

    def _test(self, past: Past, by_score: bool, trials: int) -> SuspectTest:
        key = (Past(past.trials, past.trials if by_score else past.passes), by_score, trials)
        if key not in self._tests:
            usual = ANY_RATE.after(past.trials, 0) if by_score else self._rates.belief(past.passes, past.trials)
            # Were nothing changed, the outcome that chose it would be one more observation of its usual rate.
            self._tests[key] = SuspectTest(usual.after(0, 1), trials)
        return self._tests[key]

    def _suspects(self) -> list[tuple[_Course, SuspectTest]]:
        return [(course, course.test) for course in self._courses.values() if course.test]

    def _decide(self) -> None:
        """Step down from the loudest suspect: each is held against all that are not yet proven."""
        suspects = self._suspects()
        remaining = Counter(test for _, test in suspects)
        asked = sorted(
            ((course, test) for course, test in suspects if course.scores), key=lambda pair: -max(pair[0].scores)
        )
        reached = 0.0
        for course, test in asked:
            reached = max(reached, min(1.0, any_reaches(remaining, max(course.scores)) / CASES_SHARE))
            course.p_value = reached
            if reached <= self.options.alpha:
                course.standing = Standing.PROVEN
                remaining[test] -= 1
        remaining = +remaining
        critical = self._critical_height(remaining)
        for course, test in asked:
            if course.standing is Standing.OPEN and self._is_cleared(course, test, critical):
                course.standing = Standing.CLEARED

    def _critical_height(self, remaining: Counter[SuspectTest]) -> float:
        key = frozenset(remaining.items())
        if key not in self._critical:
            self._critical[key] = critical_height(remaining, CASES_SHARE * self.options.alpha)
        return self._critical[key]

    def _is_cleared(self, course: _Course, test: SuspectTest, critical: float) -> bool:
        """It behaves as usual, or it cannot be proven any more and little speaks against it."""
        if course.score <= CLEARED:
            return True
        doubtful = course.fresh_passes == 0 or (course.p_value or 0.0) <= DOUBTFUL * self.options.alpha
        if course.score > 0 and doubtful:
            return False
        return course.fresh >= test.trials or test.reachable(course.fresh, course.fresh_passes) < critical

    def _suspects_to_ask(self) -> list[str]:
        wanted = [
            (-course.score, -course.test.reachable(0, 0), at, case)
            for at, (case, course) in enumerate(self._courses.items())
            if course.test and course.standing is Standing.OPEN and course.attempts <= self.options.max_trials
        ]
        return [case for *_, case in sorted(wanted)]

    def _round_to_ask(self) -> list[str]:
        """The next round of the suite-level test, while it is in doubt and no single case answers it.

        A round asks every case: those with the best past are partly those that were lucky, so to choose by the past
        would make a suite look worse than it was.
        """
        if not self._looks:
            self._looks.append(self._look(1))
        while self._wants_another_look():
            rounds = len(self._looks) + 1
            wanted = [case for case, course in self._in_suite().items() if course.attempts < rounds]
            if wanted:
                return wanted
            self._looks.append(self._look(rounds))
        return []

    def _wants_another_look(self) -> bool:
        if self._any_proven() or self._drift_p_value(self._looks) <= self.options.alpha:
            return False
        most = min(len(DRIFT_SHARES), self.options.max_trials + 1)
        last = self._looks[-1]
        # One failing case is a suspect's matter, not a drift: it is not worth another round of the whole suite.
        return len(self._looks) < most and last.failing > 1 and last.worse <= DRIFT_DOUBT

    def _look(self, rounds: int) -> DriftTest:
        """Takes the first outcomes of every case, however often a suspect was asked: a fixed number keeps it fair."""
        cases = []
        for course in self._in_suite().values():
            assert course.past
            now = course.passed[:rounds]
            cases.append(SuiteCase(course.past.passes, course.past.trials, sum(now), len(now)))
        return DriftTest(cases)

    def _in_suite(self) -> dict[str, _Course]:
        return {case: course for case, course in self._courses.items() if course.past and course.passed}

    def _any_proven(self) -> bool:
        return any(course.is_proven for course in self._courses.values())

    def _drift_p_value(self, looks: list[DriftTest]) -> float:
        return min(1.0, *(look.worse / share for look, share in zip(looks, DRIFT_SHARES, strict=False)))

    def _drift_finding(self) -> DriftFinding:
        looks = self._looks or [self._look(1)]
        p_value = self._drift_p_value(looks)
        proven = p_value <= self.options.alpha
        limit = DRIFT_DOUBT if self._stopped else self.options.alpha
        in_doubt = not proven and looks[-1].failing > 1 and looks[-1].worse <= limit
        return DriftFinding(len(looks), p_value, looks[0].better, proven, in_doubt)

    def _verdict(self, drift: DriftFinding) -> GateVerdict:
        if drift.proven or self._any_proven():
            return GateVerdict.REGRESSION
        is_open = any(course.standing is Standing.OPEN for course in self._courses.values())
        if is_open or drift.in_doubt or not self._in_suite():
            return GateVerdict.INCONCLUSIVE
        return GateVerdict.NO_REGRESSION

    def _finding(self, case: str, course: _Course) -> CaseFinding:
        needed = self._needed(course) if course.standing is Standing.OPEN else None
        return CaseFinding(
            case,
            course.standing,
            course.past,
            course.fresh,
            course.fresh_passes,
            course.p_value,
            course.by_score,
            needed,
        )

    def _needed(self, course: _Course) -> int | None:
        """The fewest further trials that prove an open case, were all of them to fail."""
        assert course.past and course.test
        test = self._test(course.past, course.by_score, FORESEEN)
        others = Counter(test for other, test in self._suspects() if other is not course and not other.is_proven)
        others[test] += 1
        further = range(course.fresh + 1, FORESEEN + 1)

        def proves(trials: int) -> bool:
            return any_reaches(others, test.scores[trials][course.fresh_passes]) <= CASES_SHARE * self.options.alpha

        at = bisect_left(further, True, key=proves)
        return at + 1 if at < len(further) else None
