"""Calls an agent's tools again with the agent's own arguments, to compare an answer with what they return now."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.agents.tool_mocks import is_mocked
from proctor.agents.tools import InvalidArguments, Tool, bind_arguments
from proctor.agents.user_code import call_user_function
from proctor.base.errors import one_line
from proctor.base.json_data import Json, parse_json_or_keep, to_json, to_text
from proctor.cases.matchers import same

TOOL_TIMEOUT_SECONDS = 30.0
"""How long one tool may take."""

SIDE_EFFECTS = "it has side effects"
MOCKED = "the case answers for it"


@dataclass(frozen=True, slots=True)
class ToolRerun:
    """One call of the agent, made again."""

    name: str
    arguments: Mapping[str, Json]
    original: Json = None
    """What the agent was given, an `error` included; `None` where that is not known."""
    result: Json = None
    """What the tool gives now, whole, as plain data."""
    changed: bool | None = None
    """Whether that is something else than the agent was given; `None` where it cannot be told."""
    error: str | None = None
    """Why there is no result now."""
    skipped: str | None = None
    """Why the tool was not called again."""

    @property
    def passage(self) -> str | None:
        """The result as text; what the agent was given, where there is no other."""
        if self.skipped is None and self.error is None:
            return to_text(self.result)
        return None if self.original is None else to_text(self.original)


async def rerun_tools(
    calls: Iterable[ToolCall],
    tools: Mapping[str, Tool],
    *,
    seconds: float = TOOL_TIMEOUT_SECONDS,
    exclude: Sequence[str] = (),
) -> list[ToolRerun]:
    """Each call made again, in order. Never raises: what fails or must not be repeated is told call by call.

    Tools with side effects, tools that the case answers for, and those in `apart_from` are not called.
    """
    return [await _rerun(call, tools.get(call.name), seconds, exclude) for call in calls]


def results_as_context(again: Iterable[ToolRerun]) -> list[str]:
    """What the tools gave, as the texts an answer is held against, in the order of the calls."""
    return [passage for item in again if (passage := item.passage) is not None]


async def _rerun(call: ToolCall, tool: Tool | None, seconds: float, exclude: Sequence[str]) -> ToolRerun:
    known: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "original": _original(call)}
    if reason := _skip_reason(call, tool, exclude):
        return ToolRerun(**known, skipped=reason)
    assert tool is not None
    if call.raw_arguments is not None:
        return ToolRerun(**known, error=f"the arguments are not a JSON object: {to_text(call.raw_arguments, 200)}")
    try:
        positional, named = bind_arguments(tool.function, call.arguments)
        async with asyncio.timeout(seconds) as limit:
            raw = await call_user_function(_collecting(tool.function), *positional, **named)
    except InvalidArguments as error:
        return ToolRerun(**known, error=f"the arguments do not fit: {error}", changed=_changed_on_failure(call))
    except (Exception, SystemExit) as error:
        late = isinstance(error, TimeoutError) and limit.expired()
        said = f"no result within {seconds:g} s" if late else one_line(error)
        return ToolRerun(**known, error=said, changed=_changed_on_failure(call))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ToolRerun(**known, error="it cancelled itself")
    result = to_json(raw)
    return ToolRerun(**known, result=result, changed=_has_changed(call, result, raw))


def _collecting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that yields its result piece by piece gives all of them."""
    if inspect.isgeneratorfunction(function):
        return lambda *args, **kwargs: list(function(*args, **kwargs))
    if not inspect.isasyncgenfunction(function):
        return function

    async def collected(*args: Any, **kwargs: Any) -> list[Any]:
        return [piece async for piece in function(*args, **kwargs)]

    return collected


def _original(call: ToolCall) -> Json:
    return call.result if call.error is None else {"error": call.error}


def _skip_reason(call: ToolCall, tool: Tool | None, exclude: Sequence[str]) -> str:
    if call.name in exclude or is_mocked(call.name):
        return MOCKED
    if tool is None:
        return "no tool of that name is known, or several are; mark it with @proctor.tool or give `tools`"
    return SIDE_EFFECTS if tool.side_effects else ""


def _changed_on_failure(call: ToolCall) -> bool | None:
    """A tool that failed for the agent and fails again is as it was; one that only fails now may be out of order."""
    return None if call.error is None else False


def _has_changed(call: ToolCall, result: Json, raw: Any) -> bool | None:
    if call.error is not None:
        return True
    if call.result is None:
        return False if result is None else None
    return not _is_same_result(call.result, result, raw)


def _is_same_result(seen: Json, result: Json, raw: Any) -> bool:
    """Frameworks hand results to the model as text: JSON, or the result of `str`."""
    if same(seen, result):
        return True
    if not isinstance(seen, str) or isinstance(result, str):
        return False
    if same(parse_json_or_keep(seen), result):
        return True
    try:
        return seen in (str(raw), repr(raw), to_text(result))
    except Exception:
        return False
