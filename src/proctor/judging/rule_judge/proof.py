"""Decides whether passages support a claim, contradict it, or leave it open.

Every sentence of the passages is written in the few ways that state the same (`clauses.stated`). The claim is compared
with each of them token by token, in order, since order carries the roles: who did what to whom, cause and effect,
condition and consequence. It is supported if all tokens match. It is contradicted if all match but one, which fills
the same slot with something incompatible (another amount, name or status), one negation, or two fillers that changed
places. What sentences leave open is judged by the cell of a table that the claim names (`cells.py`). Everything else is
left open: shared words prove nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.cells import Cell, Row, cell_claims, read_rows
from proctor.judging.rule_judge.claims import split_statements, without_courtesy
from proctor.judging.rule_judge.clauses import (
    list_items,
    shortest,
    split_clauses,
    stated,
)
from proctor.judging.rule_judge.forms import forms
from proctor.judging.rule_judge.grammar import (
    is_bare,
    is_fragment,
    is_framed,
    is_past_event,
    is_verb,
    parts,
    subject,
    without_marks,
)
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches, names_in, read
from proctor.judging.rule_judge.records import split_passage
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
    pairs = [f"{one} {other}" for one, other in pairwise(prose) if one.endswith(";")]
    framed = {other for one, other in pairwise(prose) if one.endswith(";") and is_framed(read(one))}
    prose = [*(text for text in prose if text not in framed), *pairs]
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
    statements = [read(without_courtesy(text) or text, names) for text in claims]
    return _in_order(statements, _with_items(statements, verdicts, grounds), grounds.sources)


def _with_items(statements: Sequence[Tokens], verdicts: list[Verdict], grounds: Grounds) -> list[Verdict]:
    """The verdicts, with items of an answer's list that stand in the only list of the passages."""
    lists = [(source.text, list_items(source.tokens)) for source in grounds.sources]
    cells = [cell for row in grounds.rows for cell in row.cells if any(token.key == "," for token in cell.value)]
    lists += [(cell.quote, [without_marks(part) for part in parts(cell.value)]) for cell in cells]
    lists = [each for each in lists if each[1]]
    fragments = [tokens for tokens in statements if is_fragment(tokens)]
    if lists and _EXTRA.search(lists[0][0]):
        return verdicts
    if len(lists) != 1 or len(fragments) < 2 or any(token.kind == "negation" for token in grounds.asked):
        return verdicts
    quote, items = lists[0]
    keys = [_keys(item) for item in items]
    return [
        proven_by(quote)
        if verdict == OPEN and is_fragment(tokens) and _keys(without_marks(tokens)) in keys
        else verdict
        for tokens, verdict in zip(statements, verdicts, strict=True)
    ]


_EXTRA = re.compile(r"\b(?:separate(?:ly)?|extras?|optional|prohibited|excluded|without|other)\b", re.IGNORECASE)
"""Words of a list of what does not belong to something."""


def _in_order(statements: Sequence[Tokens], verdicts: list[Verdict], sources: Sequence[Source]) -> list[Verdict]:
    """The verdicts, left open if the steps of an instruction stand in another order than in the passages."""
    steps = [i for i, tokens in enumerate(statements) if tokens and is_bare(tokens[0])]
    texts = [source.text for source in sources]
    places = [texts.index(verdicts[i].quote) for i in steps if verdicts[i].quote in texts]
    if places == sorted(places):
        return verdicts
    reason = "the passages have the steps in another order"
    return [Verdict("cannot tell", reason) if i in steps else each for i, each in enumerate(verdicts)]


def _judge_pronoun(text: str, tokens: Tokens, grounds: Grounds, verdict: Verdict | None) -> Verdict:
    """Judge a claim that starts with a pronoun, given the verdict on the claim before.

    It is the passages' only subject, or that of the only sentence that says the same, if the question can mean it.
    """
    if verdict and verdict.answer != "supported":
        return OPEN
    topic = _topic(grounds.sources)
    if topic and (not grounds.asked or any(_can_mean(grounds.asked, source) for source in grounds.sources)):
        found = _judge_tokens((*topic, *tokens[1:]), grounds)
        if found != OPEN:
            return found
    # Not if two sentences with other subjects can be meant: `it costs 5 euros`.
    said = next((token for token in tokens[1:] if token.kind == "word" or token.key == lexicon.COST), tokens[0])
    meant = [each for each in grounds.sources if any(map(partial(matches, said), each.tokens))]
    subjects = {subject(statement) for source in meant for statement in source.statements} - {()}
    if len(meant) == 1 and _can_mean(grounds.asked, meant[0]):
        ways = sorted({*subjects, tokens[:1]}, key=str)
        decided = [each for way in ways if (each := _judge_tokens((*way, *tokens[1:]), grounds)) != OPEN]
        if decided and len({each.answer for each in decided}) == 1:
            return decided[0]
    return _judge(text, tokens, grounds)  # the passages may use the same pronoun


