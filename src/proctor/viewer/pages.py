"""What a page function takes and returns, and the addresses of pages.

To add a page, write a module called `*_page.py` with a function that takes a `Visit` and returns a `Page`, and with
`PAGES`, which says at what address it is; and a template for it in `templates/`. `app.py` finds the module by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.viewer.sources import Source, Sources


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    sources: Sources
    path: Mapping[str, str] = field(default_factory=dict)
    """The variable parts of the address, such as the id of a run."""
    query: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    """The token that a form needs to save something."""
    grader: str = ""
    """The name under which the person grades."""

    def run(self) -> tuple[Source, Run]:
        """The run in the address; raises `NotFound`."""
        return self.sources.find(self.path["run"])

    def number(self, name: str) -> int | None:
        """A value of the query as a number, or `None` if it is not one."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: a template of `viewer/templates`, and its variables."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.SKIPPED
    """Decides the color of the icon."""
    live: str = ""
    """The address of the events that report changes to the page, if it can change."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """An address, the function that returns its page, and its entry in the menu."""

    path: str
    make: Callable[[Visit], Page]
    menu: str = ""
    """Its name in the menu; empty if it is not in the menu."""
    menu_place: int = 0
    """Its position in the menu."""
    section: str = ""
    """The address of the menu entry that the page belongs to, if it has none itself."""


def run_address(run: str) -> str:
    return f"/runs/{quote(run, safe='')}"


def case_address(run: str, suite: str, case: str, trial: int | None = None) -> str:
    """The address of a case, or of one trial of it; ids may hold halves of surrogate pairs."""
    pairs = [("suite", suite), ("case", case), *([("trial", str(trial))] if trial is not None else [])]
    return f"{run_address(run)}/case?{urlencode(pairs, errors='surrogatepass')}"


def arms_address(run: str, page: int = 1) -> str:
    """The address of the page that has the arms of a run side by side."""
    return f"{run_address(run)}/arms" + (f"?page={page}" if page > 1 else "")


def compare_address(before: str, after: str, suite: str = "", case: str = "") -> str:
    """The address that compares two runs, or both conversations of one case."""
    pairs = [("a", before), ("b", after), *([("suite", suite), ("case", case)] if case else [])]
    return f"/compare?{urlencode(pairs, errors='surrogatepass')}"


def suites_text(suites: Sequence[SuiteInfo]) -> str:
    return ", ".join(dict.fromkeys(info.name for info in suites)) or "no suite"
