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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.claims import PAIR, split_statements
from proctor.judging.rule_judge.lexicon import COST, UNITS
from proctor.judging.rule_judge.reading import Token, Tokens, matches, read
from proctor.judging.rule_judge.values import MONEY, SIGNS, find_values

_NAMING = re.compile(
    r"(?:^|_)(?:id|name|title|number|order|city|user|customer|product|item|sku|code|service|kind|type)$", re.I
)
"""Keys whose value names an object."""
_PRICES = frozenset(map(lexicon.stem, "payment price cost total amount fee".split()))
"""Labels that `costs` stands for."""
_AMOUNTS = _PRICES | frozenset(map(lexicon.stem, "value interest income salary balance revenue budget".split()))
"""Labels of amounts, whose currency may be elsewhere."""
_STATES = frozenset("status state condition availability stage".split())
"""Labels that a sentence leaves out: `the order is delayed` gives its status."""
_LIGHT = frozenset(
    map(lexicon.stem, "cost take last weigh measure amount come equal reach stand produce need get include contain".split())
) | frozenset("be was have had of in at on for you its their there s it they currently now".split())
"""Keys of words that add nothing to a row, a label and a value."""
_BOOLEANS = {"true": (), "yes": (), "false": read("not"), "no": read("not")}
_MAX_NESTING = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of one row and label."""

    label: Tokens
    value: Tokens
    quote: str

    @property
    def is_boolean(self) -> bool:
        return self.value in _BOOLEANS.values()


@dataclass(frozen=True, slots=True)
class Row:
    """A table row, a JSON object, or a block of `label: value` lines."""

    names: tuple[Tokens, ...]
    """What names it, each also with the word for what it is. One is enough."""
    cells: tuple[Cell, ...]


Record = tuple[Iterable[str], Iterable[tuple[str, str]]]
"""The names of a row, and its labels and values."""


def split_passage(passage: str, names: frozenset[str]) -> tuple[list[Row], list[str]]:
    """The data of a passage, and its other texts."""
    records, texts = _split(passage.strip())
    return [
        Row(tuple(_read_name(name, names) for name in ways if name), tuple(_read_cell(*each, names) for each in fields))
        for ways, fields in records
    ], texts


def _split(passage: str) -> tuple[list[Record], list[str]]:
    if passage[:1] in ("{", "[") and passage[-1:] in ("}", "]"):
        try:
            items = list(_objects(json.loads(passage), "", 0))
        except (ValueError, RecursionError):
            return [], []
        return [item for item in items if not isinstance(item, str)], [item for item in items if isinstance(item, str)]
    records: list[Record] = []
    prose: list[str] = []
    for kind, group in groupby(passage.splitlines(), key=_line_kind):
        lines = list(group)
        if kind == "|" or (kind == "," and len(lines) > 1 and not re.search(r"\d", lines[0])):
            records += _table(lines, kind)
        elif kind == ":":
            plain = (re.sub(r"^\s*[-•*]\s|\*", "", line).replace(" = ", ": ", 1).partition(":") for line in lines)
            fields = [(label.strip(), value.strip()) for label, _, value in plain]
            records.append((_names(*fields[0]) if len(fields) > 1 else (), fields))
        else:
            prose += lines
    return records, ["\n".join(prose)]


def _line_kind(line: str) -> str:
    """What separates the cells of a line; empty for prose."""
    if "|" in line:
        return "|"
    if PAIR.fullmatch(line) and len(split_statements(line)) == 1:  # not `Contents: a drone. The case is extra.`
        return ":"
    return "," if re.fullmatch(r"[^,]*(?:,\S[^,]*)+", line) else ""


def _table(lines: Sequence[str], separator: str) -> Iterator[Record]:
    """The rows of a table, each named after its first cell; not a line with more or fewer cells than the header."""
    header, *rows = [[cell.strip() for cell in line.strip().strip("|").split(separator)] for line in lines]
    for row in rows:
        if len(row) == len(header) and "".join(row).strip("-: "):
            yield _names(header[0], row[0]), [*zip(header, row, strict=True)][1:]


def _objects(value: Any, kind: str, depth: int) -> Iterator[Record | str]:
    """The objects of a JSON document, each with its own values, and its sentences; `kind` is the key around it."""
    if isinstance(value, str) and len(value.split()) > 2:
        yield value
    if isinstance(value, dict):
        names = [name for key, text in value.items() if _is_naming(key, text) for name in _names(key, str(text))]
        names += [way for name in names if kind for way in (f"{kind} {name}", f"{name} {kind}")] or [kind]
        currency = value.get("currency") or value.get("unit") or ""
        scalars = {key: item for key, item in value.items() if isinstance(item, (str, int, float)) and item != ""}
        texts = {key: item if isinstance(item, str) else json.dumps(item) for key, item in scalars.items()}
        yield names, [(key, f"{text} {currency}" if lexicon.stem(key) in _AMOUNTS else text) for key, text in texts.items()]
    if isinstance(value, (dict, list)) and depth < _MAX_NESTING:
        items = value.items() if isinstance(value, dict) else ((kind.removesuffix("s"), each) for each in value)
        for key, item in items:
            yield from _objects(item, _label_words(key), depth + 1)


def _is_naming(key: str, item: Any) -> bool:
    is_id = isinstance(item, str) and [value.text for value in find_values(item) if value.kind == "id"] == [item]
    return is_id or (bool(_NAMING.search(key)) and type(item) in (str, int))


def _names(kind: str, name: str) -> tuple[str, ...]:
    noun = re.sub(r" (?:id|name|number)$", "", _label_words(kind))
    return (name, f"{noun} {name}", f"{name} {noun}") if name else ()


def _label_words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order total", `Price/month` is "price per month"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_-]", " ", key).replace("/", " per ")).lower()


def _read_name(name: str, names: frozenset[str]) -> Tokens:
    is_year = re.fullmatch(r"(?:1\d|20|21)\d\d", name)
    return read(f"in {name}")[1:] if is_year else read(name, names)


def _read_cell(label: str, value: str, names: frozenset[str]) -> Cell:
    """A cell; a number has the unit and the period of its label: `depth_m`, `Weight (kg)`, `minutes`, `Price/month`."""
    *words, last = re.findall(r"[^\W\d_]+|\d+|[€$£%]", _label_words(label)) or [""]
    degree = {"c": "°C", "f": "°F"}.get(last, "") if words else ""
    is_unit = degree or last in SIGNS or (last in UNITS and words[-1:] != ["per"] and (words or last != "min"))
    noun, _, period = " ".join(words if is_unit else [*words, last]).partition(" per ")
    is_number = re.fullmatch(r"[-−]?\d+(?:[.,]\d+)*", value.strip())
    text = f"{value} {degree or last}" if is_unit and is_number else value
    names |= {word.lower() for word in re.findall(r"[A-Z][^\W\d_]*", value)}
    tokens = _BOOLEANS.get(value.strip().lower(), read(f"{text} per {period}" if period else text, names))
    return Cell(read(noun), tokens, f"{label}: {value}")


def find_cell(claim: Tokens, rows: Sequence[Row], asked: Tokens) -> tuple[Tokens, Cell] | None:
    """What the claim says about a cell, and the cell; `None` if it is about none, or about one that is not clear.

    `asked` is the question, which may name the row instead of the claim. If no other row has that label, the name may
    be missing.
    """
    counts = Counter(cell.label for row in rows for cell in row.cells)
    unique = [cell for row in rows for cell in row.cells if counts[cell.label] == 1 and cell.label]
    if named := _named_row(claim, rows):
        row, name = named
        others = [cell for cell in row.cells if cell.value != name]
        is_value = any(cell.value == name and _place(claim, cell.label) is not None for cell in row.cells)
        found = None if is_value else _find_in(_without(claim, name), others)  # `the gate is B7` names no row
        return found or _find_in(claim, unique)
    if named := _named_row(asked, rows):
        return _find_in(claim, named[0].cells) or _find_in(claim, unique)
    kinds = {token.kind for row in rows for name in row.names for token in name} & {"id", "number"}
    is_other = any(token.kind in kinds for token in asked)  # the question is about another row
    return None if is_other else _find_in(claim, unique)


def _named_row(tokens: Tokens, rows: Sequence[Row]) -> tuple[Row, Tokens] | None:
    """The only row that the tokens name, with its longest name there."""
    named = [(row, name) for row in rows for name in row.names if name and _place(tokens, name) is not None]
    longest = max((len(name) for _, name in named), default=0)
    best = [(row, name) for row, name in named if len(name) == longest]
    others = [name for _, name in named if not any(_place(longer, name) is not None for _, longer in best)]
    return best[0] if best and len({id(row) for row, _ in best}) == 1 and not others else None


def _place(tokens: Tokens, part: Tokens) -> int | None:
    """The place where the tokens have this part; `None` if they do not."""
    places = range(len(tokens) - len(part) + 1)
    return next((i for i in places if part and all(map(_is_same, tokens[i : i + len(part)], part))), None)


def _is_same(one: Token, other: Token) -> bool:
    return matches(one, other) or (one.value is other.value is None and one.text.lower() == other.text.lower())


def _without(tokens: Tokens, part: Tokens) -> Tokens:
    place = _place(tokens, part)
    return tokens if place is None else tokens[:place] + tokens[place + len(part) :]


def _find_in(rest: Tokens, cells: Sequence[Cell]) -> tuple[Tokens, Cell] | None:
    """What the rest of a claim says about one of these cells, and the cell; `None` if that is not clear."""
    cell, label = _labelled(rest, cells) or (_unlabelled(rest, cells), ())
    if cell is None:
        return None
    said = tuple(token for token in rest if token not in label and (token in cell.value or not _is_light(token)))
    if cell.is_boolean:
        return (said, cell) if all(token.kind == "negation" for token in said) else None
    if not said:
        return None
    before, after = rest[: rest.index(said[0])][-1:], rest[rest.index(said[-1]) + 1 :][:1]
    # `Eva is the manager of Tom` and `Tom's manager is Eva` are not about Eva's manager.
    has = any(token.key in ("have", "had") for token in rest)
    is_owner = (after and after[0].key == "s") or (before and before[0].key == "of" and not has)
    is_around = said[0].kind == "name" and before and before[0].key == "in"  # `Eva's city is in Germany`
    return None if is_owner or is_around else (said, cell)


def _is_light(token: Token) -> bool:
    return token.key.partition("+")[0] in _LIGHT or token.kind == "mark"


def _labelled(rest: Tokens, cells: Sequence[Cell]) -> tuple[Cell, Sequence[Token]] | None:
    """The only cell whose label the claim has, with the claim's words for it; the longest label wins."""
    found: list[tuple[Cell, list[Token]]] = []
    for cell in cells:
        words = [token for token in cell.label if not _is_light(token)] or list(cell.label)
        label = [token for word in words for token in [each for each in rest if _names_label(each, word, cell)][:1]]
        if words and len(label) == len(words):
            found.append((cell, label))
    longest = max(found, key=lambda pair: len(pair[1]), default=None)
    is_clear = longest and all(cell is longest[0] or set(label) < set(longest[1]) for cell, label in found)
    return longest if is_clear else None


