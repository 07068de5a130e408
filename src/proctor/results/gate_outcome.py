"""What `--gate` found, as it is kept with a run and shown by reports: past, now, p-value, trials spent, divergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proctor.results.comparison.alignment import Divergence
from proctor.results.gate import DriftFinding, GateVerdict, Standing
from proctor.results.run import Outcome, SuiteInfo
from proctor.results.verdict import SuiteVerdict

ERROR = "error"
"""The fourth verdict: errors kept the gate from an answer."""
QUARANTINED = "quarantined"
OUTCOMES = {
    GateVerdict.REGRESSION.value: Outcome.FAILED,
    GateVerdict.NO_REGRESSION.value: Outcome.PASSED,
    GateVerdict.INCONCLUSIVE.value: Outcome.PENDING,
    ERROR: Outcome.ERROR,
}
NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GatedCase:
    """What the gate knows of one case."""

    suite: str
    case: str
    standing: str
    """A `Standing`, or `quarantined`."""
    first: str | None
    """The outcome of the first trial; `None` where it was not made."""
    past_trials: int = 0
    past_passes: int = 0
    no_past: str = ""
    """Why nothing is known of before."""
    fresh_trials: int = 0
    fresh_passes: int = 0
    errors: int = 0
    p_value: float | None = None
    by_score: bool = False
    usual_score: float | None = None
    score: float | None = None
    """Of the first trial."""
    needed: int | None = None
    divergence: Divergence | None = None

    @property
    def address(self) -> tuple[str, str]:
        return self.suite, self.case

    @property
    def is_news(self) -> bool:
        """Whether a person wants to read about it."""
        return self.standing in (Standing.PROVEN, Standing.OPEN, Standing.IMPROVED, Standing.CLEARED, QUARANTINED) or (
            self.standing == Standing.NO_OUTCOME and self.first not in (None, "skipped")
        )


def _check_verdict(verdict: str) -> None:
    if verdict not in OUTCOMES:
        raise ValueError(f"{verdict!r} is no verdict of the gate; there are {', '.join(OUTCOMES)}")


@dataclass(frozen=True, slots=True)
class GatedSuite:
    """What the gate says of one suite."""

    name: str
    verdict: str
    reason: str

    def __post_init__(self) -> None:
        _check_verdict(self.verdict)

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.verdict]


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The gate's verdict on a run."""

    verdict: str
    """A `GateVerdict`, or `error`."""
    reason: str
    baseline: str
    """Where what is usual was read from."""
    alpha: float
    max_trials: int
    extra_trials: int
    stopped: str | None
    drift: DriftFinding
    cases: tuple[GatedCase, ...]
    suites: tuple[GatedSuite, ...]

    def __post_init__(self) -> None:
        _check_verdict(self.verdict)

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.verdict]

    def standing(self, *standings: str) -> list[GatedCase]:
        return [case for case in self.cases if case.standing in standings]


def conclude(
    gate: GateOutcome, infos: Sequence[SuiteInfo], new_cases: Sequence[SuiteVerdict], note: str = ""
) -> GateOutcome:
    """The verdict of the whole run: what was measured, errors, cases that are new, and quarantines that are over.

    `new_cases` are the verdicts of the suites' own criteria on the cases that have no past.
    """
    suites = tuple(
        GatedSuite(info.name, *_suite_verdict(gate, info, new)) for info, new in zip(infos, new_cases, strict=True)
    )
    order = (GateVerdict.REGRESSION.value, ERROR, GateVerdict.INCONCLUSIVE.value, GateVerdict.NO_REGRESSION.value)
    verdict = min((suite.verdict for suite in suites), key=order.index, default=GateVerdict.INCONCLUSIVE.value)
    reason = next((suite.reason for suite in suites if suite.verdict == verdict), "")
    if gate.drift.proven and not gate.standing(Standing.PROVEN) and verdict != order[0]:
        verdict, reason = order[0], drift_text(gate)
    elif note and verdict != order[0]:
        verdict, reason = ERROR, note
    elif verdict == order[3] and gate.verdict == GateVerdict.INCONCLUSIVE:
        verdict, reason = gate.verdict, _open_text(gate)
    elif verdict == order[3]:
        reason = _usual_text(gate)
    return replace(gate, verdict=verdict, reason=reason, suites=suites)


