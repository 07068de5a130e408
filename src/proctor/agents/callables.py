"""Functions and other callable objects as agents: what each parameter is given, and what the result means."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args

from proctor.agents.agent import BaseAgent, BaseSession, Reply
from proctor.agents.sessions import TRIAL, Conversation
from proctor.base.errors import AgentFailed
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.records import record
from proctor.base.references import configuration, source_fingerprint
from proctor.base.threads import invoke_as, is_async
from proctor.cases.suite import Case, Turn

Arguments: TypeAlias = tuple[list[Any], Mapping[str, Any]]
Role: TypeAlias = tuple[str, str, bool]
"""A parameter, what it is given, and whether by position."""

_WHOLE = ("turn", "case")
_SESSION = ("history", "state", "session", "session_id", "trial")
_CLASSES = {"Turn": Turn, "Case": Case}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class DoesNotFit(Exception):
    """An input cannot be handed to the function; says why."""


@record
class Signature:
    """How to call a function with a turn."""

    roles: tuple[Role, ...]
    spread: bool = False
    """Whether the input's keys are handed over one by one, because one value would not do."""
    required: frozenset[str] = frozenset()
    """The keys that a spread input must have."""
    accepted: frozenset[str] | None = frozenset()
    """The keys that a spread input may have; `None` when any."""
    whole_call: tuple[frozenset[str], frozenset[str]] | None = None
    """The parameters that must and may be given by name, where an input that names them all is the whole call."""
    receiver: str = ""
    """The one parameter that gets the input; an object with just this key means the value under it."""

    def takes(self, *roles: str) -> bool:
        return any(role in roles for _, role, _ in self.roles)

    def bind(self, known: Mapping[str, Any]) -> Arguments:
        """The arguments for one call; `known` has a value for every role."""
        value = known["input"]
        if self._is_whole_call(value):
            return [], value
        if self.receiver and isinstance(value, Mapping) and value.keys() == {self.receiver}:
            known = {**known, "input": value[self.receiver]}
        positional = [known[role] for _, role, by_position in self.roles if by_position]
        named = {parameter: known[role] for parameter, role, by_position in self.roles if not by_position}
        if self.spread:
            self.check(value)
            named |= value
        return positional, named

    def check(self, value: Json) -> None:
        """Raises `DoesNotFit` when the input has not the keys that the parameters need."""
        if not self.spread or self._is_whole_call(value):
            return
        if not isinstance(value, Mapping):
            wanted = ", ".join(sorted(self.required or self.accepted or ())) or "keyword arguments"
            raise DoesNotFit(f"it takes {wanted}: the input must be an object with these keys")
        if missing := sorted(self.required - value.keys()):
            raise DoesNotFit(f"the input lacks {', '.join(missing)}")
        if self.accepted is not None and (unknown := sorted(value.keys() - self.accepted)):
            raise DoesNotFit(f"it has no parameter {', '.join(unknown)}")

    def _is_whole_call(self, value: Json) -> bool:
        if self.whole_call is None or not isinstance(value, Mapping):
            return False
        must, may = self.whole_call
        return must <= value.keys() <= may


INPUT_ONLY = Signature((("input", "input", True),))


