"""Finds the cell of a table, JSON or `label: value` line that a claim is about, and what the claim says its value is.

Data becomes rows: what a row is about (a first cell, an id, a name) and a value for each label. A claim names a row, a
label and a value in some order, between words that add nothing: "The depth of Pier 2 is 6 m", "Pier 2 is 6 m deep". So
the words of the row and of the label are taken out of the claim, and the rest must be the value of that cell, or one
that it excludes. Looking for the value in the row would be wrong: the value of another column is the mistake to catch.
If two rows or columns fit, or a word is left over that adds something (`only`, `more`, `may`), no cell is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.claims import PAIR, split_statements
from proctor.judging.rule_judge.reading import Token, Tokens, find_values, matches, read

_LIGHT, _PRICES, _AMOUNTS, _STATES = (
    lexicon.KINDS[name] | frozenset(map(lexicon.stem, lexicon.KINDS[name]))
    for name in ("light", "prices", "amounts", "states")
)
_NAMING = [[word] for word in lexicon.KINDS["naming"]]
_COUNTED = frozenset("minute hour day week month quarter year".split())
"""Labels of a number that counts, rather than of a duration: `"week": 22`."""
_DEGREES = {"c": "celsius", "f": "fahrenheit"}
"""Units that only the end of a label has: `setpoint_c`."""
_BOOLEANS = {"true": (), "yes": (), "false": read("not"), "no": read("not")}
Record = tuple[Sequence[str], Sequence[tuple[str, str]]]
"""The names of a table row, a JSON object or a block of `label: value` lines, and its labels and values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of one row and label, as tokens."""

    names: Sequence[Tokens]
    """What names the row, each also with the word for what it is. One is enough."""
    label: Tokens
    value: Tokens
    quote: str


def split_passage(passage: str) -> Iterator[Record | str]:
    """The records of a passage, and its other texts."""
    if passage.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # `[1] The shop opens at 9.`
            yield from _objects(json.loads(passage), "")
            return
    prose: list[str] = []
    for separator, group in groupby(passage.strip().splitlines(), key=_separator):
        lines = list(group)
        if separator == "|" or (separator == "," and len(lines) > 1 and not re.search(r"\d", lines[0])):
            header, *rows = [[cell.strip() for cell in line.strip().strip("|").split(separator)] for line in lines]
            # Not a ruler, nor a line with more or fewer cells than the header.
            rows = [row for row in rows if len(row) == len(header) and "".join(row).strip("-: ")]
            yield from ((_names(header[0], row[0]), list(zip(header, row, strict=True))[1:]) for row in rows)
        elif separator == ":":
            pairs = [re.sub(r"^\s*[-•*]\s|\*", "", line).replace(" = ", ": ", 1).partition(":") for line in lines]
            yield (), [(label.strip(), value.strip()) for label, _, value in pairs]
        else:
            prose += lines
    yield "\n".join(prose)


def _separator(line: str) -> str:
    """What separates the cells of a line; empty for prose."""
    if "|" in line:
        return "|"
    if PAIR.fullmatch(line) and len(split_statements(line)) == 1:  # not `Contents: a drone. The case is extra.`
        return ":"
    return "," if re.fullmatch(r"[^,]*(?:,\S[^,]*)+", line) else ""


def _objects(value: Any, kind: str) -> Iterator[Record | str]:
    """The objects of a JSON document, each with its own values, and its texts; `kind` is the key around it."""
    if isinstance(value, str) and len(value.split()) > 2:
        yield value
    if isinstance(value, dict):
        # An identifier names its object, and what is called `name`, `title`, `order`.
        texts = {key: str(item) for key, item in value.items() if type(item) in (str, int)}
        ids = [key for key, text in texts.items() if [(e.kind, e.text) for e in find_values(text)] == [("id", text)]]
        naming = [key for key in texts if key in ids or _words(key).split()[-1:] in _NAMING]
        names = [name for key in naming for name in _names(key, texts[key])]
        names += [way for name in names if kind for way in (f"{kind} {name}", f"{name} {kind}")] or [kind]
        currency = value.get("currency") or value.get("unit") or ""
        scalars = {key: item for key, item in value.items() if isinstance(item, (str, int, float)) and item != ""}
        texts = {key: item if isinstance(item, str) else json.dumps(item) for key, item in scalars.items()}
        amounts = {key: f"{text} {currency}" for key, text in texts.items() if lexicon.stem(key) in _AMOUNTS}
        yield names, list({**texts, **amounts}.items())
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else [(kind.removesuffix("s"), each) for each in value]
        for key, item in items:
            yield from _objects(item, _words(key))


def _names(kind: str, name: str) -> list[str]:
    noun = re.sub(r" (?:id|name|number)$", "", _words(kind))
    return [name, f"{noun} {name}", f"{name} {noun}"]


def _words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order total", `Price/month` is "price per month"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_-]", " ", key).replace("/", " per ")).lower()


def read_cells(record: Record, names: frozenset[str], money: str) -> Iterator[Cell]:
    """The cells of a record. `names` are names in other texts, `money` is the currency of amounts without one.

    A number has the unit and the period of its label: `depth_m`, `Weight (kg)`, `minutes`, `Price/month`, but not
    `week`, which may count weeks of the year. Below `Opened` and `Year founded`, 1998 is a year.
    """
    ways, fields = record
    years = re.compile(r"(?:1\d|20|21)\d\d")
    rows = [read(f"in {name}")[1:] if years.fullmatch(name) else read(name, names) for name in ways if name]
    for label, value in fields:
        *words, last = re.findall(r"[^\W\d_]+|\d+|[€$£%]", _words(label)) or [""]
        last = _DEGREES.get(last, last) if words else last
        is_unit = last in lexicon.UNITS and words[-1:] != ["per"] and (words or last != "min") and last not in _COUNTED
        noun, _, period = " ".join(words if is_unit else [*words, last]).partition(" per ")
        unit = last if is_unit else "" if _AMOUNTS.isdisjoint(map(lexicon.stem, noun.split())) else money
        text = f"{value} {unit}" if re.fullmatch(r"[-−]?\d+(?:[.,]\d+)*", value.strip()) else value
        capitals = {word.lower() for word in re.findall(r"[A-Z][^\W\d_]*", value)}
        is_year = years.fullmatch(value) and any(_is_of_year(word) for word in (*words, last))
        tokens = read(f"{text} per {period}" if period else text, names | capitals)
        tokens = read(f"in {value}")[1:] if is_year else tokens
        yield Cell(rows, read(noun), _BOOLEANS.get(value.strip().lower(), tokens), f"{label}: {value}")


def _is_of_year(word: str) -> bool:
    """Whether what a label says happened in a year: `opened`, `founded`."""
    return word in ("year", "since") or lexicon.verb_key(word).endswith("+ed")


def find_cell(claim: Tokens, cells: Sequence[Cell], asked: Tokens) -> tuple[Tokens, Cell] | None:
    """What a claim says about a cell, and the cell; `None` if it is about none, or about one that is not clear.

    That is the cell whose row the claim or the question (`asked`) names, rather with its label than without. If no
    other row has that label, the name may be missing.
    """
    found: list[tuple[tuple[int, ...], Tokens, list[Token], Cell]] = []
    kinds = {token.kind for cell in cells for name in cell.names for token in name} & {"id", "number"}
    is_about_row = any(token.kind in kinds for token in asked)
    for cell in cells:
        name = max((name for name in cell.names if _place(claim, name) >= 0), key=len, default=())
        place, is_asked = _place(claim, name), any(_place(asked, name) >= 0 for name in cell.names)
        rest = claim[:place] + claim[place + len(name) :]
        label = _label_in(rest, cell)
        if label is not None and cell.value != name and (name or is_asked or not is_about_row):
            found.append(((len(name), is_asked, len(label)), rest, label, cell))
    top = max((rank for rank, *_ in found), default=())
    best = [each for each in found if each[0] == top]
    return _statement_about(*best[0][1:]) if len(best) == 1 else None


def _place(tokens: Tokens, part: Tokens) -> int:
    """The place where the tokens have this part; -1 if they do not."""
    places = range(len(tokens) - len(part) + 1)
    return next((i for i in places if all(map(matches, tokens[i : i + len(part)], part))), -1)


def _label_in(claim: Tokens, cell: Cell) -> list[Token] | None:
    """The claim's words for the label of a cell; empty if it is meant without its label, `None` if it is not meant."""
    words = [token for token in cell.label if not _is_light(token)] or cell.label
    label = [token for word in words for token in [each for each in claim if _is_label(each, word)][:1]]
    if not words or len(label) == len(words):
        return label
    keys, last = {token.key for token in claim}, cell.label[-1]  # a price is meant after `costs`, a status after `is`
    is_state = len(cell.label) == 1 and last.key in _STATES and not keys.isdisjoint(("be", "was"))
    return [] if is_state or (lexicon.COST in keys and last.key in _PRICES) else None


