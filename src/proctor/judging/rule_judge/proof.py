"""Decides whether passages support a claim, contradict it, or leave it open.

Every sentence of the passages is written in the few ways that state the same (`clauses.stated`). The claim is compared
with each of them token by token, in order, since order carries the roles: who did what to whom, cause and effect,
condition and consequence. It is supported if all tokens match. It is contradicted if all match but one, which fills
the same slot with something incompatible (another amount, name or status), one negation, or two fillers that changed
places. Everything else is left open: shared words prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.cells import Cell, Row, cell_claims, read_rows
from proctor.judging.rule_judge.claims import split_statements, without_courtesy
from proctor.judging.rule_judge.clauses import forms, is_verb, split_clauses, stated, subject, without_marks
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches, names_in, read
from proctor.judging.rule_judge.records import split_passage
from proctor.judging.rule_judge.values import MONEY, find_values


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why."""

    answer: Literal["supported", "contradicted", "cannot tell"]
    reason: str


OPEN = Verdict("cannot tell", "no rule proves or refutes it from the passages")


@dataclass(frozen=True, slots=True)
class Source:
    """One sentence of the passages."""

    text: str
    tokens: Tokens
    statements: Sequence[Tokens]
    """What it states, in each way to write it."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What claims are judged by: the sentences and the data of the passages, and what the user said."""

    sources: Sequence[Source]
    rows: Sequence[Row]
    asked: Tokens
    money: str
    """The only currency in the passages and the user's words; else empty."""


