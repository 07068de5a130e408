"""Changes one detail of a text to something wrong: a digit, a date, a unit, a name, a negation, a condition.

Each function takes a text and yields one `Edit` for every place where the text has something of that kind, in the order
of the text. Random numbers choose only what is written there instead, so the same seed gives the same edits.
`sentence_changes.py` has the changes of whole sentences and lists, `TEXT_CHANGES` in `mutants.py` the table of all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from proctor.base.keywords import searchable_words

T = TypeVar("T")

NUMBER = r"\d+(?:[.,]\d+)*"
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTH = "|".join(MONTHS)
DATE = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}\b"
    rf"|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?(?:{_MONTH})(?: \d{{4}})?\b|\b(?:{_MONTH}) \d{{4}}\b"
)
_DATE_PART = rf"{_MONTH}|\d+"
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty "
    "seventy eighty ninety hundred"
).split()
_NUMBER_WORD = rf"(?<![\w-])(?:{'|'.join(_NUMBER_WORDS[1:])})(?![\w-])"
"""`one` is left out: it is more often a pronoun than a number."""

_UNIT_PAIRS = """
    month year, months years, day week, days weeks, hour minute, hours minutes, second minute, seconds minutes,
    ms s, km miles, m km, cm m, mm cm, feet metres, kg pounds, g kg, mg g, µg mg, ml l, litres gallons,
    liters gallons, KB MB, MB GB, GB TB, °C °F, degrees percent, percent degrees, dollars euros, euros dollars,
    cents euros, pence pounds, francs euros, rupees dollars, yen euros, USD EUR, EUR USD, GBP USD, CHF EUR, JPY USD,
    INR USD, CAD EUR, AUD EUR, CNY USD, kW MW, kWh MWh, km/h mph, mph km/h, am pm, pm am, a.m. p.m., p.m. a.m.,
    thousand million, million billion, billion million, % ‰, tons kg, tonnes kg, nights weeks, meters feet,
    metres feet, miles km, pounds kg, year month, years months, week day, weeks days, minute hour, minutes hours,
    TB GB, l ml, °F °C, hourly daily, daily weekly, weekly monthly, monthly yearly, yearly monthly, annually monthly
