"""Reads tables, CSV, JSON and `label: value` lines as records.

A record is what it is about (a row's first cell, an object's id or name) and a value for each label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proctor.judging.rule_judge.claims import PAIR, split_statements
from proctor.judging.rule_judge.grammar import has_finite_verb, has_verb, is_bare
from proctor.judging.rule_judge.reading import fold, read
from proctor.judging.rule_judge.values import find_values

_NAMING = re.compile(
    r"(?:^|_)(?:id|name|title|number|order|city|user|customer|product|item|sku|code|service|kind|type)$", re.I
)
"""Keys whose value names an object."""
_AMOUNTS = frozenset("payment price cost total amount value fee interest income salary balance revenue budget".split())
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
        items = list(_objects(document, "", 0))
        texts = [item for item in items if isinstance(item, str)]
        return [item for item in items if isinstance(item, Record)], texts
    records: list[Record] = []
    prose: list[str] = []
    for kind, group in groupby(stripped.splitlines(), key=_line_kind):
        lines = list(group)
        if kind == "row":
            records += _table(lines, "|")
        elif kind == "csv" and len(lines) > 1 and not re.search(r"\d", lines[0]):
            records += _table(lines, ",")
        elif kind == "column":  # `TOTAL EUR     10.36`
            columns = [re.split(r"\s{2,}", line.strip()) for line in lines]
            records.append(Record((), tuple((label, value) for label, value in columns)))
        elif kind == "pair":
            plain = [
                re.sub(r"^\s*[-•*]\s|\*|(?<=\d)\s+#(?= )", "", line) for line in lines
            ]  # `TIMEOUT = 10  # seconds`
            pairs = [line.replace(" = ", ": ", 1).partition(":") for line in plain]
            fields = tuple((label.strip(), value.strip()) for label, _, value in pairs)
            records.append(Record(_names(*fields[0]) if len(fields) > 1 else (), fields))
        else:
            prose += lines
    text = "\n".join(prose)
    return [*records, *_fragments(text)], [text]


def _fragments(text: str) -> Iterator[Record]:
    """What fragments of prose give the values of: `Aurora X2 laptop: 14-inch display, 32 GB RAM. Weight 1.19 kg.`"""
    title, fields = "", []
    for number, sentence in enumerate(split_statements(text)):
        heading, colon, rest = sentence.rstrip(" .;").rpartition(": ")
        if colon and not number and all(value.kind == "id" for value in find_values(heading)):
            title, sentence = heading, rest
        parts = [part for part in re.split(r"[,;]\s+|\s+and\s+", sentence.rstrip(" .;")) if part]
        if _is_sentence(parts):
            continue
        if not number and not title and len(parts) == 1 and not find_values(sentence):
            title = parts[0]
        fields += [field for part in parts if (field := _fragment(part))]
    words = title.split()
    names = dict.fromkeys((title, " ".join(words[:-1]), words[-1])) if words else {}
    if fields:
        yield Record(tuple(filter(None, names)), tuple(fields))


def _is_sentence(parts: Sequence[str]) -> bool:
    """Whether a verb or a command says more than the values do."""
    first, *others = [read(part) for part in parts] or [()]
    return not first or is_bare(first[0]) or any(map(has_finite_verb, (first, *others)))


_RESTRICTING = ("limit", "relation", "negation", "condition")


def _fragment(part: str) -> tuple[str, str] | None:
    """A label and its value: of `32 GB RAM`, `Weight 1.19 kg` and `no card reader`."""
    if missing := re.fullmatch(r"no ((?:[\w-]+ ?){1,3})", part, re.IGNORECASE):
        return missing[1], "no"
    values = find_values(fold(part))
    if len(values) != 1 or fold(part) != part:
        return None
    before, after = part[: values[0].start].strip(" :"), part[values[0].end :].strip(" ")
    label = before or after.removeprefix("of ")
    is_label = re.fullmatch(r"(?:[A-Za-z][\w-]*(?:\s|$)){1,3}", label) and not (before and after)
    words = read(label) if is_label else ()
    is_plain = bool(words) and not has_verb(words) and not any(token.kind in _RESTRICTING for token in words)
    return (label, values[0].text) if is_plain else None


def _line_kind(line: str) -> str:
    if "|" in line:
        return "row"
    if re.fullmatch(r"\s*[A-Za-z][A-Za-z ]*?\s{2,}-?\d[\d.,]*\s*", line):
        return "column"
    is_pair = PAIR.fullmatch(line) and len(split_statements(line)) == 1  # not `Contents: a drone. The case is extra.`
    return "pair" if is_pair else "csv" if re.fullmatch(r"[^,]*(?:,\S[^,]*)+", line) else "prose"


def _table(lines: Sequence[str], separator: str) -> list[Record]:
    """The rows of a table, each named after its first cell; not a line with more or fewer cells than the header."""
    header, *rows = [[cell.strip() for cell in line.strip().strip("|").split(separator)] for line in lines]
    rows = [row for row in rows if len(row) == len(header) and "".join(row).strip("-: ")]
    return [Record(_names(header[0], row[0]), tuple(zip(header, row, strict=True))[1:]) for row in rows]


def _names(kind: str, name: str) -> tuple[str, ...]:
    noun = re.sub(r" (?:id|name|number)$", "", label_words(kind))
    return (name, f"{noun} {name}", f"{name} {noun}") if name else ()


def label_words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order total", `Price/month` is "price per month"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_-]", " ", key).replace("/", " per ")).lower()


def _objects(value: Any, kind: str, depth: int) -> Iterator[Record | str]:
    """The objects of a JSON document, each with its own values, and its sentences; `kind` is the key around it."""
    if isinstance(value, str) and len(value.split()) > 2:
        yield value
    if isinstance(value, dict):
        names = [name for key, text in value.items() if _is_naming(key, text) for name in _names(key, str(text))]
        names += [way for name in names if kind for way in (f"{kind} {name}", f"{name} {kind}")] or [kind] * bool(kind)
        currency = value.get("currency") or value.get("unit") or ""
        scalars = {key: item for key, item in value.items() if isinstance(item, (str, int, float)) and item != ""}
        texts = {key: item if isinstance(item, str) else json.dumps(item) for key, item in scalars.items()}
        yield Record(tuple(names), tuple((k, f"{v} {currency}" if k in _AMOUNTS else v) for k, v in texts.items()))
    if isinstance(value, (dict, list)) and depth < _MAX_NESTING:
        for key, item in (
            value.items() if isinstance(value, dict) else ((kind.removesuffix("s"), each) for each in value)
        ):
            yield from _objects(item, label_words(key), depth + 1)


def _is_naming(key: str, item: Any) -> bool:
    is_id = isinstance(item, str) and [value.text for value in find_values(item) if value.kind == "id"] == [item]
    return is_id or (bool(_NAMING.search(key)) and type(item) in (str, int))