def _is_label(token: Token, word: Token) -> bool:
    """Whether a token of the claim is a word of the label: the same, or of the same measure (`deep` and `depth`)."""
    one, other = (each.key.partition("+")[0] for each in (token, word))
    return matches(token, word) or one == other or any({one, other} <= group for group in lexicon.MEASURES)


def _is_light(token: Token) -> bool:
    return token.key.partition("+")[0] in _LIGHT or token.kind == "mark"


def _statement_about(claim: Tokens, label: Sequence[Token], cell: Cell) -> tuple[Tokens, Cell] | None:
    """What a claim without its row says about a cell, and the cell."""
    said = tuple(token for token in claim if token not in label and (token in cell.value or not _is_light(token)))
    if cell.value in _BOOLEANS.values():
        return said, cell
    # `Eva is the manager of Tom`, `Tom's manager is Eva`, `Eva's city is in Peru` do not give the value of Eva's cell.
    before, after = (claim[: claim.index(said[0])][-1:], claim[claim.index(said[-1]) + 1 :][:1]) if said else ((), ())
    is_other = any(token.key == "of" or (token.key == "in" and said[0].kind == "name") for token in before)
    is_owned = any(token.key == "s" for token in after)
    has = any(token.key in ("have", "had") for token in claim)
    return None if not said or is_owned or (is_other and not has) else (said, cell)
