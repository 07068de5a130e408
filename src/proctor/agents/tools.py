"""Finds the tools of an agent by name, and converts the arguments of a call to the types of a tool's parameters."""

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
"""The attribute of a function marked with `@proctor.tool` that holds its `Tool`."""
_FUNCTION_ATTRIBUTES = ("func", "function", "fn", "coroutine")
"""Attributes in which tool objects of frameworks have their function."""
_TARGET_ATTRIBUTES = ("target", "function")
"""Attributes in which our agents have the user's object."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an agent calls by name."""

    name: str
    function: Callable[..., Any]
    side_effects: bool = False
    """Whether it changes something outside, so that it must not be called a second time."""

    @property
    def source_file(self) -> str:
        """The file that defines the function; empty if it is unknown."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return "" if code is None else str(code.co_filename)


_REGISTERED: dict[str, dict[tuple[str, str], Tool]] = {}
"""By name, then by file and qualified name: a file that is loaded again replaces its own tools and no others."""


def register_tool(tool: Tool) -> None:
    """Add a tool to those that `registered_tools` returns."""
    definition = tool.source_file, getattr(tool.function, "__qualname__", tool.name)
    _REGISTERED.setdefault(tool.name, {})[definition] = tool


def marked_names() -> frozenset[str]:
    """The names of all tools that are marked with `@proctor.tool`."""
    return frozenset(_REGISTERED)


def registered_tools(base: Path | None = None) -> dict[str, Tool]:
    """The tools that are marked with `@proctor.tool`. If several have the same name, the one in the folder `base`.

    A name that is still ambiguous is left out: there is no way to know which of the tools the agent called.
    """
    unique: dict[str, Tool] = {}
    for name, tools in _REGISTERED.items():
        candidates = list(tools.values())
        if len(candidates) > 1 and base is not None:
            candidates = [tool for tool in candidates if base in Path(tool.source_file).parents]
        if len(candidates) == 1:
            unique[name] = candidates[0]
    return unique


def find_tools(source: Any = None, base: Path | None = None, agent: Any = None) -> dict[str, Tool]:
    """The tools of `source` by name or, if it is None or True, the marked tools and those that the agent lists.

    `source` is a mapping of names to functions, a list of functions, an object with `tools`, or a reference to any of
    these, relative to `base`. Raises `UsageError` for anything else.
    """
    if source is None or source is True:
        marked = registered_tools(base)
        # A tool that the agent lists wins, unless it is marked with side effects: a framework's wrapper hides the mark.
        return marked | {
            name: tool for name, tool in tools_of(agent).items() if not _has_side_effects(marked.get(name))
        }
    if isinstance(source, str):
        source = _resolve_reference(source, base)
    if isinstance(source, Mapping):
        return {str(name): _tool(item, str(name), base) for name, item in source.items()}
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return {tool.name: tool for tool in (_tool(item, None, base) for item in source)}
    if isinstance(getattr(source, "tools", None), (Mapping, list, tuple)):
        return find_tools(source.tools, base)
    if callable(source):
        tool = _tool(source, None, base)
        return {tool.name: tool}
    raise UsageError(f"tools must be a list of functions, or a mapping of names to functions, not {source!r:.80}")


def check_tools(source: Any, base: Path | None = None) -> None:
    """Check the references in `source` like `find_tools`, but only locate the files: no code is loaded."""
    items = (
        source.values() if isinstance(source, Mapping) else source if isinstance(source, (list, tuple)) else [source]
    )
    for item in items:
        if isinstance(item, str):
            _check_reference(item)
            locate(item, base)


def _has_side_effects(tool: Tool | None) -> bool:
    return tool is not None and tool.side_effects


def tools_of(agent: Any) -> dict[str, Tool]:
    """The tools that an agent, or the object it wraps, lists in `tools`; items that are not tools are ignored."""
    for owner in (agent, *(getattr(agent, name, None) for name in _TARGET_ATTRIBUTES)):
        listing = getattr(owner, "tools", None)
        if isinstance(listing, (Mapping, list, tuple)):
            items = listing.items() if isinstance(listing, Mapping) else ((None, item) for item in listing)
            tools = (_read_tool(item, name) for name, item in items)
            return {tool.name: tool for tool in tools if tool is not None}
    return {}


def _tool(item: Any, name: str | None, base: Path | None) -> Tool:
    tool = _read_tool(_resolve_reference(item, base) if isinstance(item, str) else item, name)
    if tool is None:
        raise UsageError(f"{item!r:.80} is not a tool; use functions, or a mapping of names to functions")
    return tool


def _read_tool(item: Any, name: str | None) -> Tool | None:
    """A function, or a tool object of a framework, as a tool; None if it is neither. A `@tool` mark is respected."""
    if isinstance(item, Tool):
        return item
    mark = getattr(item, TOOL_ATTRIBUTE, None)
    if isinstance(mark, Tool):
        function = item if inspect.ismethod(item) else mark.function
        return Tool(name or mark.name, function, mark.side_effects)
    name = name or _name_of(item)
    attributes = (getattr(item, attribute, None) for attribute in _FUNCTION_ATTRIBUTES)
    inner = next((attribute for attribute in attributes if callable(attribute)), None)
    if not inspect.isroutine(item) and inner is not None and name:
        return _read_tool(inner, name)
    return Tool(name, item) if callable(item) and name else None


def _name_of(item: Any) -> str:
    for attribute in ("name", "__name__"):
        name = getattr(item, attribute, None)
        if isinstance(name, str) and name:
            return name
    return ""


def _resolve_reference(text: str, base: Path | None) -> Any:
    _check_reference(text)
    return resolve(text, base)


def _check_reference(text: str) -> None:
    if not is_reference(text):
        raise UsageError(f"{text!r} is not a reference to tools; write file.py:TOOLS or package.module:TOOLS")


class InvalidArguments(Exception):
    """A tool cannot be called with these arguments; the message says why."""


def bind_arguments(function: Callable[..., Any], arguments: Mapping[str, Json]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name, each converted by pydantic to the type of its parameter.

    A tool with one parameter that is an object, such as `LoanRequest`, gets an object made from all arguments together.
    Raises `InvalidArguments`.
    """
    from pydantic import ValidationError  # heavy, and needed only if we call the tools of an agent

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [], dict(arguments)  # a builtin that does not say what it takes
    signature = _with_types(signature, _types_of(function))
    parameters = signature.parameters
    object_name = _object_parameter(parameters, arguments)
    if object_name is not None:
        arguments = {object_name: dict(arguments)}
    positional, named = _split_arguments(parameters, arguments)
    try:
        by_position, by_name = _validator(signature)(*positional, **named)
        return list(by_position), by_name
    except ValidationError as error:
        problems = [_problem(list(parameters), item) for item in error.errors(include_url=False, include_context=False)]
        raise InvalidArguments("; ".join(problems)) from None