@lru_cache(maxsize=64)
def read_grounds(passages: tuple[str, ...], claims: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> Grounds:
    """The passages and the user's words as tokens. The claims tell which words are names."""
    names = names_in([*passages, *claims])
    split = [split_passage(passage) for passage in passages]
    prose = [statement for _, texts in split for text in texts for statement in split_statements(text)]
    texts = [(text, read(text, names)) for text in prose if not text.rstrip(" \"'”)").endswith("?")]
    rows = read_rows([record for records, _ in split for record in records], names)
    money = {value.unit for text in (*passages, *known) for value in find_values(text)} & MONEY
    asked = tuple(token for text in known for token in read(text, names))
    sources = [Source(text, tokens, stated(tokens)) for text, tokens in texts]
    return Grounds(sources, rows, asked, next(iter(money)) if len(money) == 1 else "")


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said."""
    grounds = read_grounds(tuple(passages), tuple(claims), tuple(known))
    names = names_in([*passages, *claims])
    verdicts: list[Verdict] = []
    for text in claims:
        tokens = read(without_courtesy(text) or text, names)
        if tokens and tokens[0].key in lexicon.PRONOUNS:
            verdicts.append(_judge_pronoun(text, tokens, grounds, verdicts[-1] if verdicts else None))
        else:
            verdicts.append(_judge(text, tokens, grounds))
    return verdicts


def _judge_pronoun(text: str, tokens: Tokens, grounds: Grounds, verdict: Verdict | None) -> Verdict:
    """Judge a claim that starts with a pronoun, given the verdict on the claim before: it is the passages' subject."""
    if verdict and verdict.answer != "supported":
        return OPEN
    topic = _topic(grounds.sources)
    return _judge(text, (*topic, *tokens[1:]), grounds) if topic else OPEN


def _topic(sources: Sequence[Source]) -> Tokens:
    """The subject of the passages if they have only one; a pronoun only if they name none."""
    subjects = {each for source in sources if (each := subject(source.tokens))}
    pronouns = {each[:1] for each in subjects if each[0].key in lexicon.PRONOUNS}
    candidates = {each for each in subjects if each[0].key not in lexicon.PRONOUNS} or pronouns
    return next(iter(candidates)) if len(candidates) == 1 else ()


def _judge(text: str, tokens: Tokens, grounds: Grounds) -> Verdict:
    quotes = [*(source.text for source in grounds.sources), *(cell.quote for row in grounds.rows for cell in row.cells)]
    if copy := next((quote for quote in quotes if _bare(quote) == _bare(text)), None):
        return Verdict("supported", f"the passages say “{copy}”")
    if not lexicon.is_english(text):
        return Verdict("cannot tell", "the rules are for English")
    whole = _judge_tokens(tokens, grounds)
    is_linked = any(token.text.lower() in lexicon.LINKS for token in tokens)
    if whole == OPEN and not is_linked:
        return all_of([_judge_tokens(versions[-1], grounds) for versions in split_clauses(tokens)])
    return whole


def _bare(text: str) -> str:
    """A text without the differences between copies: case, white space, and marks at its ends."""
    return " ".join(text.casefold().split()).strip(" .!?;,\"'“”*")


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim with several parts: one wrong part makes it wrong, and all must be proven."""
    if wrong := next((each for each in verdicts if each.answer == "contradicted"), None):
        return wrong
    return verdicts[-1] if verdicts and all(each.answer == "supported" for each in verdicts) else OPEN


def _judge_tokens(tokens: Tokens, grounds: Grounds) -> Verdict:
    """Any sentence that proves the claim decides; otherwise any that refutes it; otherwise the data."""
    found = [
        _compare(claim, statement, source, grounds.sources)
        for source in grounds.sources
        for statement in source.statements
        for claim in forms(tokens)
    ]
    ranked = [each for answer in ("supported", "contradicted") for each in found if each.answer == answer]
    return ranked[0] if ranked else _judge_data(tokens, grounds)


def _judge_data(tokens: Tokens, grounds: Grounds) -> Verdict:
    """Judge a claim by the cells that it is about, without terms that it repeats from the question: `… for a loan`."""
    claim = without_marks(tokens)
    place = next((index for index, token in enumerate(claim) if token.key == "for"), len(claim))
    is_echo = all(any(matches(token, each) for each in grounds.asked) for token in claim[place:] if token.is_content)
    for text in (claim, claim[:place]) if is_echo else (claim,):
        if found := cell_claims(text, grounds.rows, grounds.asked, grounds.money):
            return all_of([_compare_cell(each.said, each.cell) for each in found])
    return OPEN


def _compare_cell(said: Tokens, cell: Cell) -> Verdict:
    """Compare what a claim says about a cell with what is there."""
    reason = _negation(said, cell.value)
    if len(said) == len(cell.value):
        differences = [pair for pair in zip(said, cell.value, strict=True) if not matches(*pair)]
        if not differences:
            return Verdict("supported", f"the passages say “{cell.quote}”")
        if len(differences) == 1 and excludes(*differences[0]):
            reason = f"it says “{differences[0][0].text}” instead of “{differences[0][1].text}”"
    return Verdict("contradicted", f"{reason}; the passages say “{cell.quote}”") if reason else OPEN


def _compare(claim: Tokens, statement: Tokens, source: Source, sources: Sequence[Source]) -> Verdict:
    """Compare the claim with one statement of a source, token by token."""
    differences = [pair for pair in zip(claim, statement, strict=False) if not matches(*pair)]
    reason = ""
    if len(claim) != len(statement):
        reason = _negation(claim, statement)
    elif not differences:
        return Verdict("supported", f"the passages say “{source.text}”")
    elif len(differences) == 1:
        ours, theirs = differences[0]
        # Holland may be the Netherlands, unless the passages have both.
        is_clear = ours.kind != "name" or _is_mentioned(ours, sources)
        if excludes(ours, theirs) and is_clear and not _is_elsewhere(ours, claim, sources):
            reason = f"it says “{ours.text}” instead of “{theirs.text}”"
    elif _are_exchanged(claim, statement, differences):
        reason = "the roles are exchanged"
    return Verdict("contradicted", f"{reason}; the passages say “{source.text}”") if reason else OPEN


def _is_mentioned(token: Token, sources: Sequence[Source]) -> bool:
    return any(matches(token, each) for source in sources for each in source.tokens)


def _negation(claim: Tokens, source: Tokens) -> str:
    """What makes the claim deny the source, if that is one negation more or less; else empty."""
    shorter, longer = sorted((claim, source), key=len)
    for place, extra in enumerate(longer if len(longer) == len(shorter) + 1 else ()):
        if extra.kind == "negation" and all(map(matches, shorter, longer[:place] + longer[place + 1 :])):
            return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”"
    return ""


def _is_elsewhere(token: Token, claim: Tokens, sources: Sequence[Source]) -> bool:
    """Whether another statement of the passages has the claimed value and may be about the claim's subject."""
    others = [each for each in claim if each.is_content and each != token]
    clauses = [clause for each in sources for clause in split_clauses(each.tokens) or [[each.tokens]]]
    for *_, clause in clauses:
        shared = sum(any(matches(other, word) for word in clause) for other in others)
        if any(matches(token, word) for word in clause) and 2 * shared > len(others):
            return True
    return False


def _are_exchanged(claim: Tokens, source: Tokens, differences: Sequence[tuple[Token, Token]]) -> bool:
    """Whether two fillers, or both whole sides, have changed places around a verb or relation that gives them roles."""
    for index, pivot in enumerate(source):
        has_roles = is_verb(pivot) and pivot.kind != "modal" and pivot.key.partition("+")[0] not in lexicon.SYMMETRIC
        if not (pivot.kind == "relation" or has_roles) or any(token.key in _MUTUAL for token in source):
            continue
        before, after = source[:index], source[index + 1 :]
        if before and after and before != after and all(map(matches, claim, (*after, pivot, *before))):
            return True
        if len(differences) == 2 and matches(claim[index], pivot):
            (ours, theirs), (others, their_others) = differences
            is_across = theirs in before and their_others in after
            if is_across and matches(ours, their_others) and matches(others, theirs):
                return True
    return False


_MUTUAL = ("with", "against", "between", "like", "and")
"""Words that may join two equals: `Anna dances with Ben`."""
