"""Decides whether passages support a claim, contradict it, or leave it open.

Every sentence of the passages is written in the few ways that state the same (`sentences.stated`). The claim is
compared with each of them token by token, in order, since order carries the roles: who did what to whom, cause and
effect, condition and consequence. It is supported if all tokens match. It is contradicted if all match but one, which
fills the same slot with something incompatible (another amount, name or status), one negation, or two fillers that
changed places. What sentences leave open is judged by the cell of a table that the claim names (`cells.py`). Everything
else is left open: shared words prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.cells import Cell, Row, find_cell, in_currency, split_passage
from proctor.judging.rule_judge.claims import split_statements, without_courtesy
from proctor.judging.rule_judge.grammar import is_bare, is_framed, is_past_event, is_verb, subject, without_marks
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches, names_in, read
from proctor.judging.rule_judge.sentences import forms, split_clauses, stated
from proctor.judging.rule_judge.values import MONEY, find_values


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why."""

    answer: Literal["supported", "contradicted", "cannot tell"]
    reason: str
    quote: str = ""
    """The sentence or the cell that decides it."""


def proven_by(quote: str) -> Verdict:
    return Verdict("supported", f"the passages say “{quote}”", quote)


def refuted_by(quote: str, difference: str) -> Verdict:
    return Verdict("contradicted", f"{difference}; the passages say “{quote}”", quote)


OPEN = Verdict("cannot tell", "no rule proves or refutes it from the passages")


@dataclass(frozen=True, slots=True)
class Source:
    """One sentence of the passages."""

    text: str
    tokens: Tokens
    statements: Sequence[Tokens]
    """What it states, in each way to write it."""
    clauses: Sequence[Tokens]
    """Its clauses, or itself if it has only one."""


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
    split = [split_passage(passage, names) for passage in passages]
    prose = [text for _, texts in split for text in _sentences(texts)]
    texts = [(text, read(text, names)) for text in prose if not text.rstrip(" \"'”)").endswith("?")]
    sources = [Source(text, tokens, stated(tokens), split_clauses(tokens) or [tokens]) for text, tokens in texts]
    rows = [row for rows, _ in split for row in rows]
    money = {value.unit for text in (*passages, *known) for value in find_values(text)} & MONEY
    asked = tuple(token for text in known for token in read(text, names))
    return Grounds(sources, rows, asked, next(iter(money)) if len(money) == 1 else "")


