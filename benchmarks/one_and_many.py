"""A contender with one case and with many: what it takes to start, what a case adds, how much memory it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measuring import Contender, Cost, compare, measure
from table import Row


@dataclass(frozen=True, slots=True)
class OneAndMany:
    """The same work for one case and for many."""

    title: str
    one: Contender
    many: Contender


@dataclass(frozen=True, slots=True)
class Spent:
    """What both sizes of a contender took."""

    title: str
    cases: int
    one: Cost
    many: Cost

    @property
    def case_ms(self) -> float:
        """CPU milliseconds of one more case; not a number if so few cases drown in the noise."""
        difference = (self.many.cpu - self.one.cpu) * 1000
        return difference / (self.cases - 1) if difference > 0 else float("nan")

    def told(self, what: str, *more: str) -> Row:
        spent = (
            f"{self.case_ms:.2f} ms a case",
            f"{self.one.cpu:.2f} s to start with one case",
            f"{self.many.peak_kb / 1024:.0f} MB at most",
        )
        return Row(f"- {self.cases} {what}: {self.title}", ", ".join([*spent, *more]))

    def against(self, other: Spent, what: str) -> list[Row]:
        start, memory = self.one.cpu / other.one.cpu, self.many.peak_kb / other.many.peak_kb
        return [
            self.case_against(other, what),
            _less(f"{what} / {other.title}: CPU to start", start),
            _less(f"{what} / {other.title}: peak memory", memory),
        ]

    def case_against(self, other: Spent, what: str) -> Row:
        return _less(f"{what} / {other.title}: CPU a case", self.case_ms / other.case_ms)


def compare_both(contenders: Sequence[OneAndMany], cases: int, rounds: int) -> dict[str, Spent]:
    """The best of both sizes by title. One case is enough to warm up: it loads all that many cases need."""
    for contender in contenders:
        measure(contender.one)
    costs = compare([size for it in contenders for size in (it.one, it.many)], rounds, warm_up=False)
    return {it.title: Spent(it.title, cases, costs[it.one.name], costs[it.many.name]) for it in contenders}


def _less(what: str, ratio: float) -> Row:
    return Row(what, f"{ratio:.2g}x", "less than 1x", ratio < 1)