def _suite_verdict(gate: GateOutcome, info: SuiteInfo, new: SuiteVerdict) -> tuple[str, str]:
    own = [case for case in gate.cases if case.suite == info.name]
    if any(item.over for item in info.quarantined):
        return GateVerdict.REGRESSION.value, new.reason
    if proven := [case for case in own if case.standing == Standing.PROVEN]:
        return GateVerdict.REGRESSION.value, f"{_names(proven)} got worse: {case_text(proven[0])}"
    if new.outcome is Outcome.FAILED:
        failed = [case.case_id for case in new.cases if case.outcome is Outcome.FAILED]
        return GateVerdict.REGRESSION.value, f"new {_some(failed)} failed: {new.reason}"
    broken = [case for case in own if _is_broken(case)]
    if broken:
        return ERROR, f"{_names(broken)} could not be measured: errors are no verdict on the agent"
    if new.outcome is Outcome.ERROR:
        return ERROR, f"new cases: {new.reason}"
    if is_open := [case for case in own if case.standing == Standing.OPEN or case.first == "pending"]:
        return GateVerdict.INCONCLUSIVE.value, f"{_names(is_open)} may have got worse: {case_text(is_open[0])}"
    if new.outcome is Outcome.PENDING:
        return GateVerdict.INCONCLUSIVE.value, f"new cases: {new.reason}"
    known = sum(bool(case.past_trials) and case.standing != QUARANTINED for case in own)
    return GateVerdict.NO_REGRESSION.value, f"no regression in {known:,} case{'s' if known != 1 else ''} with a past"


def _is_broken(case: GatedCase) -> bool:
    """Nothing is known of it, because every trial that could have said something ended in an error."""
    if case.standing == Standing.NO_OUTCOME:
        return case.first == "error"
    return case.standing == Standing.OPEN and case.errors > 0 and case.fresh_trials == 0


def case_text(case: GatedCase) -> str:
    """`refund passed 10 of 10 before, now 0 of 4 (p 0.003)`."""
    past = f"{case.past_passes:,} of {case.past_trials:,} before" if case.past_trials else f"no past ({case.no_past})"
    now = f"{case.fresh_passes} of {case.fresh_trials} when asked again" if case.fresh_trials else f"{case.first} now"
    score = ""
    if case.by_score and case.score is not None and case.usual_score is not None:
        score = f"; it scored {case.score:.2f} where {case.usual_score:.2f} is usual"
    chance = "" if case.p_value is None else f" (p {case.p_value:.2g})"
    need = ""
    if case.standing == Standing.OPEN:
        need = (
            f"; {case.needed} further failing trials would prove it"
            if case.needed
            else "; its past is too short or too mixed to prove anything by more trials"
        )
    return f"{case.case} passed {past}, {now}{chance}{score}{need}"


def drift_text(gate: GateOutcome) -> str:
    return (
        f"the suite as a whole fails more often than usual (p {gate.drift.p_value:.2g} after "
        f"{gate.drift.rounds} round{'s' if gate.drift.rounds > 1 else ''}), though no single case is proven"
    )


def _open_text(gate: GateOutcome) -> str:
    if gate.drift.in_doubt:
        chance = f"(p {gate.drift.p_value:.2g})"
        return (
            f"the suite as a whole may fail more often than usual {chance}; record more trials of it, then gate again"
        )
    if not any(case.past_trials and case.standing != QUARANTINED for case in gate.cases):
        reasons = sorted({case.no_past for case in gate.cases if case.no_past}) or ["no case was run"]
        return (
            f"no case has a past to be held against ({'; '.join(reasons[:NAMES_SHOWN])}): "
            "accept a run with `proctor baseline accept`"
        )
    return gate.stopped or "no case with a past passed or failed"


def _usual_text(gate: GateOutcome) -> str:
    known = [case for case in gate.cases if case.past_trials and case.standing != QUARANTINED]
    text = f"no regression in {len(known):,} case{'s' if len(known) != 1 else ''}"
    if new := gate.standing(Standing.NEW):
        text += f", {len(new):,} without a past"
    if better := gate.standing(Standing.IMPROVED):
        text += f"; better: {_some([case.case for case in better])}"
    return text


def _names(cases: Sequence[GatedCase]) -> str:
    return _some([case.case for case in cases])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
