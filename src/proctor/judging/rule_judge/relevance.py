"""Whether a statement addresses a question.

Relevant: it gives the kind of thing that was asked for (a time, an amount, a person, yes or no) about the thing that
was asked about, which it names with the question's own words, or leaves out as short answers do ("In 1989.").
Irrelevant: it is about another identifier, or it says nothing. Otherwise the judge cannot tell: sharing words with a
question is not answering it ("Who wrote Middlemarch?" - "Middlemarch is set in the Midlands.").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge.claims import declines, makes_claim, without_courtesy
from proctor.judging.rule_judge.grammar import is_verb, without_marks
from proctor.judging.rule_judge.lexicon import FUNCTION_WORDS, MONEY, PREPOSITIONS, PRONOUNS, is_english, stem
from proctor.judging.rule_judge.reading import Token, Tokens, matches, names_in, read


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
_KINDS = (
    ("a number", r"how (?:many|often)", {"number"}),
    ("an amount", r"how much|what .{0,40}\b(?:costs?|price|fee|charge|fare|rate|payment|amount|total|interest)",
     MONEY | {"percent", "free"}),
    ("a length", r"how (?:tall|high|deep|wide|far)", {"length"}),
    ("a duration", r"how old", {"time", "calendar"}),
    ("a measure", r"how (?:long|fast)", {"time", "calendar", "length", "speed"}),
    ("an amount", r"what .{0,40}\b(?:allowance|limit|size|weight|height|length|temperature|age|number)", {"number"}),
    ("a time", r"when|what (?:year|date|day|time|month)|what .{0,40}\b(?:hours|deadline|date)",
     {"date", "clock"}),
    ("a name", r"who", {"name"}),
)  # fmt: skip
"""What a question asks for, how it asks, and the kinds, dimensions or words that answer it; the first that fits."""
_GENERIC = frozenset(
    map(stem, "many much long old far tall often big high deep heavy fast wide large please tell know name".split())
)
"""Words of a question that say the kind of answer rather than what it is about."""
_MEANT = frozenset(map(stem, "take last cost away time date day year month price".split()))
"""Words of either that the other need not have."""


def relevances(question: str, texts: Sequence[str], *, answer: bool = True) -> list[Relevance]:
    """Whether each statement of an answer (or a passage, with `answer=False`) addresses the question."""
    names = names_in([question, *texts])
    found = [_relevance(question, text, names, may_be_short=answer) for text in texts]
    asks_back = any(text.rstrip(" \"'*)”").endswith("?") or declines(text) for text in texts)
    if answer and "?" in question and all(each.verdict == "courtesy" for each in found) and not asks_back:
        return [Relevance("irrelevant", "it has no content besides courtesies")] * len(texts)
    return _with_courtesies(found) if answer else found


def _with_courtesies(found: list[Relevance]) -> list[Relevance]:
    """A courtesy belongs to an answer only if there is one: thanks do not make up for another order's status."""
    others = {each.verdict for each in found if each.verdict != "courtesy"}
    if not others or "relevant" in others:
        return found
    instead = OPEN if "cannot tell" in others else Relevance("irrelevant", "it has no content besides courtesies")
    return [instead if each.verdict == "courtesy" else each for each in found]


