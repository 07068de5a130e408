"""What an agent is, the reply that it gives, what that costs, and the defaults for what an agent may leave out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

from proctor.base.json_data import Json, fingerprint, parsed, plain
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Case, NamedData, Turn


@record
class Usage:
    """What an answer cost: tokens and, where known, money. `None` is not known, which differs from zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    model: str | None = None
    """The model that was asked; `None` where it is not known or there were several."""
    estimated: bool = False
    """Whether the cost comes from a price list and not from the one who is paid."""

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def known(self) -> dict[str, Json]:
        """The parts that say something, for records: no `None`, and `estimated` only where it is true."""
        return {name: value for name, value in plain(self).items() if value is not None and value is not False}

    def __add__(self, other: Usage) -> Usage:
        """The sum; of two models each is priced first, since the sum could not be."""
        one = self
        if one.model is not None and other.model is not None and one.model != other.model:
            one, other = priced(one), priced(other)
        return Usage(
            _sum(one.input_tokens, other.input_tokens),
            _sum(one.output_tokens, other.output_tokens),
            _sum(one.cost_usd, other.cost_usd),
            _sum(one.model_calls, other.model_calls),
            _common_model(one, other),
            one.estimated or other.estimated,
        )


def _common_model(one: Usage, other: Usage) -> str | None:
    """The model of all tokens; a part without tokens may leave it open."""
    named = {part.model for part in (one, other) if part.input_tokens or part.output_tokens or part.model}
    return named.pop() if len(named) == 1 else None


def _sum(left: Any, right: Any) -> Any:
    return left if right is None else right if left is None else left + right


NOT_BACK = "had not come back when the turn broke off"
"""The error of a call of which the end was not seen."""


@record
class ToolCall:
    """One use of a tool by the agent."""

    name: str
    arguments: Mapping[str, Json] = NOTHING
    result: Json = None
    error: str | None = None
    id: str | None = None
    started_at: float | None = None
    """Seconds since the epoch."""
    duration_ms: float | None = None
    raw_arguments: str | None = None
    """The argument text as the model wrote it, kept when it is not a JSON object."""
    parent: str | None = None
    """The id of the call inside which it was made, where an agent is used as a tool."""

    @classmethod
    def parse(cls, name: str, arguments: Json, **rest: Any) -> ToolCall:
        """A call whose arguments may be an object, JSON text, or text that was meant to be JSON."""
        if isinstance(arguments, Mapping):
            return cls(name, dict(arguments), **rest)
        if arguments is None or arguments == "":
            return cls(name, **rest)
        if isinstance(arguments, (str, bytes)):
            text = arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace")
            data = parsed(text)
            return cls(name, dict(data), **rest) if isinstance(data, Mapping) else cls(name, raw_arguments=text, **rest)
        return cls(name, raw_arguments=repr(arguments), **rest)


@record
class Reply:
    """What came back for one turn."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    outputs: tuple[NamedData, ...] = ()
    """Values the application named; where there are any, they are what evaluators see."""
    structured: Json = None
    """The answer as data, where the agent answers with data."""
    state: Mapping[str, Json] | None = None
    """What the session knows after this turn, where the agent tells."""
    retrieval_context: tuple[str, ...] | None = None
    duration_ms: float | None = None
    raw: Any = None
    """The framework's own object; never stored."""
    error: str | None = None
    """Why the turn failed, where the agent said so or raised; the rest is what there was of an answer by then."""


@runtime_checkable
class Session(Protocol):
    """One conversation; turns are sent strictly one after another."""

    async def send(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Agent(Protocol):
    """The least that an object needs to be an agent; it may hold many sessions at once.

    It may also have `start`, `stop`, `check`, `fingerprint`, `takes_files` and `start_seconds`; what these mean, and
    their defaults, are in `proctor.agents.agent.BaseAgent`.
    """

    @property
    def name(self) -> str: ...

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]: ...


class BaseSession:
    """One conversation; what must be opened and closed with it goes into `open` and `close`."""

    def __init__(self, case: Case) -> None:
        self.case = case

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def send(self, turn: Turn) -> Reply:
        raise NotImplementedError

    def so_far(self) -> Reply | None:
        """What there is of the answer to the turn that is being answered; asked when it broke off or took too long."""
        return None


