"""A run: the facts about it and its trials; also `ScoreThreshold`, a rule for what passes."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from proctor.base.deprecation import renamed_fields
from proctor.base.git import GitState
from proctor.base.json_data import Json
from proctor.cases.identity import CaseAddress
from proctor.cases.suite import Criteria
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import Evaluation
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, Trials, TrialSummary

if TYPE_CHECKING:
    import pandas

    from proctor.results.gate_result import GateResult
    from proctor.results.judge_usage import JudgeSummary

T = TypeVar("T")


class RunStatus(enum.StrEnum):
    """Whether a run is finished, and if not, why."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """It ended before all trials had run, and can be resumed."""
    DIED = "died"
    """Its process ended without storing a status; the run can be resumed."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """The verdict of a run when it ended or was last graded, for lists that read no trials."""

    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None


@renamed_fields(
    {
        "uncounted": "unpriced_note",
        "evaluator_keys": "scoring_keys",
        "judged_by": "configured_judge",
        "repeats": "planned_trials",
    }
)
@dataclass(slots=True)
class Run:
    """One execution of one or more suites: the facts about it, and its trials.

    The trials of a stored run are read from the store when they are used, so that listing runs is cheap.
    """

    id: str
    started_at: float
    suites: tuple[SuiteInfo, ...] = ()
    summaries: Sequence[TrialSummary] = ()
    """The part of every trial that verdicts need, in the order of the plan."""
    trials: Iterable[Trial] = ()
    """The complete trials in the order of the plan; can be iterated any number of times."""
    finished_at: float | None = None
    status: RunStatus = RunStatus.FINISHED
    interrupted: bool = False
    """Whether it was ended from outside (Ctrl-C, SIGTERM, its process died), so that its exit code is 130. False for a
    run that stopped by itself, for example because its budget is spent."""
    stopped_by: str = ""
    """The signal that interrupted the run, such as `SIGINT`; known only in the process that runs it."""
    note: str = ""
    """Why the run stopped early, if it did."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Json] = field(default_factory=dict)
    store: str | None = None
    """The folder of its store; `None` for a run that is not stored."""
    judges: Sequence[JudgeSummary] = ()
    """The judges that scored answers, with their calls and cost."""
    unpriced_note: str = ""
    """A note on calls that the budget does not include, because their cost is not known."""
    name: str = ""
    """The name that the user gave the run."""
    git: GitState | None = None
    """The commit it ran at, if that was inside a git repository."""
    scoring_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By suite and case: a key of what decides its outcome (evaluators, thresholds, judge). The case "" means all
    cases that are not listed."""
    gate: GateResult | None = None
    """The result of the regression gate, if the run was gated."""
    configured_judge: str = ""
    """The judge that the settings name; `judges` has the ones that were used."""
    planned_trials: Mapping[CaseAddress, int] = field(default_factory=dict)
    """While it runs: the number of trials of each case that has more than one."""
    no: int = 0
    """Its number in the store."""
    plan: str = ""
    """The fingerprint of the plan: a run can only be resumed with the same plan."""
    planned: int | None = None
    """Number of planned trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: a run with another key is scored again when it is resumed."""
    stored_verdict: StoredVerdict | None = None
    """The verdict in the store; `verdict(run)` computes it."""
    counts: Mapping[str, int] | None = None
    """Number of trials by outcome, from the store."""
    rescored: str | None = None
    """The id of the run whose answers were rescored."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    """What else is stored with the run, for example by a newer version of Proctor; it is written back unchanged."""

    @property
    def ended_because(self) -> str:
        """Why trials may be missing; empty for a complete run."""
        return self.note or _UNFINISHED.get(self.status, "")

    def trials_of(self, cases: Collection[CaseAddress]) -> Iterable[Trial]:
        """The trials of these cases; of a stored run, no others are read."""
        if isinstance(self.trials, Trials):
            return self.trials.for_cases(cases)
        return (trial for trial in self.trials if (trial.suite, trial.case.id) in cases)

    @property
    def compares_agents(self) -> bool:
        """Whether a suite ran against several agents."""
        return any(info.source for info in self.suites)

    def __repr__(self) -> str:
        """One line, such as `<Run 20260101-… of shop: 3 passed, 1 failed>`."""
        counts = Counter(summary.outcome.value for summary in self.summaries)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no trials"
        return f"<Run {self.id} of {', '.join(info.name for info in self.suites)}: {outcomes}>"

    def to_dicts(self) -> list[dict[str, Json]]:
        """One flat dictionary per trial, in the order of the plan: for tables, queries and plots.

        Each has `run`, `suite`, `agent`, `case`, `tags`, `trial`, `outcome`, `reason`, `input`, `answer`, `tools`,
        `duration_ms`, `tokens`, `cost_usd`, and one `score.NAME` per evaluator: its mean over turns.

        >>> run = proctor.run("shop.yaml")
        >>> [(row["case"], row["outcome"], row["score.Contains"]) for row in run.to_dicts()]
        [('shipped', 'passed', 1.0), ('lost', 'failed', 0.0)]
        """
        from proctor.reporting.tables import trial_rows  # reporting builds on results

        return trial_rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_dicts` as a pandas table; pandas has to be installed (`pip install pandas`).

        >>> table = proctor.run("shop.yaml").to_pandas()
        >>> int((table["outcome"] == "failed").sum())
        1
        """
        from proctor.reporting.tables import as_frame  # reporting builds on results

        return as_frame(self.to_dicts())

    def _repr_html_(self) -> str:
        """The run as a notebook shows it: the verdict, the cases, and why cases failed."""
        from proctor.reporting.html.notebook import run_html  # reporting builds on results

        return run_html(self)


_UNFINISHED = {
    RunStatus.RUNNING: "the run is still in progress",
    RunStatus.DIED: "the process ended before the run was finished",
}


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """Passes if the share `pct` of inputs scores at least `threshold` on all evaluators; fails without inputs."""

    threshold: float = 0.5
    pct: float = 1.0

    def __post_init__(self) -> None:
        for name in ("threshold", "pct"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")

    def __call__(self, results: Sequence[Sequence[Evaluation]]) -> tuple[bool, str]:
        """Whether the matrix `[inputs][evaluators]` passes, and a sentence that says so."""
        good = sum(
            bool(row) and all(passes(cell.score, self.threshold, cell.passed) for cell in row) for row in results
        )
        total = len(results)
        passed = total > 0 and passes(good / total, self.pct)
        share = good / total if total else 0.0
        return passed, (
            f"{'Pass' if passed else 'Fail'}: {good}/{total} inputs ({share:.1%}) scored >= {self.threshold:g}"
            f" on all evaluators (required: {self.pct:.1%})"
        )

    @property
    def criteria(self) -> Criteria:
        """The same rule as criteria of a suite."""
        return Criteria(threshold=self.threshold, pct=self.pct)