def _relevance(question: str, text: str, names: frozenset[str], *, may_be_short: bool) -> Relevance:
    if not any(map(str.isalnum, text)):
        return Relevance("irrelevant", "no content")
    if declines(text):
        return Relevance("cannot tell", "it declines to answer")
    if not makes_claim(text):
        is_reply = re.match(r"\W*(?:yes|no|yeah|yep|nope)\b", text, re.IGNORECASE)
        # `That's right.` and `I am an assistant.` may be the answer.
        is_remark = any(map(str.isalnum, without_courtesy(text))) and not text.rstrip(" \"'*)”").endswith((":", "?"))
        return OPEN if is_reply or is_remark else Relevance("courtesy", "it is a courtesy")
    asked, said = read(question, names), without_marks(read(without_courtesy(text), names))
    if other := _other_id(asked, said):
        return Relevance("irrelevant", f"it is about “{other}”")
    if not is_english(f"{question} {text}"):
        return Relevance("cannot tell", "the rules are for English")
    if _YES_NO.search(question.lower()):
        return Relevance("relevant", "it gives a yes or no") if _names_topic(asked, said) else OPEN
    kind = next((each for each in _KINDS if re.search(rf"\b(?:{each[1]})\b", question.lower())), None)
    keys = {_base(token) for token in asked}
    places = [i for i, token in enumerate(said) if kind and token.key not in keys and kind[2] & _kinds_of(said, i)]
    is_denial = any(t.kind == "negation" for t in asked) != any(t.kind == "negation" for t in said)
    if kind is None or not places or is_denial:
        return OPEN
    # `What is the payment for 36 months?` - `The payment is $90.`
    head = asked[: next((i for i, token in enumerate(asked) if token.key in PREPOSITIONS), len(asked))]
    extra = [token for token in said if token.is_content and not any(matches(token, each) for each in asked)]
    is_head = [token.key for token in asked[:2]] == ["what", "be"] and len(extra) == 1 and _names_topic(head, said)
    # Another word than the question's before or right after the value: it may be for something else.
    near = [token for token in said[: places[0] + 2] if token.kind == "word"]
    digresses = any(_base(token) not in keys and stem(token.text.lower()) not in _MEANT for token in near)
    is_full = (_names_topic(asked, said) or is_head) and not digresses
    is_short = may_be_short and _is_short(asked, said)
    return Relevance("relevant", f"it gives {kind[0]}") if is_full or is_short else OPEN


def _base(token: Token) -> str:
    return token.key.partition("+")[0]


def _kinds_of(said: Tokens, place: int) -> set[str]:
    """The kind and the dimension of a token; a name counts if it is somebody who did it, not somebody it was for."""
    token = said[place]
    if token.kind == "name":
        return {"name"} if place == 0 or said[place - 1].key in ("by", "be", "was") else set()
    is_clock = token.kind == "number" and place and said[place - 1].key == "at"  # `at 9`
    return {token.kind, token.value.unit if token.value else token.key} | ({"clock"} if is_clock else set())


def _other_id(asked: Tokens, said: Tokens) -> str:
    """The identifier that the statement is about instead of that of the question; empty if there is none."""
    if any(token.text.lower() in _COMPARING for token in asked):
        return ""
    ids, others = (_ids(tokens) for tokens in (asked, said))
    shapes = {re.sub(r"\d+", "0", key) for key in ids}  # `a-17` and `a-18` have one
    same = ids.keys() & others.keys()
    return next((text for key, text in others.items() if not same and re.sub(r"\d+", "0", key) in shapes), "")


_COMPARING = frozenset("which instead after before replace replaces than other another besides".split())
"""Words of a question whose answer is about something else than what it names."""


def _ids(tokens: Tokens) -> dict[str, str]:
    """Identifiers by their keys: `A-17`, and numbers after the same noun, such as `order 55812`."""
    found = {token.key: token.text for token in tokens if token.kind == "id"}
    for before, token in pairwise(tokens):
        if before.kind == "word" and token.kind == "number" and token.text.isdigit():
            found[f"{before.key} {token.text}"] = f"{before.text} {token.text}"
    return found


def _is_short(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement is only a value, as short answers are: it starts with it, and says nothing of the topic."""
    first = said[0]
    starts = first.value is not None or first.kind in ("name", "limit", "quantifier") or first.key in PREPOSITIONS
    # A word after a preposition or a number belongs to it; any other may be the verb of a sentence.
    has_verb = any(
        token.kind == "word" and before.value is None and before.key not in PREPOSITIONS and before.kind != "word"
        for before, token in pairwise(said)
    )
    names = sum(token.kind in ("name", "id") for token in said)
    asks_name = any(token.text.lower() == "who" for token in asked)
    return starts and not has_verb and names <= asks_name and {*_topic(asked)}.isdisjoint(said)


def _topic(asked: Tokens) -> list[Token]:
    """The content words of a question, apart from how it asks."""
    return [
        token
        for token in asked
        if token.kind in ("word", "name", "id", "number", "date")
        and token.text.lower() not in FUNCTION_WORDS
        and stem(token.text.lower()) not in _GENERIC | _MEANT
    ]


def _names_topic(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement has every content word of the question."""
    topic = _topic(asked)
    verbs = [token for token in topic if is_verb(token)]
    if verbs and any(token.key in (*PRONOUNS, "them", "him") for token in said):
        topic = verbs  # `Who teaches statistics?` - `Ann Lee teaches it.`
    keys = {_base(token) for token in said} | {word for token in said for word in token.key.split()}
    return bool(topic) and all(_base(token) in keys or {*token.key.split()} <= keys for token in topic)
