"""Changes whole sentences and lists of a text: cuts it off, drops or adds a sentence, drops or adds an item.

As in `text_changes.py`, each function yields one `Edit` for every place. A sentence that claims nothing, such as an
offer of help, may be dropped without harm, so it is left alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from proctor.judging.rule_judge.claims import makes_claim
from proctor.mutation.text_changes import (
    NUMBER,
    Edit,
    change_number,
    change_unit,
    insert_negation,
    number_value,
    remove_negation,
    replace_all,
    use_antonym,
)

INVENTED_SENTENCES = (
    "This also costs 49 dollars extra.",
    "Please note that this offer ends tomorrow at noon.",
    "Anyone under 26 gets it for half the price.",
)
INVENTED_ITEM = "a notarized copy of Form 27"
_SENTENCE_END = re.compile(r"(?<=[.!?…])[ \t]+(?=[^\sa-z])|[ \t]*\n+[ \t]*")
_BULLET = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_ITEM = r"[^,.;:!?\n]{1,80}?"
_SERIES = re.compile(
    rf"(?<=[:\w]) (?P<first>{_ITEM}), (?P<middle>(?:{_ITEM}, )*)(?P<last>{_ITEM}),? (?:and|or) "
    r"(?P<final>[^,.;:!?\n]{1,60})"
)
"""`A, B and C`. The first item may have the beginning of its sentence before it, so it is never dropped."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences and lines of a text begin and end."""
    ends = [match.span() for match in _SENTENCE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    return [
        (a, b) for a, b in zip(starts, [*(start for start, _ in ends), len(text)], strict=True) if text[a:b].strip()
    ]


def truncate(text: str, rng: random.Random) -> Iterator[Edit]:
    """The text is cut after about half of its words, and in the middle of its last sentence."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < 4:
        return
    count = rng.randint(len(words) // 3, len(words) // 2)
    yield Edit(words[max(1, count) - 1].end(), len(text), "")
    start = sentences(text)[-1][0]
    last = sum(word.start() >= start for word in words)
    yield Edit(words[len(words) - last + last // 2 - 1].end(), len(text), "")


def drop_sentence(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each sentence that claims something is dropped, if there are several."""
    spans = sentences(text)
    if len(spans) < 2:
        return
    for number, (start, end) in enumerate(spans):
        if makes_claim(text[start:end]):
            following = spans[number + 1][0] if number + 1 < len(spans) else len(text)
            before = spans[number - 1][1] if number and number + 1 == len(spans) else start
            yield Edit(before, max(end, following), "")


def add_sentence(text: str, others: Sequence[str], rng: random.Random) -> Iterator[Edit]:
    """A wrong sentence is added at the end, at the beginning, and between each two sentences.

    At the end it contradicts the answer, is taken from `others` (the answers to other cases), or is made up.
    """
    spans = sentences(text)
    if not spans:
        return
    start, end = rng.choice(spans)
    wrong = [*islice(_contradictions(text[start:end], rng), 1), *_other_sentences(text, others, rng)]
    wrong.append(rng.choice(INVENTED_SENTENCES))
    at = len(text.rstrip())
    for sentence in wrong:
        yield Edit(at, at, f" {sentence}")
    for begin, _ in spans:
        yield Edit(begin, begin, f"{rng.choice(INVENTED_SENTENCES)} ")


def _contradictions(sentence: str, rng: random.Random) -> Iterator[str]:
    """The sentence with something changed."""
    changes = (change_number, remove_negation, insert_negation, use_antonym, change_unit)
    for edit in chain.from_iterable(change(sentence, rng) for change in changes):
        if not edit.is_equivalent(sentence):
            yield f"Correction: {edit.apply_to(sentence)}"


def _other_sentences(text: str, others: Sequence[str], rng: random.Random) -> list[str]:
    """A sentence of another answer that this one does not have."""
    if not others:
        return []
    other = rng.choice(others)
    found = [other[start:end] for start, end in sentences(other[:2000])]
    return [sentence for sentence in found if sentence not in text and makes_claim(sentence)][:1]


def drop_item(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each item of each list is dropped: a line with a bullet or a number, or a part of `A, B and C`."""
    for start, end in _bullets(text):
        yield Edit(start, end, "")
    for match in _SERIES.finditer(text):
        yield Edit(match.end("last"), match.end("final"), "")
        yield Edit(match.start("last") - 2, match.end("last"), "")
        for item in re.finditer(rf"{_ITEM}, ", match["middle"]):
            at = match.start("middle")
            yield Edit(at + item.start(), at + item.end(), "")


def add_item(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each list gets an item that does not belong there."""
    bullets = _bullets(text)
    for number, (start, end) in enumerate(bullets):
        is_last = number + 1 == len(bullets) or bullets[number + 1][0] != end
        if is_last:
            mark = _BULLET.match(text, start)
            prefix = mark.group() if mark else "- "
            line_end = "" if text[:end].endswith("\n") else "\n"
            yield Edit(end, end, f"{line_end}{prefix}{INVENTED_ITEM}\n")
    for match in _SERIES.finditer(text):
        yield Edit(match.start("last"), match.start("last"), f"{INVENTED_ITEM}, ")


def _bullets(text: str) -> list[tuple[int, int]]:
    """Where the lines with bullets begin and end, with their line ends, if there are at least two."""
    spans = []
    for match in _BULLET.finditer(text):
        line_end = text.find("\n", match.end())
        spans.append((match.start(), len(text) if line_end < 0 else line_end + 1))
    return spans if len(spans) > 1 else []


def drop_results(text: str, values: set[str]) -> Iterator[Edit]:
    """The sentences that contain one of these numbers or names are removed."""
    parts = re.split(r"(?<=[.!?])(?=\s)|(?=\n)", text)
    remaining = [part for part in parts if not _mentions(part, values)]
    if len(remaining) < len(parts):
        yield replace_all(text, "".join(remaining).strip() or "I have looked that up for you.")


def _mentions(text: str, values: set[str]) -> bool:
    if any(number_value(match.group()) in values for match in re.finditer(NUMBER, text)):
        return True
    return any(len(value) > 2 and not value[0].isdigit() and value in text for value in values)
