"""What a test session prints of each trial with `-s`: the case, its tool calls and its answer, a sign before each."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from proctor.agents.agent import ToolCall
from proctor.base.json_data import show
from proctor.reporting.explain import answer, shorten
from proctor.reporting.terminal.screen import encodable, visible
from proctor.reporting.wording import trial_name
from proctor.results.run import TrialResult

SIGNS = {"case": "🤖", "tool": "🔧", "ok": "✅", "bad": "❌", "answer": "💬"}
PLAIN_SIGNS = {"case": ">", "tool": "*", "ok": "[ok]", "bad": "[x]", "answer": "-"}

LONGEST = 500


def case_line(case_id: str, number: int, signs: dict[str, str]) -> str:
    return f"{signs['case']} Running test case: {trial_name(case_id, number)}"


def tool_lines(trial: TrialResult, signs: dict[str, str]) -> Iterator[str]:
    """Every call with its arguments and result; that there was none is worth a line as well."""
    calls = [call for reply in trial.replies for call in reply.tool_calls]
    if not calls and trial.is_answered:
        yield f"{signs['tool']} No tool was called"
    for call in calls:
        yield f"{signs['tool']} Tool: {call.name}"
        yield from _call_lines(call)


def answer_lines(trial: TrialResult, signs: dict[str, str]) -> Iterator[str]:
    """What was answered, or why there is no answer."""
    if trial.replies:
        last = trial.replies[-1]
        said = shorten(answer(last), LONGEST)
        if said or last.error is None:
            yield f"{signs['answer']} {said or '(an empty answer)'}{'' if last.error is None else ' (so far)'}"
    if trial.reason:
        yield f"{signs['bad']} {shorten(trial.reason, LONGEST)}"


def present_signs() -> dict[str, str]:
    """Signs that can be shown now, and later on the terminal if what is printed is kept until then."""
    for stream in (sys.stdout, sys.__stdout__):
        encoding = getattr(stream, "encoding", None)
        if encoding is not None and encodable("".join(SIGNS.values()), encoding) != "".join(SIGNS.values()):
            return PLAIN_SIGNS
    return SIGNS


def tell(*lines: str) -> None:
    """Print lines, whatever they hold and whatever the terminal can show."""
    encoding = getattr(sys.stdout, "encoding", None)
    for line in lines:
        print(encodable(visible(line), encoding))  # noqa: T201  tests capture it, or show it with -s


def _call_lines(call: ToolCall) -> Iterator[str]:
    if call.raw_arguments is not None:
        yield f"   Arguments, which are not a JSON object: {shorten(call.raw_arguments, LONGEST)}"
    elif call.arguments:
        yield "   Arguments:"
        yield from (f"     - {name}: {shorten(show(value), LONGEST)}" for name, value in call.arguments.items())
    else:
        yield "   Arguments: none"
    if call.error is not None:
        yield f"   Raised: {shorten(call.error, LONGEST)}"
    elif call.result is not None:
        yield f"   Result: {shorten(show(call.result), LONGEST)}"
