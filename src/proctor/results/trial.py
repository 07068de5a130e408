"""Trials: one execution of one case each, complete (`Trial`) or as far as verdicts need it (`TrialSummary`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from proctor.agents.reply import Reply, Usage
from proctor.cases.identity import CaseAddress
from proctor.cases.suite import Case
from proctor.results.reasons import headline_reason
from proctor.results.score import Outcome, Score, ScoreRow
from proctor.tracing.spans import ObservationNode, Span, build_tree

T = TypeVar("T")


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
    end_reason: str = ""
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
    def reason(self) -> str:
        """Why the trial did not pass, as reports show it; empty for one that passed."""
        return headline_reason(self, limit=1000)

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
