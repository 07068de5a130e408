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
from proctor.judging.rule_judge.lexicon import FUNCTION_WORDS, PREPOSITIONS, is_english, stem
from proctor.judging.rule_judge.reading import Token, Tokens, fold, matches, names_in, read
from proctor.judging.rule_judge.rewriting import subject, without_marks
from proctor.judging.rule_judge.values import MONEY


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether a statement addresses a question; a courtesy belongs to an answer without being one."""

    verdict: Literal["relevant", "courtesy", "irrelevant", "cannot tell"]
    reason: str


OPEN = Relevance("cannot tell", "no rule decides whether it addresses the question")
YES_OR_NO = "a yes or no"
_ASKING = "who whom whose what which when where why how is are was were do does did can could may".split()


def relevances(question: str, texts: Sequence[str], *, answer: bool = True) -> list[Relevance]:
    """Whether each statement of an answer (or a passage, with `answer=False`) addresses the question."""
    names = names_in([question, *texts])
    found = [_relevance(question, text, names, short=answer) for text in texts]
    if answer and _asks(question) and all(each.verdict == "courtesy" for each in found) and not _asks_back(texts):
        return [Relevance("irrelevant", "it has no content besides courtesies")] * len(texts)
    return found


def _asks_back(texts: Sequence[str]) -> bool:
    return any(text.rstrip(" \"'*)”").endswith("?") or declines(text) for text in texts)


def _asks(question: str) -> bool:
    return "?" in question or question.lower().split()[:1] in [[word] for word in _ASKING]


def _relevance(question: str, text: str, names: frozenset[str], *, short: bool) -> Relevance:
    if not any(map(str.isalnum, text)):
        return Relevance("irrelevant", "no content")
    if declines(text):
        return Relevance("cannot tell", "it declines to answer")
    if not makes_claim(text) and not _opens_with_yes_or_no(text):
        return Relevance("courtesy", "it is a courtesy")
    asked, said = read(question, names), without_marks(read(without_courtesy(text), names))
    if other := _other_subject(asked, said):
        return Relevance("irrelevant", f"it is about “{other}”")
    if not is_english(fold(f"{question} {text}")):
        return Relevance("cannot tell", "the rules are for English")
    kind = _kind_asked(question, asked, said)
    is_open_question = kind != YES_OR_NO
    if is_open_question and any(t.kind == "negation" for t in asked) != any(t.kind == "negation" for t in said):
        return OPEN
    names_topic = _names_topic(asked, said) and not (is_open_question and _digresses(asked, said))
    if kind and (names_topic or _fills_in(asked, said) or (short and _is_short(asked, said))):
        return Relevance("relevant", f"it gives {kind}")
    return OPEN


def _opens_with_yes_or_no(text: str) -> bool:
    return re.match(r"\W*(?:yes|no|yeah|yep|nope)\b(?! one)", text, re.IGNORECASE) is not None


def _other_subject(asked: Tokens, said: Tokens) -> str:
    """The identifier or named subject that the statement is about instead of that of the question; empty if none."""
    ids = {token.key for token in asked if token.kind == "id"}
    theirs = [token for token in said if token.kind == "id"]
    if ids and theirs and ids.isdisjoint(token.key for token in theirs):
        alike = [token for token in theirs if any(_shape(token.key) == _shape(key) for key in ids)]
        return alike[0].text if alike else ""
    words = {word for token in asked for word in token.key.split() if token.kind == "name"}
    about = [token for token in subject(said) if token.kind == "name"]
    if not words or not about or _asks_for_name(asked):
        return ""
    if twin := next((token for token in about if any(_are_twins(token, said, each, asked) for each in asked)), None):
        return twin.text
    mine = {word for token in said for word in token.key.split() if token.kind in ("name", "word")}
    shared = {stem(token.text.lower()) for token in asked if token.kind == "word"} & {
        stem(token.text.lower()) for token in said if token.kind == "word"
    }
    has_pronoun = any(token.text.lower() in ("it", "its", "they", "their", "he", "she", "his", "her") for token in said)
    return "" if words & mine or shared or has_pronoun else about[0].text


def _are_twins(name: Token, said: Tokens, other: Token, asked: Tokens) -> bool:
    """Whether two names are of one kind: `Porto office` and `Lisbon office`, `Eva Krol` and `Anna Krol`."""
    if other.kind != "name" or any(matches(other, each) or matches(each, other) for each in said):
        return False
    parts, others = name.key.split(), other.key.split()
    if len(parts) == len(others) > 1 and parts[-1] == others[-1]:
        return True
    after = [tokens[tokens.index(token) + 1 :][:1] for tokens, token in ((said, name), (asked, other))]
    return bool(after[0] and after[1]) and after[0][0].kind == "word" and after[0][0].key == after[1][0].key


def _shape(key: str) -> str:
    """The pattern of an identifier: `a-17` and `a-18` have one."""
    return re.sub(r"\d+", "0", re.sub(r"[a-z]+", "a", key))


def _asks_for_name(asked: Tokens) -> bool:
    return any(token.text.lower() in ("who", "whom", "whose", "which", "where", "name") for token in asked)


def _kind_asked(question: str, asked: Tokens, said: Tokens) -> str:
    """What the question asks for, if the statement has it; else empty."""
    low = question.lower()
    known = {token.key for token in asked}
    new = [token for token in said if token.key not in known]
    values = [token.value for token in new if token.value is not None]
    if _YES_NO.search(low):
        return YES_OR_NO if said and _confirms(asked, said) else ""
    if re.search(r"\bhow (?:many|often)\b", low):
        return "a number" if any(value.kind == "number" for value in values) else ""
    if re.search(
        r"\bhow much\b|\bwhat .{0,40}\b(?:cost|costs|price|fee|charge|fare|rate|budget|salary|payment|amount"
        r"|total|interest)\b",
        low,
    ):
        money = any(value.unit in MONEY or value.unit == "percent" for value in values)
        return "an amount" if money or any(token.key == "free" for token in new) else ""
    if re.search(r"\bhow (?:long|old|far|tall|big|high|deep|heavy|fast|wide|large)\b", low):
        units = next(units for word, units in _MEASURES.items() if re.search(rf"\bhow {word}\b", low))
        return "a measure" if any(value.unit in units for value in values) else ""
    if re.search(
        r"\bwhat .{0,40}\b(?:allowance|limit|size|weight|height|length|temperature|age|number|percentage)\b", low
    ):
        return "an amount" if any(value.kind == "number" for value in values) else ""
    if re.search(r"\bwhen\b|\bwhat (?:year|date|day|time|month)\b|\bwhat .{0,30}\b(?:hours|deadline|date)\b", low):
        return "a time" if any(value.kind in ("date", "clock") or value.unit == "time" for value in values) else ""
    if re.search(r"\bwho\b", low):
        places = [index for index, token in enumerate(said) if token in new and token.kind == "name"]
        # `By` or `is` comes before who it was, or nothing; `for` and `to` lead to somebody else.
        return "a name" if any(i == 0 or said[i - 1].key in ("by", "be", "was") for i in places) else ""
    return ""


_MEASURES = {
    "(?:long|far)": ("time", "calendar", "length"), "old": ("time", "calendar"), "heavy": ("mass",),
    "fast": ("speed", "time"), "(?:tall|high|deep|wide)": ("length",),
    "(?:big|large)": ("length", "area", "data", "volume"),
}  # fmt: skip
"""The dimensions that a measure may have, by the question."""
_YES_NO = re.compile(
    r"(?:^|[.!,:]\s)\s*(?:and |so |but )?(?:is|are|was|were|am|do|does|did|can|could|will|would|should|has|have|had|may"
    r"|must)\b[^.!]*\?\s*$"
)


def _confirms(asked: Tokens, said: Tokens) -> bool:
    """Whether a statement answers yes or no: it has the words of the question, or is nothing else."""
    return bool(said) and _names_topic(asked, said)


def _names_topic(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement has every content word of the question, apart from how it asks."""
    topic = [token for token in asked if _is_topic(token)]
    keys = {token.key.partition("+")[0] for token in said} | {word for token in said for word in token.key.split()}
    return bool(topic) and all(
        token.key.partition("+")[0] in keys or all(word in keys for word in token.key.split()) for token in topic
    )


