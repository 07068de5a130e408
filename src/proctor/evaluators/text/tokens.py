"""Cuts text into the words that lexical scores count, in scripts with and without spaces."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from proctor.evaluators.text.porter import stem

_IDEOGRAPHS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CLUSTERED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai and Lao, Myanmar, Khmer: a base character and its marks are one unit, and words have no spaces between them."""

_LATIN_WORD = re.compile(r"[a-z0-9]+")
_NOT_TYPESCRIPT_WORD = re.compile(r"[^a-z0-9_\s]")
_MTEVAL_RULES = (
    (re.compile(r"""([!"#$%&()*+/:;<=>?@\[\\\]^_`{|}~])"""), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def unicode_words(text: str, *, stems: bool) -> list[str]:
    """Lower-case words of any script without punctuation; ideographs, kana, hangul and Thai clusters one by one.

    Words of plain Latin letters lose their endings if `stems`, unless they have three letters or fewer; words with
    accents keep both the accents and the ending.
    """
    if text.isascii():
        words = _LATIN_WORD.findall(text.lower())
    else:
        normal = unicodedata.normalize("NFKC", text).lower()
        words = spaced(normal).translate(_WORD_CHARACTERS).split()
    if not stems:
        return words
    return [stem(word) if len(word) > 3 and word.isascii() else word for word in words]


def typescript_words(text: str, *, stems: bool) -> list[str]:
    """Lower-case words of ASCII letters, digits and underscores, as JavaScript's `\\w` has them."""
    words = _NOT_TYPESCRIPT_WORD.sub(" ", text.lower()).split()
    return [stem(word) if len(word) > 3 else word for word in words] if stems else words


def mteval_tokens(text: str) -> list[str]:
    """Words and punctuation as the `mteval-v13a` script cuts them, which is what BLEU scores are reported with."""
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in line:
        for entity, character in _ENTITIES:
            line = line.replace(entity, character)
    line = f" {line} "
    for pattern, replacement in _MTEVAL_RULES:
        line = pattern.sub(replacement, line)
    return line.split()


def spaced(text: str) -> str:
    """The text with spaces around each unit of the scripts that have none between words."""
    return text if text.isascii() else _unspaced_units().sub(r" \g<0> ", text)


@cache
def _unspaced_units() -> re.Pattern[str]:
    characters = [chr(code) for first, last in _CLUSTERED for code in range(first, last + 1)]
    marks = "".join(character for character in characters if unicodedata.category(character).startswith("M"))
    bases = "".join(character for character in characters if unicodedata.category(character)[0] in "LN")
    return re.compile(f"[{_IDEOGRAPHS}]|[{bases}][{marks}]*")


class _WordCharacters(dict[int, str]):
    """For `str.translate`: letters, digits and the marks on them stay, all else is a space. Fills itself on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kept = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = found = character if kept else " "
        return found


_WORD_CHARACTERS = _WordCharacters()
