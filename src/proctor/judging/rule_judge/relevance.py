"""Whether a statement addresses a question.

Relevant: it gives the kind of thing that was asked for (a time, an amount, a person, yes or no) about the thing that
was asked about, which it names with the question's own words, or leaves out as short answers do ("In 1989.").
Irrelevant: it is about another identifier or another named subject, or it says nothing. Otherwise the judge cannot
tell: sharing words with a question is not answering it ("Who wrote Middlemarch?" - "Middlemarch is set in the
Midlands.").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge.claims import declines, makes_claim, without_courtesy
from proctor.judging.rule_judge.clauses import subject, without_marks
from proctor.judging.rule_judge.lexicon import FUNCTION_WORDS, PREPOSITIONS, is_english, stem
from proctor.judging.rule_judge.reading import Token, Tokens, matches, names_in, read
from proctor.judging.rule_judge.values import MONEY


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether a statement addresses a question; a courtesy belongs to an answer without being one."""

    verdict: Literal["relevant", "courtesy", "irrelevant", "cannot tell"]
    reason: str


OPEN = Relevance("cannot tell", "no rule decides whether it addresses the question")
_YES_NO = re.compile(
    r"(?:^|[.!,:]\s)\s*(?:and |so |but )?(?:is|are|was|were|am|do|does|did|can|could|will|would|should|has|have|had|may"
    r"|must)\b[^.!]*\?\s*$"
)
_SUBJECTS = r"\bwhat .{0,40}\b"
_KINDS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("a number", r"\bhow (?:many|often)\b", frozenset(["number"])),
    ("an amount", r"\bhow much\b|" + _SUBJECTS + r"(?:costs?|price|fee|charge|fare|rate|budget|salary|payment|amount"
     r"|total|interest)\b", MONEY | {"percent", "free"}),
    ("a length", r"\bhow (?:tall|high|deep|wide|far)\b", frozenset(["length"])),
    ("a duration", r"\bhow old\b", frozenset(["time", "calendar"])),
    ("a measure", r"\bhow (?:long|fast)\b", frozenset(["time", "calendar", "length", "speed"])),
    ("a measure", r"\bhow (?:big|large|heavy)\b", frozenset(["length", "area", "data", "volume", "mass"])),
    ("an amount", _SUBJECTS + r"(?:allowance|limit|size|weight|height|length|temperature|age|number|percentage)\b",
     frozenset(["number"])),
    ("a time", r"\bwhen\b|\bwhat (?:year|date|day|time|month)\b|" + _SUBJECTS + r"(?:hours|deadline|date)\b",
     frozenset(["date", "clock", "time"])),
    ("a name", r"\bwho\b", frozenset(["name"])),
)  # fmt: skip
"""What a question asks for, how it asks, and the kinds, dimensions or words that answer it; the first that fits."""
_GENERIC = frozenset(
    stem(word)
    for word in "many much long old far tall often big high deep heavy fast wide large time date day year month please "
    "tell know name price".split()
)
"""Words of a question that say the kind of answer rather than what it is about."""


def relevances(question: str, texts: Sequence[str], *, answer: bool = True) -> list[Relevance]:
    """Whether each statement of an answer (or a passage, with `answer=False`) addresses the question."""
    names = names_in([question, *texts])
    found = [_relevance(question, text, names, may_be_short=answer) for text in texts]
    asks_back = any(text.rstrip(" \"'*)”").endswith("?") or declines(text) for text in texts)
    if answer and "?" in question and all(each.verdict == "courtesy" for each in found) and not asks_back:
        return [Relevance("irrelevant", "it has no content besides courtesies")] * len(texts)
    return found


def _relevance(question: str, text: str, names: frozenset[str], *, may_be_short: bool) -> Relevance:
    if not any(map(str.isalnum, text)):
        return Relevance("irrelevant", "no content")
    if declines(text):
        return Relevance("cannot tell", "it declines to answer")
    is_yes_or_no = re.match(r"\W*(?:yes|no|yeah|yep|nope)\b(?! one)", text, re.IGNORECASE) is not None
    if not makes_claim(text) and not is_yes_or_no:
        return Relevance("courtesy", "it is a courtesy")
    asked, said = read(question, names), without_marks(read(without_courtesy(text), names))
    if other := _other_subject(asked, said):
        return Relevance("irrelevant", f"it is about “{other}”")
    if not is_english(f"{question} {text}"):
        return Relevance("cannot tell", "the rules are for English")
    if _YES_NO.search(question.lower()):
        return Relevance("relevant", "it gives a yes or no") if said and _names_topic(asked, said) else OPEN
    kind, kinds = next(
        ((kind, kinds) for kind, asking, kinds in _KINDS if re.search(asking, question.lower())), ("", ())
    )
    keys = {token.key.partition("+")[0] for token in asked}
    place = next((i for i, token in enumerate(said) if token.key not in keys and _kinds_of(said, i) & {*kinds}), -1)
    is_denial = any(t.kind == "negation" for t in asked) != any(t.kind == "negation" for t in said)
    if place < 0 or is_denial:
        return OPEN
    # `What is the payment for 36 months?` - `The payment is $90.`
    head = asked[: next((i for i, token in enumerate(asked) if token.key in PREPOSITIONS), len(asked))]
    extra = [token for token in said if token.is_content and not any(matches(token, each) for each in asked)]
    is_head = [token.key for token in asked[:2]] == ["what", "be"] and len(extra) == 1 and _names_topic(head, said)
    is_full = (_names_topic(asked, said) or is_head) and not _digresses(keys, said, place)
    is_short = may_be_short and _is_short(asked, said)
    return Relevance("relevant", f"it gives {kind}") if is_full or is_short else OPEN