def _can_mean(asked: Tokens, source: Source) -> bool:
    """Whether a question can be about a sentence: it has a pronoun, or all of its words are there."""
    words, named = _named_words(asked, source.tokens)
    is_open = any(token.key in lexicon.PRONOUNS for token in asked)
    return bool(asked) and (is_open or named == words != [])


def _topic(sources: Sequence[Source]) -> Tokens:
    """The subject of the passages if they have only one."""
    subjects = {subject(source.tokens) for source in sources}
    named = {each for each in subjects if not each or each[0].key not in lexicon.PRONOUNS}
    return next(iter(named)) if len(named) == 1 else ()


def _judge(text: str, tokens: Tokens, grounds: Grounds) -> Verdict:
    if _ENGLISH_REPLY.match(text) and grounds.asked and not _fits_reply(text, tokens, grounds.asked):
        return Verdict("cannot tell", "the yes or no may be about something else")
    quotes = [source.text for source in grounds.sources]
    is_english = lexicon.is_english(text)
    bare = _bare(text if is_english else _REPLY.sub("", text))
    if copy := next((quote for quote in quotes if _bare(quote) == bare), None):
        return proven_by(copy)
    if not is_english:
        return Verdict("cannot tell", "the rules are for English")
    whole = _judge_tokens(tokens, grounds)
    is_linked = any(token.text.lower() in lexicon.LINKS for token in tokens)
    if whole == OPEN and not is_linked:
        return all_of([_judge_tokens(versions[-1], grounds) for versions in split_clauses(tokens)])
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
        found = cell_claims(text, grounds.rows, grounds.asked, grounds.money)
        verdict = all_of([_compare_cell(each.said, each.cell, grounds.rows) for each in found])
        if verdict != OPEN:
            return verdict
    return OPEN


def _compare_cell(said: Tokens, cell: Cell, rows: Sequence[Row]) -> Verdict:
    """Compare what a claim says about a cell with what is there."""
    if any(token.key == "," for token in cell.value):
        return _compare_list(said, cell, rows)
    reason = _negation(said, cell.value)
    if len(said) == len(cell.value):
        differences = [pair for pair in zip(said, cell.value, strict=True) if not matches(*pair)]
        if not differences:
            return proven_by(cell.quote)
        if len(differences) == 1 and excludes(*differences[0]):
            reason = f"it says “{differences[0][0].text}” instead of “{differences[0][1].text}”"
    return refuted_by(cell.quote, reason) if reason else OPEN


def _compare_list(said: Tokens, cell: Cell, rows: Sequence[Row]) -> Verdict:
    """Compare with a list such as `milk, celery`: another row's item is wrong, an item of no list may be a synonym."""
    items, others = _items(cell.value), {item for row in rows for each in row.cells for item in _items(each.value)}
    claimed = _items(said)
    if claimed and all(item in items for item in claimed):
        return proven_by(cell.quote)
    wrong = next((item for item in claimed if item not in items and item in others), None)
    return refuted_by(cell.quote, f"“{' '.join(wrong)}” is not in the list") if wrong else OPEN


def _items(tokens: Tokens) -> list[tuple[str, ...]]:
    """The items of a list by their keys."""
    return [_keys(part) for part in parts(tokens)]


def _keys(tokens: Tokens) -> tuple[str, ...]:
    return tuple(token.key for token in tokens)


def _compare(claim: Tokens, statement: Tokens, source: Source, sources: Sequence[Source]) -> Verdict:
    """Compare the claim with one statement of a source, token by token."""
    differences = [pair for pair in zip(claim, statement, strict=False) if not matches(*pair)]
    reason = ""
    if len(claim) != len(statement):
        reason = _negation(claim, statement)
    elif not differences:
        # What happened on 3 May happened in May; what is closed on 3 May is not closed in May.
        is_coarse = any(
            ours.kind == "date" and ours.key != theirs.key for ours, theirs in zip(claim, statement, strict=True)
        )
        is_proven = not is_coarse or is_past_event(statement)
        return proven_by(source.text) if is_proven else OPEN
    elif len(differences) == 1:
        ours, theirs = differences[0]
        # Holland may be the Netherlands, unless the passages have both.
        is_clear = ours.kind != "name" or _is_mentioned(ours, sources)
        if excludes(ours, theirs) and is_clear and not _is_elsewhere(ours, claim, source, sources):
            reason = f"it says “{ours.text}” instead of “{theirs.text}”"
    elif _are_exchanged(claim, statement, differences):
        reason = "the roles are exchanged"
    return refuted_by(source.text, reason) if reason else OPEN


