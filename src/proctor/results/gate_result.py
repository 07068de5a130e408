"""What a gated run stores: the gate's verdict, and what it found out about each case.

Only data; `proctor.gate` fills it in. Stores, exported runs and the JSON report use the words of the first version,
such as `standing: proven`. `STORED_NAMES` and the values of `CaseStatus` map them to the names here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proctor.base.dataclass_json import DataclassCodec
from proctor.base.errors import StoreError
from proctor.base.json_data import Json, to_json
from proctor.cases.identity import CaseAddress
from proctor.results.comparison.divergence import Divergence
from proctor.results.run import Outcome

NEW_ARM = "new"
"""The version of the agent under test."""


class GateVerdict(StrEnum):
    """What the gate says of a run or a suite, the worst first."""

    REGRESSION = "regression"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    NO_REGRESSION = "no_regression"

    @property
    def outcome(self) -> Outcome:
        """The verdict of the run that follows from it."""
        return _OUTCOMES[self]


_OUTCOMES = {
    GateVerdict.REGRESSION: Outcome.FAILED,
    GateVerdict.ERROR: Outcome.ERROR,
    GateVerdict.INCONCLUSIVE: Outcome.PENDING,
    GateVerdict.NO_REGRESSION: Outcome.PASSED,
}


class CaseStatus(StrEnum):
    """What the gate found out about one case. The values are the stored words."""

    NEW = "new"
    """It has no baseline, so it can only be checked by the suite's own criteria."""
    UNMEASURED = "no_outcome"
    """None of its trials passed or failed."""
    UNCHANGED = "as_usual"
    IMPROVED = "improved"
    REGRESSED = "proven"
    CLEARED = "cleared"
    """It was a suspect and behaves as usual after all, or can no longer be proven."""
    UNDECIDED = "open"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class GatedCaseResult:
    """What the gate says about one case."""

    suite: str
    case: str
    status: CaseStatus
    first_outcome: Outcome | None
    """The outcome of its first trial; `None` if that was not made."""
    baseline_trials: int = 0
    baseline_passes: int = 0
    no_baseline_because: str = ""
    """Why nothing was recorded that it could be compared with."""
    rerun_trials: int = 0
    """Outcomes after the one that made it a suspect; errors are not counted."""
    rerun_passes: int = 0
    errors: int = 0
    p_value: float | None = None
    """Of a suspect: compare it with alpha as it is, every look and every suspect is accounted for.
    Of an improved case: the probability that it passes as usual."""
    by_score: bool = False
    """It passed, but scored far below its usual range."""
    baseline_score: float | None = None
    score: float | None = None
    """Of its first trial."""
    trials_to_decide: int | None = None
    """Of an undecided case: how many further trials would prove it if all of them failed; `None` if too many."""
    divergence: Divergence | None = None
    """Where a failing conversation and the most similar passing one differ first."""

    @property
    def address(self) -> CaseAddress:
        return self.suite, self.case

    @property
    def is_notable(self) -> bool:
        """Whether a person wants to read about it."""
        if self.status is CaseStatus.UNMEASURED:
            return self.first_outcome not in (None, Outcome.SKIPPED)
        return self.status not in (CaseStatus.NEW, CaseStatus.UNCHANGED)


@dataclass(frozen=True, slots=True)
class SuiteWideResult:
    """What the gate says about all cases together."""

    rounds: int
    p_value: float
    """Compare it with alpha as it is: every look is accounted for."""
    better_p_value: float
    """The probability of failing as little as in the first round if nothing changed."""
    proven: bool
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class GatedSuite:
    """What the gate says about one suite."""

    name: str
    verdict: GateVerdict
    reason: str

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's verdict on a run, and what it rests on."""

    verdict: GateVerdict
    reason: str
    baseline: str
    """Where the recorded trials were read from."""
    alpha: float
    max_trials: int
    extra_trials: int
    """Trials beyond the first of each case, errors included."""
    stopped: str | None
    """Why the gate ended before it was sure, if it did."""
    suite_wide: SuiteWideResult
    cases: tuple[GatedCaseResult, ...]
    suites: tuple[GatedSuite, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    def with_status(self, *statuses: CaseStatus) -> list[GatedCaseResult]:
        """The cases with one of these statuses."""
        return [case for case in self.cases if case.status in statuses]


STORED_NAMES: Mapping[type, Mapping[str, str]] = {
    GatedCaseResult: {
        "status": "standing",
        "first_outcome": "first",
        "baseline_trials": "past_trials",
        "baseline_passes": "past_passes",
        "no_baseline_because": "no_past",
        "rerun_trials": "fresh_trials",
        "rerun_passes": "fresh_passes",
        "baseline_score": "usual_score",
        "trials_to_decide": "needed",
    },
    GateResult: {"suite_wide": "drift"},
}
"""By class: fields that are stored under an earlier name."""


def gate_to_json(gate: GateResult) -> dict[str, Json]:
    """The form in which stores, exported runs and the JSON report have it."""
    data = _renamed(GateResult, to_json(gate))
    data["cases"] = [_renamed(GatedCaseResult, case) for case in data["cases"]]
    return data


def _renamed(kind: type, data: Mapping[str, Json]) -> dict[str, Json]:
    names = STORED_NAMES[kind]
    return {names.get(name, name): value for name, value in data.items()}


def gate_from_json(data: Mapping[str, Any]) -> GateResult:
    """What `gate_to_json` wrote, in this version or an earlier one."""
    try:
        return _CODEC.decode(GateResult, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"what the gate found in this run cannot be read ({error!r}); it was written by another version of Proctor"
        ) from error


_CODEC = DataclassCodec(stored_names=STORED_NAMES)
_CODEC.prepare(GateResult)