def _fills_in(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement is what the question asks for and a value, in the question's own words."""
    head: list[Token] = []
    for token in asked[next((i for i, each in enumerate(asked) if each.key == "be"), len(asked)) + 1 :]:
        if token.key in PREPOSITIONS or token.kind == "mark":
            break
        head.append(token)
    keys, own = {token.key for token in asked}, {token.key for token in said}
    extra = [token for token in said if token.is_content and token.key not in keys]
    return bool(head) and all(token.key in own for token in head) and [each.value is None for each in extra] == [False]


def _digresses(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement gives its value for something else: another word than the question's comes before it."""
    keys = {token.key.partition("+")[0] for token in asked}
    for token in said:
        if token.key.partition("+")[0] in keys or token.kind == "function":
            continue
        if token.value is not None or token.kind == "name":
            return False
        if token.kind == "word" and stem(token.text.lower()) not in _GENERIC:
            return True
    return False


def _is_topic(token: Token) -> bool:
    word = token.text.lower()
    return (
        token.kind in ("word", "name", "id", "number", "date")
        and word not in FUNCTION_WORDS
        and stem(word) not in _GENERIC
    )


_GENERIC = frozenset(
    stem(word)
    for word in "many much long old far tall often big high deep heavy fast wide large time date day year month please "
    "tell know name price".split()
)
"""Words of a question that say the kind of answer rather than what it is about."""


def _is_short(asked: Tokens, said: Tokens) -> bool:
    """Whether the statement is only a value, as short answers are: it starts with it, and says nothing of the topic."""
    first = said[0] if said else None
    if first is None or not (
        first.value is not None or first.kind in ("name", "limit", "quantifier") or first.key in PREPOSITIONS
    ):
        return False
    names = [token for token in said if token.kind in ("name", "id")]
    limit = 1 if _asks_for_name(asked) else 0
    topic = {token.key for token in asked if _is_topic(token)}
    # A word after a preposition or a number belongs to it; any other may be the verb of a sentence.
    free = any(
        token.kind == "word" and before.value is None and before.key not in PREPOSITIONS and before.kind != "word"
        for before, token in pairwise(said)
    )
    return not free and len(names) <= limit and topic.isdisjoint(token.key for token in said)
