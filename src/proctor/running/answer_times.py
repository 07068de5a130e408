"""Decides whether an answer is late, compared with the answers to other turns that were sent to the same agent.

The obvious version compares with the answers so far, and is wrong at the beginning of a run: of the turns that were
sent together, only the quick ones are answered, and next to them every other seems late. So a turn is compared only
with those that were sent early enough to be as late as it is now. It is late if 95 % of them were answered in half of
its time. Half of it, because ordinary latencies have a long tail: most of the slowest 5 % come in a moment.

Time counts since the turn was sent. Waiting for the rate limit, for a worker or before a retry is not part of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from proctor.agents.reply import Usage
from proctor.agents.trial_context import TrialContext
from proctor.base.clock import Clock

MIN_LATE_SECONDS = 0.5
"""No answer is late before; asking again would save next to nothing."""
LATE_FACTOR = 2.0
USUAL_SHARE = 0.95
MIN_TURNS = 20
"""How many others there must be before a turn can be late."""
RECENT_TURNS = 200
"""With how many others it is compared at most."""


@dataclass(slots=True, eq=False)
class SentTurn:
    """A turn that an agent is answering, and the time it takes."""

    sent_at: float | None = None
    """`None` before it is sent, and while it waits to be sent again."""
    answer_seconds: float | None = None
    """How long the answer took; `None` until it is there."""
    usage: Callable[[], Usage | None] = lambda: None
    """Returns what is known of the tokens used so far."""
    _trial: TrialContext | None = None
    _waited_before: float = 0.0

    @contextmanager
    def timed(self, trial: TrialContext) -> Iterator[None]:
        """Count the time that passes inside, which ends with an answer or an exception."""
        self._trial, self._waited_before, self.sent_at = trial, trial.waited_seconds, Clock.monotonic()
        try:
            yield
        except BaseException:
            self.sent_at = None
            raise
        self.answer_seconds = self.seconds_so_far

    @property
    def seconds_so_far(self) -> float:
        """How long the agent has had the turn."""
        if self.answer_seconds is not None:
            return self.answer_seconds
        if self.sent_at is None:
            return 0.0
        waited = 0.0 if self._trial is None else self._trial.waited_seconds - self._waited_before
        return Clock.monotonic() - self.sent_at - waited

    def could_take(self, seconds: float) -> bool:
        """Whether it was sent so long ago that its answer could have taken this long by now."""
        if self.sent_at is None:
            return False
        return seconds <= (self.seconds_so_far if self.answer_seconds is None else Clock.monotonic() - self.sent_at)


class AnswerTimes:
    """The turns that were sent to an agent last, and how long their answers took."""

    def __init__(self) -> None:
        self._recent: deque[SentTurn] = deque(maxlen=RECENT_TURNS)

    def add(self, turn: SentTurn) -> None:
        self._recent.append(turn)

    def is_late(self, turn: SentTurn) -> bool:
        """Whether the answer to a turn takes much longer than others."""
        if turn.seconds_so_far < MIN_LATE_SECONDS:
            return False
        seconds = turn.seconds_so_far / LATE_FACTOR
        others = [other for other in self._recent if other is not turn and other.could_take(seconds)]
        quick = sum(other.answer_seconds is not None and other.answer_seconds <= seconds for other in others)
        return len(others) >= MIN_TURNS and quick >= USUAL_SHARE * len(others)
