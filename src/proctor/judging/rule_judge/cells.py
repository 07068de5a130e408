"""Finds the cell that a claim about data is about, and what the claim says its value is.

A claim about a table, JSON or a list names a row, a column and a value in some order, between words that add nothing:
"The depth of Pier 2 is 6 m", "Pier 2 is 6 m deep". So the words of the row and of the column are taken out of the
claim, and the rest must be the value of that cell, or one that it excludes. Looking for the value in the row would be
wrong: the value of another column is the mistake to catch. If two rows or columns fit, or a word is left over that is
neither light nor the value (`only`, `more`, `may`), no cell is found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.lexicon import COST, PREPOSITIONS, UNITS
from proctor.judging.rule_judge.reading import Token, Tokens, matches, read
from proctor.judging.rule_judge.records import Record, label_words
from proctor.judging.rule_judge.values import MONEY, SIGNS

_STATES = frozenset("status state condition availability stage".split())
"""Labels that a sentence leaves out: `the order is delayed` gives its status."""
_PRICES = frozenset(map(lexicon.stem, "payment price cost total amount fee".split()))
"""Labels that `costs` stands for."""
_PRICE = lexicon.stem("price")
_LIGHT = frozenset(
    map(lexicon.stem, "take last weigh measure amount come equal reach stand produce need get include contain".split())
) | {
    COST,
    "be",
    "was",
    "have",
    "had",
    "of",
    "in",
    "at",
    "on",
    "for",
    "you",
    "its",
    "their",
    "there",
    "s",
    "it",
    "they",
    "currently",
    "now",
}
"""Keys of words that add nothing to a row, a column and a value."""
_BOOLEANS = {"true": (), "yes": (), "false": read("not"), "no": read("not")}


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of one row and column."""

    label: Tokens
    value: Tokens
    quote: str


