"""Judges a claim by records: the cell of that row and column, the value at that key of that object.

What names the record, the label, and words that only join them are taken off the claim. If the label's own value is
left, the record says it; if another value of that type is left, the record denies it. A claim that names no record is
judged only if there is just one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from proctor.judging.rule_judge.lexicon import COST
from proctor.judging.rule_judge.reading import Record, Token, Tokens, excludes, matches
from proctor.judging.rule_judge.values import MONEY

Answer = Literal["supported", "contradicted", "unmentioned", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why."""

    answer: Answer
    reason: str


OPEN = Verdict("cannot tell", "no rule proves or refutes it from the passages")
_GLUE = frozenset("be was have of in for with at to on there it its your my our their as , : ( ) by".split()) | {COST}
"""Words that join what a record says to a sentence."""
_STATES = frozenset("status state condition availability stage".split())
"""Labels that a sentence leaves out: `the order is delayed` gives its status."""
_AMOUNTS = frozenset("payment price cost total amount fee interest income loan salary balance revenue budget".split())
"""Labels of amounts of money, whose currency data often leaves out."""


_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim with several parts: one wrong part makes it wrong, and all must be proven."""
    for answer in ("contradicted", "unmentioned"):
        if wrong := next((each for each in verdicts if each.answer == answer), None):
            return wrong
    return verdicts[0] if verdicts and all(each.answer == "supported" for each in verdicts) else OPEN


def judge_records(claim: Tokens, records: Sequence[Record], known: frozenset[str]) -> list[Verdict]:
    """The verdict of each record that the claim can be about. `known` are keys of what the user said."""
    verdicts = []
    for record in records:
        parts, is_named = _without_identity(_parts(claim), record)
        if is_named or not (record.is_item or any(each.identity != record.identity for each in records)):
            verdicts.append(all_of([_judge_part(part, record, known) for part in parts]))
    return verdicts


def _parts(claim: Tokens) -> list[list[Token]]:
    """The parts of a claim about a record: `9 goals and 11 assists` has two."""
    parts: list[list[Token]] = [[]]
    for token in claim:
        if token.key in ("and", ",", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _without_identity(parts: Sequence[list[Token]], record: Record) -> tuple[list[list[Token]], bool]:
    """The parts without the name of the record, and whether it is named."""
    is_named = False
    for name in record.identity:
        for part in parts:
            places = [next((i for i, token in enumerate(part) if _same(token, each)), -1) for each in name]
            if places and -1 not in places:
                is_named = True
                part[:] = [token for i, token in enumerate(part) if i not in places]
    return [part for part in parts if any(token.key not in _GLUE for token in part)], is_named


def _same(claim: Token, cell: Token) -> bool:
    """Whether a token is that of a cell; a cell may be a name although the claim's word is not written as one."""
    plain = claim.value is cell.value is None and claim.text.lower() == cell.text.lower()
    return plain or matches(claim, cell)


def _judge_part(part: Sequence[Token], record: Record, known: frozenset[str]) -> Verdict:
    found = [_judge_field(part, label, value, record, known) for label, value in record.fields]
    for answer in ("supported", "contradicted"):
        if decisive := next((each for each in found if each.answer == answer), None):
            return decisive
    return OPEN


def _judge_field(part: Sequence[Token], label: Tokens, value: Tokens, record: Record, known: frozenset[str]) -> Verdict:
    quote = f"the passages say “{' '.join(each.text for each in label)}: {' '.join(each.text for each in value)}”"
    words = [token for token in part if token.key not in _GLUE and token.kind != "negation"]
    is_negated = len(words) < len([token for token in part if token.key not in _GLUE])
    labels = {token.key for token in label if token.key not in _GLUE}
    is_labelled = labels <= {token.key for token in words}
    rest = [token for token in words if token.key not in labels]
    unknown = [token for token in rest if token.key not in known]
    rest = unknown if any(token.value is not None for token in unknown) else rest
    if value and (flag := _FLAGS.get(value[-1].text.lower())) is not None:
        agrees = is_negated != flag
        rest = [token for token in rest if token.key not in record.type_words]
        return Verdict("supported" if agrees else "contradicted", quote) if is_labelled and not rest else OPEN
    cells = [token for token in value if token.kind != "negation"]
    if len(rest) > len(cells):
        rest = [token for token in rest if token.key not in record.type_words]
    if len(rest) != len(cells) or not (is_labelled or labels & _STATES or _is_only_unit(cells, record)):
        return OPEN
    given = [_in_unit_of(token, cell, labels) for token, cell in zip(rest, cells, strict=True)]
    is_negative = len(cells) < len(value)
    if all(map(_same, given, cells)):
        return Verdict("supported" if is_negated == is_negative else "contradicted", quote)
    differs = len(cells) == 1 and excludes(given[0], cells[0]) and (is_labelled or given[0].kind == "word")
    if differs and not is_negated and not is_negative:
        return Verdict("contradicted", f"it says “{rest[0].text}”; {quote}")
    return OPEN


def _is_only_unit(cells: Sequence[Token], record: Record) -> bool:
    """Whether the unit of a value tells its label: `9 °C` is the temperature if no other field has degrees."""
    unit = next((token.value.unit for token in cells if token.value is not None), "")
    units = [token.value.unit for _, value in record.fields for token in value if token.value is not None]
    return bool(unit) and units.count(unit) == 1


def _in_unit_of(token: Token, cell: Token, labels: set[str]) -> Token:
    """The claim's value in the notation of data, which leaves out currencies and writes 5% as 0.05."""
    if token.value is None or cell.value is None or cell.value.unit:
        return token
    if token.value.unit in MONEY and labels & _AMOUNTS:
        return replace(token, value=replace(token.value, unit=""))
    if token.value.unit == "percent" and abs(cell.value.amount) < 1:
        return replace(token, value=replace(token.value, unit="", amount=token.value.amount / 100))
    return token
