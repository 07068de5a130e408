"""Whether the tools still answer what the agent was given, when they are called again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.agents.tool_rerun import TOOL_TIMEOUT_SECONDS, ToolRerun, rerun_tools
from proctor.agents.tools import find_tools
from proctor.base.errors import ProctorError
from proctor.base.json_data import to_json, to_text
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import MAX_LISTED
from proctor.evaluators.tools.calls import actual_text

MAX_RESULT_QUOTE = 120


class RerunFailed(ProctorError):
    """Tools could not be called again, so that nothing is known about them."""


@evaluator(family="tools", needs="tool calls", threshold=1.0)
@dataclass(frozen=True, slots=True)
class ToolConsistency:
    """The share of tool calls that, made again with the agent's own arguments, give what the agent was given.

    The share of calls that, made again with the agent's own arguments, give what the agent was given.
    Skipped if no call can be compared.
    """

    tools: Any = None
    """A table of names and functions, a list of functions, or a reference to one: `tools.py:TOOLS`."""
    seconds: float = TOOL_TIMEOUT_SECONDS
    """How long one call may take."""
    base: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)) or not self.seconds > 0:
            raise ValueError(f"seconds must be a number above 0, not {self.seconds!r}")
        if self.tools is not None:
            object.__setattr__(self, "tools", find_tools(self.tools, self.base))

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        if not evaluable.tool_calls:
            raise NothingToCompare("no tools were used, so that none can be called again")
        tools = find_tools(None, self.base) if self.tools is None else self.tools
        again = await rerun_tools(evaluable.tool_calls, tools, seconds=self.seconds)
        return _evaluation_of(again)


def _evaluation_of(again: Sequence[ToolRerun]) -> Evaluation:
    """What differs is a finding, whatever else went wrong; what could not be called again is none."""
    told = [item for item in again if item.changed is not None]
    differing = [item for item in told if item.changed]
    failed = [item for item in again if item.error is not None and item.changed is None]
    if failed and not differing:
        raise RerunFailed(f"could not be called again: {_listed(failed)}")
    if not told:
        raise NothingToCompare(f"no call could be compared: {_listed(again)}")
    said = f"{len(told) - len(differing)} of {len(told)} calls give what the agent was given"
    parts = [said, _listed(differing), f"not compared: {_listed(rest)}" if (rest := _not_compared(again)) else ""]
    score = (len(told) - len(differing)) / len(told)
    return Evaluation(score, "; ".join(filter(None, parts)), {"calls": [to_json(item) for item in again]})


def _not_compared(again: Sequence[ToolRerun]) -> list[ToolRerun]:
    return [item for item in again if item.changed is None]


def _listed(items: Sequence[ToolRerun]) -> str:
    named = [describe(item) for item in items[:MAX_LISTED]]
    return "; ".join([*named, f"and {len(items) - MAX_LISTED} more"] if len(items) > MAX_LISTED else named)


def describe(item: ToolRerun) -> str:
    """One call and what came of it, in a line."""
    call = actual_text(ToolCall(item.name, item.arguments))
    if item.skipped is not None:
        return f"{call}: {item.skipped}"
    if item.error is not None:
        return f"{call}: {to_text(item.error, MAX_RESULT_QUOTE)}"
    if item.changed is None:
        return f"{call}: it is not known what the agent was given"
    verb = "gives" if item.changed else "still gives"
    now, then = (to_text(result, MAX_RESULT_QUOTE) for result in (item.result, item.original))
    return f"{call} {verb} {now}; the agent was given {then}"
