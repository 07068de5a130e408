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
from proctor.judging.rule_judge.clauses import forms, is_verb, split_clauses, stated, subject, without_marks
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches, names_in, read
from proctor.judging.rule_judge.records import sentences, split_passage


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why."""

    answer: Literal["supported", "contradicted", "cannot tell"]
    reason: str
    place: int = -1
    """The number of the sentence that decides."""


OPEN = Verdict("cannot tell", "no rule proves or refutes it from the passages")


@dataclass(frozen=True, slots=True)
class Source:
    """One sentence of the passages."""

    text: str
    tokens: Tokens
    is_first: bool
    """Whether it is the first of its passage."""
    is_data: bool
    """Whether it is a cell or a field."""


@lru_cache(maxsize=64)
def read_sources(passages: tuple[str, ...], claims: tuple[str, ...] = ()) -> tuple[Source, ...]:
    """The sentences of passages. The claims tell which words are names, and which currency is meant."""
    names = names_in([*passages, *claims])
    split = [split_passage(passage) for passage in passages]
    statements = [split_statements(passage) for _, texts in split for passage in texts]
    prose = [[(text, text) for text in texts if not text.rstrip(" \"'”)").endswith("?")] for texts in statements]
    data = list(sentences([record for records, _ in split for record in records], claims))
    return tuple(
        Source(quote, read(text, names), place == 0, is_data=group is data)
        for group in (*prose, data)
        for place, (quote, text) in enumerate(group)
    )


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said."""
    sources = read_sources(tuple(passages), tuple(claims))
    names = names_in([*passages, *claims])
    asked = [token for text in known for token in read(text, names)]
    verdicts: list[Verdict] = []
    before: Tokens = ()
    for text in claims:
        tokens = read(without_courtesy(text) or text, names)
        if tokens and tokens[0].key in lexicon.PRONOUNS:
            verdicts.append(_judge_vague(text, tokens, sources, before, verdicts[-1] if verdicts else None))
        else:
            found = _judge(text, tokens, sources)
            verdicts.append(_judge_data(tokens, sources, asked) if found == OPEN else found)
            before = tokens
    return verdicts


def _judge_vague(
    text: str, tokens: Tokens, sources: Sequence[Source], before: Tokens, verdict: Verdict | None
) -> Verdict:
    """Judge a claim whose subject is a pronoun, given the claim before and the verdict on that.

    It stands for the only subject of the passages, or for that of a claim that says what something is or was: after
    "The mayor opened the park", `it` is the park. Otherwise it means what the same pronoun means in the passages, if
    the claim before is the sentence before, or both are the first.
    """
    if verdict and verdict.answer != "supported":
        return OPEN
    about = subject(before)
    is_clear = any(token.key in ("be", "was") for token in without_marks(before)[len(about) :][:1])
    antecedent = about if is_clear else _topic(sources)
    found = _judge(text, (*antecedent, *tokens[1:]), sources) if antecedent else OPEN
    if found.answer != "cannot tell":
        return found
    found = _judge(text, tokens, sources)
    is_next = verdict is not None and found.place == verdict.place + 1
    return found if is_next or (verdict is None and found.place >= 0 and sources[found.place].is_first) else OPEN


def _topic(sources: Sequence[Source]) -> Tokens:
    """The subject of the passages, if they have only one."""
    subjects = {subject(source.tokens) for source in sources} - {()}
    named = {each for each in subjects if each[0].key not in lexicon.PRONOUNS}
    return next(iter(named)) if len(named) == 1 else ()


def _judge(text: str, tokens: Tokens, sources: Sequence[Source]) -> Verdict:
    for place, source in enumerate(sources):
        if _bare(source.text) == _bare(text):
            return Verdict("supported", f"the passages say “{source.text}”", place)
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
    found: list[Verdict] = []
    for place, source in enumerate(sources):
        for statement in stated(source.tokens):
            found += [_compare(claim, statement, place, sources) for claim in forms(tokens)]
    ranked = [each for answer in ("supported", "contradicted") for each in found if each.answer == answer]
    return ranked[0] if ranked else OPEN


def _compare(claim: Tokens, source: Tokens, place: int, sources: Sequence[Source]) -> Verdict:
    """Compare the claim with one statement of the passages, token by token."""
    quote = f"the passages say “{sources[place].text}”"
    differences = [(ours, theirs) for ours, theirs in zip(claim, source, strict=False) if not matches(ours, theirs)]
    reason = ""
    if len(claim) != len(source):
        reason = _negation(claim, source)
    elif not differences:
        return Verdict("supported", quote, place)
    elif len(differences) == 1 and excludes(*differences[0]):
        ours, theirs = differences[0]
        is_other_thing = ours.kind == "id" and ours in subject(claim)
        if sources[place].is_data:  # another record than the claim's
            is_other_thing = theirs.text.split()[0] not in sources[place].text
        if not is_other_thing and not _is_elsewhere(ours, claim, sources):
            reason = f"it says “{ours.text}” instead of “{theirs.text}”"
    elif len(differences) == 2 and all(excludes(*each) for each in differences) and _are_exchanged(*differences):
        reason = f"“{differences[0][0].text}” and “{differences[1][0].text}” are exchanged"
    elif _is_reversed(claim, source):
        reason = "the roles are exchanged"
    return Verdict("contradicted", f"{reason}; {quote}", place) if reason else OPEN


def _negation(claim: Tokens, source: Tokens) -> str:
    """What makes the claim deny the source or say more, if that is one token: a negation, or a `might` left out."""
    shorter, longer = sorted((claim, source), key=len)
    place = next(
        (i for i, (one, other) in enumerate(zip(shorter, longer, strict=False)) if not matches(one, other)),
        len(shorter),
    )
    extra = longer[place]
    is_needed = extra.kind == "negation" or (longer is source and extra.key in ("might", "could"))
    is_rest_same = len(longer) == len(shorter) + 1 and all(map(matches, shorter, longer[:place] + longer[place + 1 :]))
    return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”" if is_needed and is_rest_same else ""


def _are_exchanged(one: tuple[Token, Token], other: tuple[Token, Token]) -> bool:
    return matches(one[0], other[1]) and matches(other[0], one[1])


def _is_elsewhere(token: Token, claim: Tokens, sources: Sequence[Source]) -> bool:
    """Whether another statement of the passages has the claimed value and may be about the claim's subject."""
    others = [each for each in claim if each.is_content and each != token]
    for each in sources:
        for clause in [versions[-1] for versions in split_clauses(each.tokens)] or [each.tokens]:
            has_value = any(matches(token, word) for word in clause)
            shared = sum(any(matches(other, word) for word in clause) for other in others)
            if has_value and 2 * shared > len(others):
                return True
    return False


def _is_reversed(claim: Tokens, source: Tokens) -> bool:
    """Whether the claim is the source with both sides of its verb or relation exchanged."""
    for index in range(1, len(source) - 1):
        pivot = source[index]
        is_verb_with_roles = (
            is_verb(pivot) and pivot.kind != "modal" and pivot.key.partition("+")[0] not in lexicon.SYMMETRIC
        )
        if pivot.key != "have" and (pivot.kind == "relation" or is_verb_with_roles):
            turned = (*source[index + 1 :], pivot, *source[:index])
            if turned != tuple(source) and all(map(matches, claim, turned)):
                return True
    return False