def read_signature(function: Callable[..., Any]) -> Signature:
    """What to pass to `function`; one that does not tell gets the input alone."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return INPUT_ONLY
    roles = {p.name: role for p in parameters if not _variadic(p) and (role := _role(p, function))}
    plain = [p for p in parameters if p.name not in roles and not _variadic(p)]
    required = [p for p in plain if p.default is p.empty]
    receiver = None if _needs_names(required) else _receiver(parameters, plain, roles)
    if receiver is not None:
        roles[receiver.name] = "input"
        return Signature(
            _by_position(parameters, roles),
            whole_call=_whole_call(parameters),
            receiver="" if _wants_object(receiver) else receiver.name,
        )
    bound = tuple((p.name, roles[p.name], False) for p in parameters if p.name in roles)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if required or ((plain or open_ended) and not _has_whole(roles)):
        accepted = None if open_ended else frozenset(p.name for p in plain)
        return Signature(bound, True, frozenset(p.name for p in required), accepted, _whole_call(parameters))
    return Signature(_by_position(parameters, roles))


def _needs_names(required: list[inspect.Parameter]) -> bool:
    """Whether one positional value would leave a parameter without its own."""
    return (len(required) > 1 or any(p.kind is p.KEYWORD_ONLY for p in required)) and all(
        p.kind is not p.POSITIONAL_ONLY for p in required
    )


def _receiver(
    parameters: list[inspect.Parameter], plain: list[inspect.Parameter], roles: Mapping[str, str]
) -> inspect.Parameter | None:
    """The parameter that gets the input: one that nothing else is known for, else the first."""
    required = [p for p in plain if p.default is p.empty]
    if required or _has_whole(roles):
        return required[0] if required else None
    candidates = [p for p in plain if p.kind in _POSITIONAL]
    candidates += [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    candidates += [p for p in parameters if p.kind in _POSITIONAL]
    return candidates[0] if candidates else None


def _wants_object(parameter: inspect.Parameter) -> bool:
    """Whether the annotation asks for an object itself."""
    text = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
    return any(word in text for word in ("dict", "Dict", "Mapping"))


def _has_whole(roles: Mapping[str, str]) -> bool:
    return any(role in _WHOLE for role in roles.values())


def _whole_call(parameters: list[inspect.Parameter]) -> tuple[frozenset[str], frozenset[str]] | None:
    named = [p for p in parameters if not _variadic(p)]
    required = [p for p in named if p.default is p.empty]
    must = frozenset(p.name for p in required)
    if not must or any(p.kind is p.POSITIONAL_ONLY for p in named):
        return None
    if len(must) == 1 and (_wants_object(required[0]) or required[0].name in (*_WHOLE, *_SESSION)):
        return None
    return must, frozenset(p.name for p in named)


def _by_position(parameters: list[inspect.Parameter], roles: Mapping[str, str]) -> tuple[Role, ...]:
    """By position as long as nothing is left out before, by name from there on."""
    bound: list[Role] = []
    gap = False
    for parameter in parameters:
        role = roles.get(parameter.name)
        if role is None:
            gap = True
            continue
        by_position = parameter.kind in (*_POSITIONAL, parameter.VAR_POSITIONAL) and not gap
        bound.append((parameter.name, role, by_position))
    return tuple(bound)


def _variadic(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _role(parameter: inspect.Parameter, function: Any) -> str | None:
    annotation = parameter.annotation
    if (annotated := _annotated(annotation, function)) is not None:
        return annotated
    if parameter.name in _WHOLE and annotation not in (parameter.empty, Any, "Any"):
        return None
    return parameter.name if parameter.name in (*_WHOLE, *_SESSION) else None


def _annotated(annotation: Any, function: Any) -> str | None:
    """`turn` or `case` when the annotation names that class: as a class, in a union, or as text."""
    if isinstance(annotation, str):
        found = re.search(r"\b(Turn|Case)\b", annotation)
        if found is None:
            return None
        name = found.group(1)
        known = getattr(function, "__globals__", {}).get(name)
        return name.lower() if known is None or known is _CLASSES[name] else None
    for candidate in (annotation, *get_args(annotation)):
        for name, kind in _CLASSES.items():
            if candidate is kind:
                return name.lower()
    return None


class CallableAgent(BaseAgent):
    """Calls one function for each turn and reads what it returns.

    Parameters named or annotated `turn` or `case` get the whole object, `history` the (input, answer) pairs so far,
    `state` a dict that lives as long as the session, `session_id` its id, `session` all of these, `trial` the number of
    the trial from 1; the first other parameter gets the input.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or _name(function)
        held, self.unknown_parts = configuration(function)
        source = source_fingerprint(function)
        self.fingerprint = source if held == [source, {}] else fingerprint(source, held)
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


class CallableSession(BaseSession):
    """One conversation with a function; it remembers what functions themselves do not."""

    def __init__(self, agent: CallableAgent, case: Case) -> None:
        super().__init__(case)
        self._agent = agent
        self._case = case
        remembers = agent.signature.takes("history", "state", "session", "session_id")
        self._conversation = Conversation(case) if remembers else None

    async def send(self, turn: Turn) -> Reply:
        agent, conversation = self._agent, self._conversation
        signature = agent.signature
        known: dict[str, Any] = {"input": copy.deepcopy(turn.input), "turn": turn, "case": self._case}
        known["trial"] = TRIAL.get()
        if conversation is not None:
            known |= {"history": list(conversation.history), "state": conversation.state}
            known |= {"session": conversation, "session_id": conversation.id}
        try:
            positional, named = signature.bind(known)
        except DoesNotFit as error:
            raise AgentFailed(f"{agent.name} cannot be called with {_short(turn)}: {error}") from None
        answer = await invoke_as(agent.asynchronous, agent.function, positional, named)
        reply = Reply(answer) if type(answer) is str else _read(answer, turn.input)
        if conversation is None:
            return reply
        if reply.state is None and signature.takes("state", "session"):
            conversation.history.append((turn.input, reply.text))
            return dataclasses.replace(reply, state=plain(conversation.state))
        return conversation.record(turn, reply)


def _read(answer: Any, asked: Json) -> Reply:
    """Most agents answer with text: only the others need what knows all shapes of answers."""
    from proctor.agents.sessions import to_reply

    return to_reply(answer, asked)


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
