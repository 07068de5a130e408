"""Ids of cases, made from text and unique in a suite."""

from __future__ import annotations

import hashlib
import re

from proctor.base.json_data import Json, to_text


def slug(text: str, longest: int | None = 60) -> str:
    """`"Asks for a refund!"` as `asks-for-a-refund`; empty if the text has no letters or digits."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].rstrip("-")


MAX_ID = 60


def id_from(value: Json) -> str:
    """An id for a case with this input: its words; for long text or other data, its beginning and six hex digits."""
    text = value if isinstance(value, str) else to_text(value)
    words = slug(text, longest=None)
    if isinstance(value, str) and words and len(words) <= MAX_ID:
        return words
    mark = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{slug(text, MAX_ID - 20) or 'case'}-{mark}"


class UniqueIds:
    """Hands out each id once; an id that is taken gets `-2`, `-3`, ... at its end."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def preview(self, name: str) -> str:
        """The id that `claim` would return."""
        number = self._last.get(name, 1)
        candidate = name if number == 1 else f"{name}-{number}"
        while candidate in self._taken:
            number += 1
            candidate = f"{name}-{number}"
        self._last[name] = number
        return candidate

    def claim(self, name: str) -> str:
        """`name`, or with a number at its end if that is taken."""
        unique = self.preview(name)
        self._taken.add(unique)
        return unique
