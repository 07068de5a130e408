"""Agents that are functions or other callables: which value goes to which parameter, and how the result is read.

Three rules bind a turn to the parameters of a function.

1. Reserved parameters get the value of their name: `turn`, `case`, `messages`, `history`, `state`, `session`,
   `session_id`, `trial`. A parameter of any name that is annotated with `Turn` or `Case` gets the turn or the case.
2. An input that is an object whose keys are all parameters is passed as keyword arguments.
3. Any other input goes to the first remaining parameter.

A function without parameters is called for every turn like any other; applications that read their input with `wrap`
are written that way. If it turns out to be a factory, because it returns an agent of a known framework, that agent
answers from then on. Calling the function beforehand to find out would run the user's application while it is loaded.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import logging
import re
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any

from proctor.agents.agent import BaseAgent, BaseSession, Session
from proctor.agents.conversation import Conversation
from proctor.agents.frameworks import find_agent
from proctor.agents.reply import Reply
from proctor.agents.reply_reader import to_reply
from proctor.agents.trial_context import trial_number
from proctor.agents.user_code import call_user_function_as
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.fingerprints import captured_values, source_fingerprint
from proctor.base.json_data import Json, fingerprint, to_json, to_text
from proctor.base.threads import is_async
from proctor.cases.suite import Case, Turn

_WHOLE_OBJECTS = ("turn", "case")
_WITH_INPUT = (*_WHOLE_OBJECTS, "messages")
"""Parameters that contain the input, so that the function needs no other parameter for it."""
_RESERVED = (*_WITH_INPUT, "history", "state", "session", "session_id", "trial")
_ROLE_OF_CLASS: Mapping[Any, str] = {Turn: "turn", Case: "case"}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TEXT_ANNOTATION = re.compile(r"(?:\w+\.)*(Turn|Case)(?:\s*\|\s*None)?")


class InputMismatch(Exception):
    """The function cannot be called with this input; the message says why."""


@dataclass(frozen=True, slots=True)
class ParameterBinding:
    """How the parameters of a function are bound to a turn."""

    signature: inspect.Signature
    roles: Mapping[str, str]
    """The reserved parameters, and the reserved name of each."""
    receiver: str | None
    """The parameter for an input that is not passed as keywords; `None` if the function needs more than one value."""
    takes_object: bool = False
    """Whether the receiver is annotated as a mapping, so that an object goes there as a whole."""

    @property
    def is_empty(self) -> bool:
        """Whether the function has no parameters at all."""
        return not self.signature.parameters

    def takes(self, *roles: str) -> bool:
        return any(role in roles for role in self.roles.values())

    def bind(self, values: Mapping[str, Any]) -> inspect.BoundArguments:
        """The arguments of one call; `values` has the input and a value for every reserved name that is used.

        Raises `InputMismatch`.
        """
        value = values["input"]
        arguments = {name: values[role] for name, role in self.roles.items()}
        is_keyword_call = self._is_keyword_call(value)
        if self._ignores_input and not (is_keyword_call and self.takes("messages")):
            return inspect.BoundArguments(self.signature, arguments)
        if is_keyword_call:
            return self._keyword_call(arguments, value)
        if self.receiver is None:
            raise InputMismatch(self._mismatch(value))
        is_starred = self.signature.parameters[self.receiver].kind is inspect.Parameter.VAR_POSITIONAL
        arguments[self.receiver] = (value,) if is_starred else value
        return inspect.BoundArguments(self.signature, arguments)

    def check(self, value: Json) -> None:
        """Raise `InputMismatch` if the function cannot be called with this input."""
        if self.receiver is None and not self._ignores_input and not self._is_keyword_call(value):
            raise InputMismatch(self._mismatch(value))

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        return [p for p in self.signature.parameters.values() if not _is_variadic(p)]

    @property
    def _free(self) -> list[inspect.Parameter]:
        return [p for p in self._parameters if p.name not in self.roles]

    @property
    def _required(self) -> list[str]:
        return [p.name for p in self._free if p.default is p.empty]

    @property
    def _takes_any_keyword(self) -> bool:
        return any(p.kind is p.VAR_KEYWORD for p in self.signature.parameters.values())

    @property
    def _ignores_input(self) -> bool:
        """Whether it has no parameters, or gets the turn or the case and requires nothing else."""
        return self.is_empty or (self.takes(*_WITH_INPUT) and not self._required)

    def _is_keyword_call(self, value: Json) -> bool:
        if not isinstance(value, Mapping) or self.takes_object:
            return False
        free = {p.name for p in self._free} | {name for name, role in self.roles.items() if role == "messages"}
        if not value.keys() & free and (free or not self._takes_any_keyword):
            return False
        names = {p.name for p in self._parameters}
        return value.keys() >= set(self._required) and (self._takes_any_keyword or value.keys() <= names)

    def _keyword_call(self, arguments: dict[str, Any], value: Mapping[str, Json]) -> inspect.BoundArguments:
        names = {p.name for p in self._parameters}
        arguments |= {name: item for name, item in value.items() if name in names}
        if others := {name: item for name, item in value.items() if name not in names}:
            keywords = next(p for p in self.signature.parameters.values() if p.kind is p.VAR_KEYWORD)
            arguments[keywords.name] = others
        return inspect.BoundArguments(self.signature, arguments)

    def _mismatch(self, value: Json) -> str:
        free = [p.name for p in self._free]
        if not isinstance(value, Mapping):
            names = ", ".join(self._required or free) or "keyword arguments"
            return f"its parameters are {names}, so the input must be an object with these keys"
        if missing := [name for name in self._required if name not in value]:
            return f"the input lacks {', '.join(missing)}"
        return f"it has no parameter {', '.join(name for name in value if name not in free)}"


_INPUT_ONLY = ParameterBinding(
    inspect.Signature([inspect.Parameter("input", inspect.Parameter.POSITIONAL_ONLY)]), {}, "input"
)


def read_binding(function: Callable[..., Any]) -> ParameterBinding:
    """The binding of `function`. One without a readable signature gets the input as its only argument."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return _INPUT_ONLY
    parameters = list(signature.parameters.values())
    annotations = {p.name: _annotation(p, function) for p in parameters}
    roles = {p.name: role for p in parameters if not _is_variadic(p) and (role := _role(p, annotations[p.name]))}
    receiver = _receiver(parameters, roles)
    if receiver is None:
        return ParameterBinding(signature, roles, None)
    roles.pop(receiver.name, None)
    return ParameterBinding(signature, roles, receiver.name, _is_mapping_type(annotations[receiver.name]))


