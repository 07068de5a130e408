"""What a run is made of: outcomes, scores, trials and the run itself; and when scores pass (`ScoreThreshold`)."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, overload

from proctor.agents.reply import Reply, Usage
from proctor.base.git import GitState
from proctor.base.json_data import Json, to_json
from proctor.cases.identity import CaseAddress
from proctor.cases.quarantine_file import is_over
from proctor.cases.suite import Case, Criteria, Quarantine
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import Evaluation
from proctor.tracing.spans import ObservationNode, Span, build_tree

if TYPE_CHECKING:  # a run in which nothing is observed does without spans
    import pandas

    from proctor.results.gate_result import GateResult
    from proctor.results.judge_usage import JudgeSummary

T = TypeVar("T")


class Outcome(enum.StrEnum):
    """Only `passed` and `failed` are verdicts on the agent."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """The instrument or the infrastructure broke: nothing is known about the agent."""
    SKIPPED = "skipped"
    """There was nothing to compare, or the case was left out on purpose."""
    PENDING = "pending"
    """Waits for a person or an agent to grade it."""

    @property
    def rank(self) -> int:
        """How bad it is: 0 for a failure; what is skipped comes last."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.PASSED, Outcome.SKIPPED)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of some outcomes: failed, error, pending, passed, skipped; skipped if there are none."""
    return min(outcomes, key=lambda outcome: outcome.rank, default=Outcome.SKIPPED)


MEAN_OVER_TURNS = "mean_over_turns"
"""The detail of a score whose evaluator is judged by its mean: the mean of this trial, which `outcome` is about."""


@dataclass(frozen=True, slots=True)
class Score:
    """What one evaluator said of one turn, or of the whole conversation."""

    evaluator: str
    outcome: Outcome
    value: float | None = None
    threshold: float | None = None
    reasoning: str = ""
    """Why this score; for `error`, `skipped` and `pending`, why there is none."""
    turn: int | None = None
    """The index of the turn, or `None` for the whole conversation."""
    gates: bool = True
    details: Mapping[str, Json] = field(default_factory=dict)
    fingerprint: str = ""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One run of one case, whole: what was asked, what came back, how it was scored."""

    suite: str
    case: Case
    number: int
    """Which repetition, from 1."""
    position: int
    """The place in the plan, which is the order of reports."""
    outcome: Outcome
    reason: str = ""
    """Why the trial is not simply the sum of its scores: the agent raised, timed out, could not be reached."""
    replies: tuple[Reply, ...] = ()
    scores: tuple[Score, ...] = ()
    started_at: float = 0.0
    duration_ms: float = 0.0
    """The agent's time, without the evaluators'."""
    attempts: int = 1
    agent: str = ""
    """The agent's fingerprint."""
    warnings: tuple[str, ...] = ()
    reused: bool = False
    """Taken from an earlier run instead of asked anew."""
    ended_early: bool = False
    """Whether it ended before evaluators could score it: it was skipped, or the agent gave no whole answer."""
    arm: str = ""
    """Which version of the agent was asked, where a run compares several; empty where there is one."""
    spans: Sequence[Span] = field(default=(), compare=False, repr=False)
    """What was seen inside the application; read from the store only when looked at."""
    original: TrialResult | None = field(default=None, compare=False, repr=False)
    """Before its secrets were masked; in memory only, for a test session that scores the same answer again."""

    @property
    def trace(self) -> list[ObservationNode]:
        """The spans as the trees they form; empty where nothing was seen."""
        if not self.spans:
            return []
        return build_tree(self.spans)

    @property
    def is_answered(self) -> bool:
        """Whether every turn has its answer."""
        whole = len(self.replies) >= len(self.case.turns)
        return whole and all(reply.error is None for reply in self.replies)

    @property
    def usage(self) -> Usage | None:
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
    gates: bool


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """The part of a trial that a run keeps in memory."""

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
    """Which version of the agent was asked, where a run compares several."""

    @classmethod
    def of(cls, trial: TrialResult) -> TrialSummary:
        usage = trial.usage
        return cls(
            trial.suite,
            trial.case.id,
            trial.number,
            trial.position,
            trial.outcome,
            tuple([ScoreRow(s.evaluator, s.outcome, s.value, s.threshold, s.gates) for s in trial.scores]),
            trial.duration_ms,
            None if usage is None else usage.total_tokens,
            None if usage is None else usage.cost_usd,
            usage is not None and usage.estimated,
            trial.arm,
        )