@dataclass(frozen=True, slots=True)
class Row:
    """A record with its names and cells as tokens."""

    names: tuple[Tokens, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CellClaim:
    """What a claim says about a cell, and what is there."""

    said: Tokens
    cell: Cell


def read_rows(records: Sequence[Record], names: frozenset[str]) -> list[Row]:
    """The records as tokens."""
    rows = []
    for record in records:
        ways = tuple(_read_name(name, names) for name in record.names)
        cells = tuple(_read_cell(label, value, names) for label, value in record.fields)
        rows.append(Row(ways, cells))
    return rows


def _read_name(name: str, names: frozenset[str]) -> Tokens:
    is_year = re.fullmatch(r"(?:1\d|20|21)\d\d", name)
    return read(f"in {name}")[1:] if is_year else read(name, names)


def _read_cell(label: str, value: str, names: frozenset[str]) -> Cell:
    words, unit = _split_label(label)
    is_number = re.fullmatch(r"[-−]?\d+(?:[.,]\d+)*", value.strip())
    noun, _, period = words.partition(" per ")
    full = f"{value} {unit}" if is_number else value
    names |= {word.lower() for word in re.findall(r"[A-Z][^\W\d_]*", value)}
    tokens = _BOOLEANS.get(value.strip().lower(), read(f"{full} per {period}" if period else full, names))
    return Cell(read(noun), tokens, f"{label}: {value}")


def _split_label(label: str) -> tuple[str, str]:
    """The words of a label and the unit in it: `temp_c`, `Weight (kg)`, `minutes`."""
    bracket = re.search(r"[(\[,]\s*([^)\],]+?)\s*[)\]]?$", label)
    if bracket and (bracket[1].lower() in UNITS or bracket[1] in {*SIGNS, "°C", "°F"}):
        return label_words(label[: bracket.start()]), bracket[1]
    *words, last = re.findall(r"[^\W\d_]+|\d+|[€$£%]", label_words(label)) or [""]
    unit = {"c": "°C", "f": "°F"}.get(last, last) if words else last
    is_unit = last in {*SIGNS} or unit != last or (last in UNITS and words[-1:] != ["per"])
    if not is_unit or not last or (not words and last in ("min", "second")):
        return " ".join([*words, last]), ""
    return " ".join(words), unit


def cell_claims(claim: Tokens, rows: Sequence[Row], asked: Tokens, money: str) -> list[CellClaim]:
    """What the claim says about cells; empty if it is about none, or about one that is not clear.

    `asked` is the question, which may name the row instead of the claim, and `money` the unit of amounts without one.
    """
    counts = Counter(cell.label for row in rows for cell in row.cells)
    unique = [cell for row in rows for cell in row.cells if counts[cell.label] == 1 and cell.label]
    if named := _named_row(claim, rows):
        row, name = named
        if any(cell.value == name and _run(claim, cell.label) is not None for cell in row.cells if cell.label):
            return _claims_in(claim, unique, money)  # `the gate is B7` names no record
        others = [cell for cell in row.cells if cell.value != name]
        parts = {part for token in name for part in re.findall("[a-z]+", token.key)}  # `the tent (TENT-3)`
        rest = tuple(token for token in _without_run(claim, name) if token.text.lower() not in parts)
        if found := _claims_in(rest, others, money):
            return found
    elif (named := _named_row(asked, rows)) and (found := _claims_in(claim, named[0].cells, money)):
        return found
    elif not named and _names_another(asked, rows):
        return []
    return _claims_in(claim, unique, money)  # if no other record has that label, the name may be missing


def _names_another(asked: Tokens, rows: Sequence[Row]) -> bool:
    """Whether the rows have identifiers or numbers as names, and the question has one that none of them has."""
    kinds = {token.kind for row in rows for name in row.names for token in name} & {"id", "number"}
    return any(token.kind in kinds for token in asked)


def _claims_in(rest: Tokens, cells: Sequence[Cell], money: str) -> list[CellClaim]:
    """What the rest of a claim says about some of these cells; empty if that is not clear."""
    found: list[CellClaim] = []
    for cell in cells:
        if len(cell.label) == 1 and cell.label[0].key in PREPOSITIONS:  # `from Ulm to Bern`
            place = next((index for index, token in enumerate(rest[:-1]) if token.key == cell.label[0].key), None)
            if place is not None:
                end = place + 1 + max(len(cell.value), 1)
                found.append(CellClaim(rest[place + 1 : end], cell))
                rest = rest[:place] + rest[end:]
    used = [each.cell for each in found]
    candidate = _column([cell for cell in cells if cell not in used and cell.label[:1] != ()], rest)
    if candidate is None:
        candidate = _unlabelled([cell for cell in cells if cell not in used], rest)
    if found and all(_is_light(token) or token.key in _MOTION for token in rest):
        return found
    if candidate is None:
        return []
    cell, label = candidate
    said = _value(rest, label, cell)
    return [*found, CellClaim(said, _with_unit(cell, said, money))] if said is not None else []


_MOTION = frozenset(map(lexicon.stem, "go run lead".split()))


def _is_light(token: Token) -> bool:
    return token.key.partition("+")[0] in _LIGHT or token.kind == "mark"


def _named_row(tokens: Tokens, rows: Sequence[Row]) -> tuple[Row, Tokens] | None:
    """The only row that the tokens name, with its longest name there."""
    named = [(row, name) for row in rows for name in row.names if name and _run(tokens, name) is not None]
    longest = max((len(name) for _, name in named), default=0)
    best = [(row, name) for row, name in named if len(name) == longest]
    others = [name for _, name in named if not any(_run(longer, name) is not None for _, longer in best)]
    return best[0] if best and len({id(row) for row, _ in best}) == 1 and not others else None


def _run(tokens: Tokens, part: Tokens) -> int | None:
    """The place where the tokens have this part; `None` if they do not."""
    places = range(len(tokens) - len(part) + 1)
    return next((i for i in places if all(map(_same_word, tokens[i : i + len(part)], part))), None)


def _same_word(one: Token, other: Token) -> bool:
    return matches(one, other) or (one.value is other.value is None and one.text.lower() == other.text.lower())


def _without_run(tokens: Tokens, part: Tokens) -> Tokens:
    place = _run(tokens, part) if part else None
    return tokens if place is None else tokens[:place] + tokens[place + len(part) :]


def _column(cells: Sequence[Cell], rest: Tokens) -> tuple[Cell, list[Token]] | None:
    """The only cell whose label the claim has, with the claim's words for it; the longest label wins."""
    found: list[tuple[Cell, list[Token]]] = []
    for cell in cells:
        words = [token for token in cell.label if not _is_light(token)] or list(cell.label)
        label = [next((token for token in rest if _names(token, word, cell)), None) for word in words]
        if None not in label:
            found.append((cell, [token for token in label if token is not None]))
    longest = max(found, key=lambda pair: len(pair[1]), default=None)
    is_clear = longest and all(cell is longest[0] or set(label) < set(longest[1]) for cell, label in found)
    return longest if is_clear else None


def _names(token: Token, word: Token, cell: Cell) -> bool:
    """Whether a token of the claim is a word of the label: the same, or of the same measure (`deep` and `depth`)."""
    if token.key == COST and word.key != COST:
        return False
    one, other = token.key.partition("+")[0], word.key.partition("+")[0]
    is_adverb = token.text.endswith("ly") and len(other) > 3 and one.startswith(other)  # `auto`, `automatically`
    is_form = is_adverb and cell.value in _BOOLEANS.values()
    return _same_word(token, word) or one == other or lexicon.is_same_measure(one, other) or is_form


def _unlabelled(cells: Sequence[Cell], rest: Tokens) -> tuple[Cell, list[Token]] | None:
    """The only cell that is meant without its label: a price after `costs`, a main value, a status."""
    keys = {token.key for token in rest}
    prices = [cell for cell in cells if len(cell.label) == 1 and cell.label[0].key in _PRICES]
    if any(cell.label[-1].key == _PRICE and cell not in prices for cell in cells if cell.label):
        prices = [cell for cell in prices if cell.label[0].key == _PRICE]  # not the total beside a unit price
    states = [cell for cell in cells if cell.label and cell.label[-1].text.lower() in _STATES and len(cell.label) == 1]
    plain = [cell for cell in cells if not cell.label]
    for group in (prices if COST in keys else [], plain, states if keys & {"be", "was"} else []):
        if len(group) == 1:
            return group[0], []
    return None


def _value(rest: Tokens, label: Sequence[Token], cell: Cell) -> Tokens | None:
    """The claimed value: what is left of a claim without its row, its label and light words; `None` if roles differ."""
    said = tuple(token for token in rest if token not in label and (token in cell.value or not _is_light(token)))
    if said and cell.value not in _BOOLEANS.values():
        before, after = rest[: rest.index(said[0])][-1:], rest[rest.index(said[-1]) + 1 :][:1]
        # `Eva is the manager of Tom` and `Tom's manager is Eva` are not about Eva's manager.
        is_owner = (after and after[0].key == "s") or (
            before and before[0].key == "of" and not any(token.key in ("have", "had") for token in rest)
        )
        is_around = said[0].kind == "name" and before and before[0].key == "in"  # `Eva's city is in Germany`
        if is_owner or is_around:
            return None
    is_boolean = cell.value in _BOOLEANS.values()
    if is_boolean and any(token.kind != "negation" for token in said):
        return None
    return said if said or is_boolean else None


def _with_unit(cell: Cell, said: Tokens, money: str) -> Cell:
    """The cell with the unit that everybody means: amounts in the only currency, 0.05 as 5%."""
    value = cell.value[0].value if len(cell.value) == 1 else None
    claimed = said[0].value if len(said) == 1 else None
    if value is None or claimed is None or value.kind != "number" or value.unit:
        return cell
    if claimed.unit == "percent" and 0 < abs(value.amount) < 1:
        return Cell(cell.label, read(f"{value.amount * 100:g}%"), cell.quote)
    is_amount = any(token.key in _PRICES or token.key in _AMOUNTS for token in cell.label)
    if claimed.unit in MONEY and money and is_amount:
        return Cell(cell.label, read(f"{value.text} {money}"), cell.quote)
    return cell


_AMOUNTS = frozenset(map(lexicon.stem, "value interest income salary balance revenue budget".split()))
