"""ToolConsistency: re-runs the agent's tool calls and compares the results with those that the agent got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.agents.tool_rerun import TOOL_TIMEOUT_SECONDS, ToolRerun, rerun_tools
from proctor.agents.tools import find_tools
from proctor.base.errors import ProctorError
from proctor.base.json_data import to_text
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import MAX_LISTED
from proctor.evaluators.observation import require_observed
from proctor.evaluators.tools.calls import actual_text

MAX_RESULT_QUOTE = 120


class RerunFailed(ProctorError):
    """Tools could not be re-run, so there is no score."""


@evaluator(family="tools", needs="tool calls", threshold=1.0)
@dataclass(frozen=True, slots=True)
class ToolConsistency(ScoreSettings):
    """The share of tool calls that return the same result when they are re-run with the agent's arguments.

    Skipped if no call can be compared.
    """

    tools: Any = None
    """A table of names and functions, a list of functions, or a reference to one: `tools.py:TOOLS`."""
    seconds: float = TOOL_TIMEOUT_SECONDS
    """The time limit of one call, in seconds."""
    base: Path | None = None
    """The folder that references to `tools` start from."""

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)) or not self.seconds > 0:
            raise ValueError(f"seconds must be a number above 0, not {self.seconds!r}")
        if self.tools is not None:
            object.__setattr__(self, "tools", find_tools(self.tools, self.base))

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        if not evaluable.tool_calls:
            require_observed(evaluable)
            raise NothingToCompare("the agent called no tools")
        tools = find_tools(None, self.base) if self.tools is None else self.tools
        reruns = await rerun_tools(evaluable.tool_calls, tools, seconds=self.seconds)
        return _evaluation_of(reruns)


def _evaluation_of(reruns: Sequence[ToolRerun]) -> Evaluation:
    """A changed result counts, whatever else went wrong. A call that could not be re-run says nothing."""
    compared = [rerun for rerun in reruns if rerun.changed is not None]
    changed = [rerun for rerun in compared if rerun.changed]
    other = [rerun for rerun in reruns if rerun.changed is None]
    failed = [rerun for rerun in other if rerun.error is not None]
    if failed and not changed:
        raise RerunFailed(f"could not re-run: {_reruns_text(failed)}")
    if not compared:
        raise NothingToCompare(f"no call could be compared: {_reruns_text(reruns)}")
    same = len(compared) - len(changed)
    parts = [f"{same} of {len(compared)} calls return the same result when re-run", _reruns_text(changed)]
    if other:
        parts.append(f"not compared: {_reruns_text(other)}")
    calls = [rerun.to_json() for rerun in reruns]
    return Evaluation(same / len(compared), "; ".join(filter(None, parts)), {"calls": calls})


def _reruns_text(reruns: Sequence[ToolRerun]) -> str:
    lines = [describe(rerun) for rerun in reruns[:MAX_LISTED]]
    return "; ".join([*lines, f"and {len(reruns) - MAX_LISTED} more"] if len(reruns) > MAX_LISTED else lines)


def describe(rerun: ToolRerun) -> str:
    """One re-run call and its result, in a line."""
    call = actual_text(ToolCall(rerun.name, rerun.arguments))
    if rerun.skipped is not None:
        return f"{call}: {rerun.skipped}"
    if rerun.error is not None:
        return f"{call}: {to_text(rerun.error, MAX_RESULT_QUOTE)}"
    if rerun.changed is None:
        return f"{call}: the result that the agent got is unknown"
    now, then = (to_text(result, MAX_RESULT_QUOTE) for result in (rerun.result, rerun.original))
    return f"{call} {'returns' if rerun.changed else 'still returns'} {now}; the agent got {then}"
