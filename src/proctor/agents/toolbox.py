"""The tools of an agent by name, the arguments of a call as the types a tool takes, and answers in place of tools."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import threading
import time
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain, show
from proctor.base.records import record
from proctor.base.references import is_reference, resolve
from proctor.cases.matchers import may_be_absent
from proctor.cases.suite import Double

MARK = "__proctor_tool__"
"""Where a marked function keeps what is known about it as a tool."""
_CODE = ("func", "function", "fn", "coroutine")
"""Where tool objects of frameworks keep the function behind them."""
_OWNERS = ("target", "function")
"""Where adapters keep the object they adapt."""


@record
class Tool:
    """A function that an agent calls by name."""

    name: str
    function: Callable[..., Any]
    side_effects: bool = False
    """Whether it changes something outside, so that calling it twice is not the same as calling it once."""

    @property
    def home(self) -> str:
        """The file it is written in, as far as that is known."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return "" if code is None else str(code.co_filename)


_REGISTERED: dict[str, dict[tuple[str, str], Tool]] = {}
"""By name, then by where it is written: a file that is loaded again replaces its own tools, and no others."""


def register(tool: Tool) -> None:
    """Let a tool be found by its name."""
    place = tool.home, getattr(tool.function, "__qualname__", tool.name)
    _REGISTERED.setdefault(tool.name, {})[place] = tool


def registered(base: Path | None = None) -> dict[str, Tool]:
    """The tools that were marked with `@proctor.tool` so far; of several of one name, the one below `base`.

    A name that still means several tools is left out: it is not known which of them the agent called.
    """
    found: dict[str, Tool] = {}
    for name, tools in _REGISTERED.items():
        chosen = list(tools.values())
        if len(chosen) > 1 and base is not None:
            chosen = [tool for tool in chosen if base in Path(tool.home).parents]
        if len(chosen) == 1:
            found[name] = chosen[0]
    return found


