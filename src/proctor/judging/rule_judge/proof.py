"""Decides whether passages support a claim, contradict it, or leave it open.

Every sentence of the passages is written in the few ways that state the same (`grammar.stated`). A claim is compared
with each of them token by token, in order, since order carries the roles: who did what to whom, cause and effect. It is
supported if all tokens match. It is contradicted if all match but one, which fills the same slot with something
incompatible (another amount, name or status), one negation, or two parts that changed places. What sentences leave open
is judged by the cell of a table that the claim names (`cells.find_cell`). Everything else is left open: shared words
prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge import cells, grammar, lexicon
from proctor.judging.rule_judge.claims import split_statements, without_courtesy
from proctor.judging.rule_judge.reading import Tokens, excludes, find_values, matches, names_in, read


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why."""

    answer: Literal["supported", "contradicted", "cannot tell"]
    reason: str
    quote: str = ""
    """The sentence or the cell that decides it."""


OPEN = Verdict("cannot tell", "no rule proves or refutes it from the passages")
TOO_LONG = Verdict("cannot tell", "there is too much text for the rules")
MAX_TOKENS = 120
"""Longer statements are left open: comparing two takes time that grows faster than their length."""
MAX_COMPARISONS = 200_000
"""Of claims with sentences and cells; more take longer than a few seconds."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What claims are judged by: the sentences of the passages as texts and tokens, their data, and the question."""

    sources: Sequence[tuple[str, Tokens]]
    data: Sequence[cells.Cell]
    asked: Tokens


def _read_grounds(passages: Sequence[str], known: Sequence[str], names: frozenset[str]) -> Grounds:
    """The passages and the user's words as tokens."""
    items = [item for passage in passages for item in cells.split_passage(passage)]
    prose = [statement for item in items if isinstance(item, str) for statement in split_statements(item)]
    sources = [
        (text, read(text, names))
        for before, text in pairwise(["", *prose])
        # What follows a semicolon may hold only in the case that is named before it: `In winter, …; …`.
        if not text.rstrip(" \"'”)").endswith("?") and not (before.endswith(";") and grammar.is_framed(read(before)))
    ]
    units = {value.unit for text in (*passages, *known) for value in find_values(text)} & lexicon.MONEY
    money = units.pop() if len(units) == 1 else ""  # the currency of amounts without one
    data = [cell for item in items if not isinstance(item, str) for cell in cells.read_cells(item, names, money)]
    return Grounds(sources, data, tuple(token for text in known for token in read(text, names)))


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said."""
    names = names_in([*passages, *claims])
    grounds = _read_grounds(passages, known, names)
    if len(claims) * (len(grounds.sources) + len(grounds.data)) > MAX_COMPARISONS:
        return [TOO_LONG] * len(claims)
    statements = [read(without_courtesy(text) or text, names) for text in claims]
    verdicts: list[Verdict] = []
    for text, tokens in zip(claims, statements, strict=True):
        verdicts.append(_judge(text, tokens, grounds, verdicts[-1] if verdicts else None))
    # Steps in another order than in the passages are left open.
    steps = [i for i, tokens in enumerate(statements) if tokens and grammar.is_bare(tokens[0])]
    texts = [text for text, _ in grounds.sources]
    places = [texts.index(verdicts[i].quote) for i in steps if verdicts[i].quote in texts]
    return verdicts if places == sorted(places) else [OPEN if i in steps else v for i, v in enumerate(verdicts)]


def _with_noun(tokens: Tokens, grounds: Grounds) -> Tokens:
    """A claim with the subject of the only sentence with its verb for its pronoun, if the question can mean that."""
    verb = next((token for token in tokens[1:] if token.kind == "word" or token.key == lexicon.COST), tokens[0])
    meant = [source for _, source in grounds.sources if any(map(partial(matches, verb), source))]
    if len(meant) != 1 or not grounds.asked:
        return tokens
    is_clear = any(token.key in lexicon.PRONOUNS for token in grounds.asked) or _share(grounds.asked, meant[0]) == 1
    return (*(grammar.subject(meant[0]) or tokens[:1]), *tokens[1:]) if is_clear else tokens


def _judge(text: str, tokens: Tokens, grounds: Grounds, before: Verdict | None) -> Verdict:
    """Judge a claim, given the verdict on the one before."""
    if tokens and tokens[0].key in lexicon.PRONOUNS:
        if before and before.answer != "supported":
            return OPEN  # it may mean what that claim is about
        tokens = _with_noun(tokens, grounds)
    if _REPLY.match(text) and grounds.asked and not _fits_reply(text, tokens, grounds.asked):
        return Verdict("cannot tell", "the yes or no may be about something else")
    bare = _bare(_FOREIGN_REPLY.sub("", text))
    if copy := next((quote for quote, _ in grounds.sources if _bare(quote) == bare), None):
        return _verdict("", copy)
    if not lexicon.is_english(text):
        return Verdict("cannot tell", "the rules are for English")
    if len(tokens) > MAX_TOKENS:
        return TOO_LONG
    whole = _judge_tokens(tokens, grounds)
    if whole != OPEN or any(token.text.lower() in lexicon.LINKS for token in tokens):
        return whole
    # One wrong clause makes a claim wrong, and all must be proven.
    parts = [_judge_tokens(clause, grounds) for clause in grammar.split_clauses(tokens)]
    wrong = next((each for each in parts if each.answer == "contradicted"), None)
    return wrong or (parts[-1] if parts and all(each.answer == "supported" for each in parts) else OPEN)


def _fits_reply(text: str, tokens: Tokens, asked: Tokens) -> bool:
    """Whether a statement after `yes` or `no` is about the question, and says the same (or the opposite)."""
    share, is_yes = _share(asked, tokens), bool(_YES.match(text))
    is_same = len({sum(token.kind == "negation" for token in each) % 2 for each in (tokens, asked)}) == 1
    return share >= 0.5 and (is_same == is_yes or (not is_yes and share < 1))


def _share(asked: Tokens, tokens: Tokens) -> float:
    """The share of the question's content words that the tokens have."""
    words = [token for token in asked if token.kind in ("word", "name", "id", "number", "date")]
    return sum(any(map(partial(matches, word), tokens)) for word in words) / len(words) if words else 1.0


