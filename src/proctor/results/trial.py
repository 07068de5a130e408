"""Trials: one execution of one case each, complete (`Trial`) or as far as verdicts need it (`TrialSummary`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar, overload

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import Json
from proctor.base.output_capture import NOTHING_CAPTURED, CapturedOutput
from proctor.cases.identity import CaseAddress
from proctor.cases.suite import Case
from proctor.results.reasons import headline_reason
from proctor.results.score import NO_SCORES, Outcome, Score, ScoreRow, Scores
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
    scores: Scores = NO_SCORES
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
    masked: tuple[str, ...] | None = ()
    """Parts in which secrets are masked, such as `replies[0].text`; None if the program that stored it did not say.
    `masked_parts` in `results/masking.py` reads it."""
    masked_case: str = ""
    """A check of the case before it was masked; empty if it was not. See `case_check`."""
    files_read: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By path: the digests of the project's files that the agent read, such as prompts (`agents/opened_files.py`)."""
    captured: CapturedOutput = field(default=NOTHING_CAPTURED, repr=False)
    """What the agent and the evaluators printed and logged."""
    spans: Sequence[Span] = field(default=(), compare=False, repr=False)
    """The trace of the trial. Spans of a stored trial are read from the store when they are first used."""
    original: Trial | None = field(default=None, compare=False, repr=False)
    """The trial before its secrets were masked; in memory only, for a test session that scores the answer again."""

    def __post_init__(self) -> None:
        if type(self.scores) is not Scores:
            object.__setattr__(self, "scores", Scores(self.scores))

    @property
    def passed(self) -> bool:
        """Whether the outcome is `passed`."""
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> list[Score]:
        """The scores that failed the trial; those that are report only are not among them."""
        return [score for score in self.scores if score.outcome is Outcome.FAILED and not score.report_only]

    @property
    def output(self) -> Json:
        """The answer to the last turn that was answered; `None` if there is no answer."""
        return self.replies[-1].answer if self.replies else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of all turns, in order."""
        return tuple(call for reply in self.replies for call in reply.tool_calls)

    @property
    def cost_usd(self) -> float | None:
        """What the answers cost, in US dollars; `None` if it is not known."""
        return None if self.usage is None else self.usage.cost_usd

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


class Trials(Sequence[Trial]):
    """Trials that are read each time they are used, so that a large run never has to fit into memory."""

    def __init__(
        self,
        read: Callable[[Collection[CaseAddress] | None], Iterable[Trial]],
        count: Callable[[], int] | None = None,
    ) -> None:
        self._read = read
        """Reads at least the trials of the given cases, or all trials for `None`."""
        self._count = count
        """The number of trials, if it is known without reading them."""

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._read(None))

    def __len__(self) -> int:
        return sum(1 for _ in self) if self._count is None else self._count()

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        if isinstance(index, slice):
            return list(self)[index]
        position = index if index >= 0 else len(self) + index
        if position >= 0 and (trial := next(islice(self, position, None), None)) is not None:
            return trial
        raise IndexError(f"there is no trial {index}; the run has {len(self):,}")

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
