"""Reads tables, JSON and `label: value` lines as sentences, so that claims are judged by one mechanism.

A record is what it is about (a row's first cell, an object's id or name) and a value for each label. Each cell becomes
the sentences that people write for it: "the depth of Pier 2 is 6 m", "Pier 2 has a depth of 6 m", "Pier 2 has 8
berths". The record's name and the label are in every one of them, so a value of another row or column does not match.
Only if no other record has that label, the name may be missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proctor.judging.rule_judge.claims import PAIR
from proctor.judging.rule_judge.lexicon import UNITS
from proctor.judging.rule_judge.reading import fold
from proctor.judging.rule_judge.values import MONEY, find_values

_NAMING = re.compile(
    r"(?:^|_)(?:id|name|title|number|order|city|user|customer|product|item|sku|code|service|kind|type)$", re.I
)
"""Keys whose value names an object."""
_STATES = frozenset("status state condition availability stage".split())
"""Labels that a sentence leaves out: `the order is delayed` gives its status."""
_PRICES = frozenset("payment price cost total amount value fee interest income salary balance revenue budget".split())
_MAX_NESTING = 20


@dataclass(frozen=True, slots=True)
class Record:
    """A table row, a JSON object, or a block of `label: value` lines."""

    names: tuple[str, ...]
    """What names the record: the first cell, an id, a name, each also with the word for what it is. One is enough."""
    fields: tuple[tuple[str, str], ...]
    """A label and its value."""


def split_passage(passage: str) -> tuple[list[Record], list[str]]:
    """The records of a passage, and its other texts."""
    stripped = passage.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        try:
            document = json.loads(stripped)
        except (ValueError, RecursionError):
            return [], []
        if isinstance(document, dict) and document.keys() == {"tool", "result"}:
            document = document["result"]
        items = list(_objects(document, "", 0))
        texts = [item for item in items if isinstance(item, str)]
        return [item for item in items if isinstance(item, Record)], texts
    records: list[Record] = []
    prose: list[str] = []
    for kind, group in groupby(stripped.splitlines(), key=_line_kind):
        lines = list(group)
        if kind == "row":
            header, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
            rows = [row for row in rows if len(row) == len(header) and "".join(row).strip("-: ")]
            records += [Record(_names(header[0], row[0]), tuple(zip(header, row, strict=True))[1:]) for row in rows]
        elif kind == "pair":
            pairs = [re.sub(r"^\s*[-•*]\s|\*", "", line).replace(" = ", ": ", 1).partition(":") for line in lines]
            fields = tuple((label.strip(), value.strip()) for label, _, value in pairs)
            records.append(Record(_names(*fields[0]) if len(fields) > 1 else (), fields))
        else:
            prose += lines
    return records, ["\n".join(prose)]


def _line_kind(line: str) -> str:
    return "row" if "|" in line else "pair" if PAIR.fullmatch(line) else "prose"


def _names(kind: str, name: str) -> tuple[str, ...]:
    return (name, f"{_words(kind)} {name}", f"{name} {_words(kind)}") if name else ()


def _words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order total", `Price/month` is "price per month"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_-]", " ", key).replace("/", " per ")).lower()


def _objects(value: Any, kind: str, depth: int) -> Iterator[Record | str]:
    """The objects of a JSON document, each with its own values, and its sentences; `kind` is the key around it."""
    if isinstance(value, str) and len(value.split()) > 2:
        yield value
    if isinstance(value, dict):
        names = [name for key, text in value.items() if _is_naming(key, text) for name in _names(key, str(text))]
        names += [f"{kind} {name}" for name in names if kind] or [kind] * bool(kind)
        currency = value.get("currency") or value.get("unit") or ""
        scalars = {key: item for key, item in value.items() if isinstance(item, (str, int, float)) and item != ""}
        texts = {key: item if isinstance(item, str) else json.dumps(item) for key, item in scalars.items()}
        yield Record(tuple(names), tuple((k, f"{v} {currency}" if k in _PRICES else v) for k, v in texts.items()))
    if isinstance(value, (dict, list)) and depth < _MAX_NESTING:
        for key, item in (
            value.items() if isinstance(value, dict) else ((kind.removesuffix("s"), each) for each in value)
        ):
            yield from _objects(item, _words(key), depth + 1)


def _is_naming(key: str, item: Any) -> bool:
    is_id = isinstance(item, str) and [value.text for value in find_values(item) if value.kind == "id"] == [item]
    return is_id or (bool(_NAMING.search(key)) and type(item) in (str, int))


def sentences(records: Sequence[Record], claims: Sequence[str], grounds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the records say: the label and value as a quote, and each sentence that people write for it.

    Only of records that the claims name. Amounts get the only currency of the grounds (the passages and the user's
    words) if the claims name one, and 0.05 is 5% if they have one.
    """
    counts = Counter(record.names for record in records)
    labels = Counter(_split_label(label)[0] for record in records for label, _ in record.fields)
    said = fold(" ".join(claims)).casefold()
    money, claimed = (
        {value.unit for text in texts for value in find_values(text)} & MONEY for texts in (grounds, claims)
    )
    for record in records:
        names = [name for name in record.names if counts[record.names] == 1 and fold(name).casefold() in said]
        for label, value in record.fields:
            words, unit = _split_label(label)
            if not unit and claimed and len(money) == 1 and not _PRICES.isdisjoint(words.split()):
                unit = next(iter(money))
            if not unit and "%" in said and re.fullmatch(r"-?0\.\d+", value.strip()):
                value = f"{float(value) * 100:g}%"
            full = f"{value} {unit}" if re.fullmatch(r"-?\d+(?:[.,]\d+)*", value.strip()) else value
            noun, _, period = words.partition(" per ")
            full += f" per {period}" if period else ""
            for sentence in _field_sentences(names, noun, full, labels[words] == 1):
                yield f"{words}: {value}", sentence


def _split_label(label: str) -> tuple[str, str]:
    """The words of a label and the unit in it: `temp_c`, `Weight (kg)`."""
    *words, last = re.findall(r"[^\W\d_]+|\d+|[€$£%]", _words(label)) or [""]
    is_unit = last in "€$£%" or (last in UNITS and words and words[-1] != "per")
    unit = {"c": "°C", "f": "°F"}.get(last, last if is_unit else "")
    return " ".join(words if unit and words else (*words, last)), unit


def _field_sentences(names: Sequence[str], label: str, value: str, is_only: bool) -> Iterator[str]:
    if value.lower() in ("true", "yes", "false", "no"):
        be, have = ("is", "has") if value.lower() in ("true", "yes") else ("is not", "has no")
        yield from (f"{name} {verb} {label}" for name in names for verb in (be, have))
        return
    if is_only:
        yield f"The {label} is {value}"
    for name in names if value not in names else ():
        yield from (f"The {label} {joint} {name} is {value}" for joint in ("of", "in", "for"))
        yield from (f"{name} {label} is {value}", f"{name} has a {label} of {value}", f"{name} has {value} {label}")
        if label in _STATES | _PRICES:
            yield f"{name} {'is' if label in _STATES else 'costs'} {value}"
