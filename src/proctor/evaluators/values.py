"""How evaluators read values (as text, as data), quote them in reasons, and check their own arguments."""

from __future__ import annotations

import json
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare

MAX_QUOTE = 80
"""How much of a value a person is shown in a reason."""


def expected_value(evaluable: Evaluable, evaluator: str) -> Json:
    """What the case expects; without it there is no score, neither a good nor a bad one."""
    expectation = evaluable.expectation
    if expectation is UNSET:
        raise NothingToCompare(f"{evaluator} compares with an expectation and the case has none")
    return expectation


def expected_and_output(evaluable: Evaluable, evaluator: str) -> tuple[str, str]:
    """The expectation and the output, both as text."""
    return as_text(expected_value(evaluable, evaluator)), as_text(evaluable.output)


def conversation_text(evaluable: Evaluable) -> str:
    """Everything that the agent said in a conversation so far, an answer after the other."""
    if len(evaluable.turns) < 2:
        return as_text(evaluable.output)
    return "\n".join(as_text(exchange.reply.answer) for exchange in evaluable.turns)


def as_text(value: Any) -> str:
    """A value as text: text as it is, nothing as the empty text, data as its JSON."""
    if type(value) is str:
        return value
    return "" if value is None or value is UNSET else to_text(as_plain_data(value))


def call_text(call: ToolCall) -> str:
    """A tool call with all of its arguments, whatever they are: for judges and searches; people read `actual_text`."""
    arguments = call.raw_arguments if call.raw_arguments is not None else to_text(to_json(call.arguments))
    return f"{call.name}({arguments})"


def as_data(value: Any) -> Json:
    """A value as an evaluator of data sees it: text that holds a JSON object or list counts as that."""
    return parse_if_json(value) if isinstance(value, str) else as_plain_data(value)


def as_plain_data(value: Any) -> Json:
    """A value as plain data; what nests beyond all use cannot be expected_but_got, which is no verdict on the agent."""
    try:
        return to_json(value)
    except RecursionError:
        raise ValueError("a value is nested too deeply to be compared") from None


def parse_if_json(value: Json) -> Json:
    """The object or list that a text holds as JSON; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def parse_json(text: str) -> Json:
    """Strict JSON: `NaN` and nesting beyond any use are refused with `ValueError` like every other mistake."""
    try:
        return to_json(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def quote(value: Any, limit: int = MAX_QUOTE) -> str:
    """A value in a sentence, cut short, with the white space in it made visible."""
    if value is None:
        return "nothing"
    if not isinstance(value, str):
        return to_text(to_json(value), limit)
    cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
    return json.dumps(cut, ensure_ascii=False)


def expected_but_got(expected: Any, got: Any) -> str:
    """The part of a reason that every comparison shares."""
    return f"expected {quote(expected)}, got {quote(got)}"


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def require_bool(**flags: Any) -> None:
    """Refuse `"yes"` and `1` where true or false is meant."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{name} must be true or false, not {flag!r}")


def require_choice(name: str, choice: Any, options: tuple[str, ...]) -> None:
    """Refuse a name that is not on the list."""
    if choice not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not {choice!r}")


def require_number(name: str, number: Any, *, least: float = 0.0, most: float = float("inf")) -> None:
    """Refuse what is no number within the bounds; NaN is within none."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        bounds = f"of at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be a number {bounds}, not {number!r}")


def require_text(name: str, value: Any) -> None:
    """Refuse a blank text; `None` means that none is given."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ValueError(f"{name} must be a text that says something, not {value!r}")


def require_int(name: str, number: Any, *, least: int) -> None:
    """Refuse what is no whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}")
