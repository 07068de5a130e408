"""What is kept about a run as a whole: plan, verdict and name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from proctor.base.errors import StoreError, UsageError
from proctor.base.git import GitState
from proctor.base.json_data import Json, plain
from proctor.cases.suite import Criteria
from proctor.results.judge_calls import JudgeSummary
from proctor.results.run import QuarantinedCase, SuiteInfo
from proctor.results.verdict import RunVerdict

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """What a run came to, as `proctor runs` shows it without reading any trial."""

    outcome: str
    reason: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Everything about a run that is neither a trial nor a column."""

    suites: tuple[SuiteInfo, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    planned: int | None = None
    """Trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: scores of a run with another key cannot be kept when it is resumed."""
    verdict: KeptVerdict | None = None
    counts: Mapping[str, int] | None = None
    """Trials by outcome."""
    note: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    judges: tuple[JudgeSummary, ...] | None = None
    """`None` for a run that was cut off before they were added up."""
    uncounted: str = ""
    rescored: str | None = None
    """The id of the run whose answers were scored anew."""
    git: GitState | None = None
    evaluator_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By suite and case: what its outcome rests on; the case "" stands for all that are not listed."""
    gate: Mapping[str, Json] | None = None
    """What `--gate` found, as `proctor.results.gate_result` writes it."""
    more: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else is kept of the run, under keys of its own; what a newer program wrote is written back."""

    def judged(self, verdict: RunVerdict) -> RunInfo:
        """The same with what the run came to."""
        kept = KeptVerdict(verdict.outcome.value, verdict.reason, verdict.exit_code)
        counts = {outcome.value: count for outcome, count in verdict.counts.items()}
        return replace(self, verdict=kept, counts=counts)


@dataclass(frozen=True, slots=True)
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
    return {
        **info.more,
        **{name: plain(value) for name, value, default in given if value is not default and value != default},
    }


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
    return RunInfo(**known, more=more or {})


def suite_info(data: Mapping[str, Json]) -> SuiteInfo:
    """A suite of a run out of plain data."""
    quarantined = tuple(known_fields(QuarantinedCase, item) for item in data.get("quarantined", ()))
    criteria = known_fields(Criteria, data["criteria"])
    return known_fields(SuiteInfo, {**data, "criteria": criteria, "quarantined": quarantined})


def known_fields(made: Callable[..., T], data: Mapping[str, Any]) -> T:
    """A record of what is known to it; the rest is from a newer program."""
    names = _names(made)
    return made(**{name: value for name, value in data.items() if name in names})


def _names(made: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(made))


LAST = "last"
STANDARD_INPUT = "-"
LONGEST_NAME = 100

_BACK = re.compile(r"(?P<base>.+)~(?P<steps>[0-9]{1,6})")
_FORBIDDEN = re.compile(r"[~@/\\\x00-\x1f\x7f]")


def find_run(runs: Callable[[int | None], Sequence[RunRow]], wanted: str, place: str) -> RunRow:
    """The run called `wanted` among `runs`, which gives the latest first and takes how many are needed.

    `last~1` is the run before the last one, and `nightly~1` the last but one of those named nightly.
    """
    match = _BACK.fullmatch(wanted)
    base, steps = (match["base"], int(match["steps"])) if match else (wanted, 0)
    known = list(runs(steps + 1 if base == LAST else None))
    if base == LAST:
        return _nth(known, steps, wanted, "", place)
    exact = [run for run in known if run.id == wanted]
    named = [run for run in known if base and run.name == base]
    found = exact or named[steps : steps + 1] or [run for run in known if wanted and run.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreError(f"{wanted!r} could be any of {', '.join(run.id for run in found[:5])}")
    if named:
        return _nth(named, steps, wanted, f" named {base!r}", place)
    latest = f"; the latest is {known[0].id}" if known else ""
    raise StoreError(f"no run {wanted!r} in {place}{latest}")


def check_name(name: str) -> str:
    """A name that a run may be given; one that could be taken for something else is refused."""
    wrong = ""
    if not name.strip() or len(name) > LONGEST_NAME:
        wrong = f"must have 1 to {LONGEST_NAME} characters"
    elif name != name.strip() or name == LAST or name.startswith("-") or _FORBIDDEN.search(name):
        wrong = "may not be 'last', begin with - or a space, or have ~ @ / or \\ in it: it would be taken for another"
    if wrong:
        raise UsageError(f"the name {name!r} of a run {wrong}")
    return name


def _nth(runs: Sequence[RunRow], steps: int, wanted: str, named: str, place: str) -> RunRow:
    if steps < len(runs):
        return runs[steps]
    count = "no run" if not runs else "only 1 run" if len(runs) == 1 else f"only {len(runs)} runs"
    raise StoreError(f"no run {wanted!r} in {place}: there {'are' if len(runs) > 1 else 'is'} {count}{named}")
