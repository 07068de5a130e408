"""The tables of `words.toml`, and what follows from them: the stem of a word, which words exclude each other.

Stems are made by rule, not looked up: endings are cut off, and irregular forms and synonyms are replaced.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources

_TABLES = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
KINDS = {name: frozenset(words.split()) for name, words in _TABLES["kinds"].items()}
_GROUPS = {name: [group.split() for group in table.split("|")] for name, table in _TABLES["groups"].items()}

ARTICLES, HARMLESS, NEGATIONS, PRONOUNS = (KINDS[name] for name in ("articles", "harmless", "negations", "pronouns"))
PREPOSITIONS, CONDITIONS, RELATIONS = (KINDS[name] for name in ("prepositions", "conditions", "relations"))
ATTRIBUTIONS, SPLITTERS, LINKS = (KINDS[name] for name in ("attributions", "splitters", "links"))
LIMITS, ABBREVIATIONS, MONEY = (KINDS[name] for name in ("limits", "abbreviations", "money"))
FUNCTION_WORDS = ARTICLES | HARMLESS | NEGATIONS | PRONOUNS | PREPOSITIONS | CONDITIONS | RELATIONS | KINDS["function"]
"""Words without content."""
_RANKS: dict[str, dict[str, int]] = _TABLES["ranks"]
MODALS, QUANTIFIERS, SPELLED, SCALES = (_RANKS[name] for name in ("modals", "quantifiers", "numbers", "scales"))
COMPLEMENTS = {word: group[0] for group in _GROUPS["complements"] for word in group[1:]}
PHRASES = (
    {phrase: into for into, phrases in _TABLES["phrases"].items() for phrase in phrases.split("|")}
    | {word: f"not {opposite}" for word, opposite in COMPLEMENTS.items()}
    | {f"not {word}": opposite for word, opposite in COMPLEMENTS.items()}
)
ALTERNATIVES, SYNONYMS = _GROUPS["alternatives"], _GROUPS["synonyms"]
UNITS = {
    name + plural: (dimension, float(entry.partition("=")[2]))
    for dimension, entries in _TABLES["units"].items()
    for entry in entries.split(";")
    for name in entry.partition("=")[0].split()
    for plural in ("", "s")
}
"""Each way to write a unit, with its dimension and its size in the base unit."""
UNITS |= {code: (code, 1.0) for code in MONEY}
MONTHS, WEEKDAYS = (_TABLES["kinds"][name].split() for name in ("months", "weekdays"))
SPELLINGS = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in _TABLES["spellings"]["patterns"]]
COURTESIES: dict[str, list[str]] = _TABLES["courtesies"]
"""Patterns of what claims nothing: greetings, offers, remarks, statements about the speaker, refusals."""
_IRREGULAR: dict[str, str] = {form: group[0] for group in _GROUPS["irregular"] for form in group[1:]}
PAST_FORMS = frozenset(group[1] for group in _GROUPS["irregular"] if len(group) == 3)
"""Forms that are the past and no participle: `took`, `wrote`."""


def stem(word: str) -> str:
    """The form that `ships`, `shipped` and `shipping` share."""
    return verb_key(word).partition("+")[0]


def is_bare(word: str) -> bool:
    """Whether a word has no ending: `hold`, not `holds`, `holding` or `held`."""
    return "+" not in verb_key(word) and not word.endswith("s")


@lru_cache(maxsize=1 << 16)
def verb_key(word: str) -> str:
    """The key of a word: its stem, with `+ed` or `+ing` for those forms, since tense and voice change a meaning."""
    if word in _IRREGULAR:
        return _canonical(_IRREGULAR[word]) + "+ed"
    if len(word) <= 3 or not word.isascii():
        return _CANONICAL.get(word, word)
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) > 2 and any(vowel in base for vowel in "aeiouy"):
            return _canonical(base) + "+" + ending
    if word.endswith(("ies", "sses", "shes", "ches", "xes", "zes", "oes")):
        return _canonical(word[:-2])
    return _canonical(word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word)


def _canonical(base: str) -> str:
    """The first synonym without a final e or a doubled consonant, which come and go with endings; `i` is `y`."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls":
        base = base[:-1]
    if len(base) > 3 and base.endswith("e"):
        base = base[:-1]
    base = base[:-1] + "y" if len(base) > 3 and base.endswith("i") else base
    return _CANONICAL.get(base, base)


_CANONICAL: dict[str, str] = {}
_CANONICAL |= {_canonical(word): _canonical(group[0]) for group in SYNONYMS for word in group[1:]}


COST = stem("cost")
"""The key of `costs`, and of `is` before an amount of money."""
VERBS = frozenset(map(stem, KINDS["verbs"]))
SYMMETRIC = KINDS["symmetric"] | {*map(stem, KINDS["symmetric"])}
MEASURES = [{*map(stem, group)} for group in _GROUPS["measures"]]
_FORMS = [{*group, *map(verb_key, group)} for group in ALTERNATIVES]
_EXCLUSIVE = frozenset((one, other) for group in _FORMS for one in group for other in group if one != other)


def excludes(one: str, other: str) -> bool:
    """Whether two keys are opposites or alternatives, so that only one of them can be true."""
    base, _, form = one.partition("+")
    other_base, _, other_form = other.partition("+")
    return (one, other) in _EXCLUSIVE or (form == other_form and (base, other_base) in _EXCLUSIVE)


def is_english(text: str) -> bool:
    """Whether a text can be English: not if words of other languages or with accents outnumber the English ones."""
    words = [word for word in re.findall(r"[^\W\d_]+", text.lower()) if word not in KINDS["loans"]]
    foreign = sum(word in KINDS["foreign"] or not word.isascii() for word in words)
    return not foreign or sum(word in KINDS["english"] for word in words) > foreign