def _receiver(parameters: list[inspect.Parameter], roles: Mapping[str, str]) -> inspect.Parameter | None:
    """The first free parameter, or the first of all if every one is reserved; `None` if several are required."""
    free = [p for p in parameters if p.name not in roles and not _is_variadic(p)]
    required = [p for p in free if p.default is p.empty]
    if required:
        return required[0] if len(required) == 1 else None
    if any(role in _WITH_INPUT for role in roles.values()):
        return None
    candidates = [p for p in free if p.kind in _POSITIONAL]
    candidates += [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    candidates += [p for p in parameters if p.kind in _POSITIONAL]
    return candidates[0] if candidates else None


def _is_variadic(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _role(parameter: inspect.Parameter, annotation: Any) -> str | None:
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and candidate in _ROLE_OF_CLASS:
            return _ROLE_OF_CLASS[candidate]
    if parameter.name in _WHOLE_OBJECTS and annotation not in (parameter.empty, Any):
        return None  # `turn: str` is the user's name for the input
    if parameter.name == "messages" and (annotation is str or _is_mapping_type(annotation)):
        return None  # likewise
    return parameter.name if parameter.name in _RESERVED else None


def _annotation(parameter: inspect.Parameter, function: Any) -> Any:
    """The annotation as a type. `Turn` and `Case` count as Proctor's also if they are imported for typing only."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    target = _unwrap(function)
    target = target if inspect.isroutine(target) or isinstance(target, type) else type(target).__call__
    try:
        return typing.get_type_hints(target)[parameter.name]
    except Exception:  # a name that is not defined at run time, in this or in another annotation
        match = _TEXT_ANNOTATION.fullmatch(parameter.annotation.strip())
        names = getattr(target, "__globals__", {})
        if match is None:
            return names.get(parameter.annotation, parameter.annotation)
        return names.get(match.group(1), Turn if match.group(1) == "Turn" else Case)


def _is_mapping_type(annotation: Any) -> bool:
    """Whether an annotation is dict, Mapping or a TypedDict, or a union with one."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return any(map(_is_mapping_type, typing.get_args(annotation)))
    kind = typing.get_origin(annotation) or annotation
    return typing.is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Mapping))