def _validator(signature: inspect.Signature) -> Callable[..., Any]:
    """A function with this signature that returns its arguments as pydantic converts them."""
    from pydantic import ConfigDict, PydanticUserError, validate_call

    def arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    def validated(signature: inspect.Signature) -> Callable[..., Any]:
        arguments.__signature__ = signature  # type: ignore[attr-defined]
        arguments.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
        return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(arguments)

    try:
        return validated(signature)
    except PydanticUserError:  # types that pydantic cannot handle are not checked
        return validated(_with_types(signature, {}))


def _with_types(signature: inspect.Signature, types: Mapping[str, Any]) -> inspect.Signature:
    """The signature with these types; a parameter that is not in `types` accepts anything."""
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
    """The arguments to pass by position (before `/`, or before a `*rest` that has a value), and those by name."""
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
    """The parameter that is an object made from all arguments together, if the tool has one."""
    required = [each.name for each in parameters.values() if each.default is each.empty and each.kind not in _VARIADIC]
    if len(required) != 1 or required[0] in arguments or any(name in parameters for name in arguments):
        return None
    return required[0] if _has_fields(parameters[required[0]].annotation) else None


def _has_fields(kind: Any) -> bool:
    """Whether a type is a pydantic model, a dataclass or a typed dict, or a union with one."""
    choices = [part for part in typing.get_args(kind) if part is not type(None)] or [kind]
    return any(
        isinstance(choice, type)
        and (dataclasses.is_dataclass(choice) or hasattr(choice, "model_validate") or typing.is_typeddict(choice))
        for choice in choices
    )


def _problem(names: Sequence[str], error: Mapping[str, Any]) -> str:
    """One error of pydantic in a few words, with the name of a positional argument instead of its index."""
    first, *rest = error["loc"]
    name = names[first] if isinstance(first, int) and first < len(names) else first
    if error["type"].startswith("missing_"):
        return f"{name!r} is missing"
    if error["type"].startswith("unexpected_"):
        return f"unknown parameter {name!r}"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    message = str(error["msg"])
    return f"{name}{place}: {message[:1].lower()}{message[1:]}"