def _names_label(token: Token, word: Token, cell: Cell) -> bool:
    """Whether a token of the claim is a word of the label: the same, or of the same measure (`deep` and `depth`)."""
    if token.key == COST and word.key != COST:
        return False
    one, other = token.key.partition("+")[0], word.key.partition("+")[0]
    is_adverb = cell.is_boolean and token.text.endswith("ly") and len(other) > 3 and one.startswith(other)
    return _is_same(token, word) or one == other or lexicon.is_same_measure(one, other) or is_adverb


def _unlabelled(rest: Tokens, cells: Sequence[Cell]) -> Cell | None:
    """The only cell that is meant without its label: a price after `costs`, a main value, a status."""
    keys = {token.key for token in rest}
    prices = [cell for cell in cells if cell.label and cell.label[-1].key in _PRICES]
    prices = [cell for cell in prices if cell.label[0].key in (COST, lexicon.stem("price"))] or prices
    states = [cell for cell in cells if len(cell.label) == 1 and cell.label[0].text.lower() in _STATES]
    plain = [cell for cell in cells if not cell.label]
    groups = (prices if COST in keys else [], plain, states if keys & {"be", "was"} else [])
    return next((group[0] for group in groups if len(group) == 1), None)


def in_currency(cell: Cell, said: Tokens, money: str) -> Tokens:
    """The value of a cell, in the only currency that anybody names if the claim gives an amount of money."""
    value, claimed = cell.value[0].value if len(cell.value) == 1 else None, said[0].value if len(said) == 1 else None
    if not value or value.unit or not claimed or claimed.unit not in MONEY or not money:
        return cell.value
    return read(f"{value.text} {money}") if any(token.key in _AMOUNTS for token in cell.label) else cell.value
