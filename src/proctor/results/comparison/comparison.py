"""The comparison of two runs as data: what became of each case, by how much scores changed, and what it amounts to."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from proctor.base.git import GitState
from proctor.base.json_data import Json, to_json
from proctor.results.comparison.divergence import Divergence
from proctor.results.comparison.significance import Effect, SignificanceTest

if TYPE_CHECKING:
    import pandas

SCHEMA = "proctor.comparison/1"
ComparisonVerdict = Literal["regression", "improvement", "no difference", "not comparable"]


class Change(enum.StrEnum):
    """What became of a case, the most serious first."""

    BROKEN = "broken"
    FLAKY = "flaky"
    STILL_FAILING = "still failing"
    NOT_COMPARABLE = "not comparable"
    FIXED = "fixed"
    NEW = "new"
    GONE = "gone"
    STILL_PASSING = "still passing"


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs that are compared."""

    run: str
    """The id."""
    name: str
    agent: str
    """The names of the agents that answered."""
    started_at: float
    git: GitState | None
    trials: int
    planned: int
    complete: bool
    """Whether all planned trials are there."""


@dataclass(frozen=True, slots=True)
class PassCount:
    """How many trials of a case have a verdict, and how many passed."""

    passed: int
    trials: int
    without_verdict: int = 0
    """Trials without a verdict: errors, pending and skipped ones."""


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """The mean score of one evaluator on one case."""

    evaluator: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case in both runs."""

    suite: str
    case_id: str
    group: Change
    before: PassCount | None
    after: PassCount | None
    renamed_from: str = ""
    """The suite and id that the case had before, where they differ."""
    reasons: tuple[str, ...] = ()
    """Why it cannot be compared; of a broken case, why it fails now."""
    scores: tuple[ScoreChange, ...] = ()
    """Evaluators whose mean differs."""
    divergence: Divergence | None = None
    """Where the conversations of a broken or fixed case part."""


@dataclass(frozen=True, slots=True)
class EvaluatorChange:
    """How the scores of one evaluator changed over all cases that it scored alike in both runs."""

    evaluator: str
    before: float
    after: float
    difference: Effect
    p_value: float
    """Adjusted for the number of evaluators by Holm's method."""
    differs: bool
    """Whether luck is no good explanation."""


@dataclass(frozen=True, slots=True)
class ResourceRatio:
    """How many times as much the second run took."""

    resource: str
    """`tokens`, `cost_usd`, `duration_ms` or `tool_calls`."""
    before: float
    """The mean of a trial, over the cases that have both sides."""
    after: float
    ratio: Effect
    estimated: bool = False
    """Whether any of it rests on a price list."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that one run says against another."""

    before: ComparedRun
    after: ComparedRun
    verdict: ComparisonVerdict
    sentence: str
    """What it amounts to."""
    compared: int
    """Cases that could be compared."""
    before_rate: float | None
    """The mean pass rate over the compared cases."""
    after_rate: float | None
    difference: Effect | None
    test: SignificanceTest | None
    cases: tuple[CaseChange, ...]
    evaluators: tuple[EvaluatorChange, ...]
    resources: tuple[ResourceRatio, ...]
    notes: tuple[str, ...] = ()
    """What limits the comparison: runs that were cut off, cases that cannot be compared."""

    @property
    def groups(self) -> dict[Change, list[CaseChange]]:
        """The cases by what became of them; every group is there."""
        found: dict[Change, list[CaseChange]] = {group: [] for group in Change}
        for case in self.cases:
            found[case.group].append(case)
        return found

    @property
    def is_unmeasured(self) -> bool:
        """Whether errors alone kept every case from being compared."""
        paired = [case for case in self.cases if case.before is not None and case.after is not None]
        unsettled = [
            case for case in paired if case.before and case.after and not (case.before.trials and case.after.trials)
        ]
        return bool(paired) and len(unsettled) == len(paired)

    def __repr__(self) -> str:
        """Short, since a notebook keeps it beside what it shows."""
        return f"<Comparison of {self.before.run} and {self.after.run}: {self.sentence}>"

    def to_dicts(self) -> list[dict[str, Json]]:
        """One flat dictionary a case: `suite`, `case`, `group`, how many trials passed on each side, what differs.

        >>> changed = proctor.compare(proctor.run("shop.yaml"), proctor.run("shop.yaml", agent="oracle"))
        >>> [(row["case"], row["group"]) for row in changed.to_dicts()]
        [('lost', 'fixed'), ('shipped', 'still passing')]
        """
        from proctor.reporting.tables import case_rows  # reporting builds on results

        return case_rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a table of pandas, which has to be installed (`pip install pandas`)."""
        from proctor.reporting.tables import as_frame  # reporting builds on results

        return as_frame(self.to_dicts())

    def _repr_html_(self) -> str:
        """What a notebook shows of the comparison: the verdict, then the cases by what became of them."""
        from proctor.reporting.html.notebook import comparison_html  # reporting builds on results

        return comparison_html(self)

    def to_json(self) -> dict[str, Json]:
        """Plain data; `schemas/comparison.schema.json` says what is in it."""
        data: dict[str, Json] = {"schema": SCHEMA, **to_json(self)}
        for case in data["cases"]:
            for side in ("before", "after"):
                if case[side] is not None:
                    case[side]["unsettled"] = case[side]["without_verdict"]  # its earlier name
        data["counts"] = {group.value: len(cases) for group, cases in self.groups.items()}
        for item, told in zip(self.resources, data["resources"], strict=True):
            if math.isinf(item.ratio.high):  # one case has no interval, and JSON no infinity
                told["ratio"]["high"] = None
        return data


def p_text(p_value: float) -> str:
    """`p = 0.031`, or that it is smaller than can be told apart."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}" if p_value < 0.1 else f"p = {p_value:.2f}"


def percent(share: float) -> str:
    """A share as a person writes it: as many digits as tell something."""
    text = f"{share:.1%}"
    return text.replace(".0%", "%")
