"""Helpers of evaluators: read values as text or data, quote them in reasons, check arguments."""

from __future__ import annotations

import json
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare

MAX_QUOTE = 80
"""The longest quotation of a value in a reason, in characters."""


def expected_value(evaluable: Evaluable, evaluator: str) -> Json:
    """The expected output; raises `NothingToCompare` if the case has none."""
    expectation = evaluable.expectation
    if expectation is UNSET:
        raise NothingToCompare(f"{evaluator} needs an expected output, and the case has none")
    return expectation


def expected_and_output(evaluable: Evaluable, evaluator: str) -> tuple[str, str]:
    """The expected and the actual output, both as text."""
    return as_text(expected_value(evaluable, evaluator)), as_text(evaluable.output)


def conversation_text(evaluable: Evaluable) -> str:
    """All answers of the conversation so far, one per line."""
    if len(evaluable.turns) < 2:
        return as_text(evaluable.output)
    return "\n".join(as_text(exchange.reply.answer) for exchange in evaluable.turns)


def as_text(value: Any) -> str:
    """A value as text: text unchanged, None as the empty string, data as JSON."""
    if type(value) is str:
        return value
    return "" if value is None or value is UNSET else to_text(as_plain_data(value))


def call_text(call: ToolCall) -> str:
    """A tool call with all its arguments, for judges and searches. `actual_text` is the short form for people."""
    arguments = call.raw_arguments if call.raw_arguments is not None else to_text(to_json(call.arguments))
    return f"{call.name}({arguments})"


def as_data(value: Any) -> Json:
    """A value as data: text that holds a JSON object or list is parsed."""
    return parse_if_json(value) if isinstance(value, str) else as_plain_data(value)


def as_plain_data(value: Any) -> Json:
    """A value as plain data; raises `ValueError` if it is nested too deeply."""
    try:
        return to_json(value)
    except RecursionError:
        raise ValueError("a value is nested too deeply to be compared") from None


def parse_if_json(value: Json) -> Json:
    """The JSON object or list in a text; any other value unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def parse_json(text: str) -> Json:
    """Parse strict JSON. `NaN` and extreme nesting raise `ValueError` like any other mistake."""
    try:
        return to_json(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def quote(value: Any, limit: int = MAX_QUOTE) -> str:
    """A value for use in a sentence: shortened, with visible white space."""
    if value is None:
        return "nothing"
    if not isinstance(value, str):
        return to_text(to_json(value), limit)
    cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
    return json.dumps(cut, ensure_ascii=False)


def expected_but_got(expected: Any, actual: Any) -> str:
    """The part of the reason that all comparisons share."""
    return f"expected {quote(expected)}, got {quote(actual)}"


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def require_bool(**flags: Any) -> None:
    """Raise `ValueError` for anything but true and false, such as `"yes"` or 1."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{name} must be true or false, not {flag!r}")


def require_choice(name: str, choice: Any, options: tuple[str, ...]) -> None:
    """Raise `ValueError` if `choice` is not one of the options."""
    if choice not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not {choice!r}")


def require_number(name: str, number: Any, *, least: float = 0.0, most: float = float("inf")) -> None:
    """Raise `ValueError` unless it is a number within the bounds."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        bounds = f"of at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be a number {bounds}, not {number!r}")


def require_text(name: str, value: Any) -> None:
    """Raise `ValueError` for anything but a non-empty string or `None`."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ValueError(f"{name} must be a non-empty string, not {value!r}")


def require_int(name: str, number: Any, *, least: int) -> None:
    """Raise `ValueError` unless it is a whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}")
