"""The comparison of the arms of a run, for the terminal, Markdown, JSON and HTML.

Every form has the same parts: totals with their intervals on top, a row for each case with a cell for each arm, and a
sentence for each pair of arms. In the terminal a cell has as much as fits into the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from proctor.base.json_data import Json, to_json
from proctor.reporting.comparison_report import amount_text, difference_text, passes_text, ratio_text
from proctor.reporting.markdown.escaping import inline, row, table_head
from proctor.reporting.terminal.screen import Screen, cut_middle, display_width
from proctor.reporting.wording import plural
from proctor.results.comparison.arms import ArmCell, ArmComparison, ArmTable, ArmTotals, arm_tables
from proctor.results.comparison.comparison import Comparison, PassCount
from proctor.results.comparison.significance import Effect
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.statistics import Estimate

MAX_ROWS = 200
"""Maximum cases in a table; cases on which the arms differ come first."""
TERMINAL_WIDTH = 80
"""The width of the table if the width of the terminal is not known."""
MAX_NAME = 30
MIN_NAME = 12


def listed_rows(table: ArmTable, limit: int = MAX_ROWS) -> list[tuple[str, tuple[ArmCell | None, ...]]]:
    """The rows to show: cases on which the arms differ come first."""

    def is_equal(item: tuple[str, tuple[ArmCell | None, ...]]) -> bool:
        return len({None if cell is None else (cell.outcome, cell.passed, cell.trials) for cell in item[1]}) == 1

    return sorted(table.rows, key=is_equal)[:limit]


def passes_of(cell: ArmCell | None) -> str:
    """The passed trials of a cell: `4/5`."""
    return passes_text(None if cell is None else PassCount(cell.passed, cell.trials, cell.without_verdict))


def amounts_of(cell: ArmCell) -> list[str]:
    """Time and cost of a cell, as far as they are known."""
    known = (("duration_ms", cell.duration_ms), ("cost_usd", cell.cost_usd))
    return [amount_text(name, value) for name, value in known if value is not None]


def total_rows(table: ArmTable) -> list[tuple[str, list[str]]]:
    """The totals of each arm, line by line: pass rate, scores, time and cost, with their 95 % intervals."""
    lines = [("pass rate", [_rate_text(arm.pass_rate) for arm in table.arms])]
    names = dict.fromkeys(name for arm in table.arms for name in arm.evaluators)
    lines += [(name, [_score_text(arm.evaluators.get(name)) for arm in table.arms]) for name in names]
    resources: tuple[tuple[str, str, Callable[[ArmTotals], Effect | None]], ...] = (
        ("median time", "duration_ms", lambda arm: arm.duration_ms),
        ("cost per trial", "cost_usd", lambda arm: arm.cost_usd),
    )
    for title, resource, effect_of in resources:
        effects = [effect_of(arm) for arm in table.arms]
        if any(effect.value for effect in effects if effect is not None):
            lines.append((title, [_amount_interval(resource, effect) for effect in effects]))
    return lines


def _rate_text(rate: Estimate | None) -> str:
    return "none" if rate is None else f"{rate.mean:.0%} [{rate.low:.0%}, {rate.high:.0%}]"


def _score_text(score: Estimate | None) -> str:
    return "none" if score is None else f"{score.mean:.2f} [{score.low:.2f}, {score.high:.2f}]"


def _amount_interval(resource: str, effect: Effect | None) -> str:
    if effect is None:
        return "not known"
    text = amount_text(resource, effect.value)
    if math.isinf(effect.high):
        return text
    return f"{text} [{amount_text(resource, effect.low)}, {amount_text(resource, effect.high)}]"


def detail_texts(item: ArmComparison) -> list[str]:
    """The differences of a pair of arms with their intervals: pass rate, scores, time and cost."""
    comparison, details = item.comparison, []
    if comparison.difference is not None:
        effect = comparison.difference
        details.append(
            f"pass rate {100 * effect.value:+.0f} points [{100 * effect.low:+.0f}, {100 * effect.high:+.0f}]"
        )
    details += [f"{change.evaluator} {difference_text(change)}" for change in comparison.evaluators]
    names = {"duration_ms": "time", "cost_usd": "cost", "tokens": "tokens"}
    details += [
        f"{names[ratio.resource]} x{ratio_text(ratio)}" for ratio in comparison.resources if ratio.resource in names
    ]
    return details


def versions_text(table: ArmTable) -> str:
    """Which version each arm ran, if any of them is from git."""
    versions = [f"{arm.arm} is {arm.version}" for arm in table.arms if arm.version]
    others = [arm.arm for arm in table.arms if not arm.version]
    if versions and others:
        versions.append(f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} the working folder")
    return "; ".join(versions)


def print_arms(run: Run, screen: Screen) -> None:
    """Print a table for each suite, then the comparison of each pair of arms."""
    for table in arm_tables(run):
        width = min(screen.width or TERMINAL_WIDTH, 120)
        rows = listed_rows(table)
        cells = [[_cell_texts(cell) for cell in row_cells] for _, row_cells in rows]
        heads = [table.suite, *table.names]
        totals = total_rows(table)
        names = [table.suite, *(name for name, _ in totals), *(case_id for case_id, _ in rows)]
        name_width = max(MIN_NAME, min(MAX_NAME, max(map(display_width, names))))
        room = (width - name_width) // len(table.arms) - 2
        if any(len(text) > room for _, texts in totals for text in texts):  # too many arms for the intervals
            totals = [(name, [text.partition(" [")[0] for text in texts]) for name, texts in totals]
        level = next((at for at in range(3) if all(len(cell[at]) <= room for line in cells for cell in line)), 2)
        lines = [[name, *texts] for name, texts in totals]
        lines += [[case_id, *(cell[level] for cell in line)] for (case_id, _), line in zip(rows, cells, strict=True)]
        widths = [name_width, *(max(len(line[at]) for line in (heads, *lines)) for at in range(1, len(heads)))]
        widths = [widths[0], *(min(room, each) for each in widths[1:])]
        ellipsis = "…" if screen.unicode else "~"
        for number, line in enumerate([heads, *lines]):
            text = "  ".join(_padded(part, size, ellipsis) for part, size in zip(line, widths, strict=True)).rstrip()
            screen.line((text, "bold") if number == 0 else text)
            if number == len(totals):
                screen.line(("-" * min(width, sum(widths) + 2 * len(table.arms)), "dim"))
        if len(table.rows) > len(rows):
            screen.line((f"and {plural(len(table.rows) - len(rows), 'more case')}", "dim"))
        for text in (versions_text(table), table.correction):
            if text:
                screen.line((text, "dim"))
        for item in table.comparisons:
            sentence = item.sentence if screen.unicode else item.sentence.replace("→", "->")
            screen.line(sentence, hang=2)
            screen.line((f"  {'; '.join(detail_texts(item))}", "dim"), hang=4)
        screen.line()


def _padded(text: str, width: int, ellipsis: str) -> str:
    cut = text if display_width(text) <= width else cut_middle(text, width, ellipsis)
    return cut + " " * max(0, width - display_width(cut))


def _cell_texts(cell: ArmCell | None) -> tuple[str, str, str]:
    """A cell for the terminal, from long to short."""
    if cell is None:
        return "–", "–", "–"
    passes = passes_of(cell)
    amounts = amounts_of(cell)
    return " ".join([passes, *amounts]), " ".join([passes, *amounts[:1]]), passes


def write_arms_markdown(run: Run, out: TextIO) -> None:
    for table in arm_tables(run):
        out.write(f"## {inline(table.suite)}: {len(table.arms)} arms\n\n")
        for item in table.comparisons:
            out.write(f"- **{inline(item.sentence, 1000)}** {inline('; '.join(detail_texts(item)), 1000)}\n")
        out.writelines(f"- {inline(text)}\n" for text in (versions_text(table), table.correction) if text)
        out.write("\n" + table_head("Case", *(inline(name) for name in table.names)))
        for name, texts in total_rows(table):
            out.write(row(f"**{inline(name)}**", *(inline(text) for text in texts)))
        rows = listed_rows(table)
        for case_id, cells in rows:
            out.write(row(inline(case_id), *(inline(_markdown_cell(cell)) for cell in cells)))
        if len(table.rows) > len(rows):
            out.write(f"\nAnd {plural(len(table.rows) - len(rows), 'more case')}.\n")
        out.write("\n")


def _markdown_cell(cell: ArmCell | None) -> str:
    if cell is None:
        return "–"
    answer = cell.answer if len(cell.answer) <= 60 else f"{cell.answer[:59]}…"
    return " · ".join([f"{cell.outcome.value} {passes_of(cell)}", *amounts_of(cell), answer])


def arms_data(run: Run) -> list[Json]:
    """The tables as JSON; empty for a run with one arm."""
    return [
        {
            "suite": table.suite,
            "arms": [_totals_data(arm) for arm in table.arms],
            "cases": [
                {"id": case_id, "cells": [None if cell is None else _cell_data(cell) for cell in cells]}
                for case_id, cells in table.rows
            ],
            "comparisons": [_comparison_data(item) for item in table.comparisons],
        }
        for table in arm_tables(run)
    ]


def _totals_data(arm: ArmTotals) -> dict[str, Json]:
    return {
        "arm": arm.arm,
        "version": arm.version,
        "suite": arm.suite,
        "outcome": arm.outcome.value,
        "pass_rate": to_json(arm.pass_rate),
        "evaluators": {name: to_json(estimate) for name, estimate in arm.evaluators.items()},
        "cost_usd": _effect_data(arm.cost_usd),
        "duration_ms": _effect_data(arm.duration_ms),
    }


def _effect_data(effect: Effect | None) -> dict[str, Json] | None:
    """An amount with its interval; `null` for an end that is not known."""
    if effect is None:
        return None
    has_interval = math.isfinite(effect.high)
    low, high = (effect.low, effect.high) if has_interval else (None, None)
    return {"value": effect.value, "low": low, "high": high, "count": effect.count}


def _cell_data(cell: ArmCell) -> dict[str, Json]:
    return {
        "outcome": cell.outcome.value,
        "passed": cell.passed,
        "trials": cell.trials,
        "without_verdict": cell.without_verdict,
        "answer": cell.answer,
        "cost_usd": cell.cost_usd,
        "duration_ms": cell.duration_ms,
        "scores": dict(cell.scores),
    }


def _comparison_data(item: ArmComparison) -> dict[str, Json]:
    return {**_pair(item.comparison), "verdict": item.verdict, "sentence": item.sentence}


def agents_data(run: Run) -> list[Json]:
    """The tables in the form of earlier versions, which compare each further arm with the first one only."""
    return [
        {
            "suite": table.suite,
            "agents": list(table.names),
            "cases": [
                {
                    "id": case_id,
                    "passed": [None if cell is None else cell.passed for cell in cells],
                    "trials": [None if cell is None else cell.trials for cell in cells],
                }
                for case_id, cells in table.rows
            ],
            "comparisons": [_pair(item.comparison) for item in table.comparisons if item.before == table.names[0]],
        }
        for table in arm_tables(run)
    ]


def _pair(comparison: Comparison) -> dict[str, Json]:
    data = comparison.to_json()
    names = ("verdict", "sentence", "compared", "before_rate", "after_rate", "difference", "test", "counts")
    ends = {"before": comparison.before.agent, "after": comparison.after.agent}
    return ends | {name: data[name] for name in (*names, "evaluators", "resources")}


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell of the page."""

    outcome: Outcome | None
    passes: str
    answer: str
    amounts: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class ArmsView:
    """One suite that ran on several arms: a row per case, a column per arm."""

    suite: str
    arms: Sequence[str]
    totals: Sequence[tuple[str, Sequence[str]]]
    rows: Sequence[tuple[str, Sequence[CellView]]]
    more: int
    """Cases that are not listed."""
    statements: Sequence[tuple[Outcome, str, str]]
    """For each pair of arms: the outcome that decides the color, the sentence, and the differences."""
    notes: Sequence[str]
    href: str = ""
    """The page with all cases, if there is one."""


