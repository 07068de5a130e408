"""Whether a statement addresses a question.

Relevant: it gives the kind of thing that was asked for (a time, an amount, a person, yes or no) about the thing that
was asked about, which it names with the question's own words, or leaves out as short answers do ("In 1989.").
Irrelevant: it is about another identifier, or it says nothing. Otherwise the judge cannot tell: sharing words with a
question is not answering it ("Who wrote Middlemarch?" - "Middlemarch is set in the Midlands.").
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from proctor.judging.rule_judge.claims import is_question, makes_claim, without_courtesy
from proctor.judging.rule_judge.grammar import is_verb, without_marks
from proctor.judging.rule_judge.lexicon import MONEY, PREPOSITIONS, PRONOUNS, is_english, stem
from proctor.judging.rule_judge.reading import Token, Tokens, names_in, read


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether a statement addresses a question; a courtesy belongs to an answer without being one."""

    verdict: Literal["relevant", "courtesy", "irrelevant", "cannot tell"]
    reason: str
    """Why it does not; empty if it does."""


RELEVANT = Relevance("relevant", "")
OPEN = Relevance("cannot tell", "no rule decides whether it addresses the question")
COURTESY = Relevance("courtesy", "it is a courtesy")
EMPTY = Relevance("irrelevant", "it has no content besides courtesies")
_YES_NO = "is|are|was|were|am|do|does|did|can|could|will|would|should|has|have|had|may|must"
_KINDS: tuple[tuple[str, Set[str]], ...] = (
    (rf"(?:^|[.!,:]\s+)(?:{_YES_NO})\b[^.!]*\?\s*$", frozenset()),
    (r"\bhow much\b|\bwhat .{0,40}\b(?:cost|price|fee|charge|fare|rate|payment|amount|total|interest)",
     MONEY | {"percent", "free"}),
    (r"\bhow (?:many|often)\b|\bwhat .{0,40}\b(?:allowance|limit|size|weight|height|length|temperature|age|number)\b",
     {"number"}),
    (r"\bhow (?:tall|high|deep|wide|far|old|long|fast)\b", {"time", "calendar", "length", "speed"}),
    (r"\bwhen\b|\bwhat (?:.{0,40}\b)?(?:year|date|day|time|month|hours|deadline)\b", {"date", "clock"}),
    (r"\bwho\b", {"name"}),
)  # fmt: skip
"""How a question asks, and the kinds, dimensions or words that answer it (none for yes or no); the first that fits."""
_GENERIC = frozenset(map(stem, "take last cost away time date day year month price please tell know name".split()))
"""Words that a question or an answer may have without being about them."""
_COMPARING = frozenset("which instead after before replace replaces than other another besides".split())
"""Words of a question whose answer is about something else than what it names."""


def relevances(question: str, texts: Sequence[str]) -> list[Relevance]:
    """Whether each statement of an answer or a passage addresses the question.

    A courtesy belongs to an answer only if there is one: thanks do not make up for another order's status. Courtesies
    alone are not an answer, unless one of them asks back or may mean yes or no.
    """
    names = names_in([question, *texts])
    kinds = next((kinds for pattern, kinds in _KINDS if re.search(pattern, question.lower())), None)
    found = [_relevance(question, text, names, kinds) for text in texts]
    others = {each.verdict for each in found if each is not COURTESY}
    may_answer = "?" not in question or kinds == frozenset() or any("?" in text for text in texts)
    is_open = "cannot tell" in others or (not others and may_answer)
    courtesy = COURTESY if "relevant" in others else OPEN if is_open else EMPTY
    return [courtesy if each is COURTESY else each for each in found]


def _relevance(question: str, text: str, names: frozenset[str], kinds: Set[str] | None) -> Relevance:
    bare = without_courtesy(text)
    if not makes_claim(text):  # `My name is Ava.` may be the answer
        return COURTESY if is_question(text) or not any(map(str.isalnum, bare)) else OPEN
    asked, said = read(question, names), without_marks(read(bare, names))
    if other := _other_id(asked, said):
        return Relevance("irrelevant", f"it is about “{other}”")
    if not is_english(f"{question} {text}"):
        return OPEN
    is_answer = _has_form(asked, said, has_comma="," in bare) or (kinds is not None and _gives(kinds, asked, said))
    return RELEVANT if is_answer else OPEN


