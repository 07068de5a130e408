"""Says where a value differs from what was expected of it, and how, in as few words as a reader needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from proctor.base.json_data import Json, show
from proctor.base.records import record

DIFFERENCES_TOLD = 4
"""Of one value, how many differences a reason names."""
SHOWN = 60
"""Characters of a value in a reason."""


@record
class Difference:
    """One place at which a value is not as it should be."""

    path: str
    """`payment[1].amount`; nothing where it is the value itself."""
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def first_of(differences: Iterable[Difference]) -> str | None:
    """The first differences as one reason; `None` of none."""
    told = list(islice(differences, DIFFERENCES_TOLD + 1))
    if not told:
        return None
    more = ["and more"] if len(told) > DIFFERENCES_TOLD else []
    return ", ".join([*map(str, told[:DIFFERENCES_TOLD]), *more])


def not_expected(actual: Mapping[str, Json], known: Iterable[str], path: str) -> Iterator[Difference]:
    """The keys of an object that no rule names."""
    for key in actual:
        if key not in known:
            yield Difference(key_path(path, key), f"not expected, got {literal(actual[key])}")


def key_path(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def changed(wanted: Json, got: Json) -> str:
    """`5 → 55`: what was expected, and what came instead; of long texts, the place at which they differ."""
    if isinstance(wanted, str) and isinstance(got, str) and max(len(wanted), len(got)) > SHOWN:
        start = next(
            (i for i, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b), min(map(len, (wanted, got)))
        )
        wanted, got = _around(wanted, start), _around(got, start)
    return f"{literal(wanted)} → {literal(got)}"


def _around(text: str, place: int) -> str:
    first = max(0, place - SHOWN // 3)
    return f"{'…' if first else ''}{text[first : first + SHOWN - 2]}{'…' if len(text) > first + SHOWN - 2 else ''}"


def literal(value: Json) -> str:
    """A value short enough for a sentence; text is quoted, so that `'7'` and `7` look different."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else f"{value[: SHOWN - 1]}…")
    return show(value, SHOWN)
