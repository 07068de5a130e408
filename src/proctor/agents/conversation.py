"""The memory of one session, for agents without one: functions, programs and HTTP services."""

from __future__ import annotations

import copy
import itertools
import os
from typing import Any

from proctor.agents.reply import Reply
from proctor.base.json_data import Json, to_json
from proctor.cases.suite import Case, Turn

_ADK_NAMES = {"user_id": "userId", "app_name": "appName"}
_PROCESS = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


class Conversation:
    """The turns of one session so far, and its state, which the agent may change."""

    __slots__ = ("case", "history", "id", "names", "state")

    def __init__(self, case: Case) -> None:
        self.id = f"{_PROCESS}-{next(_NUMBERS)}"
        self.case = case
        self.names = session_names(case)
        self.state: dict[str, Any] = copy.deepcopy(dict(case.state))
        self.history: list[tuple[Json, str]] = []

    def record(self, turn: Turn, reply: Reply) -> Reply:
        """Add an answered turn and the state that the agent reports after it; returns the reply."""
        self.history.append((turn.input, reply.text))
        if reply.state is not None and reply.state is not self.state:
            self.state = copy.deepcopy(dict(reply.state))
        return reply

    def messages(self) -> list[Json]:
        """The conversation so far as chat messages: `{"role": "user", "content": ...}`."""
        messages: list[Json] = []
        for question, answer in self.history:
            messages += [{"role": "user", "content": to_json(question)}, {"role": "assistant", "content": answer}]
        return messages


def session_names(case: Case) -> dict[str, str]:
    """The `user_id` and the `app_name` of the session, as far as the case names them; ADK's files do."""
    data = case.extra.get("x-adk")
    names = data if isinstance(data, dict) else {}
    return {name: str(names[key]) for name, key in _ADK_NAMES.items() if names.get(key)}
