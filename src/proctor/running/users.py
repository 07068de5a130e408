"""Who talks to the agent: somebody who says what is written down, or somebody who makes it up on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proctor.agents.model import Reply
from proctor.cases.model import Case, Turn


class ConversationSpoiled(Exception):
    """The user could not go on, through no fault of the agent: nothing is known about the agent then."""


class User(Protocol):
    """One side of one conversation, the agent being the other."""

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        """The next message, after these replies; `None` when there is nothing more to say."""
        ...

    @property
    def seconds(self) -> float:
        """How long the user took so far, which is not the agent's time."""
        ...

    @property
    def said(self) -> tuple[Turn, ...] | None:
        """The turns as they happened, where the case does not have them."""
        ...


class WrittenUser:
    """Says the turns of a case one after another."""

    __slots__ = ("_turns",)
    seconds = 0.0
    said = None

    def __init__(self, case: Case) -> None:
        self._turns = iter(case.turns)

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        return next(self._turns, None)
