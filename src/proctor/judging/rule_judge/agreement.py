"""Whether an answer says the same as a reference, given the question.

An answer agrees if one of its statements contains the reference, word by word and value by value, and nothing there
denies or hedges it. It disagrees if the reference is one value (a number, a date, a name) and the answer gives another
one of its type instead, or if it contradicts a sentence of the reference. Otherwise the judge cannot tell: a right
answer may use other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.judging.rule_judge.claims import declines, makes_claim, split_statements, without_courtesy
from proctor.judging.rule_judge.lexicon import ARTICLES, FUNCTION_WORDS, stem
from proctor.judging.rule_judge.proof import judge_claims
from proctor.judging.rule_judge.reading import Token, fold, matches, names_in, read
from proctor.judging.rule_judge.values import Value, conflicts

MAX_SHORT_REFERENCE = 8
"""A reference with more content words is a whole text rather than one answer."""
_MAX_CLEAR_ANSWER = 40
"""An answer with more words may mention another value for another reason than to give it."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether an answer agrees with a reference, and why."""

    verdict: Literal["same", "contradicted", "cannot tell"]
    reason: str


def compare_answers(question: str, reference: str, answer: str) -> Agreement:
    """Whether the answer says the same as the reference; of several alternatives, separated by `/`, one is enough."""
    statements = [without_courtesy(text) for text in split_statements(answer) if makes_claim(text)]
    ways = alternatives(reference)
    if not ways or not any(map(str.isalnum, answer)):
        return Agreement("contradicted", "the answer is empty") if ways else Agreement("cannot tell", "no reference")
    if _plain(answer) == _plain(reference):
        return Agreement("same", "the answer is the reference, word for word")
    if declines(answer) or not statements:
        return Agreement("cannot tell", "the answer declines or claims nothing")
    if _yes_or_no(reference):
        return _compare_yes_no(reference, answer)
    found = [_compare(question, way, statements) for way in ways]
    same = [(way, each) for way, each in zip(ways, found, strict=True) if each.verdict == "same"]
    if same and not (len(ways) > 2 and any(_are_items(same[0][0], way) for way in ways)):
        return same[0][1]
    if all(each.verdict == "contradicted" for each in found):
        return found[0]
    return Agreement("cannot tell", "no rule decides whether the answer says the same as the reference")


def _plain(text: str) -> str:
    """A text without the differences that cannot change what it says: spaces and a period at the end."""
    return " ".join(text.split()).rstrip(".")


def _are_items(one: str, other: str) -> bool:
    """Whether two alternatives share no word, so that they may be a list of which the answer must give all."""
    return {token.key for token in read(one)}.isdisjoint(token.key for token in read(other))


def alternatives(reference: str) -> list[str]:
    """The alternatives in a reference: `1979/21 July 1979` has two; `1/2`, `km/h` and a web address are one each."""
    if re.fullmatch(r"\s*\d{1,4}\s?/\s?\d{1,2}(?:\s?/\s?\d{2,4})?\s*", reference) or "://" in reference:
        return [reference.strip()]
    found = [way.strip() for way in _SEPARATOR.split(reference)]
    return list(dict.fromkeys(way for way in found if any(map(str.isalnum, way))))


_SEPARATOR = re.compile(
    r"(?<!\b[a-z])(?<!\bkm)(?<!\bmi)(?<!\band)(?<!\d/\d)(?<!\d/\d\d)/(?!(?:h|s|or|hr|min)\b)(?!\d{1,2}/\d)"
)
"""A slash outside of dates, fractions and units such as km/h."""


def _yes_or_no(text: str) -> str:
    word = re.sub(r"\W", "", text.lower())
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}.get(word, "")


def _compare_yes_no(reference: str, answer: str) -> Agreement:
    opening = re.match(r"\W*(yes|yeah|yep|no|nope|true|false)\b(?! one|t)", answer, re.IGNORECASE)
    if not opening:
        return Agreement("cannot tell", "the answer does not start with yes or no")
    given = "no" if opening[1].lower() in ("no", "nope", "false") else "yes"
    same = given == _yes_or_no(reference)
    return Agreement("same" if same else "contradicted", f"the answer says “{opening[1]}”")


def _compare(question: str, way: str, statements: Sequence[str]) -> Agreement:
    names = names_in([way, question, *statements])
    asked = {token.key for token in _words(question, names)}
    wanted = [token for token in _words(_YEAR.sub(r"in \1", way), names) if not _YEAR.fullmatch(way) or token.value]
    wanted = [token for token in wanted if token.value is not None or token.text.lower() not in ARTICLES]
    content = [token for token in wanted if token.value is not None or token.text.lower() not in FUNCTION_WORDS]
    if not content or all(token.key in asked for token in content):
        return Agreement("cannot tell", "the question says as much as the reference")
    if len(content) > MAX_SHORT_REFERENCE:
        return _compare_sentences(way, statements)
    for statement in statements:
        words = _words(statement, names)
        if _contains(words, wanted) and not _is_doubtful(statement, way):
            return Agreement("same", f"the answer says “{way}”")
    return _replaced(content, [token for text in statements for token in _words(text, names)], asked, way)