def _other_id(asked: Tokens, said: Tokens) -> str:
    """The identifier that the statement is about instead of that of the question; empty if there is none."""
    ids, others = _ids(asked), _ids(said)
    if not _COMPARING.isdisjoint(token.text.lower() for token in asked) or not ids.keys().isdisjoint(others):
        return ""
    shapes = {re.sub(r"\d+", "0", key) for key in ids}  # `a-17` and `a-18` have one
    return next((text for key, text in others.items() if re.sub(r"\d+", "0", key) in shapes), "")


def _ids(tokens: Tokens) -> dict[str, str]:
    """Identifiers by their keys: `A-17`, and numbers after the same noun, such as `order 55812`."""
    pairs = [each for each in pairwise(tokens) if each[0].kind == "word" and each[1].text.isdigit()]
    found = [*((token,) for token in tokens if token.kind == "id"), *pairs]
    return {" ".join(token.key for token in each): " ".join(token.text for token in each) for each in found}


def _has_form(asked: Tokens, said: Tokens, *, has_comma: bool) -> bool:
    """Whether the statement has the form of an answer: `what is the fee` - `the fee is …`, `why …` - `… because …`."""
    words = without_marks(asked)
    place = next((index for index, token in enumerate(words) if token.key in ("what", "who", "why")), len(words))
    how, *rest = [token.key for token in words[place:]] or [""]
    keys = [token.key for token in said]
    topic = _topic(asked, said)
    if how == "who":  # a name, and the question again
        return len(keys) > len(rest) > 0 and keys[-len(rest) :] == rest and _is_name(said[: -len(rest)])
    if how == "why" and "because" in keys:  # not `Because it is Monday, we are closed`
        reason = keys.index("because")
        return topic <= {_base(token) for token in said[:reason]} if reason else not has_comma
    copula = next((index for index, key in enumerate(keys) if key in ("be", "was")), 0)
    is_about = {_base(token) for token in said[:copula] if token.is_content} == topic != set()
    is_copula = any(key in ("be", "was") for key in (*rest[:1], *rest[-1:]))  # also `tell me what the fee is`
    after = said[copula + 1 :][:1]
    is_thing = any(token.value is not None or token.kind == "name" or token.article for token in after)
    return how == "what" and is_copula and is_about and is_thing and rest[-1] not in PREPOSITIONS | {"about", "like"}


def _is_name(tokens: Tokens) -> bool:
    """Whether the tokens are a name; the first word of a sentence has a capital in any case."""
    return all(token.kind == "name" for token in tokens) or (
        len(tokens) == 1 and tokens[0].kind == "word" and tokens[0].text[:1].isupper() and not tokens[0].article
    )


def _gives(kinds: Set[str], asked: Tokens, said: Tokens) -> bool:
    """Whether the statement gives something of these kinds as its answer; without kinds, whether it names the topic."""
    known, keys, topic = set(map(_base, asked)), set(map(_base, said)), _topic(asked, said)
    if not kinds:
        return bool(topic) and topic <= keys
    # A name counts if it is somebody who did it, not somebody it was for.
    agents = [token for before, token in zip((None, *said), said, strict=False) if before is None or before.key == "by"]
    values = [token for token in said if token.key not in known and (token.kind != "name" or token in agents)]
    if not any(kinds & {token.kind, token.value.unit if token.value else token.key} for token in values):
        return False
    # A short answer has no words or names but those after a preposition: `23 kg in the hold`.
    is_short = said[0].kind != "word" and not any(
        token.kind in ("word", "name", "id") and before.key not in PREPOSITIONS for before, token in pairwise(said)
    )
    # A full answer adds nothing but the value to the question: another word may say what else the value is for.
    subject = _topic(asked[: next((place for place, token in enumerate(asked) if token.key == "for"), None)], said)
    added = [token for token in said if token.is_content and _base(token) not in known | _GENERIC]
    is_full = bool(subject) and subject <= keys and len(added) == 1
    return is_full or (is_short and topic.isdisjoint(keys))


def _base(token: Token) -> str:
    return token.key.partition("+")[0]


def _topic(asked: Tokens, said: Tokens) -> set[str]:
    """The keys of the question's content words, apart from how it asks: `how old`, `tell me the price`.

    Of a statement with a pronoun, only the verbs: `Who teaches statistics?` - `Ann Lee teaches it.`
    """
    topic = [
        token
        for before, token in zip((None, *asked), asked, strict=False)
        if token.is_content and _base(token) not in _GENERIC and (before is None or before.key != "how")
    ]
    has_pronoun = any(token.key in PRONOUNS for token in said)
    verbs = [token for token in topic if is_verb(token)] if has_pronoun else []
    return {_base(token) for token in verbs or topic}
