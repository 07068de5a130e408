"""Reads tables, JSON and `label: value` lines as sentences, so that claims are judged by one mechanism.

A record is what it is about (a row's first cell, an object's id or name) and a value for each label. Each cell becomes
the sentences that people write for it: "the depth of Pier 2 is 6 m", "Pier 2 has a depth of 6 m", "Pier 2 has 8
berths". The record's name and the label are in every one of them, so a value of another row or column does not match.
Only if there is one record, its name may be missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        return list(_objects(document, "", 0)), list(_texts(document, 0))
    records, lines = _tables(stripped.splitlines())
    pairs = [line for line in lines if PAIR.fullmatch(line)]
    entries = [re.sub(r"^\s*[-•*]\s|\*", "", line).replace(" = ", ": ", 1).partition(":") for line in pairs]
    fields = tuple((label.strip(), value.strip()) for label, _, value in entries)
    if fields:
        records.append(Record(_names(fields[0][0], fields[0][1]) if len(fields) > 1 else (), fields))
    is_data = all(line in pairs for line in lines if line.strip())
    return records, [] if is_data else ["\n".join(lines)]


def _tables(lines: Sequence[str]) -> tuple[list[Record], list[str]]:
    """The rows of tables in Markdown or with commas as records, and the other lines."""
    records: list[Record] = []
    rest: list[str] = []
    table: list[tuple[str, list[str]]] = []
    for line in [*lines, ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|" if "|" in line else ",")]
        is_row = (
            len(cells) > 1 and all(len(cell) < 40 for cell in cells) and not line.rstrip().endswith((".", "!", "?"))
        )
        if table and not (is_row and len(cells) == len(table[0][1])):
            header = table[0][1]
            rows = [row for _, row in table[1:] if "".join(row).strip("-: ")] if len(table) > 2 else []
            records += [Record(_names(header[0], row[0]), tuple(zip(header, row, strict=True))[1:]) for row in rows]
            rest += [] if rows else [text for text, _ in table]
            table = []
        if is_row:
            table.append((line, cells))
        else:
            rest.append(line)
    return records, rest


def _names(kind: str, name: str) -> tuple[str, ...]:
    return (name, f"{_words(kind)} {name}", f"{name} {_words(kind)}") if name else ()


def _words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order total", `Price/month` is "price per month"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_-]", " ", key).replace("/", " per ")).lower()


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The strings of a JSON document that are sentences rather than names: `{"result": "The shop opens at nine."}`."""
    if isinstance(value, str) and len(value.split()) > 2:
        yield value
    elif isinstance(value, (dict, list)) and depth < _MAX_NESTING:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item, depth + 1)


def _objects(value: Any, kind: str, depth: int) -> Iterator[Record]:
    """The objects of a JSON document; one without a name belongs to the named object around it."""
    if depth > _MAX_NESTING:
        return
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, kind.removesuffix("s"), depth + 1)
    elif isinstance(value, dict):
        names = [name for key, text in value.items() if _is_naming(key, text) for name in _names(key, str(text))]
        entries = list(_scalars(value, "", bool(names)))
        counts = Counter(key for _, key, _ in entries)
        is_vague = {key for key in counts if counts[key] > 1 or key in _STATES}
        fields = [(f"{outer} {key}" if outer and key in is_vague else key, text) for outer, key, text in entries]
        names += [f"{kind} {name}" for name in names if kind] or [kind] * bool(kind)
        if fields:
            yield Record(tuple(names), tuple(fields))
        for key, item in value.items():
            if isinstance(item, list) or (isinstance(item, dict) and not _is_part(item, bool(names))):
                yield from _objects(item, _words(key), depth + 1)


def _is_naming(key: str, item: Any) -> bool:
    is_id = isinstance(item, str) and [value.text for value in find_values(item) if value.kind == "id"] == [item]
    return is_id or (bool(_NAMING.search(key)) and type(item) in (str, int))


def _is_part(item: Any, has_name: bool) -> bool:
    """Whether an object is a part of the named object around it."""
    return isinstance(item, dict) and has_name and not any(_is_naming(key, value) for key, value in item.items())


def _scalars(value: Mapping[str, Any], outer: str, has_name: bool) -> Iterator[tuple[str, str, str]]:
    """The values of an object and of its parts: the key around it, the key, the value as text."""
    currency = value.get("currency") or value.get("unit") or ""
    for key, item in value.items():
        if _is_part(item, has_name) and not outer:
            yield from _scalars(item, key, has_name)
        elif isinstance(item, bool) or (isinstance(item, str) and item.strip()):
            yield outer, key, json.dumps(item) if isinstance(item, bool) else item
        elif isinstance(item, (int, float)):
            label = outer if outer and key in ("amount", "value") else key
            yield outer, label, f"{item} {currency}" if key in _PRICES else str(item)


def sentences(records: Sequence[Record], claims: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the records say: the label and value as a quote, and each sentence that people write for it.

    Only of records that the claims name. Amounts get the currency of the claims, and 0.05 is 5% if they have one.
    """
    counts = Counter(record.names for record in records)
    labels = Counter(_split_label(label)[0] for record in records for label, _ in record.fields)
    said = fold(" ".join(claims)).casefold()
    money = {value.unit for claim in claims for value in find_values(claim)} & MONEY
    for record in records:
        names = [name for name in record.names if counts[record.names] == 1 and fold(name).casefold() in said]
        for label, value in record.fields:
            words, unit = _split_label(label)
            if not unit and len(money) == 1 and not _PRICES.isdisjoint(words.split()):
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
    unit = {"c": "°C", "f": "°F"}.get(
        last, last if last in "€$£%" or (last in UNITS and words and words[-1] != "per") else ""
    )
    return " ".join(words if unit and words else (*words, last)), unit


def _field_sentences(names: Sequence[str], label: str, value: str, is_only: bool) -> Iterator[str]:
    if value.lower() in ("true", "yes", "false", "no"):
        is_so = value.lower() in ("true", "yes")
        yield from (f"{name} is {label}" if is_so else f"{name} is not {label}" for name in names)
        yield from (f"{name} has {label}" if is_so else f"{name} has no {label}" for name in names)
        return
    if is_only:
        yield f"The {label} is {value}"
    for name in names if value not in names else ():
        yield from (f"The {label} {joint} {name} is {value}" for joint in ("of", "in", "for"))
        yield from (f"{name} {label} is {value}", f"{name} has a {label} of {value}", f"{name} has {value} {label}")
        if label in _STATES:
            yield f"{name} is {value}"
        if label in _PRICES:
            yield f"{name} costs {value}"
