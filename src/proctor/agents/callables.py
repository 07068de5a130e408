"""Any function, method, or object that can be called, as an agent."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from proctor.agents.conversation import Conversation
from proctor.agents.invoking import invoke_as, is_async
from proctor.agents.model import Reply
from proctor.agents.parameters import DoesNotFit, read_signature
from proctor.agents.replies import to_reply
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed
from proctor.plain import fingerprint, plain, show
from proctor.references import source_fingerprint


class CallableAgent:
    """Calls one function for each turn and reads what it returns.

    Parameters named or annotated `turn` or `case` get the whole object, `history` the (input, answer) pairs so far,
    `state` a dict that lives as long as the session, `session_id` its id, `session` all of these; the first other
    parameter gets the input.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or _name(function)
        self.fingerprint = _fingerprint(function)
        self.signature = read_signature(function)
        self.asynchronous = is_async(function)
        self.takes_files = self.signature.takes("turn", "case")

    def __repr__(self) -> str:
        return f"CallableAgent({self.name})"

    def session(self, case: Case) -> CallableSession:
        return CallableSession(self, case)

    def check(self, case: Case) -> str | None:
        """Why the function cannot be called with a turn of this case, if it cannot."""
        for turn in case.turns:
            try:
                self.signature.check(turn.input)
            except DoesNotFit as error:
                return f"{self.name} cannot be called with {_short(turn)}: {error}"
        return None


class CallableSession:
    """One conversation with a function; it remembers what functions themselves do not."""

    def __init__(self, agent: CallableAgent, case: Case) -> None:
        self._agent = agent
        self._conversation = Conversation(case)

    async def __aenter__(self) -> CallableSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def send(self, turn: Turn) -> Reply:
        agent, conversation = self._agent, self._conversation
        signature = agent.signature
        known = {
            "input": copy.deepcopy(turn.input),
            "turn": turn,
            "case": conversation.case,
            "history": list(conversation.history),
            "state": conversation.state,
            "session": conversation,
            "session_id": conversation.id,
        }
        try:
            positional, named = signature.bind(known)
        except DoesNotFit as error:
            raise AgentFailed(f"{agent.name} cannot be called with {_short(turn)}: {error}") from None
        reply = to_reply(await invoke_as(agent.asynchronous, agent.function, positional, named))
        if reply.state is None and signature.takes("state", "session"):
            conversation.history.append((turn.input, reply.text))
            return dataclasses.replace(reply, state=plain(conversation.state))
        return conversation.record(turn, reply)


def _short(turn: Turn) -> str:
    return f"the input {show(plain(turn.input), 80)}"


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function: Any) -> str:
    target = _unwrapped(function)
    own = getattr(target, "__name__", None)
    return own if isinstance(own, str) else type(target).__name__


def _fingerprint(function: Any) -> str:
    """A partial's arguments are part of the agent; so is the configuration of an object that is a dataclass."""
    parts = []
    while isinstance(function, functools.partial):
        parts.append([plain(function.args), plain(function.keywords)])
        function = function.func
    owner = getattr(function, "__self__", None) if inspect.ismethod(function) else function
    if dataclasses.is_dataclass(owner) and not isinstance(owner, type):
        parts.append(plain(owner))
    source = source_fingerprint(function)
    return fingerprint(source, *parts) if parts else source
