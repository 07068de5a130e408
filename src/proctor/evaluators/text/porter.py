"""Porter's stemmer with the extensions of NLTK, which the reference implementations of ROUGE and METEOR use.

A word loses its ending in steps: plurals, -ed and -ing, -y, derivations such as -ational, other endings, and a final e.
Each step requires that enough of the word remains, measured in vowel-consonant sequences (`_measure`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_IRREGULAR = {
    form: base
    for base, forms in {
        "sky": "sky skies",
        "die": "dying",
        "lie": "lying",
        "tie": "tying",
        "news": "news",
        "inning": "inning innings",
        "outing": "outing outings",
        "canning": "canning cannings",
        "howe": "howe",
        "proceed": "proceed",
        "exceed": "exceed",
        "succeed": "succeed",
    }.items()
    for form in forms.split()
}

_DERIVATIONS = tuple(
    rule.split(">")
    for rule in """ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous
    ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble
    fulli>ful logi>log""".split()
)
_ENDINGS = tuple(rule.split(">") for rule in "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>".split())
_REMNANTS = tuple(
    "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(),
)


def stem(word: str) -> str:
    """The stem of a word; `running` and `runs` share theirs."""
    return _cached_stem(word) if len(word) <= 48 else _stem(word)


def _stem(word: str) -> str:
    short = len(word) <= 2
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if short:
        return word
    word = _past_and_progressive(_plural(word))
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1]).endswith("c"):
        word = word[:-1] + "i"
    word = _derivation(word)
    word = _first_rule(word, _ENDINGS)
    word = _remnant(word)
    return _tidy(word)


_cached_stem = lru_cache(maxsize=1 << 16)(_stem)


def _shape(word: str) -> str:
    """A `c` for every consonant and a `v` for every vowel; a `y` after a consonant is a vowel."""
    shape: list[str] = []
    previous = "v"
    for letter in word:
        previous = "v" if letter in "aeiou" or (letter == "y" and previous == "c") else "c"
        shape.append(previous)
    return "".join(shape)


def _measure(word: str) -> int:
    """The number of vowel-consonant sequences, roughly the number of syllables."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """Whether it ends in a short syllable, after which a silent e belongs: `hop`, `fil`."""
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_progressive(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and "v" in _shape(word[: -len(suffix)]):
            return _restore_ending(word[: -len(suffix)])
    return word


def _restore_ending(word: str) -> str:
    """A word without `-ed` or `-ing`, spelled correctly again: `conflat` to `conflate`, `hopp` to `hop`."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1:] == word[-2:-1] and _shape(word).endswith("c"):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _derivation(word: str) -> str:
    while word.endswith("alli") and _measure(word[:-4]) > 0:
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _first_rule(word, _DERIVATIONS)


def _first_rule(word: str, rules: Iterable[list[str]]) -> str:
    """Apply the first rule whose suffix matches. It decides even if the rest of the word is too short to change."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _remnant(word: str) -> str:
    for suffix in _REMNANTS:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            removable = _measure(base) > 1 and (suffix != "ion" or base[-1] in "st")
            return base if removable else word
    return word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _ends_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
