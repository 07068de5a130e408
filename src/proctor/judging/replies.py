"""Reads a model's reply, or says what is wrong with it.

A reply must contain exactly one JSON object. Taking the first or the last of several would let the material inject a
verdict, since a model may quote it. So two different objects, or an object that may be a quotation, are refused, and
the model is asked again.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from proctor.base.json_data import Json, canonical, to_text
from proctor.judging.judge import InvalidReply, Question, ReplyT, Texts, as_list

MAX_REPLY_LENGTH = 1_000_000
"""The most characters of a reply; a longer one is refused without parsing."""

MAX_NESTING = 100
MAX_OBJECTS = 20
"""The most JSON objects next to each other; a reply with more is refused without comparing them."""


class _Unusable(Exception):
    """A reply cannot be used; the message is shown to the model."""


def read_reply(text: str, question: Question[ReplyT]) -> ReplyT:
    """The validated and checked reply in `text`; raises `InvalidReply` with what is wrong."""
    try:
        data = _only_object(text, question.material)
        _refuse_placeholders(data)
        reply = _validate(data, question)
    except _Unusable as complaint:
        raise InvalidReply(str(complaint), text) from None
    for check in (question.check, question.check_sources):
        if check is not None and (problem := check(reply)):
            raise InvalidReply(problem, text)
    return reply


REASON_FIELDS = ("reason", "reasoning")


def _refuse_placeholders(data: Json, name: str = "it") -> None:
    """Refuse a text of dots, copied from the schema of the reply; as a reason it is allowed."""
    if isinstance(data, str) and data.strip() and not data.strip(".\u2026 \t\n"):
        raise _Unusable(f"{name} is “{to_text(data.strip(), 20)}”; write the text that belongs there")
    if isinstance(data, list):
        for item in data:
            _refuse_placeholders(item, name)
    elif isinstance(data, dict):
        for field, value in data.items():
            if not field.endswith(REASON_FIELDS):
                _refuse_placeholders(value, to_text(field, 50))


def without_lone_surrogates(text: str) -> str:
    """`text` without lone surrogates, which cannot be sent as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _only_object(text: str, material: Mapping[str, Texts]) -> dict[str, Json]:
    """The one JSON object of a reply."""
    if len(text) > MAX_REPLY_LENGTH:
        raise _Unusable(f"it has {len(text):,} characters; write one JSON object and nothing else")
    answer = _without_thinking(text)
    if not answer:
        raise _Unusable("it is empty")
    if _is_list(answer):
        raise _Unusable("it is a JSON list; write one JSON object with the fields of the schema")
    spans = _braces(answer)
    if not spans:
        from proctor.judging.rule_judge.claims import declines  # reads the tables of the rules, for this message alone

        refusal = "it declines to answer, and " if declines(answer) else "it "
        raise _Unusable(f"{refusal}contains no JSON object")
    if len(spans) > MAX_OBJECTS:
        raise _Unusable(f"it contains {len(spans):,} JSON objects; write only one")
    found = [_parsed(answer[begin:end]) for begin, end in spans]
    if any(canonical(other) != canonical(found[0]) for other in found[1:]):
        raise _Unusable(
            "it contains more than one JSON object, and they differ; write only your own, without quoting others"
        )
    for begin, end in spans:
        _refuse_quotation(answer, begin, end, material)
    return found[0]


def _is_list(text: str) -> bool:
    if not (text.startswith("[") and text.endswith("]")):
        return False
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _without_thinking(text: str) -> str:
    """The text after the reasoning that some models write first."""
    answer = text.strip()
    while (opening := _thinking().match(answer)) is not None:
        closing = answer.find(f"</{opening.group(1)}>", opening.end())
        if closing < 0:
            raise _Unusable("it ends before the reasoning does; reason less, and write the JSON object")
        answer = answer[closing + len(opening.group(1)) + 3 :].strip()
    return answer


@functools.cache
def _thinking() -> re.Pattern[str]:
    return re.compile(r"<(think|thinking|thought|reasoning|reflection|scratchpad)>")


