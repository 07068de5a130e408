"""The result of the regression gate, as it is stored with a run: its verdict, and its findings about each case.

This is only data; `proctor.gate` computes it. Stores, exported runs and the JSON report have the words of the first
version, such as `standing: proven`. `STORED_NAMES` and the values of `CaseStatus` map them to the names used here.
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
from proctor.results.score import Outcome

NEW_ARM, OLD_ARM = "new", "old"
"""The version of the agent under test, and the one it is compared with, if there is one."""


class GateVerdict(StrEnum):
    """The gate's verdict on a run or a suite, the worst first."""

    REGRESSION = "regression"
    NEW_CASE_FAILS = "new_case_fails"
    """Cases without a baseline do not meet the criteria of their suite."""
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    WORLD_CHANGED = "world_changed"
    """The old version fails now as well, where the baseline did not: this change is not the cause."""
    NO_REGRESSION = "no_regression"

    @property
    def outcome(self) -> Outcome:
        """The outcome of a run or suite with this verdict."""
        return _OUTCOMES[self]


_OUTCOMES = {
    GateVerdict.REGRESSION: Outcome.FAILED,
    GateVerdict.NEW_CASE_FAILS: Outcome.FAILED,
    GateVerdict.ERROR: Outcome.ERROR,
    GateVerdict.INCONCLUSIVE: Outcome.PENDING,
    GateVerdict.WORLD_CHANGED: Outcome.PASSED,
    GateVerdict.NO_REGRESSION: Outcome.PASSED,
}


class CaseStatus(StrEnum):
    """What the gate found about one case. The values are the stored words."""

    NEW = "new"
    """It has no baseline, so that only the suite's own criteria decide."""
    UNMEASURED = "no_outcome"
    """None of its trials passed or failed."""
    UNCHANGED = "as_usual"
    IMPROVED = "improved"
    REGRESSED = "proven"
    CLEARED = "cleared"
    """It was a suspect, and its re-runs are as good as its baseline, or can no longer show a regression."""
    FAILS_ON_BOTH = "fails_on_both"
    """It fails now with the old version as well, although it passed in the baseline."""
    UNDECIDED = "open"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class GatedCaseResult:
    """The gate's findings about one case."""

    suite: str
    case: str
    status: CaseStatus
    first_outcome: Outcome | None
    """The outcome of its first trial; `None` if it did not run."""
    baseline_trials: int = 0
    baseline_passes: int = 0
    no_baseline_because: str = ""
    """Why it has no baseline to compare with."""
    rerun_trials: int = 0
    """Trials after the one that made it a suspect, without errors."""
    rerun_passes: int = 0
    old_trials: int = 0
    """Trials of the old version in this run, without errors."""
    old_passes: int = 0
    errors: int = 0
    p_value: float | None = None
    """For a suspect, already adjusted for every look and every suspect: compare it with alpha directly.
    For an improved case, the probability that it passes with the rate of its baseline."""
    by_score: bool = False
    """Whether it is a suspect because it passed with a score far below its baseline."""
    baseline_score: float | None = None
    score: float | None = None
    """The score of its first trial."""
    trials_to_decide: int | None = None
    """For an undecided case: how many more trials would prove a regression if all failed; `None` if too many."""
    divergence: Divergence | None = None
    """The first difference between a failing conversation and the most similar passing one."""

    @property
    def address(self) -> CaseAddress:
        return self.suite, self.case

    @property
    def is_notable(self) -> bool:
        """Whether reports list it by itself."""
        if self.status is CaseStatus.UNMEASURED:
            return self.first_outcome not in (None, Outcome.SKIPPED)
        return self.status not in (CaseStatus.NEW, CaseStatus.UNCHANGED)


@dataclass(frozen=True, slots=True)
class SuiteWideResult:
    """The test of a suite-wide regression: all cases together."""

    rounds: int
    """How many rounds of all cases it is based on."""
    p_value: float
    """Already adjusted for every look: compare it with alpha directly."""
    better_p_value: float
    """The probability of so few failures in the first round if nothing changed."""
    proven: bool
    """Whether there is a suite-wide regression."""
    in_doubt: bool
    """Whether there may be one, but the trials do not decide it."""


@dataclass(frozen=True, slots=True)
class WorldChange:
    """The old version fails more often now than in the baseline."""

    p_value: float
    """The probability of so many failures if nothing had changed, adjusted for every case."""
    cases: tuple[CaseAddress, ...]
    """The cases that fail outright; empty if the whole suite fails a little more often."""
    models_then: tuple[str, ...] = ()
    models_now: tuple[str, ...] = ()
    """The models that answered in the baseline and now, with the old version, as far as they are known."""


@dataclass(frozen=True, slots=True)
class GatedSuite:
    """The gate's verdict on one suite, and the reason."""

    name: str
    verdict: GateVerdict
    reason: str

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's verdict on a run, with the findings behind it."""

    verdict: GateVerdict
    reason: str
    baseline: str
    """Where the baseline was read from."""
    alpha: float
    max_trials: int
    extra_trials: int
    """Trials after the first of each case, errors included."""
    stopped: str | None
    """Why the gate stopped before it had decided; `None` if it did not."""
    suite_wide: SuiteWideResult
    cases: tuple[GatedCaseResult, ...]
    suites: tuple[GatedSuite, ...] = ()
    against: str = ""
    """The version of the agent that the new one was compared with, in the same minutes; empty if only the baseline."""
    world: WorldChange | None = None
    """What changed since the baseline although the agent did not, as far as the old version shows it."""
    visible_drop: float = 0.0
    """The drop of all pass rates that was searched for, with two versions."""
    answers_vary: bool = True
    """Whether the answers of the suspects varied. If not, one confirming pair decided."""
    looks_cached: bool = False
    """Whether answers repeated word for word although the baseline of the same cases varies."""
    strict_world: bool = False
    """Whether a change of the world makes the run inconclusive."""

    @property
    def outcome(self) -> Outcome:
        if self.strict_world and self.verdict is GateVerdict.WORLD_CHANGED:
            return Outcome.PENDING
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
    """The result as stores, exported runs and the JSON report have it."""
    data = _with_current_names(GateResult, to_json(gate))
    data["cases"] = [_with_current_names(GatedCaseResult, case) for case in data["cases"]]
    return data


def _with_current_names(kind: type, data: Mapping[str, Json]) -> dict[str, Json]:
    names = STORED_NAMES[kind]
    return {names.get(name, name): value for name, value in data.items()}


def gate_from_json(data: Mapping[str, Any], *, strict: bool = False) -> GateResult:
    """The result that `gate_to_json` wrote, in this version or an earlier one; `strict` if it comes from anywhere."""
    try:
        return (_STRICT_CODEC if strict else _CODEC).decode(GateResult, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError("the gate result of this run cannot be read; another version of Proctor wrote it") from error


_CODEC = DataclassCodec(stored_names=STORED_NAMES)
_CODEC.prepare(GateResult)
_STRICT_CODEC = DataclassCodec(stored_names=STORED_NAMES, strict=True)
