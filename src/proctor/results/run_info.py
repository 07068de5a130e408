"""What the store keeps of a run beside its trials, as records with names and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Criteria
from proctor.results.git_state import GitState
from proctor.results.judge_calls import JudgeSummary
from proctor.results.run import SuiteInfo

if TYPE_CHECKING:
    from proctor.results.verdict import RunVerdict

T = TypeVar("T")


@record
class KeptVerdict:
    """What a run came to, as `proctor runs` shows it without reading any trial."""

    outcome: str
    reason: str = ""
    exit_code: int | None = None


@record
class RunInfo:
    """Everything about a run that is neither a trial nor a column."""

    suites: tuple[SuiteInfo, ...] = ()
    options: Mapping[str, Json] = NOTHING
    planned: int | None = None
    """Trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: scores of a run with another key cannot be kept when it is resumed."""
    verdict: KeptVerdict | None = None
    counts: Mapping[str, int] | None = None
    """Trials by outcome."""
    note: str = ""
    environment: Mapping[str, str] = NOTHING
    judges: tuple[JudgeSummary, ...] | None = None
    """`None` for a run that was cut off before they were added up."""
    uncounted: str = ""
    rescored: str | None = None
    """The id of the run whose answers were scored anew."""
    git: GitState | None = None
    more: Mapping[str, Json] = NOTHING
    """Whatever else is kept of the run, under keys of its own; what a newer program wrote is written back."""

    def judged(self, verdict: RunVerdict) -> RunInfo:
        """The same with what the run came to."""
        kept = KeptVerdict(verdict.outcome.value, verdict.reason, verdict.exit_code)
        counts = {outcome.value: count for outcome, count in verdict.counts.items()}
        return replace(self, verdict=kept, counts=counts)


@record
class RunRow:
    """A run as the store lists it."""

    no: int
    id: str
    started_at: float
    finished_at: float | None
    status: str
    """`running`, `finished` or `interrupted`."""
    plan: str
    """The fingerprint of what was to be run."""
    info: RunInfo
    name: str = ""
    """What the user calls the run."""


def run_info_to_json(info: RunInfo) -> dict[str, Json]:
    """What differs from its default; `more` stands beside the rest."""
    names = (field for field in fields(info) if field.name != "more")
    given = ((field.name, getattr(info, field.name), field.default) for field in names)
    return {**info.more, **{name: plain(value) for name, value, default in given if value != default}}


def run_info_from_json(data: Mapping[str, Json]) -> RunInfo:
    """What `run_info_to_json` wrote, in this version or an earlier one."""
    own = _names(RunInfo) - {"more"}
    known = {name: value for name, value in data.items() if name in own}
    more = {name: value for name, value in data.items() if name not in known}
    if "suites" in known:
        known["suites"] = tuple(suite_info(suite) for suite in known["suites"])
    if known.get("judges") is not None:
        known["judges"] = tuple(known_fields(JudgeSummary, judge) for judge in known["judges"])
    for name, made in (("verdict", KeptVerdict), ("git", GitState)):
        if known.get(name) is not None:
            known[name] = known_fields(made, known[name])
    return RunInfo(**known, more=more or NOTHING)


def suite_info(data: Mapping[str, Json]) -> SuiteInfo:
    """A suite of a run out of plain data."""
    return known_fields(SuiteInfo, {**data, "criteria": known_fields(Criteria, data["criteria"])})


def known_fields(made: Callable[..., T], data: Mapping[str, Any]) -> T:
    """A record of what is known to it; the rest is from a newer program."""
    names = _names(made)
    return made(**{name: value for name, value in data.items() if name in names})


def _names(made: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(made))
