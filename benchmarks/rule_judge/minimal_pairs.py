"""Generates minimal pairs from rows that people labelled as right: the same answer, and one with a single change.

    python benchmarks/rule_judge/minimal_pairs.py rows.jsonl > pairs.jsonl
    python benchmarks/rule_judge/minimal_pairs.py --generated 400 > pairs.jsonl

With `--generated` the rows themselves are generated from sentences with random values (`generated_rows.py`).
Rows with `context` and label `supported`, or with `reference` and label `correct`, are used; others are skipped.
Each pair is one row as it was (label as before) and one in which a number, a name, a date, a unit or a negation
differs, two values change places, or a word becomes its opposite (label `unsupported` or `incorrect`); with `small
talk` a greeting or an offer of help is added, and the answer stays right. A change is applied only if it makes the
answer wrong: the replacement must not be in the context, and in an answer with a reference only text of the reference
is changed. The same seed gives the same pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from generated_rows import generated_pairs

Row = dict[str, Any]
Change = tuple[int, int, str]
"""Start and end of the replaced text, and the replacement."""

PEOPLE = "Abernathy Castellanos Dubois Engelhardt Fitzwilliam Grigoriou Hallström Jankowski Kowalczyk Lindqvist".split()
PLACES = (
    "Bratislava Cincinnati Dortmund Gothenburg Helsinki Johannesburg Karachi Ljubljana Montevideo Nairobi Oslo".split()
)
MONTHS = "January February March April May June July August September October November December".split()
SPELLED = "two three four five six seven eight nine ten eleven twelve".split()
UNITS = (
    "seconds minutes hours days weeks months years decades centuries",
    "second minute hour day week month year decade century",
    "millimeters centimeters inches feet meters yards kilometers miles",
    "mm cm km mi",
    "mg kg lb oz",
    "milligrams grams kilograms pounds ounces tons",
    "ml liters gallons pints",
    "hundred thousand million billion trillion",
    "percent dollars euros",
    "KB MB GB TB",
    "Celsius Fahrenheit",
)
ANTONYMS = (
    "rose fell|increased decreased|raises lowers|before after|opened closed|largest smallest|highest lowest|first last"
    "|oldest youngest|north south|northern southern|east west|eastern western|won lost|more fewer|inside outside"
    "|early late|above below|longest shortest|male female|start end|began ended|public private|left right|up down"
    "|indoor outdoor|cold hot|hard soft|strong weak|most least|best worst|larger smaller|higher lower|always never"
)
SMALL_TALK = (
    ("", " Is there anything else I can help you with?"), ("Hello! ", ""), ("", " Let me know if anything is unclear."),
    ("Great question! ", ""), ("", " I hope this helps!"), ("Thanks for asking! ", " Have a nice day!"),
    ("Sure, I can help with that. ", ""), ("", " Feel free to ask if you need more details."),
)  # fmt: skip
AUXILIARIES = "is are was were can could will would should must may might has have had does do did".split()
NOT_NAMES = set(
    """I The A An It He She They We You This That These Those In On At Of For From By With And Or But If As Yes No Well
    Oh So There Here When Where Who What Which How Why My Your His Her Their Our Its Not Is Are Was Were Do Does Did
    Can Have Has Yeah Yep Sure Also Actually Definitely Absolutely Please Thank Thanks After Before During Since
    Although While Both January February March April May June July August September October November December Monday
    Tuesday Wednesday Thursday Friday Saturday Sunday One Two Three Four Five Six Seven Eight Nine Ten Some Many
    Most All Each Every According Based Sorry Hello Hi Ok Okay However Therefore Currently Today""".split()
)


def number_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Replace a number that is not part of a date by another one."""
    dated = [(start, end) for start, end, _ in date_changes(text, random.Random(0))]
    for match in re.finditer(r"(?<![\w.,/-])\d{1,9}(?:,\d{3})*(?:\.\d+)?(?![\w/-]|[.,]\d)", text):
        inside = any(start <= match.start() < end for start, end in dated)
        if not inside and not re.search(rf"(?:{'|'.join(MONTHS)})\s*,?\s*$", text[: match.start()], re.IGNORECASE):
            yield match.start(), match.end(), _other_number(match[0], random_source)
    for match in re.finditer(rf"\b(?:{'|'.join(SPELLED)})\b", text, re.IGNORECASE):
        other = random_source.choice([word for word in SPELLED if word != match[0].lower()])
        yield match.start(), match.end(), other


def _other_number(written: str, random_source: random.Random) -> str:
    """The number with one digit changed; a year stays a year."""
    places = [index for index, character in enumerate(written) if character.isdigit()]
    place = random_source.choice(places[1:] if len(places) == 4 and len(written) == 4 else places)
    choices = [digit for digit in "123456789" if digit != written[place]]
    return written[:place] + random_source.choice(choices) + written[place + 1 :]


