"""The result of comparing two runs: the change of each case, of scores and of cost, and a verdict in one sentence."""

from __future__ import annotations

import enum
import io
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from proctor.base.deprecation import renamed_fields
from proctor.base.git import GitState
from proctor.base.json_data import Json, to_json
from proctor.results.comparison.divergence import Divergence
from proctor.results.comparison.significance import Effect, SignificanceTest

if TYPE_CHECKING:
    import pandas

SCHEMA = "proctor.comparison/1"
ComparisonVerdict = Literal["regression", "improvement", "no difference", "not comparable"]


class Change(enum.StrEnum):
    """How a case changed from one run to the other, the most serious change first."""

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
    """One of the two compared runs."""

    run: str
    """Its id."""
    name: str
    agent: str
    """The names of its agents."""
    started_at: float
    git: GitState | None
    trials: int
    planned: int
    complete: bool
    """Whether all planned trials ran."""


@renamed_fields({"unsettled": "without_verdict"})
@dataclass(frozen=True, slots=True)
class PassCount:
    """How many trials of a case passed, of those that passed or failed."""

    passed: int
    trials: int
    without_verdict: int = 0
    """Trials that neither passed nor failed: errors, pending and skipped ones."""


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """The mean score of one evaluator for one case, in both runs."""

    evaluator: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class CaseChange:
    """The change of one case."""

    suite: str
    case_id: str
    group: Change
    before: PassCount | None
    after: PassCount | None
    renamed_from: str = ""
    """The earlier suite and id of the case, if it was renamed."""
    reasons: tuple[str, ...] = ()
    """Why it cannot be compared; for a failing case, why it fails now."""
    scores: tuple[ScoreChange, ...] = ()
    """Evaluators whose mean differs."""
    divergence: Divergence | None = None
    """The first difference between the conversations of a broken or fixed case."""

    @property
    def id(self) -> str:
        """The same as `case_id`."""
        return self.case_id


@dataclass(frozen=True, slots=True)
class EvaluatorChange:
    """The change of one evaluator's scores over all cases that it scored with the same settings in both runs."""

    evaluator: str
    before: float
    after: float
    difference: Effect
    p_value: float
    """Adjusted for the number of evaluators by Holm's method."""
    differs: bool
    """Whether luck is an unlikely explanation."""


