"""Ids made from text, each given to one case only."""

from __future__ import annotations

import re


def slug(text: str, longest: int | None = 60) -> str:
    """`"Asks for a refund!"` as `asks-for-a-refund`; empty when there is nothing to make one of."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].rstrip("-")


class UniqueIds:
    """Hands out each id once; a taken one gets `-2`, `-3`, and so on at its end."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def preview(self, wanted: str) -> str:
        """The id that `claim` would give."""
        number = self._last.get(wanted, 1)
        candidate = wanted if number == 1 else f"{wanted}-{number}"
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}-{number}"
        self._last[wanted] = number
        return candidate

    def claim(self, wanted: str) -> str:
        given = self.preview(wanted)
        self._taken.add(given)
        return given
