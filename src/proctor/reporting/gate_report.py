"""What the gate found, in the words that all reports share."""

from __future__ import annotations

from proctor.base.records import record
from proctor.reporting.wording import counted
from proctor.results.gate import Standing
from proctor.results.gate_outcome import QUARANTINED, GatedCase, GateOutcome, case_text, drift_text
from proctor.results.run import Outcome, Run

CASES_SHOWN = 30
TITLES = {
    Standing.PROVEN.value: "worse",
    Standing.OPEN.value: "in doubt",
    Standing.IMPROVED.value: "better",
    Standing.CLEARED.value: "as usual after all",
    Standing.AS_USUAL.value: "as usual",
    Standing.NEW.value: "new",
    Standing.NO_OUTCOME.value: "not measured",
    QUARANTINED: "in quarantine",
}
STANDING_OUTCOMES = {
    Standing.PROVEN.value: Outcome.FAILED,
    Standing.OPEN.value: Outcome.PENDING,
    Standing.IMPROVED.value: Outcome.PASSED,
    Standing.NO_OUTCOME.value: Outcome.ERROR,
}
VERDICTS = {
    "regression": "REGRESSION",
    "no_regression": "NO REGRESSION",
    "inconclusive": "INCONCLUSIVE",
    "error": "ERROR",
}


@record
class GateLine:
    """One statement about the gate: what it is about, and what is said."""

    label: str
    text: str
    outcome: Outcome | None = None


def gate_lines(run: Run) -> list[GateLine]:
    """What a person wants to read about the gate, the worst first; empty for a run that was not gated."""
    gate = run.gate
    if gate is None:
        return []
    order = list(TITLES)
    told = sorted((case for case in gate.cases if case.is_news), key=lambda case: order.index(case.standing))
    lines = [GateLine(TITLES[case.standing], _told(case), STANDING_OUTCOMES.get(case.standing)) for case in told]
    if len(lines) > CASES_SHOWN:
        rest = counted(len(lines) - CASES_SHOWN, "more case")
        lines = [*lines[:CASES_SHOWN], GateLine("and", f"{rest}; the JSON report has all of them")]
    if gate.drift.proven:
        lines.append(GateLine("drift", drift_text(gate), Outcome.FAILED))
    lines += [GateLine("no past", f"{counted(count, 'case')}: {why}") for why, count in _unknown(gate).items()]
    lines.append(GateLine("held against", held_against(gate)))
    return lines


def held_against(gate: GateOutcome) -> str:
    """Where the past comes from and what the answer cost."""
    asked = f"{counted(gate.extra_trials, 'further trial')}, at most {gate.max_trials} a case"
    stopped = f"; stopped: {gate.stopped}" if gate.stopped else ""
    return f"{gate.baseline}; {asked}; chance of a red build without a regression at most {gate.alpha:.1%}{stopped}"


def _told(case: GatedCase) -> str:
    text = case_text(case)
    return text if case.divergence is None else f"{text}; parts at {case.divergence}"


def _unknown(gate: GateOutcome) -> dict[str, int]:
    found: dict[str, int] = {}
    for case in gate.standing(Standing.NEW):
        found[case.no_past] = found.get(case.no_past, 0) + 1
    return found
