"""Whether an answer says the same as a reference, given the question.

An answer agrees if one of its statements contains the reference, word by word and value by value, and nothing there
denies or hedges it. It disagrees if the reference is one value (a number, a date, a name) and the answer gives
another one of its type instead; not of a place, which has several names and lies in larger ones. Otherwise the judge
cannot tell: a right answer may use other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.claims import declines, makes_claim, split_statements, without_courtesy
from proctor.judging.rule_judge.grammar import has_verb
from proctor.judging.rule_judge.lexicon import FUNCTION_WORDS, stem
from proctor.judging.rule_judge.proof import Verdict, judge_claims
from proctor.judging.rule_judge.reading import Token, conflicts, fold, matches, names_in, read

_MAX_CLEAR_ANSWER = 40
"""An answer with more words may mention another value for another reason than to give it."""
_REPLIES = {"yes": "yes", "yeah": "yes", "yep": "yes", "true": "yes", "no": "no", "nope": "no", "false": "no"}
OPEN = Verdict("cannot tell", "the answer may say it in other words")


def compare_answers(question: str, reference: str, answer: str) -> Verdict:
    """Whether the answer says the same as the reference; of several alternatives, separated by `/`, one is enough."""
    statements = [without_courtesy(text) for text in split_statements(answer) if makes_claim(text)]
    ways = alternatives(reference)
    if not ways:
        return Verdict("cannot tell", "no reference")
    if not any(map(str.isalnum, answer)):
        return Verdict("contradicted", "the answer is empty")
    if " ".join(answer.split()).rstrip(".") == " ".join(reference.split()).rstrip("."):
        return Verdict("supported", "the answer is the reference, word for word")
    expected, reply = (_REPLIES.get(re.sub(r"\W", "", word.lower()), "") for word in (reference, _first_word(answer)))
    if expected and reply:
        return Verdict("supported" if reply == expected else "contradicted", f"it says “{reply}”")
    if declines(answer) or not statements:
        return Verdict("cannot tell", "the answer declines or claims nothing")
    found = [_compare(question, way, statements) for way in ways]
    same = [way for way, each in zip(ways, found, strict=True) if each.answer == "supported"]
    if same and not (len(ways) > 2 and any(_keys(same[0]).isdisjoint(_keys(way)) for way in ways)):
        return Verdict("supported", f"the answer says “{same[0]}”")  # three unlike alternatives may be a list
    if all(each.answer == "contradicted" for each in found):
        return found[0]
    if len(ways) == 1 and has_verb(read(reference)):
        return _judge_sentence(question, reference, statements)
    return OPEN


def _first_word(answer: str) -> str:
    """The first word if it stands alone: not `no` of `no problem, it is included`."""
    match = re.match(r"\W*(\w+)(?=\s*(?:[,.;:!–-]|$))", answer)
    return match[1] if match else ""


def _judge_sentence(question: str, reference: str, statements: Sequence[str]) -> Verdict:
    """Judge an answer by a reference that is a sentence, as by a passage: with exchanged roles, it disagrees."""
    verdicts = judge_claims(statements, [reference], [question])
    if wrong := next((each for each in verdicts if each.answer == "contradicted"), None):
        return wrong
    is_proven = len(verdicts) == 1 and verdicts[0].answer == "supported"
    is_whole = len(split_statements(reference)) == 1 and len(statements[0].split()) * 2 > len(reference.split())
    return verdicts[0] if is_proven and is_whole else OPEN


def alternatives(reference: str) -> list[str]:
    """The alternatives in a reference: `1979/21 July 1979` has two; `1/2`, `km/h` and a web address are one each."""
    if re.search(r"^\s*\d{1,3}\s?/\s?\d{1,2}\s*$|\d\s?/\s?\d{1,2}/|\bkm/h|\band/or\b|://", reference):
        return [reference.strip()]
    return [*dict.fromkeys(way.strip() for way in reference.split("/") if any(map(str.isalnum, way)))]


def _keys(text: str) -> set[str]:
    return {token.key for token in read(text)}


def _compare(question: str, way: str, statements: Sequence[str]) -> Verdict:
    names = names_in([way, question, *statements])
    asked = {token.key for token in _words(question, names)}
    year = re.fullmatch(r"1\d{3}|20\d\d|21\d\d", way)
    expected = _words(f"in {way}", names)[1:] if year else _words(way, names)
    content = [token for token in expected if token.value is not None or token.text.lower() not in FUNCTION_WORDS]
    if not content or all(token.key in asked for token in content):
        return OPEN
    for statement in statements:
        if any(lexicon.excludes(token.key, word) for token in read(statement, names) for word in asked):
            return OPEN  # `It closed in 1990` does not say when it opened
        is_doubtful, was_doubtful = (_DOUBTS.search(fold(text).replace("'", "")) for text in (statement, way))
        is_longer = re.search(r"\b(?:and|,)\s", way) and re.search(rf"\w,\s+(?:and\s+)?{re.escape(way)}", statement)
        if is_longer:  # `A, B and C` is more than `B and C`
            return OPEN
        if _contains(_words(statement, names), expected) and (was_doubtful or not is_doubtful):
            return Verdict("supported", f"the answer says “{way}”")
    words = [token for text in statements for token in _words(text, names)]
    other = _replacement(content, words, asked) if len(words) <= _MAX_CLEAR_ANSWER else ""
    return Verdict("contradicted", f"the answer says “{other}” instead of “{way}”") if other else OPEN


def _words(text: str, names: frozenset[str]) -> list[Token]:
    """The tokens of a text without marks, names as single words, all words by their stems."""
    return [
        Token(word, stem(word.lower()), token.kind, token.value)
        for token in read(text, names)
        if token.kind != "mark"
        for word in ([token.text] if token.value is not None else token.text.split())
    ]


def _contains(words: Sequence[Token], expected: Sequence[Token]) -> bool:
    """Whether the words have all that is expected in one place, in its order."""
    size = len(expected)
    for start in range(len(words) - size + 1):
        around = [*words[max(start - 1, 0) : start], *words[start + size : start + size + 1]]
        # `New York` is not York, but `Marie Curie` is Curie.
        is_other = expected[0].text[:1].isupper() and any(token.key in _PARTS_OF_NAMES for token in around)
        if all(map(matches, words[start : start + size], expected)) and not is_other:
            return True
    return False


_PARTS_OF_NAMES = frozenset(
    map(stem, "new old west east north south papua junior brother sister husband wife son daughter".split())
)


_DOUBTS = re.compile(
    r"\b(?:not|no|never|nobody|neither|nor|without|\w+nt|cannot|or|may|might|could|perhaps|possibly|unless|except|unlike"
    r"|instead|rather|before|after|near|than|more|less|longer|shorter|north|south|east|west|although|despite|formerly|rumou?red|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)
"""Words with which a statement that has the reference may not give it as the answer."""


def _replacement(content: Sequence[Token], words: Sequence[Token], asked: set[str]) -> str:
    """The one other value or name that the answer gives in place of the reference; else empty."""
    reference = content[0].value
    if len(content) == 1 and reference is not None:
        values = {each.text: each.value for each in words if each.value is not None and each.key not in asked}
        given = {text: value for text, value in values.items() if value.kind == reference.kind}
        is_vague = reference.kind == "number" and any(each.kind == "limit" or each.key == "about" for each in words)
        is_other = len(given) == 1 and not is_vague and all(conflicts(each, reference) for each in given.values())
        return next(iter(given)) if is_other else ""
    if stem("where") in asked or any(token.value is not None or not token.text[:1].isupper() for token in content):
        return ""
    runs = groupby(words, key=lambda token: token.kind == "name" and token.key not in asked)
    names = {" ".join(token.text for token in run) for is_name, run in runs if is_name}
    is_shared = any(token.key[:4] == each.key[:4] for token in content for each in words)
    return next(iter(names)) if len(names) == 1 and not is_shared else ""