@dataclass(frozen=True, slots=True)
class ResourceRatio:
    """How many times as much of a resource the second run took."""

    resource: str
    """`tokens`, `cost_usd`, `duration_ms` or `tool_calls`."""
    before: float
    """Per trial, over the cases that both runs have: the median for times, otherwise the mean."""
    after: float
    ratio: Effect
    """`after` divided by `before`."""
    estimated: bool = False
    """Whether any of it is an estimate from a price list."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two runs.

    It has no truth value: "no difference" is neither good nor bad. Look at `verdict`, or at a list such as `broken`.
    """

    before: ComparedRun
    after: ComparedRun
    verdict: ComparisonVerdict
    sentence: str
    """The result in one sentence."""
    compared: int
    """Number of cases that could be compared."""
    before_rate: float | None
    """The mean pass rate over the compared cases."""
    after_rate: float | None
    difference: Effect | None
    test: SignificanceTest | None
    cases: tuple[CaseChange, ...]
    evaluators: tuple[EvaluatorChange, ...]
    resources: tuple[ResourceRatio, ...]
    notes: tuple[str, ...] = ()
    """Limits of the comparison: incomplete runs, cases that cannot be compared."""

    @property
    def rates_text(self) -> str:
        """Both pass rates and the test: `100% → 0% (mid-p McNemar test, p = 0.016)`; empty if nothing is comparable."""
        if self.test is None or self.before_rate is None or self.after_rate is None:
            return ""
        names = {"mcnemar mid-p": "mid-p McNemar test", "permutation within cases": "permutation test within cases"}
        method = names.get(self.test.method, self.test.method) + ("" if self.test.exact else ", sampled")
        return f"{percent(self.before_rate)} → {percent(self.after_rate)} ({method}, {p_text(self.test.p_value)})"

    @property
    def broken(self) -> list[CaseChange]:
        """The cases that passed before and fail now."""
        return self.groups[Change.BROKEN]

    @property
    def fixed(self) -> list[CaseChange]:
        """The cases that failed before and pass now."""
        return self.groups[Change.FIXED]

    @property
    def flaky(self) -> list[CaseChange]:
        """The cases that both passed and failed in one of the runs, and whose change that explains."""
        return self.groups[Change.FLAKY]

    @property
    def still_failing(self) -> list[CaseChange]:
        return self.groups[Change.STILL_FAILING]

    @property
    def still_passing(self) -> list[CaseChange]:
        return self.groups[Change.STILL_PASSING]

    @property
    def new(self) -> list[CaseChange]:
        """The cases that only the second run has."""
        return self.groups[Change.NEW]

    @property
    def gone(self) -> list[CaseChange]:
        """The cases that only the first run has."""
        return self.groups[Change.GONE]

    @property
    def not_comparable(self) -> list[CaseChange]:
        """The cases whose evaluators, input or expectation changed, or that have no verdict in one of the runs."""
        return self.groups[Change.NOT_COMPARABLE]

    def __bool__(self) -> bool:
        raise TypeError("a Comparison is neither true nor false; look at .verdict or .broken")

    @property
    def groups(self) -> dict[Change, list[CaseChange]]:
        """The cases by their change; every change has a list."""
        groups: dict[Change, list[CaseChange]] = {change: [] for change in Change}
        for case in self.cases:
            groups[case.group].append(case)
        return groups

    @property
    def is_unmeasured(self) -> bool:
        """Whether no case could be compared because one of its sides has no trial that passed or failed."""
        paired = [case for case in self.cases if case.before is not None and case.after is not None]
        undecided = [
            case for case in paired if case.before and case.after and not (case.before.trials and case.after.trials)
        ]
        return bool(paired) and len(undecided) == len(paired)

    def __repr__(self) -> str:
        """One line: the ids of the runs and the result."""
        return f"<Comparison of {self.before.run} and {self.after.run}: {self.sentence}>"

    def __str__(self) -> str:
        """What `print` writes."""
        out = io.StringIO()
        self.print(file=out)
        return out.getvalue()

    def print(self, *, file: TextIO | None = None) -> None:
        """Print what `proctor compare` prints, to standard output or to `file`."""
        from proctor.reporting.terminal.comparison_screen import print_comparison  # reporting builds on results
        from proctor.reporting.terminal.screen import screen_for  # likewise

        print_comparison(self, screen_for(sys.stdout if file is None else file))

    def to_dicts(self) -> list[dict[str, Json]]:
        """One flat dictionary per case: `suite`, `case`, `group`, how many trials passed in each run, what differs.

        >>> changed = proctor.compare(proctor.run("shop.yaml"), proctor.run("shop.yaml", agent="oracle"))
        >>> [(row["case"], row["group"]) for row in changed.to_dicts()]
        [('lost', 'fixed'), ('shipped', 'still passing')]
        """
        from proctor.reporting.tables import case_rows  # reporting builds on results

        return case_rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_dicts` as a pandas table; pandas has to be installed (`pip install pandas`)."""
        from proctor.reporting.tables import as_frame  # reporting builds on results

        return as_frame(self.to_dicts())

    def _repr_html_(self) -> str:
        """The comparison as a notebook shows it: the verdict, then the cases by their change."""
        from proctor.reporting.html.notebook import comparison_html  # reporting builds on results

        return comparison_html(self)

    def to_json(self) -> dict[str, Json]:
        """The comparison as JSON data; `schemas/comparison.schema.json` describes it."""
        data: dict[str, Json] = {"schema": SCHEMA, **to_json(self)}
        for case in data["cases"]:
            for side in ("before", "after"):
                if case[side] is not None:
                    case[side]["unsettled"] = case[side]["without_verdict"]  # its earlier name
        data["counts"] = {group.value: len(cases) for group, cases in self.groups.items()}
        for item, row in zip(self.resources, data["resources"], strict=True):
            if math.isinf(item.ratio.high):  # a single case has no interval, and JSON has no infinity
                row["ratio"]["high"] = None
        return data


def p_text(p_value: float) -> str:
    """`p = 0.031`, or `p < 0.001`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}" if p_value < 0.1 else f"p = {p_value:.2f}"


def percent(share: float) -> str:
    """A share as a percentage with one decimal, without a trailing `.0`."""
    text = f"{share:.1%}"
    return text.replace(".0%", "%")
