"""What an adapter remembers of one session: its id, its state, and what was said so far."""

from __future__ import annotations

import copy
import itertools
import os
from typing import Any

from proctor.agents.model import Reply
from proctor.cases.model import Case, Turn
from proctor.plain import Json, plain

_PROCESS = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


class Conversation:
    """One session's memory; `state` is the agent's to change, starting from a copy of the case's."""

    __slots__ = ("case", "history", "id", "state")

    def __init__(self, case: Case) -> None:
        self.id = f"{_PROCESS}-{next(_NUMBERS)}"
        self.case = case
        self.state: dict[str, Any] = copy.deepcopy(dict(case.state))
        self.history: list[tuple[Json, str]] = []

    def record(self, turn: Turn, reply: Reply) -> Reply:
        """Remember an answered turn, and what the agent says it knows now."""
        self.history.append((turn.input, reply.text))
        if reply.state is not None and reply.state is not self.state:
            self.state = copy.deepcopy(dict(reply.state))
        return reply

    def messages(self) -> list[Json]:
        """What was said so far, in the shape in which chat interfaces take it."""
        said: list[Json] = []
        for question, answer in self.history:
            said += [{"role": "user", "content": plain(question)}, {"role": "assistant", "content": answer}]
        return said