def _is_mentioned(token: Token, sources: Sequence[Source]) -> bool:
    return any(matches(token, each) for source in sources for each in source.tokens)


def _negation(claim: Tokens, source: Tokens) -> str:
    """What makes the claim deny the source or say more, if that is one negation, or a `may` that it leaves out."""
    shorter, longer = sorted((claim, source), key=len)
    if any(token.kind == "quantifier" and 0 < lexicon.QUANTIFIERS[token.key] < 6 for token in source):
        return ""  # some have it, some do not
    for place, extra in enumerate(longer if len(longer) == len(shorter) + 1 else ()):
        is_hedge = longer is source and extra.key in ("may", "might", "could") and extra.kind == "modal"
        if extra.kind != "negation" and not is_hedge:
            continue
        before = longer[place - 1 : place] if longer is source else ()
        # `must not be opened` denies `can be opened`, but `need not` says nothing about `can`.
        is_ban = extra.kind == "negation" and before != () and before[0].key in ("must", "should")
        pairs = zip(shorter, longer[:place] + longer[place + 1 :], strict=True)
        if all(matches(*pair) or (is_ban and pair[0].key in ("can", "may") and pair[1] is before[0]) for pair in pairs):
            return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”"
    return ""


def _is_elsewhere(token: Token, claim: Tokens, source: Source, sources: Sequence[Source]) -> bool:
    """Whether another statement of the passages has the claimed value and may be about the claim's subject.

    Another sentence may use a pronoun or other words for half of it; another clause of the same sentence does not.
    """
    others = [each for each in claim if each.is_content and each != token]
    for each in sources:
        clauses = (
            shortest(each.statements) if token.value else [v[-1] for v in split_clauses(each.tokens)] or [each.tokens]
        )
        for clause in clauses:
            shared = sum(any(matches(other, word) for word in clause) for other in others)
            is_near = shared == len(others) if each is source and token.value else 2 * shared > len(others)
            if is_near and any(matches(token, word) for word in clause):
                return True
    return False


def _are_exchanged(claim: Tokens, source: Tokens, differences: Sequence[tuple[Token, Token]]) -> bool:
    """Whether two fillers have changed places around a verb, a relation or a `not` that gives them roles."""
    if _are_values_exchanged(claim, source, differences):
        return True
    if any(token.key in _MUTUAL for token in source) or Counter(map(_key, claim)) != Counter(map(_key, source)):
        return False
    for index, pivot in enumerate(source):
        has_roles = (
            is_verb(pivot)
            and pivot.kind != "modal"
            and pivot.key.partition("+")[0] not in lexicon.SYMMETRIC
            and pivot.text.lower() not in lexicon.SYMMETRIC
        )
        before, after = source[:index], source[index + 1 :]
        is_contrast = pivot.kind == "negation" and len(differences) == 2 and before[-1:] == claim[index + 1 : index + 2]
        if is_contrast and after[:1] == claim[index - 1 : index] and not is_verb(after[0]):
            return True  # `the storm, not the flood`
        is_direction = pivot.key in ("to", "into", "onto", "on") and len(differences) == 2 and index > 1
        if is_direction and before[-1] == claim[index + 1] and after[0] == claim[index - 1] and not after[0].value:
            return True  # `add the acid to the water`
        if not (pivot.kind == "relation" or has_roles):
            continue
        for start in range(len(after)) if before else ():
            if after[start].key in PREPOSITIONS:
                continue
            for end in range(start + 1, len(after) + 1):
                moved = (*after[start:end], pivot, *after[:start], *before, *after[end:])
                if moved != source and all(map(matches, claim, moved)):
                    return True
        if len(differences) == 2 and matches(claim[index], pivot):
            (ours, theirs), (others, their_others) = differences
            is_across = theirs in before and their_others in after
            if is_across and matches(ours, their_others) and matches(others, theirs):
                return True
    return False


def _are_values_exchanged(claim: Tokens, source: Tokens, differences: Sequence[tuple[Token, Token]]) -> bool:
    """Whether two values have changed places, and belong to different things: not `between 5 and 7`."""
    if len(differences) != 2 or any(token.value is None for pair in differences for token in pair):
        return False
    (ours, theirs), (others, their_others) = differences
    first, second = source.index(theirs), source.index(their_others)
    if first and matches(source[first - 1], source[second - 1]):
        return False  # `line 4 and line 7`
    between = source[first + 1 : second]
    is_apart = any(token.kind in ("word", "name") for token in between)
    return is_apart and excludes(ours, theirs) and matches(ours, their_others) and matches(others, theirs)


def _key(token: Token) -> str:
    return token.key


_MUTUAL = ("with", "against", "between", "like", "and", "near", "opposite", "beside", "along", "next")
"""Words that may join two equals: `Anna dances with Ben`."""
