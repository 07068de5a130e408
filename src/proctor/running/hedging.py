"""Asks an agent again if its answer is late, and takes the answer that comes first (`--hedge`).

Now and then a request hangs although the provider works well, and the whole run waits for it. A second request for the
same case usually comes back soon. It costs as much as the first, so at most 5 % of the trials are asked twice;
`answer_times` decides when. If the provider becomes slow, all answers are late, and more requests would make it worse:
these 5 % are the most that hedging adds, and they wait for the rate limit like all requests.

Only trials with one turn are hedged: in a conversation, the turns before would have to be sent again too. Both
conversations are complete, each with its own session, trace and output, and nothing of the one that loses is in the
trial. Its tokens count for the budget if they are known.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from proctor.agents.reply import Usage
from proctor.results.score import Outcome
from proctor.running.answer_times import MIN_LATE_SECONDS, AnswerTimes, SentTurn
from proctor.running.conversation import ConversationResult
from proctor.running.plan import PlannedSuite, PlannedTrial

MAX_SHARE = 0.05
LOOK_SHARE = 0.1
"""After this share of the time that an answer has taken, it is checked again whether it is late."""

Converse = Callable[[SentTurn], Coroutine[Any, Any, ConversationResult]]
"""Holds the conversation of a trial, and notes in the `SentTurn` when its turn is sent and answered."""


@dataclass(slots=True, eq=False)
class _Request:
    """A conversation that goes on, with its turn."""

    task: asyncio.Task[ConversationResult]
    turn: SentTurn

    @property
    def is_answered(self) -> bool:
        """Whether the agent answered, or failed itself."""
        if not self.task.done() or self.task.cancelled() or self.task.exception() is not None:
            return False
        return self.task.result().outcome is not Outcome.ERROR


def can_be_hedged(trial: PlannedTrial) -> bool:
    """Whether a trial has one turn and need not be the only one that runs."""
    return trial.case.scenario is None and len(trial.case.turns) == 1 and trial.suite.max_sessions > 1


class Hedging:
    """The trials of a run that may be hedged, and what it cost."""

    def __init__(self, spend: Callable[[Usage | None], None], is_stopping: Callable[[], bool]) -> None:
        """`spend` is called with the tokens of each request that lost, or with `None` if they are unknown.

        While the run `is_stopping`, nothing is asked again.
        """
        self.trials = 0
        self.hedged = 0
        self.sooner = 0
        """How often the second request was answered first."""
        self._spend = spend
        self._is_stopping = is_stopping
        self._times: defaultdict[PlannedSuite, AnswerTimes] = defaultdict(AnswerTimes)
        self._losers: set[asyncio.Task[ConversationResult]] = set()

    async def converse(self, suite: PlannedSuite, converse: Converse) -> ConversationResult:
        """The result of `converse`, or of a second call of it that is sooner."""
        self.trials += 1
        first = _start(converse)
        requests = [first]
        try:
            times = self._times[suite]
            times.add(first.turn)
            await self._wait_until_late(first, times)
            if first.task.done():
                return first.task.result()
            self.hedged += 1
            seconds = first.turn.seconds_so_far
            requests.append(_start(converse))
            winner = await _first_answered(requests)
        except asyncio.CancelledError:
            await _cancel([request.task for request in requests])
            raise
        for loser in requests:
            if loser is not winner:
                self._abandon(loser)
        if winner is first:
            return first.task.result()
        self.sooner += 1
        return _with_note(winner.task.result(), seconds)

    async def _wait_until_late(self, request: _Request, times: AnswerTimes) -> None:
        """Wait until the answer is there, or it is late and the trial may be hedged."""
        while not (self._may_ask_again() and times.is_late(request.turn)):
            pause = max(MIN_LATE_SECONDS, request.turn.seconds_so_far) * LOOK_SHARE
            await asyncio.wait({request.task}, timeout=pause)
            if request.task.done():
                return

    def _may_ask_again(self) -> bool:
        return self.hedged < MAX_SHARE * self.trials and not self._is_stopping()

    def _abandon(self, request: _Request) -> None:
        """Cancel a request without waiting for it: an agent in a thread cannot be interrupted."""
        self._spend(request.turn.usage())
        if not request.task.done():
            self._losers.add(request.task)
            request.task.add_done_callback(self._forget)
            request.task.cancel()

    def _forget(self, task: asyncio.Task[ConversationResult]) -> None:
        self._losers.discard(task)
        if not task.cancelled():
            task.exception()  # which nobody else looks at

    async def close(self) -> None:
        """Wait until all cancelled requests have ended."""
        await _cancel(self._losers)

    def summary(self) -> str:
        """What hedging cost and gained, as text; empty if no trial was asked twice."""
        if not self.hedged:
            return ""
        requests = "1 more request" if self.hedged == 1 else f"{self.hedged:,} more requests"
        return f"hedged {self.hedged:,} of {self.trials:,} trials: {self.sooner:,} answered sooner; {requests}"


def _start(converse: Converse) -> _Request:
    turn = SentTurn()
    return _Request(asyncio.create_task(converse(turn)), turn)


async def _first_answered(requests: list[_Request]) -> _Request:
    """The request that is answered first; if none is, because of an error, the first one."""
    waiting = {request.task for request in requests}
    while waiting:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if (answered := next((request for request in requests if request.is_answered), None)) is not None:
            return answered
    return requests[0]


async def _cancel(tasks: Collection[asyncio.Task[ConversationResult]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _with_note(answer: ConversationResult, seconds: float) -> ConversationResult:
    """The answer, with a warning that says why its duration is not what the agent needed at first."""
    note = f"the agent was asked again, since there was no answer after {seconds:.1f} s; this is the second answer"
    return replace(answer, warnings=(*answer.warnings, note))