def date_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Change the month, day or year of a date."""
    names = "|".join(MONTHS)
    for match in re.finditer(rf"\b({names})(\s+\d{{1,2}})?(\s*,?\s*\d{{4}})?\b", text, re.IGNORECASE):
        if match[2] or match[3] or match[1][0].isupper():
            others = [month for month in MONTHS if month.lower() != match[1].lower()]
            month = random_source.choice(others)
            month = month if match[1][0].isupper() else month.lower()
            yield match.start(1), match.end(1), month
        if match[2]:
            day = match[2].strip()
            yield match.end(2) - len(day), match.end(2), str((int(day) + random_source.randint(3, 20)) % 27 + 1)
    for match in re.finditer(r"\b(?:1[0-9]|20)\d\d(?![\d-]|,\d)\b", text):
        yield match.start(), match.end(), str(int(match[0]) - random_source.randint(1, 19))
    for match in re.finditer(r"\b\d{4}-\d{2}-(\d{2})\b", text):
        yield match.start(1), match.end(1), f"{(int(match[1]) + random_source.randint(3, 20)) % 27 + 1:02d}"


def name_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Replace a capitalized word that does not begin a sentence by another name."""
    for match in re.finditer(r"(?<![\w'’.-])[A-Z][a-z]{2,}(?![\w'’-])", text):
        before = text[: match.start()].rstrip(" \"'“‘(")
        if not before or before[-1] in ".!?:;\n•*" or match[0] in NOT_NAMES:
            continue
        place = bool(re.search(r"\b(?:in|at|from|to|near|of)\s+$", text[: match.start()]))
        yield match.start(), match.end(), random_source.choice(PLACES if place else PEOPLE)


def unit_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Replace the unit after a number by another one of the same kind."""
    for group in UNITS:
        names = group.split()
        pattern = rf"(?<=[\d\w])([ -]?)\b({'|'.join(names)})\b"
        for match in re.finditer(pattern, text):
            before = text[: match.start()].split()[-1:]
            if before and (before[0][-1:].isdigit() or before[0].lower() in SPELLED or before[0].lower() == "one"):
                others = [name for name in names if name != match[2]]
                yield match.start(2), match.end(2), random_source.choice(others)
    for match in re.finditer(r"(?<=\d)%", text):
        yield match.start(), match.end(), " kg"
    for match in re.finditer(r"[$€£](?=\d)", text):
        yield match.start(), match.end(), random_source.choice([sign for sign in "$€£" if sign != match[0]])


def negation_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Add or remove a `not` after an auxiliary verb."""
    for match in re.finditer(rf"\b({'|'.join(AUXILIARIES)})\b( not\b|n't\b| n't\b)?", text, re.IGNORECASE):
        if match[1] == "May" or (not match[2] and _already_negated(text, match.start())):
            continue
        if match[2]:
            yield match.start(2), match.end(2), ""
        elif text[match.end() : match.end() + 1] == " " and not text[match.end() :].lstrip().startswith(
            ("not ", "n't", "no ")
        ):
            yield match.end(1), match.end(1), random_source.choice([" not", " never"])
    for match in re.finditer(r"\b(has|have|is|are|was|were) no (?=[a-z])", text):
        yield match.start() + len(match[1]), match.end() - 1, ""
    for match in re.finditer(r"\bcannot\b", text):
        yield match.start(), match.end(), "can"


def _already_negated(text: str, position: int) -> bool:
    """Whether the sentence has a negation already, so that a second one would not negate it."""
    begin = max(text.rfind(mark, 0, position) for mark in ".!?;\n")
    sentence = re.split(r"[.!?;\n]", text[begin + 1 :], maxsplit=1)[0]
    return re.search(r"\b(?:no|not|never|none|nobody|nothing|neither|without|cannot)\b|n't", sentence, re.I) is not None


