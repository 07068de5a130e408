"""Whether an answer says the same as a reference, given the question.

An answer agrees if one of its statements contains the reference, word by word and value by value, nothing there denies
or hedges it, and what stands around it makes it neither a part of something longer nor the answer to another question;
or if each of the two proves the other. It disagrees if the reference is one value (a number, a date, a name) and the
answer gives another one of its type instead; not of a place, which has several names and lies in larger ones. Otherwise
the judge cannot tell: a right answer may use other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from proctor.judging.rule_judge.claims import declines, makes_claim, split_statements, without_courtesy
from proctor.judging.rule_judge.grammar import is_verb
from proctor.judging.rule_judge.lexicon import KINDS, PRONOUNS, VERBS, excludes, stem
from proctor.judging.rule_judge.proof import Verdict, judge_claims
from proctor.judging.rule_judge.reading import Token, conflicts, matches, names_in, read

OPEN = Verdict("cannot tell", "the answer may say it in other words")
_JOINTS = frozenset("and but per s &".split())
"""Beside one of these, the reference is a part of something longer: a list, a rate, what belongs to it."""
_OTHER_PLACES = frozenset(map(stem, "new north south east west northern southern eastern western sea".split()))
"""`South Sudan` is not Sudan."""
_OTHER_ROLES = frozenset("of for from with against after behind than".split())
"""`A pupil of Ada wrote it` does not say that Ada did, nor does `he beat Ada` say that she won."""
_EDGE = Token("", "", "mark")
"""What comes before the first and after the last word of a statement."""
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
        verdict = Verdict("supported" if is_same else "contradicted", f"the answer says “{reply[1]}”")
        return verdict if _goes_with(reply[1].lower(), answer[reply.end() :], question) else OPEN
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


def _goes_with(reply: str, rest: str, question: str) -> bool:
    """Whether what follows a yes or no only repeats the question: not `Yes, unless it rains`, `No, it is safe`."""
    names = names_in([question, rest])
    asked, said = _words(question, names), _words(without_courtesy(rest), names)
    keys = {token.key for token in asked}
    is_echo = all(token.key in keys or token.kind in ("function", "negation") for token in said)
    denials = sum(token.kind == "negation" for token in said)
    is_denied = any(token.kind == "negation" for token in asked)
    return not said or (is_echo and denials == (reply == "no") and not is_denied)


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
    topic = _words(question, names)
    asked = {token.key for token in topic}
    is_year = re.fullmatch(r"1\d{3}|20\d\d|21\d\d", way)
    expected = _words(f"in {way}", names)[1:] if is_year else _words(way, names)
    content = [token for token in expected if token.kind != "function"]
    if all(token.key in asked or (len(token.text) == 1 and token.text.isalpha()) for token in content):
        return OPEN
    said = [_words(text, names, marks=True) for text in statements]
    clear = [words for words in said if not _is_hedged(words, asked)]
    proofs = [] if _has_rival(topic, expected, said) else clear
    for before, after in (around for words in proofs for around in _surroundings(words, expected)):
        if _is_whole(before, after, asked) and _is_about(topic, before, after):
            return Verdict("supported", f"the answer says “{way}”")
    other = _replacement(content, [token for words in said for token in words], asked) if clear == said else ""
    return Verdict("contradicted", f"the answer says “{other}” instead of “{way}”") if other else OPEN


def _has_rival(topic: Sequence[Token], expected: Sequence[Token], said: Sequence[Sequence[Token]]) -> bool:
    """Whether the answer has another value of the reference's type, or a statement that answers without the reference.

    `The shop opens at 9 on Sundays and at 8 on other days`, `Sydney is the capital. Canberra is smaller.`
    """
    asked = {token.key for token in topic}
    content = {token.key for token in topic if token.is_content}
    reference = expected[0].value if len(expected) == 1 else None
    values = [token.value for words in said for token in words if token.value is not None and token.key not in asked]
    if reference is not None and any(each.unit == reference.unit and conflicts(each, reference) for each in values):
        return True
    others = [words for words in said if next(_surroundings(words, expected), None) is None]
    return bool(content) and any(content <= {token.key for token in words} for words in others)


def _is_hedged(words: Sequence[Token], asked: set[str]) -> bool:
    """Whether a word denies or limits the statement, so that the value in it may not be the answer.

    A word with a capital may be one of a title: `The Night Before`.
    """
    new = [token for token in words if token.key not in asked]
    small = {token.text for token in new} | {token.text.lower() for token in new[:1]}
    return not small.isdisjoint(KINDS["hedges"]) or any(token.kind == "negation" for token in words)


def _surroundings(words: Sequence[Token], part: Sequence[Token]) -> Iterator[tuple[Sequence[Token], Sequence[Token]]]:
    """The words before and after each place that has this part, whatever marks are in it."""
    places = [index for index, token in enumerate(words) if token.kind != "mark"]
    for start in range(len(places) - len(part) + 1):
        run = places[start : start + len(part)]
        if all(map(matches, (words[index] for index in run), part)):
            yield words[: run[0]], words[run[-1] + 1 :]


def _is_whole(before: Sequence[Token], after: Sequence[Token], asked: set[str]) -> bool:
    """Whether the reference, between these words, is the answer and not a part of something longer.

    A name or a number beside it makes it another one (`Northern Ireland`, `Martin Luther King`), and so does a noun
    (`carbon dioxide`).
    """
    last, first = [_EDGE, *before][-1], [*after, _EDGE][0]
    if (first.key in _JOINTS or first.kind == "period") and not _starts_clause(after[1:]):
        return False
    if last.key in _JOINTS | _OTHER_PLACES or last.kind in ("number", "id"):
        return False
    if first.key == "," and _goes_on(after[1:]):
        return False
    is_noun = first.kind in ("name", "number", "id") or (first.kind == "word" and not _is_verb(first))
    if is_noun and first.key not in asked:
        return False
    return "who" not in asked or last.key not in _OTHER_ROLES | VERBS


def _is_about(topic: Sequence[Token], before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether the words around the reference can answer the question: `Ada came last` does not say who won."""
    beside = [token for token in (*before[-3:], *after[:2]) if token.is_content and _is_verb(token)]
    if any(token.key == "who" for token in topic) and not {token.key for token in beside} <= {t.key for t in topic}:
        return False  # she produced it, and somebody else directed it
    asked = {token.key for token in topic if token.is_content}
    said = {token.key for token in (*before, *after) if token.is_content}
    is_other = any(excludes(key, other) for key in said - asked for other in asked - said)
    is_pronoun = any(token.key in ("it", "they") for token in before[:1])
    return not is_other and (not said or not asked or is_pronoun or not said.isdisjoint(asked))


