"""Prints the mutation report on a terminal: surviving kinds first, then figures, remarks and suggestions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from proctor.base.masking import mask
from proctor.mutation.findings import EvaluatorFinding, MutantResult, MutantStatus, MutationReport, SuiteFindings
from proctor.mutation.report import (
    counts_text,
    explanation,
    grouped_proposals,
    kill_rate_text,
    kind_proposal_text,
    kind_title,
    mutant_title,
    remarks,
    surviving_kinds,
    verdict_text,
)
from proctor.reporting.terminal.screen import Screen, Span, display_width, escape_line
from proctor.reporting.wording import plural

MAX_KINDS = 6
"""Surviving kinds with an example and a suggestion; the others are named."""
MAX_UNDECIDED = 8
MAX_CASES = 6
MAX_PROPOSALS = 4
DEFAULT_WIDTH = 80
MAX_WIDTH = 120
NAME_WIDTH = 30
"""Columns for the name of a case or an evaluator."""
EXIT_CODE_STYLES = {0: "bold green", 1: "bold red"}


def print_mutation(
    report: MutationReport, screen: Screen, *, stored: str = "", verbose: bool = False, quiet: bool = False
) -> None:
    """Print the report suite by suite, then the result; `stored` is the path of the file with all mutants."""
    width = min(screen.width or DEFAULT_WIDTH, MAX_WIDTH)
    screen = _ascii_if_needed(screen)
    if not quiet:
        for suite in report.suites:
            _print_suite(suite, screen, width, verbose=verbose)
        if stored:
            screen.line((f"seed {report.seed}; all mutants are in {stored}", "dim"))
    for line in _wrap(verdict_text(report), width, ""):
        screen.line((line, EXIT_CODE_STYLES.get(report.exit_code, "bold yellow")))


def _ascii_if_needed(screen: Screen) -> Screen:
    return screen if screen.unicode else _AsciiScreen(screen)


class _AsciiScreen:
    """A screen that replaces the ellipsis, for a terminal that has only ASCII."""

    unicode = False

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.width = screen.width

    def line(self, *spans: Span, hang: int = 4) -> None:
        ascii_spans = (s.replace("…", "...") if isinstance(s, str) else (s[0].replace("…", "..."), s[1]) for s in spans)
        self._screen.line(*ascii_spans, hang=hang)


def _print_suite(suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool) -> None:
    figures = f"  {kill_rate_text(suite.rate)}  {counts_text(suite)}" if suite.results else ""
    screen.line((suite.suite, "bold"), figures)
    if suite.controls.broken:
        for line in _wrap(f"BROKEN: {suite.controls.broken}", width, "  "):
            screen.line((line, "bold red"))
        _print_wrapped(screen, "  use --anyway to mutate it nevertheless", width, "dim")
    _print_kinds(suite, screen, width, verbose=verbose)
    for text in remarks(suite):
        _print_wrapped(screen, f"  {text}", width, "yellow")
    if suite.evaluators and suite.results:
        _print_evaluators(suite.evaluators, screen)
    _print_cases(suite, screen, verbose=verbose)
    if verbose:
        _print_mutants("survivors", suite.with_status(MutantStatus.SURVIVED), suite, screen, width, verbose=True)
    _print_mutants("undecided", suite.with_status(MutantStatus.UNDECIDED), suite, screen, width, verbose=verbose)
    if verbose:
        _print_mutants("waived", suite.with_status(MutantStatus.WAIVED), suite, screen, width, verbose=True)
    _print_proposals(suite, screen, width, verbose=verbose)
    screen.line()


def _print_kinds(suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool) -> None:
    """Print the surviving kinds, each with an example and the shortest expectation that kills it."""
    kinds = surviving_kinds(suite)
    if not kinds:
        return
    screen.line(("  surviving kinds", "bold"))
    shown = kinds if verbose else kinds[:MAX_KINDS]
    for item in shown:
        _print_wrapped(screen, f"  {kind_title(item)}", width, "")
        example = item.survivors[0]
        screen.line((_cut(f"    - {mask(example.mutant.before)}", width), "red"))
        screen.line((_cut(f"    + {mask(example.mutant.after)}", width), "green"))
        if note := explanation(example, suite):
            screen.line((_cut(f"    {note}", width), "dim"))
        _print_wrapped(screen, f"    {kind_proposal_text(item)}", width, "dim")
        if item.proposal is not None:
            for line in mask(item.proposal.lines).rstrip("\n").split("\n"):
                screen.line((f"      {line}", "cyan"))
    if len(kinds) > len(shown):
        names = ", ".join(f"{item.kind} {len(item.survivors):,}" for item in kinds[len(shown) :])
        _print_wrapped(screen, f"  and {names} (-v shows all)", width, "dim")
    screen.line()


def _print_evaluators(items: Sequence[EvaluatorFinding], screen: Screen) -> None:
    screen.line()
    screen.line((f"  {'evaluator':<{NAME_WIDTH}} {'killed':>12}  {'share (95%)':<24} alone", "dim"))
    for item in items:
        killed = f"{item.rate.killed:,} of {item.rate.total:,}"
        name = _pad(item.evaluator + ("" if item.gates else " (report only)"), NAME_WIDTH)
        style = "yellow" if item.is_ineffective else ""
        screen.line((f"  {name} {killed:>12}  {kill_rate_text(item.rate):<24} {item.alone:>5,}", style))


def _print_cases(suite: SuiteFindings, screen: Screen, *, verbose: bool) -> None:
    """Print the cases with survivors, the weakest first."""
    weak = [(case, rate) for case, rate in suite.cases if verbose or rate.killed < rate.total]
    if not weak:
        return
    screen.line()
    screen.line((f"  {'case':<{NAME_WIDTH}} {'killed':>12}  share (95%)", "dim"))
    shown = weak if verbose else weak[:MAX_CASES]
    for case, rate in shown:
        killed = f"{rate.killed:,} of {rate.total:,}"
        screen.line(f"  {_pad(case, NAME_WIDTH)} {killed:>12}  {kill_rate_text(rate)}")
    if len(weak) > len(shown):
        screen.line((f"  and {plural(len(weak) - len(shown), 'more case')} (-v shows all)", "dim"))


def _print_mutants(
    title: str, items: Sequence[MutantResult], suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool
) -> None:
    if not items:
        return
    screen.line()
    screen.line((f"  {title}", "bold"))
    shown = items if verbose else items[:MAX_UNDECIDED]
    for item in shown:
        _print_wrapped(screen, f"  {mutant_title(item)}", width, "")
        screen.line((_cut(f"    - {mask(item.mutant.before)}", width), "red"))
        screen.line((_cut(f"    + {mask(item.mutant.after)}", width), "green"))
        if note := mask(item.note) or explanation(item, suite):
            screen.line((_cut(f"    {note}", width), "dim"))
    if len(items) > len(shown):
        screen.line((f"  and {len(items) - len(shown):,} more (-v shows all)", "dim"))


def _print_proposals(suite: SuiteFindings, screen: Screen, width: int, *, verbose: bool) -> None:
    if not suite.proposals:
        return
    screen.line()
    screen.line(("  suggested additions to the suite, for all survivors of a case", "bold"))
    proposals = grouped_proposals(suite)
    shown = proposals if verbose else proposals[:MAX_PROPOSALS]
    for place, text in shown:
        _print_wrapped(screen, f"  {place}", width, "dim")
        for line in text.rstrip("\n").split("\n"):
            screen.line((f"    {line}", "cyan"))
    if len(proposals) > len(shown):
        screen.line((f"  and {plural(len(proposals) - len(shown), 'more suggestion')} (-v shows all)", "dim"))


def _print_wrapped(screen: Screen, text: str, width: int, style: str) -> None:
    indent = " " * (len(text) - len(text.lstrip()))
    for line in _wrap(text.strip(), width, indent):
        screen.line((line, style))


def _wrap(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        escape_line(text), width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=True
    ) or [""]


def _pad(text: str, columns: int) -> str:
    """The text cut or padded to a number of columns."""
    line = escape_line(text)
    while display_width(line) > columns:
        line = f"{line[:-2]}…"
    return line + " " * (columns - display_width(line))


def _cut(text: str, width: int) -> str:
    """The text as one line, cut to the width of the terminal."""
    line = escape_line(text)
    return line if display_width(line) <= width else f"{line[: width - 3]}..."