"""
_UNITS: Mapping[str, str] = dict(tuple(pair.split()) for pair in _UNIT_PAIRS.split(","))  # type: ignore[misc]
_UNIT_WORDS = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_AFTER_NUMBER = "|".join(
    rf"(?<={before})"
    for before in (
        r"\d",
        *(rf"{word}[ -]" for word in (r"\d", "million", "billion", "thousand", "per", "every", "each")),
    )
)
_CODES = "USD|EUR|GBP|CHF|JPY|INR|CAD|AUD|CNY"
UNIT = (
    rf"(?P<sign>[$€£¥](?=\s?\d))|(?P<before>\b(?:{_CODES})(?=\s?\d))"
    rf"|(?:{_AFTER_NUMBER})(?P<unit>{_UNIT_WORDS})(?!\w)"
    rf"|\b(?P<period>hourly|daily|weekly|monthly|yearly|annually)\b"
)

_NAME_WORD = r"(?<![\w'’-])[A-ZÀ-ÖØ-Þ][\w'’&-]*[^\W_]"
_NAMES = ("Northfield", "Lisbon", "Kestrel", "Marlowe")
_NOT_NAMES = frozenset(
    """a about after all also although an and any are as at because before both but by can could do does done each
    either every for from further given had has have he her here his how however i i'm i've i'll if in instead
    is it its it's just let may might more most must my neither next no none not note now of on once one only or
    our out over per please shall she should since so some sorry such thank thanks that the their then there
    these they this those though to too under unless until upon very was we what when where which while who why
    will with within without would yes yet you you'll your""".split()
)
_NEGATION = (
    r"\bcannot\b|\bcan['’]t\b|\bwon['’]t\b|\b\w+n['’]t\b|\bnot |\bnever |\bno longer |\b[Nn]o(?=[ ,])|^Yes\b|\bnon-"
)
_OPPOSITES: Mapping[str, str] = {
    "cannot": "can",
    "can't": "can",
    "won't": "will",
    "not ": "",
    "never ": "always ",
    "no longer ": "still ",
    "no": "some",
    "No": "Yes",
    "Yes": "No",
    "non-": "",
}
_AFFIRMATION = (
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|has|have|had|does|do|did)\b(?! (?:not|never)\b)"
)
_ANTONYM_PAIRS = """
    open closed, before after, earlier later, early late, more less, more fewer, most least, higher lower, high low,
    above below, over under, up down, left right, north south, east west, increase decrease, increased decreased,
    increases decreases, rise fall, rose fell, rises falls, included excluded, includes excludes,
    including excluding, with without, allowed forbidden, permitted prohibited, required optional,
    mandatory optional, approved rejected, accepted declined, valid invalid, active inactive, available unavailable,
    eligible ineligible, possible impossible, refundable non-refundable, free chargeable, safe dangerous,
    true false, correct incorrect, enabled disabled, passed failed, success failure, successful unsuccessful,
    complete incomplete, minimum maximum, at least at most, less than more than, up to more than, always never,
    everyone nobody, first last, same different, inside outside, import export, buy sell, bought sold, buys sells,
    lend borrow, lent borrowed, win lose, won lost, start end, starts ends, begin finish, begins ends, began ended,
    arrive depart, arrives departs, arrival departure, cheap expensive, faster slower, fast slow,
    large small, larger smaller, longer shorter, long short, new old, newer older, hot cold, warm cool,
    morning evening, credit debit, income expense, gain loss, profit loss, positive negative, public private,
    internal external, paid unpaid, signed unsigned, known unknown, likely unlikely, legal illegal, better worse,
    best worst, add remove, added removed, accept refuse, accepts refuses, agree disagree, agrees disagrees,
    shipped cancelled, delivered lost, delayed on time, married single, ascending descending, horizontal vertical,
    upgrade downgrade, deposit withdrawal, both neither, decline rise, declined rose, succeeded failed,
    acquired sold, hired fired, joined left, opened closed, opens closes, raised lowered, gained lost
"""
_HEDGE = (
    r"\b(?:may|might|could)\b|\b(?:usually|normally|typically|generally|often|sometimes|probably|possibly|perhaps|"
    r"approximately|roughly|nearly|almost|likely|partly|temporarily|provisionally|apparently|estimated|expected|only|"
    r"mostly|mainly|up to|at least|at most|(?:about|around) (?=[$€£]?\d)|as far as (?:I|we) know,?|so far|"
    r"subject to \w+) ?"
)
_CONDITION = (
    r"(?:,? ?\b(?:unless|if|provided(?: that)?|except|as long as|only if|only when|when|until|after|before|subject to)"
    r" [^,.;:!?\n]+)"
)
_ROLE_PAIRS = """
    buyer seller, sender recipient, sender receiver, employer employee, landlord tenant, lender borrower,
    customer supplier, client provider, teacher student, doctor patient, parent child, manager employee, host guest,
    plaintiff defendant, insurer insured, driver passenger, payer payee, debtor creditor, parents children,
    employers employees, landlords tenants, customers suppliers, buyers sellers, we you, he she
"""
_MODAL_HEDGES = frozenset(("may", "might", "could"))


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of the characters from `start` to `end` by `new`."""

    start: int
    end: int
    new: str

    def apply_to(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]

    def is_equivalent(self, text: str) -> bool:
        """Whether the text means the same afterwards: `249.50` and `249.5`, `Yes` and `yes`."""
        start = max(text.rfind(" ", 0, self.start), text.rfind("\n", 0, self.start)) + 1
        end = next((at for at in range(self.end, len(text)) if text[at].isspace()), len(text))
        window = text[start:end]
        return same_text(window, Edit(self.start - start, self.end - start, self.new).apply_to(window))


class SeededRandom:
    """Reproducible random choices, separate for each kind of mutant, so that one kind does not influence another."""

    def __init__(self, *place: object) -> None:
        self._place = "/".join(map(str, place))
        self._rng = random.Random()  # noqa: S311  not a secret

    def for_kind(self, kind: str) -> random.Random:
        """The random numbers for one kind of mutant; use them before asking for the next kind."""
        self._rng.seed(f"{self._place}/{kind}")
        return self._rng


TextChange = Callable[[str, random.Random], Iterable[Edit]]


def same_text(one: str, other: str) -> bool:
    """Whether two texts are the same but for case, white space, the notation of numbers and a full stop at the end."""
    return _normalized(one) == _normalized(other)


def _normalized(text: str) -> str:
    words = searchable_words(text, True).strip(" .,;:!?")
    return re.sub(NUMBER, lambda match: number_value(match.group()), words)


def replace_all(text: str, new: str) -> Edit:
    return Edit(0, len(text), new)


def _numbers(text: str) -> list[re.Match[str]]:
    """The numbers that are not part of a date."""
    dates = [match.span() for match in re.finditer(DATE, text)]
    return [m for m in re.finditer(NUMBER, text) if not any(start <= m.start() < end for start, end in dates)]


def _digits(match: re.Match[str]) -> list[int]:
    return [match.start() + at for at, sign in enumerate(match.group()) if sign.isdigit()]


def change_number(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each digit of each number becomes another digit, and each number word another word."""
    for match in _numbers(text):
        places = _digits(match)
        for at in places:
            lowest = 1 if at == match.start() and len(places) > 1 else 0
            yield Edit(at, at + 1, rng.choice([str(d) for d in range(lowest, 10) if str(d) != text[at]]))
    for match in re.finditer(_NUMBER_WORD, text, re.IGNORECASE):
        others = [word for word in _NUMBER_WORDS[1:11] if word != match.group().lower()]
        yield Edit(match.start(), match.end(), _like(match.group(), rng.choice(others)))