def _goes_on(tokens: Sequence[Token]) -> bool:
    """Whether a list or the name of a place goes on after a comma: `, oxygen`, `, Texas`; not `, the capital`."""
    first, second = [*tokens, _EDGE, _EDGE][:2]
    is_item = not first.article and (first.is_content or first.key in _JOINTS)
    return is_item and (second.kind == "mark" or second.key in _JOINTS)


def _starts_clause(tokens: Sequence[Token]) -> bool:
    """Whether something else is said after `and`: `and is found in …`, `and its lyrics are …`."""
    first = [*tokens, _EDGE][0]
    return _is_verb(first) or first.key in PRONOUNS or first.article in ("its", "their")


def _is_verb(token: Token) -> bool:
    return any(map(is_verb, read(token.text.lower())))


def _words(text: str, names: frozenset[str], *, marks: bool = False) -> list[Token]:
    """The tokens of a text, names as single words, all words by their stems; without marks unless they are wanted."""
    return [
        Token(word, stem(word.lower()), token.kind, token.value, "" if number else token.article)
        for token in read(text, names)
        if marks or token.kind != "mark"
        for number, word in enumerate([token.text] if token.value is not None else token.text.split())
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
    is_short_form = any(_initials(name) & _initials(" ".join(token.text for token in content)) for name in names)
    return next(iter(names)) if len(names) == 1 and not is_shared and not is_short_form else ""


def _initials(name: str) -> set[str]:
    """The name, and the first letters of its words: the UK is the United Kingdom."""
    return {name.lower(), "".join(word[0] for word in name.lower().split())}
