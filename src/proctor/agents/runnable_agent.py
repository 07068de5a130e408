"""Applications written as a Runnable class: created and set up once, run for every case, torn down at the end."""

from __future__ import annotations

import asyncio
import inspect
import typing
from typing import Any, Protocol, TypeVar, runtime_checkable

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.reply import Reply
from proctor.agents.reply_reader import to_reply
from proctor.agents.user_code import call_user_function
from proctor.base.errors import AgentFailed, ProctorError, UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, to_json
from proctor.cases.suite import Case, Turn

ArgsT = TypeVar("ArgsT", contravariant=True)


@runtime_checkable
class Runnable(Protocol[ArgsT]):
    """An application under test: subclass it, or write a class that has at least `create` and `run`.

    `run` is called for many cases concurrently. Its argument is built from the case's input and validated.
    """

    @classmethod
    def create(cls) -> Any:
        """Return the instance that serves all cases."""
        return cls()

    async def setup(self) -> None:
        """Called once before the first case."""
        return

    async def run(self, args: ArgsT) -> Any:
        """Answer one turn; the returned value is read as the reply."""
        ...

    async def teardown(self) -> None:
        """Called once after the last case, even if `setup` failed."""
        return


class RunnableAgent(BaseAgent):
    """Runs a Runnable class as an agent."""

    reads_files = False

    def __init__(self, kind: type[Any], name: str | None = None) -> None:
        self.kind = kind
        self.name = name or kind.__name__
        self.fingerprint = source_fingerprint(kind)
        self._parameter = _parameter(kind)
        self._validator: Any = None
        self.instance: Any = None

    def __repr__(self) -> str:
        return f"RunnableAgent({self.name})"

    async def start(self) -> None:
        if self.instance is None:
            self.instance = await self.open()

    async def stop(self) -> None:
        instance, self.instance = self.instance, None
        if instance is not None:
            await self.close(instance)

    async def open(self) -> Any:
        """Create an instance and set it up; if that fails, it is torn down."""
        instance = await self._call_method("create", self.kind.create)
        try:
            if hasattr(instance, "setup"):
                await self._call_method("setup", instance.setup)
        except BaseException as error:
            try:
                await self.close(instance)
            except AgentFailed as second:
                error.add_note(str(second))
            raise
        return instance

    async def close(self, instance: Any) -> None:
        if hasattr(instance, "teardown"):
            await self._call_method("teardown", instance.teardown)

    async def _call_method(self, name: str, function: Any) -> Any:
        try:
            return await call_user_function(function)
        except (ProctorError, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise AgentFailed(f"{self.name}.{name}() raised {one_line(error)}") from error

    def session(self, case: Case) -> RunnableSession:
        return RunnableSession(self, case)

    def check(self, case: Case) -> str | None:
        """Why `run` cannot be called with the input of a turn, field by field, or None if it can."""
        reasons = []
        for index, turn in enumerate(case.turns, 1):
            try:
                self.arguments(turn.input)
            except (ValueError, UsageError) as error:
                reasons.append(f"turn {index}: {error}" if len(case.turns) > 1 else str(error))
        return "; ".join(reasons) or None

    def arguments(self, value: Json) -> list[Any]:
        """The arguments for `run`; raises `ValueError` with everything that is wrong with `value`."""
        if self._parameter is None:
            return []
        if self._validator is None:
            self._validator = _validator(self.kind, self._parameter)
        return [self._validator(to_json(value))]


class RunnableSession(BaseSession):
    """One conversation; it shares the agent's instance, or has its own if the agent was not started."""

    def __init__(self, agent: RunnableAgent, case: Case) -> None:
        super().__init__(case)
        self._agent = agent
        self._instance: Any = None
        self._owns_instance = False

    async def open(self) -> None:
        self._owns_instance = self._agent.instance is None
        self._instance = await self._agent.open() if self._owns_instance else self._agent.instance

    async def close(self) -> None:
        if self._owns_instance:
            await self._agent.close(self._instance)

    async def send(self, turn: Turn) -> Reply:
        try:
            arguments = self._agent.arguments(turn.input)
        except ValueError as error:
            raise AgentFailed(str(error)) from None
        return to_reply(await call_user_function(self._instance.run, *arguments))


def _parameter(kind: type[Any]) -> inspect.Parameter | None:
    """The parameter of `run` for the input: the one called `args`, else the only one."""
    try:
        parameters = list(inspect.signature(kind.run).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if not isinstance(inspect.getattr_static(kind, "run"), (staticmethod, classmethod)):
        parameters = parameters[1:]
    named = [p for p in parameters if p.name == "args" and p.kind is not p.VAR_POSITIONAL]
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(named or required) > 1 or (named and any(p is not named[0] for p in required)):
        names = ", ".join(p.name for p in required)
        raise UsageError(f"{kind.__name__}.run takes {names}; it must have one parameter, args, of a pydantic model")
    candidates = named or required
    return candidates[0] if candidates else None


def _validator(kind: type[Any], parameter: inspect.Parameter) -> Any:
    """A function that converts JSON to the annotated type; without an annotation it returns the JSON."""
    try:
        annotation = typing.get_type_hints(kind.run).get(parameter.name, Any)
    except Exception:
        annotation = parameter.annotation
    if annotation in (Any, dict, parameter.empty) or isinstance(annotation, (str, TypeVar)):
        return lambda value: value
    from pydantic import TypeAdapter, ValidationError  # heavy, and needed only for runnables

    name = getattr(annotation, "__name__", str(annotation))
    try:
        validate = TypeAdapter(annotation).validate_python
    except Exception:
        raise UsageError(
            f"{kind.__name__}.run takes a {name}, which cannot be built from JSON; annotate it with a pydantic model"
        ) from None

    def convert(value: Json) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            raise ValueError(_validation_message(name, error)) from None

    return convert


def _validation_message(name: str, error: Any) -> str:
    """Every field error in one line, without the links and the input that pydantic adds."""
    problems = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in detail["loc"])
        problems.append(f"{place}: {detail['msg']}" if place else detail["msg"])
    return f"the input is not a valid {name}: {', '.join(problems)}"
