"""The tools of an agent by name, and the arguments of a call converted to the types that a tool takes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.references import is_reference, locate, resolve

TOOL_ATTRIBUTE = "__proctor_tool__"
"""Where a marked function keeps what is known about it as a tool."""
_FUNCTION_ATTRIBUTES = ("func", "function", "fn", "coroutine")
"""Where tool objects of frameworks keep the function behind them."""
_TARGET_ATTRIBUTES = ("target", "function")
"""Where adapters keep the object they adapt."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an agent calls by name."""

    name: str
    function: Callable[..., Any]
    side_effects: bool = False
    """Whether it changes something outside, so that calling it twice is not the same as calling it once."""

    @property
    def source_file(self) -> str:
        """The file it is written in, as far as that is known."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return "" if code is None else str(code.co_filename)


_REGISTERED: dict[str, dict[tuple[str, str], Tool]] = {}
"""By name, then by where it is written: a file that is loaded again replaces its own tools, and no others."""


def register_tool(tool: Tool) -> None:
    """Let a tool be found by its name."""
    place = tool.source_file, getattr(tool.function, "__qualname__", tool.name)
    _REGISTERED.setdefault(tool.name, {})[place] = tool


def registered_tools(base: Path | None = None) -> dict[str, Tool]:
    """The tools that were marked with `@proctor.tool` so far; of several of one name, the one below `base`.

    A name that still means several tools is left out: it is not known which of them the agent called.
    """
    found: dict[str, Tool] = {}
    for name, tools in _REGISTERED.items():
        chosen = list(tools.values())
        if len(chosen) > 1 and base is not None:
            chosen = [tool for tool in chosen if base in Path(tool.source_file).parents]
        if len(chosen) == 1:
            found[name] = chosen[0]
    return found


def find_tools(given: Any = None, base: Path | None = None, agent: Any = None) -> dict[str, Tool]:
    """The tools by name: as `given`, or else those that are marked and those that the agent shows.

    `given` is a table of names and functions, a list of functions, an object with `tools`, or a reference to any of
    these. Raises `UsageError` for what is none of them.
    """
    if given is None or given is True:
        marked = registered_tools(base)
        # What an agent lists is its own; yet a framework's wrapper may hide the mark of a tool with side effects.
        return marked | {
            name: tool for name, tool in tools_of(agent).items() if not _has_side_effects(marked.get(name))
        }
    if isinstance(given, str):
        given = _resolve_reference(given, base)
    if isinstance(given, Mapping):
        return {str(name): _tool(item, str(name), base) for name, item in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return {tool.name: tool for tool in (_tool(item, None, base) for item in given)}
    if isinstance(getattr(given, "tools", None), (Mapping, list, tuple)):
        return find_tools(given.tools, base)
    if callable(given):
        tool = _tool(given, None, base)
        return {tool.name: tool}
    raise UsageError(f"tools are a table of names and functions, or a list of functions, not {given!r:.80}")


def check_tools(given: Any, base: Path | None = None) -> None:
    """Check like `toolbox` that the references to tools are right, but only locate them: no code is loaded."""
    items = given.values() if isinstance(given, Mapping) else given if isinstance(given, (list, tuple)) else [given]
    for item in items:
        if isinstance(item, str):
            _check_reference(item)
            locate(item, base)


def _has_side_effects(tool: Tool | None) -> bool:
    return tool is not None and tool.side_effects


def tools_of(agent: Any) -> dict[str, Tool]:
    """The tools that an agent object lists itself; what is no function in the list is passed over."""
    for owner in (agent, *(getattr(agent, name, None) for name in _TARGET_ATTRIBUTES)):
        listed = getattr(owner, "tools", None)
        if isinstance(listed, (Mapping, list, tuple)):
            items = listed.items() if isinstance(listed, Mapping) else ((None, item) for item in listed)
            tools = (_read_tool(item, name) for name, item in items)
            return {tool.name: tool for tool in tools if tool is not None}
    return {}


def _tool(item: Any, name: str | None, base: Path | None) -> Tool:
    tool = _read_tool(_resolve_reference(item, base) if isinstance(item, str) else item, name)
    if tool is None:
        raise UsageError(f"{item!r:.80} is no tool: give functions, or a mapping of names to functions")
    return tool


def _read_tool(item: Any, name: str | None) -> Tool | None:
    """A function as a tool; what a mark says about it holds, also of a method that is bound to its object."""
    if isinstance(item, Tool):
        return item
    mark = getattr(item, TOOL_ATTRIBUTE, None)
    if isinstance(mark, Tool):
        function = item if inspect.ismethod(item) else mark.function
        return Tool(name or mark.name, function, mark.side_effects)
    own = name or _name_of(item)
    code = next((found for part in _FUNCTION_ATTRIBUTES if callable(found := getattr(item, part, None))), None)
    if not inspect.isroutine(item) and code is not None and own:
        return _read_tool(code, own)
    return Tool(own, item) if callable(item) and own else None


def _name_of(item: Any) -> str:
    for name in ("name", "__name__"):
        found = getattr(item, name, None)
        if isinstance(found, str) and found:
            return found
    return ""


def _resolve_reference(text: str, base: Path | None) -> Any:
    _check_reference(text)
    return resolve(text, base)


def _check_reference(text: str) -> None:
    if not is_reference(text):
        raise UsageError(f"{text!r} names no tools; write file.py:TOOLS or package.module:TOOLS")


class InvalidArguments(Exception):
    """The tool cannot be called with these arguments; the message says why."""


def bind_arguments(function: Callable[..., Any], arguments: Mapping[str, Json]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name, each converted to the type of its parameter by pydantic.

    A tool with one parameter that is an object, such as `LoanRequest`, gets that object made of all arguments together.
    Raises `UnfitArguments`.
    """
    from pydantic import ValidationError  # heavy, and needed only by agents whose tools are called by us

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [], dict(arguments)  # a builtin that does not say what it takes
    signature = _with_types(signature, _types_of(function))
    parameters = signature.parameters
    whole = _object_parameter(parameters, arguments)
    positional, named = _split_arguments(parameters, arguments if whole is None else {whole: dict(arguments)})
    try:
        converted, by_name = _validator(signature)(*positional, **named)
        return list(converted), by_name
    except ValidationError as error:
        problems = [_problem(list(parameters), item) for item in error.errors(include_url=False, include_context=False)]
        raise InvalidArguments("; ".join(problems)) from None


