"""The parts of a run: outcomes, scores, trials and the run itself; also `ScoreThreshold`, a rule for what passes."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, overload

from proctor.agents.reply import Reply, Usage
from proctor.base.deprecation import renamed_fields
from proctor.base.git import GitState
from proctor.base.json_data import Json, to_json
from proctor.cases.identity import CaseAddress
from proctor.cases.quarantine_file import is_expired
from proctor.cases.suite import Case, Criteria, Quarantine
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import Evaluation
from proctor.tracing.spans import ObservationNode, Span, build_tree

if TYPE_CHECKING:
    import pandas

    from proctor.results.gate_result import GateResult
    from proctor.results.judge_usage import JudgeSummary

T = TypeVar("T")


class Outcome(enum.StrEnum):
    """The result of a trial, a case or a score. Only `passed` and `failed` say something about the agent."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """The infrastructure or an evaluator broke, so nothing is known about the agent."""
    SKIPPED = "skipped"
    """There was nothing to compare, or the case is skipped on purpose."""
    PENDING = "pending"
    """Needs a person or a model to decide."""

    @property
    def rank(self) -> int:
        """How bad it is: 0 for a failure, the highest number for a skip."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.PASSED, Outcome.SKIPPED)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of the outcomes, in the order failed, error, pending, passed, skipped; skipped if there are none."""
    return min(outcomes, key=lambda outcome: outcome.rank, default=Outcome.SKIPPED)


MEAN_OVER_TURNS = "mean_over_turns"
"""Key in `Score.details` if the evaluator's mean over turns decides: that mean, for this trial."""


@renamed_fields({}, inverted={"gates": "report_only"})
@dataclass(frozen=True, slots=True)
class Score:
    """The result of one evaluator for one turn, or for the whole conversation."""

    evaluator: str
    outcome: Outcome
    value: float | None = None
    threshold: float | None = None
    reasoning: str = ""
    """Why this score; for `error`, `skipped` and `pending`, why there is none."""
    turn: int | None = None
    """The index of the turn, or `None` for the whole conversation."""
    report_only: bool = False
    """Whether the score is reported without affecting the outcome."""
    details: Mapping[str, Json] = field(default_factory=dict)
    fingerprint: str = ""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of one case: its input, the agent's replies, and their scores."""

    suite: str
    case: Case
    number: int
    """Which trial of the case it is, counted from 1."""
    position: int
    """Its position in the plan, which is the order of reports."""
    outcome: Outcome
    reason: str = ""
    """Why the outcome does not follow from the scores: the agent raised, timed out or could not be reached."""
    replies: tuple[Reply, ...] = ()
    scores: tuple[Score, ...] = ()
    started_at: float = 0.0
    duration_ms: float = 0.0
    """Time the agent took, without the evaluators."""
    attempts: int = 1
    agent: str = ""
    """The agent's fingerprint."""
    warnings: tuple[str, ...] = ()
    reused: bool = False
    """Whether the answers come from an earlier run."""
    ended_early: bool = False
    """Whether it ended before evaluators could score it: it was skipped, or the agent gave no complete answer."""
    arm: str = ""
    """Which version of the agent ran, if the run compares several; otherwise empty."""
    spans: Sequence[Span] = field(default=(), compare=False, repr=False)
    """The trace of the trial. Spans of a stored trial are read from the store when they are first used."""
    original: Trial | None = field(default=None, compare=False, repr=False)
    """The trial before its secrets were masked; in memory only, for a test session that scores the answer again."""

    @property
    def trace(self) -> list[ObservationNode]:
        """The spans as trees; empty if the trial has no trace."""
        if not self.spans:
            return []
        return build_tree(self.spans)

    @property
    def is_answered(self) -> bool:
        """Whether every turn has an answer."""
        is_complete = len(self.replies) >= len(self.case.turns)
        return is_complete and all(reply.error is None for reply in self.replies)

    @property
    def usage(self) -> Usage | None:
        """The usage of all replies together; `None` if no reply has any."""
        total: Usage | None = None
        for reply in self.replies:
            if reply.usage is not None:
                total = reply.usage if total is None else total + reply.usage
        return total


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The part of a score that verdicts and tables need."""

    evaluator: str
    outcome: Outcome
    value: float | None
    threshold: float | None
    report_only: bool


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """The part of a trial that verdicts and tables need, which a run has in memory."""

    suite: str
    case_id: str
    number: int
    position: int
    outcome: Outcome
    scores: tuple[ScoreRow, ...]
    duration_ms: float
    tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool = False
    """Whether the cost comes from a price list."""
    arm: str = ""
    """Which version of the agent ran, if the run compares several."""

    @classmethod
    def of(cls, trial: Trial) -> TrialSummary:
        usage = trial.usage
        return cls(
            trial.suite,
            trial.case.id,
            trial.number,
            trial.position,
            trial.outcome,
            tuple([ScoreRow(s.evaluator, s.outcome, s.value, s.threshold, s.report_only) for s in trial.scores]),
            trial.duration_ms,
            None if usage is None else usage.total_tokens,
            None if usage is None else usage.cost_usd,
            usage is not None and usage.estimated,
            trial.arm,
        )


@dataclass(frozen=True, slots=True)
class QuarantinedCase:
    """A case that runs and is reported, but does not affect the verdict until a date."""

    case: str
    reason: str
    until: str
    owner: str | None = None
    expired: bool = False
    """Whether the date had passed when the run started."""


def quarantine_to_json(item: QuarantinedCase) -> dict[str, Json]:
    """The form in which reports have it, with `over`, the earlier name of `expired`."""
    return {**to_json(item), "over": item.expired}


def quarantined_cases(quarantined: Sequence[tuple[str, Quarantine]]) -> tuple[QuarantinedCase, ...]:
    """The quarantined cases of a run; whether each quarantine has expired is decided now and stored with the run."""
    if not quarantined:
        return ()
    return tuple(
        QuarantinedCase(case, item.reason, item.until, item.owner, is_expired(item)) for case, item in quarantined
    )


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """The facts about a suite that are stored with a run."""

    name: str
    path: str | None
    format: str
    agent: str
    """The agent's name."""
    agent_fingerprint: str
    criteria: Criteria
    cases: int
    planned: int
    """Number of planned trials, repeats included."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    source: str = ""
    """The name of the suite in its file, if the run tests several agents and `name` is one name per agent."""


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


class Trials:
    """Trials that are read each time they are iterated, so that a large run never has to fit into memory."""

    def __init__(self, read: Callable[[Collection[CaseAddress] | None], Iterable[Trial]]) -> None:
        self._read = read
        """Reads at least the trials of the given cases, or all trials for `None`."""

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._read(None))

    def for_cases(self, cases: Collection[CaseAddress]) -> Iterable[Trial]:
        """The trials of these cases."""
        return (trial for trial in self._read(cases) if (trial.suite, trial.case.id) in cases)


class LazySequence(Sequence[T]):
    """A sequence that is read when it is first used, and then stays in memory."""

    def __init__(self, read: Callable[[], Iterable[T]]) -> None:
        self._read = read
        self._items: Sequence[T] | None = None

    @property
    def _all_items(self) -> Sequence[T]:
        if self._items is None:
            self._items = tuple(self._read())
        return self._items

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._all_items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all_items)  # the inherited one takes an index for each item

    def __len__(self) -> int:
        return len(self._all_items)


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