@dataclass(frozen=True, slots=True)
class QuarantinedCase:
    """A case that was run and reported, and decides nothing until its date."""

    case: str
    reason: str
    until: str
    owner: str | None = None
    expired: bool = False
    """Whether the date had passed when the run was made."""


def quarantine_to_json(item: QuarantinedCase) -> dict[str, Json]:
    """The form in which reports have it, with `over`, the earlier name of `expired`."""
    return {**to_json(item), "over": item.expired}


def quarantined_cases(quarantined: Sequence[tuple[str, Quarantine]]) -> tuple[QuarantinedCase, ...]:
    """Those that run; whether a date has passed is decided now, and kept with the run."""
    if not quarantined:
        return ()
    return tuple(
        QuarantinedCase(case, item.reason, item.until, item.owner, is_over(item)) for case, item in quarantined
    )


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """What a run remembers of a suite."""

    name: str
    path: str | None
    format: str
    agent: str
    """The agent's name."""
    agent_fingerprint: str
    criteria: Criteria
    cases: int
    planned: int
    """Trials planned, repeats included."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    source: str = ""
    """What its file calls the suite, where a run asks several agents and names it once for each."""


class RunStatus(enum.StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """It ended before all trials were made, and can be resumed."""
    DIED = "died"
    """Its process ended without saying so, and it can be resumed."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """What a run came to when it ended or was last graded, for lists that read no trial."""

    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None


class Trials:
    """Trials that are read each time they are iterated, so that a large run is never held in memory."""

    def __init__(self, read: Callable[[Collection[CaseAddress] | None], Iterable[TrialResult]]) -> None:
        self._read = read
        """Given cases, reads at least their trials; given None, reads all."""

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self._read(None))

    def for_cases(self, cases: Collection[CaseAddress]) -> Iterable[TrialResult]:
        """The trials of some cases."""
        return (trial for trial in self._read(cases) if (trial.suite, trial.case.id) in cases)


class LazySequence(Sequence[T]):
    """A sequence that is read when it is first used."""

    def __init__(self, read: Callable[[], Iterable[T]]) -> None:
        self._read = read
        self._items: Sequence[T] | None = None

    @property
    def _known(self) -> Sequence[T]:
        if self._items is None:
            self._items = tuple(self._read())
        return self._items

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._known[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._known)  # the inherited one takes an index for each item

    def __len__(self) -> int:
        return len(self._known)


@dataclass(slots=True)
class Run:
    """One execution of one or more suites: what is known of it as a whole, and its trials.

    The trials of a stored run are read from the store when they are used, so that a list of runs costs little.
    """

    id: str
    started_at: float
    suites: tuple[SuiteInfo, ...] = ()
    summaries: Sequence[TrialSummary] = ()
    """The part of every trial that verdicts need, in the order of the plan."""
    trials: Iterable[TrialResult] = ()
    """The whole trials in the order of the plan; can be iterated any number of times."""
    finished_at: float | None = None
    status: RunStatus = RunStatus.FINISHED
    interrupted: bool = False
    """Whether it was ended from outside (Ctrl-C, SIGTERM, its process died), so that its exit code is 130. A run that
    stopped by itself, such as one whose budget is spent, was not."""
    stopped_by: str = ""
    """The signal that interrupted the run, such as `SIGINT`; known only to the process that ran it."""
    note: str = ""
    """Why the run stopped early, if it did."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Json] = field(default_factory=dict)
    store: str | None = None
    """The folder of the store that has it."""
    judges: Sequence[JudgeSummary] = ()
    """Who judged, where evaluators asked a judge."""
    unpriced_note: str = ""
    """What a budget left out, since its cost is not known."""
    name: str = ""
    """What the user calls the run."""
    git: GitState | None = None
    """Where the run was made inside a git repository."""
    scoring_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By suite and case: what its outcome rests on; the case "" stands for all that are not listed."""
    gate: GateResult | None = None
    """What the gate found, where the run was gated."""
    configured_judge: str = ""
    """Who is going to be asked, where evaluators ask a judge; `judges` tells afterwards who was."""
    planned_trials: Mapping[CaseAddress, int] = field(default_factory=dict)
    """While a run is made: how many trials are planned, of cases with more than one."""
    no: int = 0
    """Its number in the store."""
    plan: str = ""
    """The fingerprint of what was to be run: a run is resumed by the same plan."""
    planned: int | None = None
    """Trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: a run with another key is scored again when it is resumed."""
    stored_verdict: StoredVerdict | None = None
    """What the run came to, as the store says; `verdict(run)` works it out."""
    counts: Mapping[str, int] | None = None
    """Trials by outcome, as the store says."""
    rescored: str | None = None
    """The id of the run whose answers were scored again."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else is stored of the run, such as by a newer program: it is written back."""

    @property
    def ended_because(self) -> str:
        """Why there may be trials missing; empty for a whole run."""
        return self.note or _UNFINISHED.get(self.status, "")

    def trials_of(self, cases: Collection[CaseAddress]) -> Iterable[TrialResult]:
        """The trials of some cases; of a stored run the others are not even read."""
        if isinstance(self.trials, Trials):
            return self.trials.for_cases(cases)
        return (trial for trial in self.trials if (trial.suite, trial.case.id) in cases)

    @property
    def compares_agents(self) -> bool:
        """Whether a suite was put to several agents."""
        return any(info.source for info in self.suites)

    def __repr__(self) -> str:
        """Short, since a notebook keeps it beside what it shows: `<Run 20260101-… of shop: 3 passed, 1 failed>`."""
        counts = Counter(summary.outcome.value for summary in self.summaries)
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no trials"
        return f"<Run {self.id} of {', '.join(info.name for info in self.suites)}: {told}>"

    def to_dicts(self) -> list[dict[str, Json]]:
        """One flat dictionary a trial, in the order of the plan: for tables, queries and plots.

        Each has `run`, `suite`, `agent`, `case`, `tags`, `trial`, `outcome`, `reason`, `input`, `answer`, `tools`,
        `duration_ms`, `tokens`, `cost_usd`, and one `score.NAME` for each evaluator: the mean over turns.

        >>> run = proctor.run("shop.yaml")
        >>> [(row["case"], row["outcome"], row["score.Contains"]) for row in run.to_dicts()]
        [('shipped', 'passed', 1.0), ('lost', 'failed', 0.0)]
        """
        from proctor.reporting.tables import trial_rows  # reporting builds on results

        return trial_rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a table of pandas, which has to be installed (`pip install pandas`).

        >>> table = proctor.run("shop.yaml").to_pandas()
        >>> int((table["outcome"] == "failed").sum())
        1
        """
        from proctor.reporting.tables import as_frame  # reporting builds on results

        return as_frame(self.to_dicts())

    def _repr_html_(self) -> str:
        """What a notebook shows of the run: the verdict, the cases, and why cases failed."""
        from proctor.reporting.html.notebook import run_html  # reporting builds on results

        return run_html(self)


_UNFINISHED = {
    RunStatus.RUNNING: "the run is still going on",
    RunStatus.DIED: "the process died before the run was over",
}


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """Passes when the share `pct` of inputs scores at least `threshold` on all evaluators. No inputs do not pass."""

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
        """The same rule for a suite."""
        return Criteria(threshold=self.threshold, pct=self.pct)
