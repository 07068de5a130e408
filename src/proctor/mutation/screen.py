"""What mutants say about suites, on a terminal: figures, remarks, survivors with the change marked, proposals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from proctor.base.masking import mask
from proctor.mutation.findings import EvaluatorFinding, Fate, MutationReport, SuiteFindings, Tried
from proctor.mutation.report import (
    explanation,
    grouped_proposals,
    mutant_title,
    rate_text,
    remarks,
    verdict_text,
)
from proctor.reporting.terminal.screen import Screen, Span, cells, one_line
from proctor.reporting.wording import counted

MOST_SURVIVORS = 8
MOST_CASES = 6
MOST_PROPOSALS = 4
USUAL_WIDTH = 80
WIDEST = 120
NAME = 30
"""Columns for the name of a case or an evaluator."""
STYLES = {0: "bold green", 1: "bold red"}


def show_mutation(
    report: MutationReport, screen: Screen, *, stored: str = "", verbose: bool = False, quiet: bool = False
) -> None:
    """Suite by suite, then the sentence."""
    width = min(screen.width or USUAL_WIDTH, WIDEST)
    screen = _shown_on(screen)
    if not quiet:
        for suite in report.suites:
            _show_suite(suite, screen, width, verbose=verbose)
        if stored:
            screen.line((f"seed {report.seed}; all mutants are in {stored}", "dim"))
    for line in _wrapped(verdict_text(report), width, ""):
        screen.line((line, STYLES.get(report.exit_code, "bold yellow")))


def _shown_on(screen: Screen) -> Screen:
    return screen if screen.unicode else _WithoutEllipsis(screen)


class _WithoutEllipsis:
    """A screen that cannot show what is not ASCII."""

    unicode = False

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.width = screen.width

    def line(self, *spans: Span, hang: int = 4) -> None:
        said = (s.replace("…", "...") if isinstance(s, str) else (s[0].replace("…", "..."), s[1]) for s in spans)
        self._screen.line(*said, hang=hang)


def _show_suite(suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool) -> None:
    counts = [(fate.value, len(suite.of_fate(fate))) for fate in Fate]
    told = ", ".join(f"{count:,} {word}" for word, count in counts if count)
    screen.line((suite.suite, "bold"), f"  {rate_text(suite.rate)}  {told}" if suite.tried else "")
    if suite.controls.broken:
        for line in _wrapped(f"BROKEN: {suite.controls.broken}", width, "  "):
            screen.line((line, "bold red"))
        _say(screen, "  --anyway makes mutants all the same", width, "dim")
    for text in remarks(suite):
        _say(screen, f"  {text}", width, "yellow")
    if suite.evaluators and suite.tried:
        _show_evaluators(suite.evaluators, screen)
    _show_cases(suite, screen, verbose=verbose)
    _show_mutants("survivors", suite.of_fate(Fate.SURVIVED), suite, screen, width, verbose=verbose)
    _show_mutants("unsettled", suite.of_fate(Fate.UNSETTLED), suite, screen, width, verbose=verbose)
    if verbose:
        _show_mutants("waived", suite.of_fate(Fate.WAIVED), suite, screen, width, verbose=True)
    _show_proposals(suite, screen, width, verbose=verbose)
    screen.line()


def _show_evaluators(items: Sequence[EvaluatorFinding], screen: Screen) -> None:
    screen.line()
    screen.line((f"  {'evaluator':<{NAME}} {'killed':>12}  {'share (95 %)':<24} alone", "dim"))
    for item in items:
        killed = f"{item.rate.killed:,} of {item.rate.total:,}"
        name = _fitted(item.evaluator + ("" if item.gates else " (informs)"), NAME)
        style = "yellow" if item.is_vacuous else ""
        screen.line((f"  {name} {killed:>12}  {rate_text(item.rate):<24} {item.alone:>5,}", style))


def _show_cases(suite: SuiteFindings, screen: Screen, *, verbose: bool) -> None:
    """Those that let something through, the weakest first."""
    weak = [(case, rate) for case, rate in suite.cases if verbose or rate.killed < rate.total]
    if not weak:
        return
    screen.line()
    screen.line((f"  {'case':<{NAME}} {'killed':>12}  share (95 %)", "dim"))
    shown = weak if verbose else weak[:MOST_CASES]
    for case, rate in shown:
        killed = f"{rate.killed:,} of {rate.total:,}"
        screen.line(f"  {_fitted(case, NAME)} {killed:>12}  {rate_text(rate)}")
    if len(weak) > len(shown):
        screen.line((f"  and {counted(len(weak) - len(shown), 'more case')} (-v shows all)", "dim"))


def _show_mutants(
    title: str, items: Sequence[Tried], suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool
) -> None:
    if not items:
        return
    screen.line()
    screen.line((f"  {title}", "bold"))
    shown = items if verbose else items[:MOST_SURVIVORS]
    for item in shown:
        _say(screen, f"  {mutant_title(item)}", width, "")
        screen.line((_cut(f"    - {mask(item.mutant.before)}", width), "red"))
        screen.line((_cut(f"    + {mask(item.mutant.after)}", width), "green"))
        if note := mask(item.note) or explanation(item, suite):
            screen.line((_cut(f"    {note}", width), "dim"))
    if len(items) > len(shown):
        screen.line((f"  and {len(items) - len(shown):,} more (-v shows all)", "dim"))


def _show_proposals(suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool) -> None:
    if not suite.proposals:
        return
    screen.line()
    screen.line(("  what to add, as lines of the native format", "bold"))
    proposals = grouped_proposals(suite)
    shown = proposals if verbose else proposals[:MOST_PROPOSALS]
    for place, text in shown:
        _say(screen, f"  {place}", width, "dim")
        for line in text.rstrip("\n").split("\n"):
            screen.line((f"    {line}", "cyan"))
    if len(proposals) > len(shown):
        screen.line((f"  and {counted(len(proposals) - len(shown), 'more proposal')} (-v shows all)", "dim"))


def _say(screen: Screen, text: str, width: int, style: str) -> None:
    indent = " " * (len(text) - len(text.lstrip()))
    for line in _wrapped(text.strip(), width, indent):
        screen.line((line, style))


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        one_line(text), width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=True
    ) or [""]


def _fitted(text: str, columns: int) -> str:
    """The text in exactly so many columns."""
    words = one_line(text)
    while cells(words) > columns:
        words = f"{words[:-2]}…"
    return words + " " * (columns - cells(words))


def _cut(text: str, width: int) -> str:
    """One line, as long as the terminal is wide."""
    words = one_line(text)
    return words if cells(words) <= width else f"{words[: width - 3]}..."
