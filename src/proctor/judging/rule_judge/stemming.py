"""A light stemmer: removes endings that change the form of a word and keeps those that change its meaning."""

from __future__ import annotations

from functools import lru_cache

_FORMS = """write wrote written; begin began begun; buy bought; sell sold; win won; lose lost; grow grew grown;
rise rose risen; fall fell fallen; give gave given; take took taken taking; make made making; go went gone goes;
come came coming; become became becoming; know knew known; see saw seen; sing sang sung; run ran running; build built;
send sent; spend spent; pay paid; say said; hold held; lead led; leave left; find found; think thought; teach
taught; bring brought; speak spoke spoken; break broke broken; choose chose chosen choosing; drive drove driven
driving; show shown; get got gotten getting; keep kept; meet met; tell told; die died dies dying; lie lay lying;
child children; man men; woman women; person people persons; foot feet; tooth teeth; have has had having; do
does did done; big bigger biggest; use used using uses; news news; series series; species species"""
_IRREGULAR = {form: group.split()[0] for group in _FORMS.split(";") for form in group.split()[1:]}
"""Each irregular form with the word it is a form of; the first of a group is that word."""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The form that `ships`, `shipped` and `shipping` share; names and short words stay as they are."""
    known = _IRREGULAR.get(word)
    if known is not None:
        return _without_e(known)
    if len(word) <= 3 or not word.isascii():
        return word
    return _without_e(_verb_form(_plural(word)))


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _verb_form(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and any(letter in "aeiouy" for letter in base):
            doubled = base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    if word.endswith("ly") and len(word) > 5:
        return word[:-2]
    return word


def _without_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=1 << 14)
def root(word: str) -> str:
    """What a place and its people share: `canada` and `canadian`, `america` and `american`; a stem otherwise."""
    for ending in ("ians", "ian", "ans", "an", "ese", "ia"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word.rstrip("aeiou") if len(word.rstrip("aeiou")) >= 4 else word