class BaseAgent:
    """An agent with a default for everything but its name and its sessions; the engine runs no other kind."""

    name: str
    fingerprint: str = ""
    """Changes when the agent changes; empty if the agent cannot tell."""
    unknown_parts: tuple[str, ...] = ()
    """What of the agent its fingerprint does not cover; its answers are not reused by another run then."""
    sees_calls: bool = False
    """Whether a reply without tool calls means that there were none; else they are looked for in the trace."""
    takes_files: bool = True
    """Whether it reads the files of a turn itself; if not, the engine puts their text into the input."""
    tells_cost: bool = False
    """Whether each of its answers tells what it cost, so that no price list is needed."""
    endpoint: str = ""
    """The service that answers, where several agents may share it: `--rate` counts for all of them."""
    start_seconds: float = 0.0
    """`start` may take this long even if the time limit of a trial is shorter."""

    @property
    def identity(self) -> str:
        """Tells this agent from others in stored results: its fingerprint, or else its name."""
        return self.fingerprint or fingerprint(self.name)

    async def start(self) -> None:
        """Called once before the first session."""
        return

    async def stop(self) -> None:
        """Called once after the last session."""
        return

    def check(self, case: Case) -> str | None:
        """Why the case cannot be put to this agent; asked of every case before any is run."""
        return None

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        raise NotImplementedError


class GivenAgent(BaseAgent):
    """An object of the user's with a name and sessions, and the defaults for what it leaves out.

    Its other attributes, such as `tools`, are found here too. Two of these are equal if they stand for the same object,
    so that an object which several suites name is started once.
    """

    def __init__(self, given: Agent) -> None:
        self.given = given
        self.name = given.name
        self.fingerprint = str(getattr(given, "fingerprint", None) or "")
        self.takes_files = bool(getattr(given, "takes_files", True))
        self.start_seconds = float(getattr(given, "start_seconds", 0.0))

    def __getattr__(self, name: str) -> Any:
        if name == "given":  # not set yet while the object is being copied
            raise AttributeError(name)
        return getattr(self.given, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenAgent) and self.given is other.given

    def __hash__(self) -> int:
        return id(self.given)

    async def start(self) -> None:
        await self._step("start")

    async def stop(self) -> None:
        await self._step("stop")

    async def _step(self, name: str) -> None:
        step = getattr(self.given, name, None)
        done = step() if callable(step) else None
        if inspect.isawaitable(done):
            await done

    def check(self, case: Case) -> str | None:
        check = getattr(self.given, "check", None)
        return check(case) if callable(check) else None

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        return self.given.session(case)


def with_defaults(agent: Agent) -> BaseAgent:
    """The agent itself, or, if it is an object of the user's, one that stands for it and has the defaults."""
    return agent if isinstance(agent, BaseAgent) else GivenAgent(agent)


_NAMES = ("model_name", "model", "model_id", "id", "name")
"""Where objects of model libraries keep the name of the model."""
_SEPARATORS = (":", "/")


def priced(usage: Usage, model: str | None = None) -> Usage:
    """The usage with its cost; the same where the cost is known already, or tokens or a price are missing.

    `model` is the agent's, for a usage that names none.
    """
    name = usage.model or model
    if usage.cost_usd is not None or name is None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    cost = price(name, usage.input_tokens, usage.output_tokens)
    return usage if cost is None else replace(usage, cost_usd=cost, model=name, estimated=True)


def price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars by a maintained price list, which comes with its package and asks no network; `None` if it is not on it.

    What comes of it is marked as an estimate: discounts, cached tokens and prices of one's own are not in any list.
    """
    reference = _reference(model)
    if reference is None:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(input_tokens=max(0, input_tokens), output_tokens=max(0, output_tokens))
    try:
        return float(calc_price(tokens, model_ref=reference[0], provider_id=reference[1]).total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def is_priced(model: str) -> bool:
    return _reference(model) is not None


@functools.lru_cache(maxsize=256)
def _reference(model: str) -> tuple[str, str | None] | None:
    """The name of a model as the list has it, and the provider where the name says one: `openai:gpt-5`, `models/x`."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    candidates: list[tuple[str, str | None]] = [(model, None)]
    for separator in _SEPARATORS:
        provider, found, rest = model.partition(separator)
        if found and rest:
            candidates += [(rest, provider), (rest, None)]
    for name, provider_id in candidates:
        try:
            calc_price(Tokens(input_tokens=1, output_tokens=1), model_ref=name, provider_id=provider_id)
        except (LookupError, ValueError, AssertionError):
            continue
        return name, provider_id
    return None


def model_of(agent: Any) -> str | None:
    """The model that an agent says it asks, before it has answered; `None` where it does not say."""
    for owner in (agent, getattr(agent, "target", None)):
        if (model := getattr(owner, "model", None)) is not None:
            return _name_of(model)
    return None


def _name_of(model: Any) -> str | None:
    if isinstance(model, str):
        return model or None
    for name in _NAMES:
        found = getattr(model, name, None)
        if isinstance(found, str) and found:
            return found
    return None


def unknown_cost(agent: Any) -> str:
    """Why nothing will be known of an agent's cost, as far as can be said before it answers; empty where it will."""
    if getattr(agent, "tells_cost", False):
        return ""
    model = model_of(agent)
    if model is None:
        return "it names no model, so that its cost counts only if its answers tell it"
    return "" if is_priced(model) else f"the price list does not have its model {model!r}"