def _kinds_of(said: Tokens, place: int) -> set[str]:
    """The kind and the dimension of a token; a name counts if it is somebody who did it, not somebody it was for."""
    token = said[place]
    is_agent = place == 0 or said[place - 1].key in ("by", "be", "was")
    return (
        {"name"}
        if token.kind == "name" and is_agent
        else {token.kind, token.value.unit if token.value else token.key} - {"name"}
    )


def _other_subject(asked: Tokens, said: Tokens) -> str:
    """The identifier or named subject that the statement is about instead of that of the question; empty if none."""
    ids = {token.key for token in asked if token.kind == "id"}
    others = [token for token in said if token.kind == "id"]
    if ids and others and ids.isdisjoint(token.key for token in others):
        return next((token.text for token in others if any(_shape(token.key) == _shape(key) for key in ids)), "")
    about = [token for token in subject(said) if token.kind == "name"]
    if any(token.text.lower() in ("who", "whom", "whose", "which", "where", "name") for token in asked):
        return ""
    return next((name.text for name in about for each in asked if _are_twins(name, said, each, asked)), "")


def _shape(key: str) -> str:
    """The pattern of an identifier: `a-17` and `a-18` have one."""
    return re.sub(r"\d+", "0", re.sub(r"[a-z]+", "a", key))


def _are_twins(name: Token, said: Tokens, other: Token, asked: Tokens) -> bool:
    """Whether two names are of one kind: `Porto office` and `Lisbon office`, `Eva Krol` and `Anna Krol`."""
    if other.kind != "name" or any(matches(other, each) or matches(each, other) for each in said):
        return False
    parts, others = name.key.split(), other.key.split()
    after, other_after = (tokens[tokens.index(token) + 1 :][:1] for tokens, token in ((said, name), (asked, other)))
    is_one_noun = bool(after and other_after) and after[0].kind == "word" and after[0].key == other_after[0].key
    return is_one_noun or (len(parts) == len(others) > 1 and parts[-1] == others[-1])


def _is_topic(token: Token) -> bool:
    word = token.text.lower()
    is_word = token.kind in ("word", "name", "id", "number", "date")
    return is_word and word not in FUNCTION_WORDS and stem(word) not in _GENERIC


def _names_topic(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement has every content word of the question, apart from how it asks."""
    topic = [token for token in asked if _is_topic(token)]
    keys = {token.key.partition("+")[0] for token in said} | {word for token in said for word in token.key.split()}
    return bool(topic) and all({token.key.partition("+")[0]} <= keys or {*token.key.split()} <= keys for token in topic)


def _digresses(keys: set[str], said: Tokens, place: int) -> bool:
    """Whether the value is for something else: another word than the question's comes before or right after it."""
    near = [token for token in said[: place + 2] if token.kind == "word"]
    return any(token.key.partition("+")[0] not in keys and stem(token.text.lower()) not in _MEANT for token in near)


_MEANT = frozenset(stem(word) for word in "take last cost away time date day year price".split())
"""Words that an answer may add to the question's."""


def _is_short(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement is only a value, as short answers are: it starts with it, and says nothing of the topic."""
    first = said[0]
    starts = first.value is not None or first.kind in ("name", "limit", "quantifier") or first.key in PREPOSITIONS
    names = [token for token in said if token.kind in ("name", "id")]
    topic = {token.key for token in asked if _is_topic(token)}
    # A word after a preposition or a number belongs to it; any other may be the verb of a sentence.
    has_verb = any(
        token.kind == "word" and before.value is None and before.key not in PREPOSITIONS and before.kind != "word"
        for before, token in pairwise(said)
    )
    asks_name = any(token.text.lower() == "who" for token in asked)
    return starts and not has_verb and len(names) <= asks_name and topic.isdisjoint(token.key for token in said)
