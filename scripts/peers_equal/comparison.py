"""What a comparison with an original consists of: inputs, differences, and the rows of the page that explain them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers_equal.environments import ROOT, Environment

MISSING = "(no result)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One input on which Proctor and the original differ."""

    name: str
    original: Any
    ours: Any
    row: str = ""
    """The first cell of the row of the page that explains it, or nothing if it should not be."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of a number of inputs."""

    what: str
    count: int
    differences: tuple[Difference, ...] = ()
    disappeared: tuple[str, ...] = ()
    """The inputs that should differ and do not."""

    @property
    def documented(self) -> list[Difference]:
        return [difference for difference in self.differences if difference.row]

    @property
    def unexplained(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.row]


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool that Proctor is compatible with."""

    name: str
    """The name of its page, docs/NAME.md."""
    packages: tuple[str, ...]
    """What is installed; the first is the original, whose version is printed."""
    compare: Callable[[Environment], Iterable[Comparison]]
    with_proctor: bool = True
    """Whether Proctor is installed in the same environment."""

    @property
    def page(self) -> Path:
        return ROOT / "docs" / f"{self.name}.md"


def compare_items(
    what: str,
    original: Mapping[str, Any],
    ours: Mapping[str, Any],
    documented: Mapping[str, str] | None = None,
    equal: Callable[[Any, Any], bool] = lambda one, other: one == other,
) -> Comparison:
    """Compare results by the name of their input.

    `documented` has the row of the page for each input that should differ, `equal` says when two results are the same.
    """
    documented = documented or {}
    differences: list[Difference] = []
    disappeared: list[str] = []
    names = list(dict.fromkeys([*original, *ours]))
    for name in names:
        theirs, mine = original.get(name, MISSING), ours.get(name, MISSING)
        if not equal(theirs, mine):
            differences.append(Difference(name, theirs, mine, documented.get(name, "")))
        elif name in documented:
            disappeared.append(name)
    disappeared += [name for name in documented if name not in names]
    return Comparison(what, len(names), tuple(differences), tuple(disappeared))


def first_cells(page: Path) -> set[str]:
    """The first cells of the rows of all tables of a page."""
    rows = re.findall(r"^\|([^|\n]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {row.strip() for row in rows}