_YES = re.compile(r"\W*(?:yes|yeah|yep|sure|of course|certainly|absolutely)\b", re.IGNORECASE)
_REPLY = re.compile(rf"{_YES.pattern}|\W*(?:no|unfortunately not|i'm afraid not|sadly not)\s?[,.!:;]", re.IGNORECASE)
_FOREIGN_REPLY = re.compile(r"^\W*(?:oui|non|no|si|sí|sì|ja|nein|nee|não|sim)\s?[,.!:;]\s*", re.IGNORECASE)


def _bare(text: str) -> str:
    """A text without the differences between copies: case, white space, and marks at its ends."""
    return " ".join(text.casefold().split()).strip(" .!?;,\"'“”*")


def _verdict(reason: str | None, quote: str) -> Verdict:
    """The verdict on a claim that contradicts the quote for this reason; with an empty one, it says the same."""
    if reason is None:
        return OPEN
    if reason:
        return Verdict("contradicted", f"{reason}; the passages say “{quote}”", quote)
    return Verdict("supported", f"the passages say “{quote}”", quote)


def _judge_tokens(tokens: Tokens, grounds: Grounds) -> Verdict:
    """Any sentence that proves the claim decides; otherwise any that refutes it; otherwise the data."""
    claims, sources = grammar.forms(tokens), [source for _, source in grounds.sources]
    found = [
        _verdict(_difference(claim, statement, source, sources), quote)
        for quote, source in grounds.sources
        if len(source) <= MAX_TOKENS
        for statement in grammar.stated(source)
        for claim in claims
    ]
    ranked = [each for answer in ("supported", "contradicted") for each in found if each.answer == answer]
    return ranked[0] if ranked else _judge_data(tokens, grounds)


def _judge_data(tokens: Tokens, grounds: Grounds) -> Verdict:
    """Judge a claim by the cell that it is about, also without what it repeats from the question: `… for a loan`."""
    claim = grammar.without_marks(tokens)
    place = next((index for index, token in enumerate(claim) if token.key == "for"), len(claim))
    is_echo = all(any(matches(token, each) for each in grounds.asked) for token in claim[place:] if token.is_content)
    for text in (claim, claim[:place]) if is_echo else (claim,):
        said, cell = cells.find_cell(text, grounds.data, grounds.asked) or ((), None)
        reason = difference(said, cell.value) if cell else None
        if cell and reason is not None:
            return _verdict(reason, cell.quote)
    return OPEN