def toolbox(given: Any = None, base: Path | None = None, agent: Any = None) -> dict[str, Tool]:
    """The tools by name: as `given`, or else those that are marked and those that the agent shows.

    `given` is a table of names and functions, a list of functions, an object with `tools`, or a reference to any of
    these. Raises `UsageError` for what is none of them.
    """
    if given is None or given is True:
        marked = registered(base)
        # What an agent lists is its own; yet a framework's wrapper may hide the mark of a tool with side effects.
        return marked | {name: tool for name, tool in shown_by(agent).items() if not _has_effects(marked.get(name))}
    if isinstance(given, str):
        given = _resolved(given, base)
    if isinstance(given, Mapping):
        return {str(name): _tool(item, str(name), base) for name, item in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return {tool.name: tool for tool in (_tool(item, None, base) for item in given)}
    if isinstance(getattr(given, "tools", None), (Mapping, list, tuple)):
        return toolbox(given.tools, base)
    if callable(given):
        tool = _tool(given, None, base)
        return {tool.name: tool}
    raise UsageError(f"tools are a table of names and functions, or a list of functions, not {given!r:.80}")


def _has_effects(tool: Tool | None) -> bool:
    return tool is not None and tool.side_effects


def shown_by(agent: Any) -> dict[str, Tool]:
    """The tools that an agent object lists itself; what is no function in the list is passed over."""
    for owner in (agent, *(getattr(agent, name, None) for name in _OWNERS)):
        listed = getattr(owner, "tools", None)
        if isinstance(listed, (Mapping, list, tuple)):
            items = listed.items() if isinstance(listed, Mapping) else ((None, item) for item in listed)
            tools = (_read(item, name) for name, item in items)
            return {tool.name: tool for tool in tools if tool is not None}
    return {}


def _tool(item: Any, name: str | None, base: Path | None) -> Tool:
    tool = _read(_resolved(item, base) if isinstance(item, str) else item, name)
    if tool is None:
        raise UsageError(f"{item!r:.80} is no tool: give functions, or a mapping of names to functions")
    return tool


def _read(item: Any, name: str | None) -> Tool | None:
    """A function as a tool; what a mark says about it holds, also of a method that is bound to its object."""
    if isinstance(item, Tool):
        return item
    mark = getattr(item, MARK, None)
    if isinstance(mark, Tool):
        function = item if inspect.ismethod(item) else mark.function
        return Tool(name or mark.name, function, mark.side_effects)
    own = name or _name_of(item)
    code = next((found for part in _CODE if callable(found := getattr(item, part, None))), None)
    if not inspect.isroutine(item) and code is not None and own:
        return _read(code, own)
    return Tool(own, item) if callable(item) and own else None


def _name_of(item: Any) -> str:
    for name in ("name", "__name__"):
        found = getattr(item, name, None)
        if isinstance(found, str) and found:
            return found
    return ""


def _resolved(text: str, base: Path | None) -> Any:
    if not is_reference(text):
        raise UsageError(f"{text!r} names no tools; write file.py:TOOLS or package.module:TOOLS")
    return resolve(text, base)


class UnfitArguments(Exception):
    """The tool cannot be called with these arguments; says why."""


def fitted(function: Callable[..., Any], given: Mapping[str, Json]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name, each of the type its parameter says: models, enums, decimals, dates.

    A tool of one object, such as `LoanRequest`, gets that object made of all arguments together. Raises
    `UnfitArguments`.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [], dict(given)  # a builtin that does not say what it takes
    kinds = _kinds(function)
    whole = _whole(parameters, kinds, given)
    if whole is not None:
        given = {whole: dict(given)}
    return _bound(parameters, kinds, given)


def _bound(
    parameters: Mapping[str, inspect.Parameter], kinds: Mapping[str, Any], given: Mapping[str, Json]
) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    left = dict(given)
    problems: list[str] = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= {key: _made(key, left.pop(key), kinds.get(name), problems) for key in list(left)}
        elif parameter.kind is parameter.VAR_POSITIONAL:
            positional += [_made(name, item, kinds.get(name), problems) for item in left.pop(name, None) or ()]
        elif name in left:
            value = _made(name, left.pop(name), kinds.get(name), problems)
            if parameter.kind is parameter.KEYWORD_ONLY or len(positional) < _place(parameters, name):
                named[name] = value
            else:
                positional.append(value)
        elif parameter.default is parameter.empty:
            problems.append(f"{name!r} is missing")
    problems += [f"there is no parameter {name!r}" for name in left]
    if problems:
        raise UnfitArguments("; ".join(problems))
    return positional, named


def _place(parameters: Mapping[str, inspect.Parameter], name: str) -> int:
    return list(parameters).index(name)


def _whole(
    parameters: Mapping[str, inspect.Parameter], kinds: Mapping[str, Any], given: Mapping[str, Json]
) -> str | None:
    """The one parameter that all arguments together make up, if the tool is of that kind."""
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind not in _OPEN]
    if len(needed) != 1 or needed[0] in given or any(name in parameters for name in given):
        return None
    return needed[0] if _is_made_of_fields(kinds.get(needed[0])) else None


_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_made_of_fields(kind: Any) -> bool:
    """Pydantic models, dataclasses and typed dicts, also where `None` is allowed instead."""
    choices = [part for part in typing.get_args(kind) if part is not type(None)] or [kind]
    return any(
        isinstance(choice, type)
        and (dataclasses.is_dataclass(choice) or hasattr(choice, "model_validate") or typing.is_typeddict(choice))
        for choice in choices
    )


def _made(name: str, value: Json, kind: Any, problems: list[str]) -> Any:
    if kind is None or kind is Any:
        return value
    from pydantic import PydanticUserError, ValidationError

    try:
        return _adapter(kind).validate_python(value)
    except PydanticUserError:
        return value  # a type that says nothing about how it is made
    except ValidationError as error:
        problems += [_complaint(name, item) for item in error.errors(include_url=False, include_context=False)]
        return None


def _complaint(name: str, error: Mapping[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    message = str(error["msg"])
    return f"{name}{place}: {message[:1].lower()}{message[1:]}"


def _adapter(kind: Any) -> Any:
    try:
        return _kept_adapter(kind)
    except TypeError:  # a type that cannot be hashed, such as Literal[[]]
        return _new_adapter(kind)


def _new_adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:
        return TypeAdapter(kind)  # models and dataclasses bring a configuration of their own


_kept_adapter = functools.lru_cache(maxsize=512)(_new_adapter)


def _kinds(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of the parameters; none where annotations cannot be understood."""
    target = inspect.unwrap(function)
    while isinstance(target, functools.partial):
        target = target.func
    if not (inspect.isroutine(target) or isinstance(target, type)):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception:
        return {}


class ToolFailed(Exception):
    """What a double fails with, where a case says that the tool fails."""


class NoDouble(LookupError):
    """A tool that is doubled was called in a way for which the case has no answer."""


class Doubles:
    """The doubles of one trial, and how often each has answered."""

    def __init__(self, doubles: Mapping[str, tuple[Double, ...]]) -> None:
        self._doubles = doubles
        self._answered: Counter[tuple[str, int]] = Counter()
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def __contains__(self, tool: str) -> bool:
        return tool in self._doubles

    def take(self, tool: str, arguments: Mapping[str, Json]) -> Double:
        """The one that answers this call; it counts as used."""
        with self._lock:
            self._asked.add(tool)
            for index, double in enumerate(self._doubles[tool]):
                used_up = double.times is not None and self._answered[tool, index] >= double.times
                if not used_up and _fits(double, arguments):
                    self._answered[tool, index] += 1
                    return double
        raise NoDouble(f"no double of {tool} answers the arguments {show(plain(arguments), 200)}")

    def unasked(self, called: Iterable[str]) -> list[str]:
        """What to say of tools that no double was asked for: misspelt, or real because the agent does not show them."""
        names = set(called)
        waiting = [tool for tool in self._doubles if tool not in self._asked]
        return [
            f"{tool!r} was called for real: this agent's tools cannot be answered for"
            if tool in names
            else f"the double of {tool!r} was never asked{nearest(tool, names)}"
            for tool in waiting
        ]


DOUBLES: ContextVar[Doubles | None] = ContextVar("proctor_doubles", default=None)


def is_doubled(tool: str) -> bool:
    """Whether the case that runs here answers for this tool."""
    doubles = DOUBLES.get()
    return doubles is not None and tool in doubles


def needs_no_doubles() -> None:
    """For agents that only report tool calls: their doubles are not counted as unused."""
    DOUBLES.set(None)


def answer(tool: str, arguments: Mapping[str, Any]) -> Json:
    """What the double of a tool answers; raises what it fails with."""
    double = _take(tool, arguments)
    if double.delay:
        time.sleep(double.delay)
    return _said(double)


async def answer_async(tool: str, arguments: Mapping[str, Any]) -> Json:
    double = _take(tool, arguments)
    if double.delay:
        await asyncio.sleep(double.delay)
    return _said(double)


def _take(tool: str, arguments: Mapping[str, Any]) -> Double:
    doubles = DOUBLES.get()
    if doubles is None:
        raise NoDouble(f"{tool} has no double here")
    return doubles.take(tool, plain(arguments))


def _said(double: Double) -> Json:
    if double.error is not None:
        raise ToolFailed(double.error)
    return plain(double.result)


def _fits(double: Double, arguments: Mapping[str, Json]) -> bool:
    wanted = double.arguments or {}
    return all(
        matcher.mismatch(arguments[name]) is None if name in arguments else may_be_absent(matcher)
        for name, matcher in wanted.items()
    )