def insert_digit(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each number gets one more digit, in front and at the end: 5 becomes 15 and 57."""
    for match in _numbers(text):
        for at in (match.start(), match.end()):
            yield Edit(at, at, rng.choice("123456789"))


def delete_digit(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each number of several digits loses one of them: 15 becomes 5 and 1."""
    for match in _numbers(text):
        places = _digits(match)
        for at in places if len(places) > 1 else ():
            if text[at : at + 1] != text[at + 1 : at + 2]:  # either of two equal digits gives the same
                yield Edit(at, at + 1, "")


def change_date(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each part of each date becomes another: the day, the month, the year; and each weekday."""
    for match in re.finditer(DATE, text):
        for part in re.finditer(_DATE_PART, match.group()):
            new = _other_date_part(part.group(), rng)
            yield Edit(match.start() + part.start(), match.start() + part.end(), new)
    for match in re.finditer(rf"\b(?:{'|'.join(WEEKDAYS)})(?=s?\b)", text):
        yield Edit(match.start(), match.end(), rng.choice([day for day in WEEKDAYS if day != match.group()]))


def _other_date_part(part: str, rng: random.Random) -> str:
    if not part.isdigit():
        return rng.choice([month for month in MONTHS if month != part])
    value = int(part)
    if len(part) == 4:
        return str(value + rng.choice((-1, 1)))
    return f"{value - 1 if value > 11 else value + 1:0{len(part)}d}"


def change_unit(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each unit or currency becomes another: months become years, dollars become euros."""
    for match in re.finditer(UNIT, text):
        if match["sign"]:
            yield Edit(match.start("sign"), match.end("sign"), "$" if match["sign"] != "$" else "€")
            continue
        group = next(name for name in ("before", "unit", "period") if match[name])
        yield Edit(match.start(group), match.end(group), _UNITS[match[group]])


def _names(text: str) -> list[re.Match[str]]:
    """Capitalized words that look like names: not months, weekdays, units or words that begin sentences."""
    known = {*MONTHS, *WEEKDAYS, *_UNITS}
    return [
        match
        for match in re.finditer(_NAME_WORD, text)
        if match.group() not in known and match.group().replace("’", "'").lower() not in _NOT_NAMES
    ]


def change_name(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each capitalized word becomes another name."""
    for match in _names(text):
        yield Edit(match.start(), match.end(), rng.choice([name for name in _NAMES if name != match.group()]))


def remove_negation(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each negation is removed."""
    for match in re.finditer(_NEGATION, text):
        word = match.group().replace("’", "'")
        yield Edit(match.start(), match.end(), _OPPOSITES.get(word, word.removesuffix("n't")))


def insert_negation(text: str, rng: random.Random) -> Iterator[Edit]:
    """A negation is inserted after each auxiliary verb that has none, or before a few words without any verb."""
    for match in re.finditer(_AFFIRMATION, text):
        yield Edit(match.start(), match.end(), "cannot" if match.group() == "can" else f"{match.group()} not")
    if re.fullmatch(r"\W*[^\W\d_]+(?: [^\W\d_]+){0,2}\W*", text) and not re.search(f"{_AFFIRMATION}|{_NEGATION}", text):
        yield Edit(0, 0, "not ")


def _pair_table(pairs: str) -> dict[str, str]:
    """Each word and its counterpart, in both directions; the first pair of a word counts."""
    table: dict[str, str] = {}
    for pair in pairs.split(","):
        words = pair.split()
        half = len(words) // 2  # `delayed on time` is one word and two
        one, other = " ".join(words[:half]), " ".join(words[half:])
        table.setdefault(one, other)
        table.setdefault(other, one)
    return table


def _word_pattern(words: Iterable[str]) -> str:
    return rf"(?<![\w-])(?:{'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})(?![\w-])"


_ANTONYMS = _pair_table(_ANTONYM_PAIRS)
_ANTONYM = _word_pattern(_ANTONYMS)
_ROLES = _pair_table(_ROLE_PAIRS)
_ROLE = _word_pattern(_ROLES)


def use_antonym(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each word with an opposite becomes its opposite."""
    for match in re.finditer(_ANTONYM, text, re.IGNORECASE):
        yield Edit(match.start(), match.end(), _like(match.group(), _ANTONYMS[match.group().lower()]))


def _like(old: str, new: str) -> str:
    """The new word, with a capital if the old one has it."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def swap_entities(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each two neighboring names, numbers or dates change places: who bought whom, which price is whose."""
    dates = [match.span() for match in re.finditer(DATE, text)]
    for spans in (_name_spans(text), [match.span() for match in _numbers(text)], dates):
        for (start, end), (other_start, other_end) in pairwise(spans):
            swapped = text[other_start:other_end] + text[end:other_start] + text[start:end]
            yield Edit(start, other_end, swapped)


def _name_spans(text: str) -> list[tuple[int, int]]:
    """Where names begin and end; words that follow each other are one name."""
    spans: list[tuple[int, int]] = []
    for match in _names(text):
        if spans and text[spans[-1][1] : match.start()] == " ":
            spans[-1] = (spans[-1][0], match.end())
        else:
            spans.append(match.span())
    return spans


def swap_roles(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each role becomes its counterpart (buyer and seller, you and we), and `from … to …` changes direction."""
    for match in re.finditer(_ROLE, text, re.IGNORECASE):
        yield Edit(match.start(), match.end(), _like(match.group(), _ROLES[match.group().lower()]))
    for match in re.finditer(r"\b(from)( [^.;:!?\n]{1,60}? )(to) ", text, re.IGNORECASE):
        yield Edit(match.start(), match.end(), f"{_like(match[1], 'to')}{match[2]}from ")


def drop_hedge(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each hedge or condition is dropped: `may` becomes `will`, `usually` and `unless …` go."""
    for match in re.finditer(_HEDGE, text):
        yield Edit(match.start(), match.end(), "will" if match.group() in _MODAL_HEDGES else "")
    for match in re.finditer(_CONDITION, text):
        yield Edit(match.start(), match.end(), "")
    for match in re.finditer(
        r"(?:(?<=^)|(?<=[.!?\n] ))(?:If|Unless|When|Once|After|Before|Until) [^,.;!?\n]+, (\w)", text
    ):
        yield Edit(match.start(), match.end(), match[1].upper())


def change_word(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each word becomes another."""
    for match in re.finditer(r"[^\W\d_]{2,}", text):
        yield Edit(match.start(), match.end(), rng.choice([name for name in _NAMES if name != match.group()]))


def change_value(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each word becomes another, and gets one wrong letter: `shipped` becomes `skipped` or the like."""
    yield from change_word(text, rng)
    for match in re.finditer(r"[^\W\d_]{3,}", text):
        at = match.start() + len(match.group()) // 2
        yield Edit(at, at + 1, rng.choice([letter for letter in "aeklnorst" if letter != text[at].lower()]))


def number_value(digits: str) -> str:
    """A number in one spelling: the same for `1,498.50`, `1498.5` and the number 1498.5."""
    bare = re.sub(r",(?=\d{3}(?:\D|$))", "", digits)
    return bare.rstrip("0").rstrip(".") if "." in bare else bare


ID = re.compile(r"(?=.*\d)[\w.:/@-]+")


def change_id(text: str, rng: random.Random) -> Iterator[Edit]:
    """Each digit of an id becomes another, and the id gets and loses a digit."""
    if not ID.fullmatch(text):
        return
    places = [index for index, sign in enumerate(text) if sign.isdigit() and sign.isascii()]
    for at in places:
        yield Edit(at, at + 1, rng.choice([d for d in "123456789" if d != text[at]]))
    if places:
        yield Edit(places[-1] + 1, places[-1] + 1, rng.choice("123456789"))
        yield Edit(places[-1], places[-1] + 1, "")


def evenly(items: Sequence[T], count: int, rng: random.Random) -> list[T]:
    """At most `count` of the items, at even distances, in their order; the first distance is random."""
    if len(items) <= count:
        return list(items)
    offset = rng.random()
    return [items[int((number + offset) * len(items) / count)] for number in range(count)]