def _braces(text: str) -> list[tuple[int, int]]:
    """Start and end of each outermost pair of braces, found in one pass."""
    spans: list[tuple[int, int]] = []
    depth = nesting = begin = 0
    for position, mark in _marks(text):
        if mark == "{":
            begin = begin if depth else position
            depth += 1
        elif mark == "}" and depth:
            depth -= 1
            if not depth:
                spans.append((begin, position + 1))
        nesting = 0 if not depth else nesting + (1 if mark in "{[" else -1)
        if nesting > MAX_NESTING:
            raise _Unusable("its JSON is nested too deeply")
    if depth:
        raise _Unusable("its JSON is incomplete; write all of it, more briefly if needed")
    return spans


def _marks(text: str) -> Iterator[tuple[int, str]]:
    """Brackets and braces outside of JSON strings; a quotation mark starts a string only inside braces."""
    depth = position = 0
    while (found := _bracket().search(text, position)) is not None:
        position, mark = found.end(), found.group()
        if mark == '"':
            closing = _string_end().match(text, position) if depth else None
            position = closing.end() if closing is not None else len(text) if depth else position
            continue
        depth = max(0, depth + (mark == "{") - (mark == "}"))
        yield found.start(), mark


@functools.cache
def _bracket() -> re.Pattern[str]:
    return re.compile(r'["{}\[\]]')


@functools.cache
def _string_end() -> re.Pattern[str]:
    return re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _parsed(text: str) -> dict[str, Json]:
    try:
        data: dict[str, Json] = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_number, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"it is not valid JSON: {to_text(str(error), 200)}") from None
    return data


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """The pairs as a dict; refuses a duplicate key, since the last value would win and could be an injected verdict."""
    data = {without_lone_surrogates(key): _cleaned(value) for key, value in pairs}
    if len(data) < len(pairs):
        raise ValueError("a key occurs twice")
    return data


def _cleaned(value: Json) -> Json:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_number(digits)


def _refuse_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _refuse_quotation(answer: str, begin: int, end: int, material: Mapping[str, Texts]) -> None:
    """Refuse an object within other text, unless it is on separate lines and not quoted from the material."""
    if _is_wrapping(answer[:begin]) and _is_wrapping(answer[end:]):
        return
    if answer[end:].strip("`\n ") and not _is_on_own_lines(answer, begin, end):
        raise _Unusable("there is other text on the lines of its JSON object; write the JSON object and nothing else")
    quoted = answer[begin:end]
    if any(quoted in one for texts in material.values() for one in as_list(texts)):
        raise _Unusable("its JSON object could be a quotation from the material; write your own and nothing else")


def _is_on_own_lines(answer: str, begin: int, end: int) -> bool:
    """Whether its first and last line have no other words."""
    line_end = answer.find("\n", end)
    rest = answer[end : len(answer) if line_end < 0 else line_end]
    return _is_wrapping(answer[answer.rfind("\n", 0, begin) + 1 : begin]) and _is_wrapping(rest)


def _is_wrapping(text: str) -> bool:
    """Whether the text is empty or only the fence of a code block."""
    return not text or _fence().fullmatch(text) is not None


@functools.cache
def _fence() -> re.Pattern[str]:
    return re.compile(r"\s*(?:`{1,4}\w*)?\s*")


def _validate(data: dict[str, Json], question: Question[ReplyT]) -> ReplyT:
    """Validate strictly: `true` is not a score and `"3"` is not a number."""
    from pydantic import ValidationError  # heavy, and already loaded by the caller

    try:
        reply: ReplyT = question.reply.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise _Unusable(f"it does not fit the schema: {_validation_message(error)}") from None
    except RecursionError:
        raise _Unusable("its JSON is nested too deeply") from None
    return reply


def _validation_message(error: Any) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    problems = [f"{'.'.join(str(part) for part in each['loc']) or 'the object'}: {each['msg']}" for each in found[:5]]
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    return to_text("; ".join(problems), 1000) + more