def _validator(signature: inspect.Signature) -> Callable[..., Any]:
    """A function with this signature that returns its own arguments, as pydantic converts them."""
    from pydantic import ConfigDict, PydanticUserError, validate_call

    def arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    def validated(signature: inspect.Signature) -> Callable[..., Any]:
        arguments.__signature__ = signature  # type: ignore[attr-defined]
        arguments.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
        return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(arguments)

    try:
        return validated(signature)
    except PydanticUserError:  # a type that pydantic cannot make is not checked
        return validated(_with_types(signature, {}))


def _with_types(signature: inspect.Signature, types: Mapping[str, Any]) -> inspect.Signature:
    """The signature with these types; a parameter without one takes anything."""
    parameters = [each.replace(annotation=types.get(each.name, Any)) for each in signature.parameters.values()]
    return inspect.Signature(parameters)


def _types_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of the parameters; empty if an annotation cannot be resolved."""
    target = inspect.unwrap(function)
    while isinstance(target, functools.partial):
        target = target.func
    if not (inspect.isroutine(target) or isinstance(target, type)):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception:
        return {}


def _split_arguments(
    parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Json]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as Python takes them: what comes before `/`, and up to a `*rest` that is given, has no name."""
    starred = next((name for name, each in parameters.items() if each.kind is each.VAR_POSITIONAL), None)
    by_position: set[Any] = {inspect.Parameter.POSITIONAL_ONLY}
    if starred in arguments:
        by_position.add(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional: list[Any] = []
    named = dict(arguments)
    for name, parameter in parameters.items():
        if parameter.kind not in by_position or (name not in named and parameter.default is parameter.empty):
            break
        positional.append(named.pop(name, parameter.default))
    if starred is not None and starred in named:
        positional += named.pop(starred) or ()
    return positional, named


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _object_parameter(parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Json]) -> str | None:
    """The one parameter that all arguments together make up, if the tool is of that kind."""
    needed = [each.name for each in parameters.values() if each.default is each.empty and each.kind not in _VARIADIC]
    if len(needed) != 1 or needed[0] in arguments or any(name in parameters for name in arguments):
        return None
    return needed[0] if _has_fields(parameters[needed[0]].annotation) else None


def _has_fields(kind: Any) -> bool:
    """Whether it is a pydantic model, a dataclass or a typed dict, or one of these or `None`."""
    choices = [part for part in typing.get_args(kind) if part is not type(None)] or [kind]
    return any(
        isinstance(choice, type)
        and (dataclasses.is_dataclass(choice) or hasattr(choice, "model_validate") or typing.is_typeddict(choice))
        for choice in choices
    )


def _problem(names: Sequence[str], error: Mapping[str, Any]) -> str:
    """One complaint of pydantic in a few words; it names positional arguments by their index."""
    first, *rest = error["loc"]
    name = names[first] if isinstance(first, int) and first < len(names) else first
    if error["type"].startswith("missing_"):
        return f"{name!r} is missing"
    if error["type"].startswith("unexpected_"):
        return f"there is no parameter {name!r}"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    message = str(error["msg"])
    return f"{name}{place}: {message[:1].lower()}{message[1:]}"