_YEAR = re.compile(r"^(1\d{3}|20\d\d|21\d\d)$")
"""A reference that is a year, and not another number."""


def _words(text: str, names: frozenset[str]) -> list[Token]:
    """The tokens of a text without marks, names as single words, all words by their stems."""
    return [
        Token(word, stem(word.lower()), "name" if token.kind == "name" else token.kind, token.value)
        for token in read(_without_footnotes(text), names)
        if token.kind != "mark"
        for word in ([token.text] if token.value is not None else token.text.split())
    ]


def _without_footnotes(text: str) -> str:
    """The text without footnote marks such as `[1]`."""
    return re.sub(r"\[\^?\d{1,3}\^?\]", " ", text)


def _contains(words: Sequence[Token], wanted: Sequence[Token]) -> bool:
    """Whether the words have all that is wanted in one place, in its order."""
    return any(
        all(
            matches(theirs, ours) or (ours.value is None and theirs.key == ours.key)
            for ours, theirs in zip(run, wanted, strict=True)
        )
        for start in range(len(words) - len(wanted) + 1)
        if (run := words[start : start + len(wanted)])
    )


def _is_doubtful(statement: str, way: str) -> bool:
    """Whether a statement that has the reference may not give it as the answer: it denies, hedges or lists."""
    doubts = _DOUBTS.findall(fold(statement).replace("'", ""))
    return bool(doubts) and not _DOUBTS.search(fold(way).replace("'", ""))


_DOUBTS = re.compile(
    r"\b(?:not|no|never|nobody|neither|nor|without|\w+nt|cannot|or|may|might|could|perhaps|possibly|unless|except|unlike"
    r"|instead|rather|before|after|although|despite|formerly|rumou?red|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)


def _replaced(content: Sequence[Token], words: Sequence[Token], asked: set[str], way: str) -> Agreement:
    """Whether the answer gives one other value of the reference's type."""
    open_verdict = Agreement("cannot tell", "the answer may say it in other words")
    values = [token for token in content if token.value is not None]
    if len(words) > _MAX_CLEAR_ANSWER:
        return open_verdict
    if len(values) == 1 == len(content):
        reference = values[0].value
        others = [each.value for each in words if each.value is not None and each.key not in asked]
        given = [each for each in others if reference is not None and each.kind == reference.kind]
        if (
            reference is not None
            and len({each.text for each in given}) == 1
            and all(_is_other(each, reference, words) for each in given)
        ):
            return Agreement("contradicted", f"the answer says “{given[0].text}” instead of “{way}”")
        return open_verdict
    if values or not all(token.text[:1].isupper() for token in content):
        return open_verdict
    names = {each.key for each in words if each.kind == "name"} - asked
    ours = {token.key for token in content}
    runs = _name_runs(words, asked)
    if names and len(runs) == 1 and ours.isdisjoint(each.key for each in words) and not _is_short_form(runs[0], way):
        return Agreement("contradicted", f"the answer says “{runs[0]}” instead of “{way}”")
    return open_verdict


def _is_other(given: Value, reference: Value, words: Sequence[Token]) -> bool:
    """Whether a value is another one than the reference's, and not a less exact form of it."""
    near = abs(given.base - reference.base) <= 0.05 * max(abs(given.base), abs(reference.base))
    is_hedged = any(token.kind == "limit" or token.key in ("about", "almost") for token in words)
    return conflicts(given, reference) and not (
        given.kind == "number" and near and (is_hedged or _is_rounder(given, reference))
    )


def _is_rounder(given: Value, reference: Value) -> bool:
    digits = [len(re.sub(r"\D", "", f"{value.amount:g}").strip("0")) for value in (given, reference)]
    return digits[0] < digits[1]


def _name_runs(words: Sequence[Token], asked: set[str]) -> list[str]:
    """The names in an answer that the question does not have."""
    runs: list[list[str]] = [[]]
    for token in words:
        if token.kind == "name" and token.key not in asked:
            runs[-1].append(token.text)
        elif runs[-1]:
            runs.append([])
    return list(dict.fromkeys(" ".join(run) for run in runs if run))


def _is_short_form(name: str, way: str) -> bool:
    """Whether one is an abbreviation of the other: `LA`, `Los Angeles`."""
    initials = ["".join(word[0] for word in text.split()).lower() for text in (name, way)]
    plain = [re.sub(r"\W", "", text).lower() for text in (name, way)]
    return initials[0] == plain[1] or initials[1] == plain[0] or plain[0][:4] == plain[1][:4]


def _compare_sentences(way: str, statements: Sequence[str]) -> Agreement:
    """Compare a long reference: the answer must support each of its sentences."""
    parts = [text for text in split_statements(way) if makes_claim(text)]
    verdicts = judge_claims(parts, statements)
    if wrong := next((each for each in verdicts if each.answer == "contradicted"), None):
        return Agreement("contradicted", wrong.reason.replace("the passages say", "the answer says"))
    if verdicts and all(each.answer == "supported" for each in verdicts):
        return Agreement("same", "the answer states every sentence of the reference")
    return Agreement("cannot tell", "the answer may say it in other words")
