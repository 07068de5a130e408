"""What a page function gets and gives, and the addresses of pages.

To add a page, write a module called `*_page.py` with a function that takes a `Visit` and returns a `Page`, and with
`PAGES`, which says at what address it is; and a template for it in `templates/`. `app.py` finds the module by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from proctor.results.run import Outcome, Run, SuiteInfo
from proctor.viewer.sources import Source, Sources


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    sources: Sources
    path: Mapping[str, str] = field(default_factory=dict)
    """The parts of the address that vary, such as the id of a run."""
    query: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    """What a form that writes has to carry."""
    grader: str = ""
    """Under what name the person grades."""

    def run(self) -> tuple[Source, Run]:
        """The run that the address names; raises `NotFound`."""
        return self.sources.find(self.path["run"])

    def number(self, name: str) -> int | None:
        """A number in the query, if it is one."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: a template of `viewer/templates`, and what it gets."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.SKIPPED
    """Gives the icon its colour."""
    live: str = ""
    """The address of the events that tell of changes to the page, if it can change."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """An address, the function that makes its page, and where the menu leads to it."""

    path: str
    make: Callable[[Visit], Page]
    menu: str = ""
    """Its name in the menu, if it is there."""
    menu_place: int = 0
    """The menu is in the order of these numbers."""
    section: str = ""
    """The address in the menu that the page belongs to, if it is not there itself."""


def run_address(run: str) -> str:
    return f"/runs/{quote(run, safe='')}"


def case_address(run: str, suite: str, case: str, trial: int | None = None) -> str:
    """Where a case of a run is shown; halves of surrogate pairs survive the way."""
    pairs = [("suite", suite), ("case", case), *([("trial", str(trial))] if trial is not None else [])]
    return f"{run_address(run)}/case?{urlencode(pairs, errors='surrogatepass')}"


def compare_address(before: str, after: str, suite: str = "", case: str = "") -> str:
    """Where two runs, or both conversations of one case, stand beside each other."""
    pairs = [("a", before), ("b", after), *([("suite", suite), ("case", case)] if case else [])]
    return f"/compare?{urlencode(pairs, errors='surrogatepass')}"


def suites_text(suites: Sequence[SuiteInfo]) -> str:
    return ", ".join(dict.fromkeys(info.name for info in suites)) or "no suite"
