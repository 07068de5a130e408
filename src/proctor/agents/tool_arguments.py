"""Makes the arguments of a model's tool call, which are JSON, into what the tool's own code takes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from proctor.plain import Json


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
