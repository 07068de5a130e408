"""The text about a trial in pytest's output: its lines with `-s`, and the details of one that did not pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

from proctor.agents.reply import UNFINISHED_CALL, ToolCall
from proctor.base.json_data import to_text
from proctor.reporting.explain import answer_text, shorten
from proctor.reporting.failed_run import trial_details, trial_title
from proctor.reporting.terminal.screen import escape_control, escape_line, escape_unencodable
from proctor.reporting.wording import trial_name
from proctor.results.reasons import headline_reason
from proctor.results.score import Outcome
from proctor.results.trial import Trial

ERROR_NOTE = "Infrastructure or evaluator error, not an agent failure."
REUSED_NOTE = "The answer is from an earlier session: agent and input are unchanged (--proctor-reuse)."


class TrialFailed(Exception):
    """The agent failed the trial."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(headline_reason(trial))
        self.trial = trial


class TrialError(Exception):
    """The trial ended in an error, or could not run; the message says why."""

    def __init__(self, reason: str, trial: Trial | None = None) -> None:
        super().__init__(reason)
        self.trial = trial


def failure_text(error: TrialFailed | TrialError, *, verbose: bool) -> str:
    """The details of a failed trial or an error, for the terminal and for JUnit."""
    if error.trial is None:
        return f"{ERROR_NOTE}\n{escape_control(str(error))}\n"
    return trial_text(error.trial, verbose=verbose)


def trial_text(trial: Trial, *, verbose: bool) -> str:
    """The details of a trial that did not pass."""
    lines = [trial_title(trial)]
    if trial.outcome is Outcome.ERROR:
        lines.append(ERROR_NOTE)
    lines.append(trial_details(trial, verbose=verbose, printed=False))  # pytest has sections for it
    if trial.reused:
        lines.append(REUSED_NOTE)
    return "\n".join(lines) + "\n"


def failure_repr(text: str, message: str, path: Path, line: int) -> ExceptionChainRepr:
    """The text and the one-line message in the form of pytest's reports, which can be sent between processes."""
    details = ReprTraceback([ReprEntryNative([text])], extraline=None, style="native")
    location = ReprFileLocation(str(path), line, escape_line(message))
    return ExceptionChainRepr([(details, location, None)])


SYMBOLS = {"case": "🤖", "tool": "🔧", "ok": "✅", "bad": "❌", "answer": "💬"}
ASCII_SYMBOLS = {"case": ">", "tool": "*", "ok": "[ok]", "bad": "[x]", "answer": "-"}

MAX_VALUE_CHARS = 500


def case_line(case_id: str, number: int, symbols: dict[str, str]) -> str:
    return f"{symbols['case']} Running test case: {trial_name(case_id, number)}"


def tool_lines(trial: Trial, symbols: dict[str, str]) -> Iterator[str]:
    """Every call with its arguments and result, or a line that says that there was none."""
    calls = [call for reply in trial.replies for call in reply.tool_calls]
    if not calls and trial.is_answered:
        yield f"{symbols['tool']} No tool was called"
    for call in calls:
        yield f"{symbols['tool']} Tool: {call.name}"
        yield from _call_lines(call)


def answer_lines(trial: Trial, symbols: dict[str, str]) -> Iterator[str]:
    """The answer, or the reason why there is none."""
    if trial.replies:
        last = trial.replies[-1]
        text = shorten(answer_text(last), MAX_VALUE_CHARS)
        if text or last.error is None:
            empty = "(the agent returned None)" if last.returned_none else "(an empty answer)"
            yield f"{symbols['answer']} {text or empty}{'' if last.error is None else ' (incomplete)'}"
    if trial.end_reason:
        yield f"{symbols['bad']} {shorten(trial.end_reason, MAX_VALUE_CHARS)}"


def terminal_symbols() -> dict[str, str]:
    """Symbols that stdout can encode, and also the terminal, where pytest prints captured output later."""
    for stream in (sys.stdout, sys.__stdout__):
        encoding = getattr(stream, "encoding", None)
        if encoding is not None and escape_unencodable("".join(SYMBOLS.values()), encoding) != "".join(
            SYMBOLS.values()
        ):
            return ASCII_SYMBOLS
    return SYMBOLS


def print_lines(*lines: str) -> None:
    """Print lines, with characters replaced that the terminal cannot show."""
    encoding = getattr(sys.stdout, "encoding", None)
    for line in lines:
        print(escape_unencodable(escape_control(line), encoding))  # noqa: T201  tests capture it, or show it with -s


def _call_lines(call: ToolCall) -> Iterator[str]:
    if call.raw_arguments is not None:
        yield f"   Arguments, which are not a JSON object: {shorten(call.raw_arguments, MAX_VALUE_CHARS)}"
    elif call.arguments:
        yield "   Arguments:"
        yield from (
            f"     - {name}: {shorten(to_text(value), MAX_VALUE_CHARS)}" for name, value in call.arguments.items()
        )
    else:
        yield "   Arguments: none"
    if call.error is not None:
        yield f"   {'Result' if call.error == UNFINISHED_CALL else 'Raised'}: {shorten(call.error, MAX_VALUE_CHARS)}"
    elif call.result is not None:
        yield f"   Result: {shorten(to_text(call.result), MAX_VALUE_CHARS)}"
