"""Re-runs an agent's tools with the agent's own arguments, to compare an answer with the results they return now."""

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
from proctor.cases.matchers import json_equal

TOOL_TIMEOUT_SECONDS = 30.0
"""The time limit for one tool."""

SIDE_EFFECTS = "it has side effects"
MOCKED = "the case mocks it"


@dataclass(frozen=True, slots=True)
class ToolRerun:
    """One call of the agent, re-run."""

    name: str
    arguments: Mapping[str, Json]
    original: Json = None
    """The result that the agent got, or `{"error": ...}`; `None` if it is unknown."""
    result: Json = None
    """The result now, as JSON."""
    changed: bool | None = None
    """Whether the result now differs from the original; `None` if that is unknown."""
    error: str | None = None
    """Why there is no result now."""
    skipped: str | None = None
    """Why the tool was not re-run."""

    @property
    def passage(self) -> str | None:
        """The result now as text, or the original if there is none now."""
        if self.skipped is None and self.error is None:
            return to_text(self.result)
        return None if self.original is None else to_text(self.original)

    def to_json(self) -> dict[str, Json]:
        """The fields as JSON. `seen` and `differs` are earlier names of `original` and `changed`, for their readers."""
        return {**to_json(self), "seen": to_json(self.original), "differs": self.changed}


async def rerun_tools(
    calls: Iterable[ToolCall],
    tools: Mapping[str, Tool],
    *,
    seconds: float = TOOL_TIMEOUT_SECONDS,
    exclude: Sequence[str] = (),
) -> list[ToolRerun]:
    """Re-run each call, in order. Never raises: each `ToolRerun` says whether its call failed or was skipped.

    Tools with side effects, tools that the case mocks, and those in `exclude` are not called. `seconds` is the time
    limit for one call.
    """
    return [await _rerun(call, tools.get(call.name), seconds, exclude) for call in calls]


def results_as_context(reruns: Iterable[ToolRerun]) -> list[str]:
    """The results as texts that an answer is compared with, in the order of the calls."""
    return [passage for rerun in reruns if (passage := rerun.passage) is not None]


async def _rerun(call: ToolCall, tool: Tool | None, seconds: float, exclude: Sequence[str]) -> ToolRerun:
    fields: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "original": _original(call)}
    if reason := _skip_reason(call, tool, exclude):
        return ToolRerun(**fields, skipped=reason)
    assert tool is not None
    if call.raw_arguments is not None:
        return ToolRerun(**fields, error=f"the arguments are not a JSON object: {to_text(call.raw_arguments, 200)}")
    try:
        positional, named = bind_arguments(tool.function, call.arguments)
        async with asyncio.timeout(seconds) as limit:
            raw = await call_user_function(_collecting(tool.function), *positional, **named)
    except InvalidArguments as error:
        return ToolRerun(
            **fields, error=f"the arguments do not match its parameters: {error}", changed=_changed_on_failure(call)
        )
    except (Exception, SystemExit) as error:
        is_late = isinstance(error, TimeoutError) and limit.expired()
        reason = f"no result within {seconds:g} s" if is_late else one_line(error)
        return ToolRerun(**fields, error=reason, changed=_changed_on_failure(call))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ToolRerun(**fields, error="it cancelled itself")
    result = to_json(raw)
    return ToolRerun(**fields, result=result, changed=_has_changed(call, result, raw))


def _collecting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a list instead of the generator that `function` returns, if it returns one."""
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
        return "there is no tool with this name, or more than one; mark it with @proctor.tool, or list it in `tools`"
    return SIDE_EFFECTS if tool.side_effects else ""


def _changed_on_failure(call: ToolCall) -> bool | None:
    """Whether a failing tool has changed: no if it failed for the agent too, else unknown (it may be out of order)."""
    return None if call.error is None else False


def _has_changed(call: ToolCall, result: Json, raw: Any) -> bool | None:
    if call.error is not None:
        return True
    if call.result is None:
        return False if result is None else None
    return not _is_same_result(call.result, result, raw)


def _is_same_result(original: Json, result: Json, raw: Any) -> bool:
    """Whether both are the same value. Frameworks pass results to the model as JSON text or as `str(result)`."""
    if json_equal(original, result):
        return True
    if not isinstance(original, str) or isinstance(result, str):
        return False
    if json_equal(parse_json_or_keep(original), result):
        return True
    try:
        return original in (str(raw), repr(raw), to_text(result))
    except Exception:
        return False