def _difference(claim: Tokens, statement: Tokens, source: Tokens, sources: Sequence[Tokens]) -> str | None:
    """Why a claim contradicts one statement of a source; `None` also if the passages may say it elsewhere."""
    reason, pairs = difference(claim, statement), list(zip(claim, statement, strict=False))
    if reason == "" and any(ours.kind == "date" and ours.key != theirs.key for ours, theirs in pairs):
        return None  # what is closed on 3 May is not closed in May
    changed = [ours for ours, theirs in pairs if not matches(ours, theirs)]
    if not reason or len(claim) != len(statement) or len(changed) != 1:
        return reason
    # Holland may be the Netherlands, unless the passages have both.
    is_open = changed[0].kind == "name" and not any(matches(changed[0], token) for each in sources for token in each)
    # Another sentence may have it about the same subject, with a pronoun or other words for half of it.
    others = [each for each in claim if each.is_content and each != changed[0]]
    for each in sources:
        for clause in grammar.split_clauses(each) or [each]:
            shared = sum(any(matches(other, word) for word in clause) for other in others)
            is_near = shared == len(others) if each is source and changed[0].value else 2 * shared > len(others)
            is_open |= is_near and any(matches(changed[0], word) for word in clause)
    return None if is_open else reason


def difference(claim: Tokens, statement: Tokens) -> str | None:
    """Why the claim contradicts the statement; empty if it says the same, `None` if neither is certain."""
    if len(claim) != len(statement):
        return _negation(claim, statement) if abs(len(claim) - len(statement)) == 1 else None
    pairs = [(ours, theirs) for ours, theirs in zip(claim, statement, strict=True) if not matches(ours, theirs)]
    if not pairs:
        return ""
    if len(pairs) == 1:
        ours, theirs = pairs[0]
        return f"it says “{ours.text}” instead of “{theirs.text}”" if excludes(ours, theirs) else None
    return "the roles are exchanged" if _are_exchanged(claim, statement) else None


def _negation(claim: Tokens, statement: Tokens) -> str | None:
    """The reason if the claim has one negation more or less, or leaves out a `may`."""
    shorter, longer = sorted((claim, statement), key=len)
    if any(token.kind == "quantifier" and 0 < lexicon.QUANTIFIERS[token.key] < 6 for token in statement):
        return None  # some have it, some do not
    for place, extra in enumerate(longer):
        is_hedge = longer is statement and extra.key in ("may", "might", "could") and extra.kind == "modal"
        if (is_hedge or extra.kind == "negation") and all(map(matches, shorter, longer[:place] + longer[place + 1 :])):
            return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”"
    return None


def _are_exchanged(claim: Tokens, statement: Tokens) -> bool:
    """Whether two parts have changed places around what gives them roles: `A beat B`, `B because A`."""
    same = [matches(*pair) for pair in zip(claim, statement, strict=True)]
    start, end = same.index(False), len(same) - same[::-1].index(False)
    ours, theirs = claim[start:end], statement[start:end]
    for first in range(1, len(theirs)):
        for second in range(first + 1, len(theirs)):
            one, pivot, other = theirs[:first], theirs[first:second], theirs[second:]
            if all(map(matches, ours, (*other, *pivot, *one))) and _has_roles(statement[:start], one, pivot, other):
                return True
    return False


def _has_roles(before: Tokens, one: Tokens, pivot: Tokens, other: Tokens) -> bool:
    """Whether what stands between two parts, as a verb does, gives them different roles."""
    if len(one) == len(other) == 1 and one[0].value and other[0].value:
        # `12 girls and 14 boys`, not `between 5 and 7` or `line 5 and line 7`
        is_apart = any(token.kind in ("word", "name") for token in pivot)
        return is_apart and excludes(one[0], other[0]) and not any(map(matches, before[-1:], pivot[-1:]))
    if any(token.key in lexicon.KINDS["mutual"] for token in (*one, *pivot, *other)):
        return False
    verbs = [token for token in pivot if grammar.is_verb(token) and token.kind != "modal"]
    is_directed = any(token.key.partition("+")[0] not in lexicon.SYMMETRIC for token in verbs)
    return is_directed or any(token.kind == "relation" for token in pivot)