class CallableAgent(BaseAgent):
    """Calls a function for each turn and reads its result.

    Parameters named or annotated `turn` or `case` get the whole object, `messages` the conversation as chat messages,
    this turn included, `history` the (input, answer) pairs so far, `state` a dict that lasts for the session,
    `session_id` its id, `session` all of these, and `trial` the number of the trial from 1. The first other parameter
    gets the input.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or _name(function)
        settings, self.unfingerprinted_parts = captured_values(function)
        source = source_fingerprint(function)
        self.fingerprint = source if settings == [source, {}] else fingerprint(source, settings)
        self.binding = read_binding(function)
        self.asynchronous = is_async(function)
        self.reads_files = self.binding.takes(*_WHOLE_OBJECTS)
        self.target: Any = None
        """The framework's agent that the function returned, if it is a factory."""
        self._product: BaseAgent | None = None

    def __repr__(self) -> str:
        return f"CallableAgent({self.name})"

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        return CallableSession(self, case) if self._product is None else self._product.session(case)

    async def stop(self) -> None:
        if self._product is not None:
            await self._product.stop()

    def check(self, case: Case) -> str | None:
        """Why the function cannot be called with a turn of this case, or None if it can."""
        if self._product is not None:
            return self._product.check(case)
        for turn in case.turns:
            try:
                self.binding.check(turn.input)
            except InputMismatch as error:
                return f"{self.name} cannot be called with {_input_text(turn)}: {error}"
        return None

    def adopt(self, result: Any) -> BaseAgent | None:
        """The agent that answers from now on, if `result` is an agent; else None.

        A function with parameters was passed an input and did not use it to answer: that raises `UnreadableReply`.

        Concurrent trials may each have called the function before the first of them returned. The first result is used
        and the others are dropped. Nothing is awaited here, so no other trial runs between the check and the choice.
        """
        agent = result if isinstance(result, BaseAgent) else find_agent(result, self.name)
        if agent is None:
            return None
        if not self.binding.is_empty:
            raise UnreadableReply(
                f"{self.name} returned an agent ({type(result).__name__}), not an answer; pass the input to it. "
                f"If {self.name} should make the agent once, write {self.name}() and require no parameters"
            )
        if self._product is None:
            self.target = result
            self._product = agent
            self.reports_all_tool_calls = agent.reports_all_tool_calls
            self.reads_files = agent.reads_files
            logging.getLogger("proctor.agents").info(
                "%s returned an agent (%s), which answers from now on; write %s() for a factory that is called once",
                *(self.name, type(result).__name__, self.name),
            )
        return self._product


class CallableSession(BaseSession):
    """One conversation with a function; it has the history and the state, which functions do not keep."""

    def __init__(self, agent: CallableAgent, case: Case) -> None:
        super().__init__(case)
        self._agent = agent
        remembers = agent.binding.takes("messages", "history", "state", "session", "session_id")
        self._conversation = Conversation(case) if remembers else None
        self._product: Session | None = None
        """A session of the agent that the function returned."""
        self._open = AsyncExitStack()

    async def close(self) -> None:
        await self._open.aclose()

    async def send(self, turn: Turn) -> Reply:
        if self._product is not None:
            return await self._product.send(turn)
        agent = self._agent
        try:
            bound = agent.binding.bind(self._values(turn))
        except InputMismatch as error:
            raise AgentFailed(f"{agent.name} cannot be called with {_input_text(turn)}: {error}") from None
        result = await call_user_function_as(agent.asynchronous, agent.function, bound.args, bound.kwargs)
        product = None if isinstance(result, str) else agent.adopt(result)
        if product is not None:
            self._product = await self._open.enter_async_context(product.session(self.case))
            return await self._product.send(turn)
        return self._record(turn, to_reply(result, turn.input))

    def _values(self, turn: Turn) -> Mapping[str, Any]:
        """The values of the reserved parameters, and a copy of the input, which the agent may change."""
        values: dict[str, Any] = {"input": copy.deepcopy(turn.input), "turn": turn, "case": self.case}
        values["trial"] = trial_number()
        conversation = self._conversation
        if conversation is not None:
            values |= {"history": list(conversation.history), "state": conversation.state}
            values["messages"] = [*conversation.messages(), *_as_messages(values["input"])]
            values |= {"session": conversation, "session_id": conversation.id}
        return values

    def _record(self, turn: Turn, reply: Reply) -> Reply:
        conversation = self._conversation
        if conversation is None:
            return reply
        if reply.state is None and self._agent.binding.takes("state", "session"):
            conversation.history.append((turn.input, reply.text))
            return dataclasses.replace(reply, state=to_json(conversation.state))
        return conversation.record(turn, reply)


def _as_messages(value: Any) -> list[Any]:
    """The input of a turn as chat messages; one that is a list of messages already stays as it is."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "role" in item for item in value):
        return value
    return [{"role": "user", "content": value}]


def _input_text(turn: Turn) -> str:
    value = to_json(turn.input)
    text = to_text(value, 80)
    return f'the input "{text}"' if isinstance(value, str) else f"the input {text}"


def _unwrap(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function: Any) -> str:
    target = _unwrap(function)
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else type(target).__name__