def _sentences(texts: Sequence[str]) -> list[str]:
    """The statements of texts, without what may hold only in the case that the one before it is about: `In winter, …; …`."""
    found = [statement for text in texts for statement in split_statements(text)]
    pairs = pairwise(["", *found])
    return [text for before, text in pairs if not (before.endswith(";") and is_framed(read(before)))]


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said."""
    grounds = read_grounds(tuple(passages), tuple(claims), tuple(known))
    names = names_in([*passages, *claims])
    statements = [read(without_courtesy(text) or text, names) for text in claims]
    verdicts: list[Verdict] = []
    for text, tokens in zip(claims, statements, strict=True):
        if tokens and tokens[0].key in lexicon.PRONOUNS:
            is_clear = not verdicts or verdicts[-1].answer == "supported"
            verdicts.append(_judge_pronoun(text, tokens, grounds) if is_clear else OPEN)
        else:
            verdicts.append(_judge(text, tokens, grounds))
    return _in_order(statements, verdicts, grounds.sources)


def _in_order(statements: Sequence[Tokens], verdicts: list[Verdict], sources: Sequence[Source]) -> list[Verdict]:
    """The verdicts, left open if the steps of an instruction stand in another order than in the passages."""
    steps = [i for i, tokens in enumerate(statements) if tokens and is_bare(tokens[0])]
    texts = [source.text for source in sources]
    places = [texts.index(verdicts[i].quote) for i in steps if verdicts[i].quote in texts]
    return verdicts if places == sorted(places) else [OPEN if i in steps else v for i, v in enumerate(verdicts)]


def _judge_pronoun(text: str, tokens: Tokens, grounds: Grounds) -> Verdict:
    """Judge a claim that starts with a pronoun: it is the subject of the only sentence that has the claim's verb.

    The question must be able to mean that sentence. If the passages have the same pronoun, it is read as any word.
    """
    verb = next((token for token in tokens[1:] if token.kind == "word" or token.key == lexicon.COST), tokens[0])
    meant = [source for source in grounds.sources if not grounds.asked or any(map(partial(matches, verb), source.tokens))]
    if len(meant) == 1 and _can_mean(grounds.asked, meant[0].tokens):
        subjects = {way for way in map(subject, meant[0].statements) if way and _is_definite(way)}
        found = [_judge_tokens((*way, *tokens[1:]), grounds) for way in sorted(subjects, key=str)]
        if len({each.answer for each in found} - {OPEN.answer}) == 1:
            return next(each for each in found if each != OPEN)
    return _judge(text, tokens, grounds)


def _is_definite(subject: Tokens) -> bool:
    """Whether a subject can stand for a pronoun: not if it is one itself, or `the team almost` of `… almost won`."""
    return subject[0].key not in lexicon.PRONOUNS and all(token.kind != "limit" for token in subject)


def _can_mean(asked: Tokens, source: Tokens) -> bool:
    """Whether a question, if there is one, can be about a sentence: it has a pronoun, or all of its words are there."""
    words, named = _named_words(asked, source)
    return any(token.key in lexicon.PRONOUNS for token in asked) or named == words


def _judge(text: str, tokens: Tokens, grounds: Grounds) -> Verdict:
    if _ENGLISH_REPLY.match(text) and grounds.asked and not _fits_reply(text, tokens, grounds.asked):
        return Verdict("cannot tell", "the yes or no may be about something else")
    is_english = lexicon.is_english(text)
    bare = _bare(text if is_english else _REPLY.sub("", text))
    if copy := next((source.text for source in grounds.sources if _bare(source.text) == bare), None):
        return proven_by(copy)
    if not is_english:
        return Verdict("cannot tell", "the rules are for English")
    whole = _judge_tokens(tokens, grounds)
    is_linked = any(token.text.lower() in lexicon.LINKS for token in tokens)
    if whole == OPEN and not is_linked:
        return all_of([_judge_tokens(clause, grounds) for clause in split_clauses(tokens)])
    return whole


def _fits_reply(text: str, tokens: Tokens, asked: Tokens) -> bool:
    """Whether a statement after `yes` or `no` is about the question, and says the same (or the opposite)."""
    words, named = _named_words(asked, tokens)
    is_same = len({sum(token.kind == "negation" for token in each) % 2 for each in (tokens, asked)}) == 1
    is_yes = bool(_YES.match(text))
    if named == words != []:
        return is_same == is_yes
    return 2 * len(named) >= len(words) and (is_same or not is_yes)


def _named_words(asked: Tokens, tokens: Tokens) -> tuple[list[Token], list[Token]]:
    """The content words of a question, and those that the tokens have; of a name, a part is enough."""
    words = [token for token in asked if token.kind in ("word", "name", "id", "number", "date")]
    parts_of_names = {part for token in tokens if token.kind == "name" for part in token.key.split()}
    named = [
        word for word in words if any(map(partial(matches, word), tokens)) or {*word.key.split()} <= parts_of_names
    ]
    return words, named


_YES = re.compile(r"^\W*(?:yes|yeah|yep|sure|of course|certainly|absolutely)\b", re.IGNORECASE)
_ENGLISH_REPLY = re.compile(
    rf"{_YES.pattern}|^\W*(?:no|unfortunately not|i'm afraid not|sadly not)\s?[,.!:;]", re.IGNORECASE
)
_REPLY = re.compile(r"^\W*(?:oui|non|no|si|sí|sì|ja|nein|nee|não|sim)\s?[,.!:;]\s*", re.IGNORECASE)
"""Yes and no in other languages, before a copy."""


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
        found = find_cell(text, grounds.rows, grounds.asked)
        verdict = _compare_cell(*found, grounds.money) if found else OPEN
        if verdict != OPEN:
            return verdict
    return OPEN


def _compare_cell(said: Tokens, cell: Cell, money: str) -> Verdict:
    """Compare what a claim says about a cell with what is there."""
    value = in_currency(cell, said, money)
    reason = _negation(said, value)
    if len(said) == len(value):
        differences = [pair for pair in zip(said, value, strict=True) if not matches(*pair)]
        if not differences:
            return proven_by(cell.quote)
        if len(differences) == 1 and excludes(*differences[0]):
            reason = f"it says “{differences[0][0].text}” instead of “{differences[0][1].text}”"
    return refuted_by(cell.quote, reason) if reason else OPEN


def _compare(claim: Tokens, statement: Tokens, source: Source, sources: Sequence[Source]) -> Verdict:
    """Compare the claim with one statement of a source, token by token."""
    differences = [pair for pair in zip(claim, statement, strict=False) if not matches(*pair)]
    reason = ""
    if len(claim) != len(statement):
        reason = _negation(claim, statement)
    elif not differences:
        # What happened on 3 May happened in May; what is closed on 3 May is not closed in May.
        is_exact = all(a.kind != "date" or a.key == b.key for a, b in zip(claim, statement, strict=True))
        return proven_by(source.text) if is_exact or is_past_event(statement) else OPEN
    elif len(differences) == 1:
        ours, theirs = differences[0]
        # Holland may be the Netherlands, unless the passages have both.
        is_clear = ours.kind != "name" or any(matches(ours, token) for each in sources for token in each.tokens)
        if excludes(ours, theirs) and is_clear and not _is_elsewhere(ours, claim, source, sources):
            reason = f"it says “{ours.text}” instead of “{theirs.text}”"
    elif _are_exchanged(claim, statement):
        reason = "the roles are exchanged"
    return refuted_by(source.text, reason) if reason else OPEN


def _negation(claim: Tokens, source: Tokens) -> str:
    """What makes the claim deny the source or say more, if that is one negation, or a `may` that it leaves out."""
    shorter, longer = sorted((claim, source), key=len)
    if any(token.kind == "quantifier" and 0 < lexicon.QUANTIFIERS[token.key] < 6 for token in source):
        return ""  # some have it, some do not
    for place, extra in enumerate(longer if len(longer) == len(shorter) + 1 else ()):
        is_hedge = longer is source and extra.key in ("may", "might", "could") and extra.kind == "modal"
        if not is_hedge and extra.kind != "negation":
            continue
        rest = longer[:place] + longer[place + 1 :]
        # `must not be opened` denies `can be opened`, but `need not` says nothing about `can`.
        is_ban = longer is source and longer[place - 1].key in ("must", "should")
        same = [matches(*pair) or (is_ban and i == place - 1 and pair[0].key in ("can", "may"))
                for i, pair in enumerate(zip(shorter, rest, strict=True))]
        if all(same):
            return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”"
    return ""


def _is_elsewhere(token: Token, claim: Tokens, source: Source, sources: Sequence[Source]) -> bool:
    """Whether another clause of the passages has the claimed value and may be about the claim's subject.

    It may use a pronoun or other words for half of what the claim says.
    """
    others = [each for each in claim if each.is_content and each != token]
    for each in sources:
        for clause in each.clauses:
            shared = sum(any(matches(other, word) for word in clause) for other in others)
            is_near = shared == len(others) if each is source and token.value else 2 * shared > len(others)
            if is_near and any(matches(token, word) for word in clause):
                return True
    return False


def _are_exchanged(claim: Tokens, source: Tokens) -> bool:
    """Whether two parts have changed places around what gives them roles: `A beat B`, `B because A`, `5 girls, 7 boys`."""
    same = [matches(*pair) for pair in zip(claim, source, strict=True)]
    start, end = same.index(False), len(same) - same[::-1].index(False)
    ours, theirs = claim[start:end], source[start:end]
    for first in range(1, len(theirs)):
        for second in range(first + 1, len(theirs)):
            one, pivot, other = theirs[:first], theirs[first:second], theirs[second:]
            if all(map(matches, ours, (*other, *pivot, *one))) and _has_roles(source[:start], one, pivot, other):
                return True
    return False


def _has_roles(before: Tokens, one: Tokens, pivot: Tokens, other: Tokens) -> bool:
    """Whether what stands between two parts gives them different roles."""
    if len(one) == len(other) == 1:
        if one[0].value and other[0].value:  # `12 girls and 14 boys`, not `between 5 and 7` or `line 5 and line 7`
            is_apart = any(token.kind in ("word", "name") for token in pivot) and not any(map(matches, before[-1:], pivot[-1:]))
            return excludes(one[0], other[0]) and is_apart
        if len(pivot) == 1 and not is_verb(other[0]) and not other[0].value:  # `the storm, not the flood`; `add the acid to the water`
            if pivot[0].kind == "negation" or (pivot[0].key in ("to", "into", "onto", "on") and before):
                return True
    if any(token.key in _MUTUAL for token in (*one, *pivot, *other)) or other[0].key in PREPOSITIONS:
        return False
    return any(token.kind == "relation" or _is_directed(token) for token in pivot)


def _is_directed(token: Token) -> bool:
    """Whether the token is a verb whose subject and object have different roles."""
    is_symmetric = token.key.partition("+")[0] in lexicon.SYMMETRIC or token.text.lower() in lexicon.SYMMETRIC
    return is_verb(token) and token.kind != "modal" and not is_symmetric


_MUTUAL = ("with", "against", "between", "like", "and", "near", "opposite", "beside", "along", "next")
"""Words that may join two equals: `Anna dances with Ben`."""
