"""Whether an answer says the same as a reference, given the question.

An answer agrees if one of its statements contains the reference, word by word and value by value, and nothing there
denies or hedges it; or if each of the two proves the other. It disagrees if the reference is one value (a number, a
date, a name) and the answer gives another one of its type instead; not of a place, which has several names and lies in
larger ones. Otherwise the judge cannot tell: a right answer may use other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from proctor.judging.rule_judge.claims import declines, makes_claim, split_statements, without_courtesy
from proctor.judging.rule_judge.lexicon import stem
from proctor.judging.rule_judge.proof import Verdict, judge_claims
from proctor.judging.rule_judge.reading import Token, conflicts, matches, names_in, read

OPEN = Verdict("cannot tell", "the answer may say it in other words")
_HEDGES = frozenset(
    "or may might could perhaps possibly unless except before after about around almost nearly over under than".split()
)
"""A statement with one of these words may not give the value in it as the answer."""
_OTHER_PLACES = frozenset(map(stem, "new north south east west".split()))
"""`South Sudan` is not Sudan."""
_REPLY = re.compile(r"\W*(yes|no)\s*(?:[,.;:!–-]|$)", re.IGNORECASE)


def compare_answers(question: str, reference: str, answer: str) -> Verdict:
    """Whether the answer says the same as the reference; of several alternatives, separated by `/`, one is enough."""
    if not any(map(str.isalnum, answer)):
        return Verdict("contradicted", "the answer is empty")
    if answer.strip(" .\n") == reference.strip(" .\n"):
        return Verdict("supported", "the answer is the reference, word for word")
    expected, reply = _REPLY.fullmatch(reference), _REPLY.match(answer)
    if expected and reply:
        is_same = expected[1].lower() == reply[1].lower()
        return Verdict("supported" if is_same else "contradicted", f"the answer says “{reply[1]}”")
    statements = [without_courtesy(text) for text in split_statements(answer) if makes_claim(text)]
    ways = alternatives(reference)
    if declines(answer) or not statements or not ways:
        return OPEN
    found = [_compare(question, way, statements) for way in ways]
    if len(ways) <= 2 and (same := [each for each in found if each.answer == "supported"]):
        return same[0]  # three alternatives may be a list
    if all(each.answer == "contradicted" for each in found):
        return found[0]
    return _prove_each_other(question, reference, statements)


def alternatives(reference: str) -> list[str]:
    """The alternatives in a reference: `1979/21 July 1979` has two; `1/2`, `km/h` and a web address are one each."""
    if re.search(r"^\s*\d{1,3}\s?/\s?\d{1,2}\s*$|\d\s?/\s?\d{1,2}/|\bkm/h|\band/or\b|://", reference):
        return [reference.strip()]
    return [*dict.fromkeys(way.strip() for way in reference.split("/") if any(map(str.isalnum, way)))]


def _prove_each_other(question: str, reference: str, statements: Sequence[str]) -> Verdict:
    """The verdict on whole sentences, each judged as a claim about the other; one contradiction is enough."""
    found = judge_claims(statements, [reference], [question])
    wrong = [each for each in found if each.answer == "contradicted"]
    back = judge_claims(split_statements(reference), [" ".join(statements)], [question])
    is_same = all(each.answer == "supported" for each in [*found, *back])
    return wrong[0] if wrong else found[0] if is_same else OPEN


def _compare(question: str, way: str, statements: Sequence[str]) -> Verdict:
    """Whether the statements contain one alternative, or another value in its place."""
    names = names_in([way, question, *statements])
    asked = {token.key for token in _words(question, names)}
    is_year = re.fullmatch(r"1\d{3}|20\d\d|21\d\d", way)
    expected = _words(f"in {way}", names)[1:] if is_year else _words(way, names)
    content = [token for token in expected if token.kind != "function"]
    if all(token.key in asked for token in content):
        return OPEN
    said = [_words(text, names) for text in statements]
    clear = [words for words in said if not any(token.kind == "negation" or token.key in _HEDGES for token in words)]
    size = len(expected)
    for words in clear:
        starts = [i for i in range(len(words) - size + 1) if all(map(matches, words[i : i + size], expected))]
        if any(not words[start - 1 : start] or words[start - 1].key not in _OTHER_PLACES for start in starts):
            return Verdict("supported", f"the answer says “{way}”")
    other = _replacement(content, [token for words in said for token in words], asked) if clear == said else ""
    return Verdict("contradicted", f"the answer says “{other}” instead of “{way}”") if other else OPEN


def _words(text: str, names: frozenset[str]) -> list[Token]:
    """The tokens of a text without marks, names as single words, all words by their stems."""
    return [
        Token(word, stem(word.lower()), token.kind, token.value)
        for token in read(text, names)
        if token.kind != "mark"
        for word in ([token.text] if token.value is not None else token.text.split())
    ]


def _replacement(content: Sequence[Token], words: Sequence[Token], asked: set[str]) -> str:
    """The one other value or name that the answer gives in place of the reference; else empty."""
    new = [token for token in words if token.key not in asked]
    reference = content[0].value
    if len(content) == 1 and reference is not None:
        values = {token.text: token.value for token in new if token.value and token.value.kind == reference.kind}
        is_other = len(values) == 1 and all(conflicts(value, reference) for value in values.values())
        return next(iter(values)) if is_other else ""
    if stem("where") in asked or any(token.value is not None or not token.text[:1].isupper() for token in content):
        return ""
    runs = groupby(words, key=lambda token: token.kind == "name" and token.key not in asked)
    names = {" ".join(token.text for token in run) for is_name, run in runs if is_name}
    is_shared = any(token.key[:4] == each.key[:4] for token in content for each in words)
    return next(iter(names)) if len(names) == 1 and not is_shared else ""