def antonym_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Replace a word by its opposite."""
    for pair in ANTONYMS.split("|"):
        for word, other in (pair.split(), pair.split()[::-1]):
            for match in re.finditer(rf"\b{word}\b", text):
                yield match.start(), match.end(), other


def swap_changes(text: str, random_source: random.Random) -> Iterator[Change]:
    """Swap two numbers of one sentence that have the same unit, or none."""
    number = r"(?<![\w.,/-])[$€£]?\d{1,9}(?:,\d{3})*(?:\.\d+)?%?(?![\w/-]|[.,]\d)"
    output = list(re.finditer(number, text))
    for one, other in pairwise(output):
        between = text[one.end() : other.start()]
        alike = re.sub(r"[\d.,]", "", one[0]) == re.sub(r"[\d.,]", "", other[0])
        range_ = re.fullmatch(r"\s*(?:-|–|to|and|or)\s*", between)
        if one[0] != other[0] and alike and not range_ and not re.search(r"[.!?;]\s", between):
            yield one.start(), other.end(), other[0] + between + one[0]


KINDS: dict[str, Callable[[str, random.Random], Iterator[Change]]] = {
    "number": number_changes,
    "name": name_changes,
    "date": date_changes,
    "unit": unit_changes,
    "negation": negation_changes,
    "swap": swap_changes,
    "antonym": antonym_changes,
}


def pairs(rows: list[Row], seed: int) -> Iterator[Row]:
    """The pairs of all rows that allow a change, with each kind of change at most once per row."""
    for number, row in enumerate(rows):
        wrong = {"supported": "unsupported", "correct": "incorrect"}.get(str(row.get("label")))
        if wrong is None or not isinstance(row.get("answer"), str):
            continue
        for kind, changes in KINDS.items():
            name = f"{row.get('id', number)}-{kind}"
            source = random.Random(f"{seed}-{name}")
            changed = _changed(row, changes, source, kind)
            if changed is not None:
                yield _pair(row, f"{name}-as-it-was", kind, row["answer"], str(row["label"]))
                yield _pair(row, f"{name}-changed", kind, changed, wrong)
        before, after = random.Random(f"{seed}-{row.get('id', number)}").choice(SMALL_TALK)
        talked = before + row["answer"].rstrip() + ("" if row["answer"].rstrip()[-1:] in ".!?" else ".") + after
        name = f"{row.get('id', number)}-small-talk"
        yield _pair(row, f"{name}-as-it-was", "small talk", row["answer"], str(row["label"]))
        yield _pair(row, f"{name}-added", "small talk", talked, str(row["label"]))


def _changed(
    row: Row, changes: Callable[[str, random.Random], Iterator[Change]], source: random.Random, kind: str
) -> str | None:
    """The answer with one change that makes it wrong, chosen at random among those possible."""
    answer = row["answer"]
    usable = [change for change in changes(answer, source) if _makes_wrong(row, change, kind)]
    if not usable:
        return None
    start, end, replacement = source.choice(usable)
    return re.sub(r" {2,}", " ", answer[:start] + replacement + answer[end:])


def _makes_wrong(row: Row, change: Change, kind: str) -> bool:
    start, end, replacement = change
    answer = row["answer"]
    source_text = str(row.get("context") or row.get("reference") or "")
    if kind == "negation":
        quoted = answer[:start].count('"') % 2 == 1 or answer[:start].count("“") > answer[:start].count("”")
        return not quoted and ("reference" not in row or _states_reference(row, start))
    if kind == "swap":
        return "reference" not in row
    if _has_word(source_text, replacement):
        return False
    if "reference" not in row:
        return True
    if kind == "unit":
        return _in_reference(row, [answer[start:end]])
    elsewhere = answer[:start] + " " + answer[end:] + " " + str(row.get("input", ""))
    return _in_reference(row, [answer[start:end]]) and not _has_word(elsewhere, answer[start:end])


def _in_reference(row: Row, words: list[str]) -> bool:
    """Whether every alternative of the reference has the changed word; otherwise the answer may still be right."""
    ways = [way for way in str(row["reference"]).lower().split("/") if way.strip()]
    return bool(words) and all(_has_word(way, words[0]) for way in ways)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word.strip())}(?!\w)", text, re.IGNORECASE) is not None


def _states_reference(row: Row, position: int) -> bool:
    """Whether the reference follows the negation in the same sentence, and occurs nowhere else."""
    answer = row["answer"]
    stop = re.search(r"[.!?;](?:\s|$)|, (?:and|but|while|which)", answer[position:])
    rest = answer[position : position + stop.start() if stop else len(answer)].lower()
    ways = [way.strip().lower() for way in str(row["reference"]).split("/") if way.strip()]
    others = answer.lower().replace(rest, "", 1)
    return any(way in rest for way in ways) and not any(way in others for way in ways)


def _pair(row: Row, name: str, kind: str, answer: str, label: str) -> Row:
    fields = {key: row[key] for key in ("context", "input", "reference") if key in row}
    return {"id": name, "kind": kind, **fields, "answer": answer, "label": label}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", type=Path, nargs="?", help="a JSONL file of labelled rows")
    parser.add_argument("--generated", type=int, default=0, help="number of pairs to generate from templates")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    output = list(generated_pairs(options.generated, options.seed)) if options.generated else []
    if options.rows:
        lines = options.rows.read_text(encoding="utf-8").splitlines()
        output += pairs([json.loads(line) for line in lines if line.strip()], options.seed)
    for row in output:
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
