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
from proctor.judging.rule_judge.claims import split_statements, without_courtesy
from proctor.judging.rule_judge.clauses import forms, is_verb, split_clauses, stated, subject
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches, names_in, read
from proctor.judging.rule_judge.records import sentences, split_passage


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
    is_data: bool
    """Whether it is a cell or a field."""


@lru_cache(maxsize=64)
def read_sources(
    passages: tuple[str, ...], claims: tuple[str, ...] = (), known: tuple[str, ...] = ()
) -> tuple[Source, ...]:
    """The sentences of passages. The claims tell which words are names, the user which currency is meant."""
    names = names_in([*passages, *claims])
    split = [split_passage(passage) for passage in passages]
    prose = [statement for _, texts in split for text in texts for statement in split_statements(text)]
    data = sentences([record for records, _ in split for record in records], claims, (*passages, *known))
    return (
        *(Source(text, read(text, names), is_data=False) for text in prose if not text.rstrip(" \"'”)").endswith("?")),
        *(Source(quote, read(text, names), is_data=True) for quote, text in data),
    )


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said."""
    sources = read_sources(tuple(passages), tuple(claims), tuple(known))
    names = names_in([*passages, *claims])
    asked = [token for text in known for token in read(text, names)]
    verdicts: list[Verdict] = []
    for text in claims:
        tokens = read(without_courtesy(text) or text, names)
        if tokens and tokens[0].key in lexicon.PRONOUNS:
            verdicts.append(_judge_pronoun(text, tokens, sources, verdicts[-1] if verdicts else None))
        else:
            found = _judge(text, tokens, sources)
            verdicts.append(_judge_data(tokens, sources, asked) if found == OPEN else found)
    return verdicts


def _judge_pronoun(text: str, tokens: Tokens, sources: Sequence[Source], verdict: Verdict | None) -> Verdict:
    """Judge a claim that starts with a pronoun, given the verdict on the claim before: it is the passages' subject."""
    if verdict and verdict.answer != "supported":
        return OPEN
    topic = _topic(sources)
    return _judge(text, (*topic, *tokens[1:]), sources) if topic else OPEN


def _topic(sources: Sequence[Source]) -> Tokens:
    """The subject of the passages if they have only one; a pronoun only if they name none."""
    subjects = {each for source in sources if (each := subject(source.tokens))}
    pronouns = {each[:1] for each in subjects if each[0].key in lexicon.PRONOUNS}
    candidates = {each for each in subjects if each[0].key not in lexicon.PRONOUNS} or pronouns
    return next(iter(candidates)) if len(candidates) == 1 else ()


def _judge(text: str, tokens: Tokens, sources: Sequence[Source]) -> Verdict:
    if copy := next((source for source in sources if _bare(source.text) == _bare(text)), None):
        return Verdict("supported", f"the passages say “{copy.text}”")
    if not any(token.is_content for token in tokens):
        return OPEN
    if not lexicon.is_english(text):
        return Verdict("cannot tell", "the rules are for English")
    whole = _judge_tokens(tokens, sources)
    is_linked = any(token.text.lower() in lexicon.LINKS for token in tokens)
    if whole == OPEN and not is_linked:
        return all_of([_judge_tokens(versions[-1], sources) for versions in split_clauses(tokens)])
    return whole


def _judge_data(tokens: Tokens, sources: Sequence[Source], asked: Sequence[Token]) -> Verdict:
    """Judge a claim by data alone, without the terms that it repeats from the question: `… for a loan of $500`."""
    place = next((index for index, token in enumerate(tokens) if token.key == "for"), 0)
    is_echo = all(any(matches(token, each) for each in asked) for token in tokens[place:] if token.is_content)
    return _judge_tokens(tokens[:place], [each for each in sources if each.is_data]) if place and is_echo else OPEN


def _bare(text: str) -> str:
    """A text without the differences between copies: case, white space, and marks at its ends."""
    return " ".join(text.casefold().split()).strip(" .!?;,\"'“”*")


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim with several parts: one wrong part makes it wrong, and all must be proven."""
    if wrong := next((each for each in verdicts if each.answer == "contradicted"), None):
        return wrong
    return verdicts[-1] if verdicts and all(each.answer == "supported" for each in verdicts) else OPEN


def _judge_tokens(tokens: Tokens, sources: Sequence[Source]) -> Verdict:
    """Any sentence that proves the claim decides; otherwise any that refutes it."""
    found = [
        _compare(claim, statement, source, sources)
        for source in sources
        for statement in stated(source.tokens)
        for claim in forms(tokens)
    ]
    ranked = [each for answer in ("supported", "contradicted") for each in found if each.answer == answer]
    return ranked[0] if ranked else OPEN


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
        if excludes(ours, theirs) and _is_same_thing(ours, theirs, source, sources):
            is_elsewhere = _is_elsewhere(ours, claim, sources)
            reason = "" if is_elsewhere else f"it says “{ours.text}” instead of “{theirs.text}”"
    elif _are_exchanged(claim, statement, differences):
        reason = "the roles are exchanged"
    return Verdict("contradicted", f"{reason}; the passages say “{source.text}”") if reason else OPEN


def _is_same_thing(ours: Token, theirs: Token, source: Source, sources: Sequence[Source]) -> bool:
    """Whether both are about the same thing: not about another record, and not by another name."""
    if source.is_data:
        return theirs.text.split()[0] in source.text
    # Holland may be the Netherlands, unless the passages have both.
    return ours.kind != "name" or any(matches(ours, token) for each in sources for token in each.tokens)


def _negation(claim: Tokens, source: Tokens) -> str:
    """What makes the claim deny the source or say more, if that is one token: a negation, or a `might` left out."""
    shorter, longer = sorted((claim, source), key=len)
    for place, extra in enumerate(longer if len(longer) == len(shorter) + 1 else ()):
        is_needed = extra.kind == "negation" or (longer is source and extra.key in ("might", "could"))
        if is_needed and all(map(matches, shorter, longer[:place] + longer[place + 1 :])):
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
