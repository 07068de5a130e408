"""The probability of each verdict that a model could have given, from the log-probabilities of its tokens.

It stays because the verdict alone of a small local model hardly tells good from bad: the measured AUC of a 1.5B model
is 0.67 by the verdict and 0.85 by its probability (docs/judges.md).
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.judging.judge import ReplyT

if TYPE_CHECKING:
    from proctor.judging.questions import Graded

ChoiceProbabilities = Mapping[str, Mapping[str, float]]
"""By the JSON pointer of each choice in the reply: the probability of each possible choice."""

Path = tuple[str | int, ...]


@record
class Token:
    """One token of a reply, where it stands, and what the model could have written instead."""

    text: str
    start: int
    alternatives: Mapping[str, float]
    """Probability by text; the written token is among them."""


def choice_probabilities(text: str, tokens: Sequence[Token], schema: Mapping[str, Json]) -> ChoiceProbabilities:
    """The probabilities of each choice in `text`; empty where the text is not JSON or its tokens are not known."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if "".join(token.text for token in tokens)[: len(text)] != text:
        return {}
    found = {}
    for path, start, written in _string_values(text):
        choices = _choices(schema, path)
        if len(choices) > 1 and written in choices:
            found[pointer(path)] = _probabilities(text[:start], written, choices, tokens)
    return found


def with_partial_credit(reply: ReplyT, probabilities: Any) -> ReplyT:
    """`reply` with partial credit where probabilities are known; a number that the model wrote itself is dropped."""
    _add_credit(reply, probabilities if isinstance(probabilities, Mapping) else {}, ())
    return reply


def _add_credit(value: Any, probabilities: Mapping[str, Any], path: Path) -> None:
    from pydantic import BaseModel

    from proctor.judging.questions import Graded

    if isinstance(value, list):
        for number, item in enumerate(value):
            _add_credit(item, probabilities, (*path, number))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            _add_credit(getattr(value, name), probabilities, (*path, name))
        if isinstance(value, Graded):
            value.partial_credit = _partial_credit(value, probabilities, path)


def _partial_credit(item: Graded, probabilities: Mapping[str, Any], path: Path) -> float | None:
    """The expected score of the verdict, which is the last choice in the item, since reasons come before it."""
    scores = item.choice_scores
    known = [chances for name in type(item).model_fields if (chances := probabilities.get(pointer((*path, name))))]
    if not known or not scores:
        return None
    expected = math.fsum(chance * scores.get(choice, 0.0) for choice, chance in known[-1].items())
    return min(1.0, max(0.0, expected))


def pointer(path: Path) -> str:
    """The JSON pointer of a value."""
    return "".join(f"/{part}" for part in path)


def _probabilities(before: str, written: str, choices: Sequence[str], tokens: Sequence[Token]) -> dict[str, float]:
    """Walk along the tokens; an alternative that leads to another choice adds its probability to that choice."""
    endings = {choice: f'{before}{choice}"' for choice in choices}
    chances = dict.fromkeys(choices, 0.0)
    reached = 1.0
    for token in tokens:
        prefix = endings[written][: token.start]
        if token.start + len(token.text) <= len(before):
            continue
        if sum(ending.startswith(prefix) for ending in endings.values()) < 2 or token.start >= len(endings[written]):
            break
        for text, probability in token.alternatives.items():
            led_to = [choice for choice in choices if _leads_to(prefix + text, endings[choice])]
            if text != token.text and led_to:
                for choice in led_to:
                    chances[choice] += reached * probability / len(led_to)
        reached *= token.alternatives[token.text]
    chances[written] += reached
    whole = math.fsum(chances.values())
    return {choice: chance / whole for choice, chance in chances.items()} if whole > 0 else {written: 1.0}


def _leads_to(text: str, ending: str) -> bool:
    """Whether `text` can continue to `ending`, or contains it; both begin alike."""
    return ending.startswith(text) or text.startswith(ending)


def _string_values(text: str) -> Iterator[tuple[Path, int, str]]:
    """Each string value with its path and the position of its first character; `text` is valid JSON."""
    path: list[str | int] = []
    key: str | None = None
    for match in _mark().finditer(text):
        mark = match.group()
        if mark in "{[":
            path.append("" if mark == "{" else 0)
        elif mark in "}]":
            path.pop()
        elif mark == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif mark == ":":
            path[-1] = key or ""
        else:
            key = json.loads(mark)
            if text[match.end() :].lstrip()[:1] != ":":
                yield tuple(path), match.start() + 1, key or ""


@functools.cache
def _mark() -> re.Pattern[str]:
    return re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)


def _choices(schema: Mapping[str, Json], path: Path) -> tuple[str, ...]:
    """The words that the schema allows at a path; empty where it allows any text."""
    here: Any = schema
    for part in path:
        here = _resolved(schema, here)
        here = here.get("items") if isinstance(part, int) else (here.get("properties") or {}).get(part)
        if not isinstance(here, Mapping):
            return ()
    words = _resolved(schema, here).get("enum")
    return tuple(word for word in words if isinstance(word, str)) if isinstance(words, list) else ()


def _resolved(schema: Mapping[str, Json], here: Mapping[str, Json]) -> Mapping[str, Json]:
    reference = here.get("$ref")
    if not isinstance(reference, str):
        return here
    found = schema.get("$defs", {}).get(reference.rpartition("/")[2])
    return found if isinstance(found, Mapping) else {}