COLORS = {"better": Outcome.PASSED, "worse": Outcome.FAILED, "no difference shown": Outcome.SKIPPED}


def arms_view(
    tables: Iterable[ArmTable],
    *,
    limit: int = MAX_ROWS,
    first: int = 0,
    link: Callable[[str, str], str] | None = None,
    href: str = "",
) -> list[ArmsView]:
    """The tables of arms, cases on which they differ first, from the row `first` on.

    `link` makes the address of a case from the name of its suite and its id.
    """
    views = []
    for table in tables:
        rows = [
            (case_id, [_cell_view(cell, arm, case_id, link) for cell, arm in zip(cells, table.arms, strict=True)])
            for case_id, cells in listed_rows(table, first + limit)[first:]
        ]
        statements = [
            (COLORS.get(item.verdict, Outcome.ERROR), item.sentence, "; ".join(detail_texts(item)))
            for item in table.comparisons
        ]
        notes = [text for text in (versions_text(table), table.correction) if text]
        more = max(0, len(table.rows) - first - limit)
        views.append(ArmsView(table.suite, table.names, total_rows(table), rows, more, statements, notes, href))
    return views


def _cell_view(cell: ArmCell | None, arm: ArmTotals, case_id: str, link: Callable[[str, str], str] | None) -> CellView:
    if cell is None:
        return CellView(None, "–", "", "")
    address = "" if link is None else link(arm.suite, case_id)
    return CellView(cell.outcome, passes_of(cell), cell.answer, " · ".join(amounts_of(cell)), address)
