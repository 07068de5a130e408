"""The page that GitHub Actions shows for a step: the verdict, a line per suite, and every failing case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from proctor.reporting.case_groups import FailingCase, failing_cases
from proctor.reporting.markdown.escaping import MARKS, inline, row, table_head
from proctor.reporting.markdown.report import case_title, write_gate
from proctor.reporting.wording import counted, counts_text, duration, money, share
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict

CASES_WITH_REASONS = 50
REASONS_SHOWN = 3
SUITES_SHOWN = 200
TEXT = 300
NAME_TEXT = 120
NAMES_BYTES = 200_000
"""With these, the page stays far below the 1 MiB that GitHub accepts."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the page; only as many trials are read as it takes to find the reasons shown."""
    out.write(f"## Proctor: {MARKS[verdict.outcome]}\n\n{inline(verdict.reason, TEXT)}\n\n")
    out.write(f"{_totals(run, verdict)}\n\n")
    _write_suites(verdict, out)
    write_gate(run, verdict, out)
    _write_failures(run, verdict, out)


def _totals(run: Run, verdict: RunVerdict) -> str:
    parts = [f"{counted(len(run.summaries), 'trial')}: {counts_text(verdict.counts)}"]
    if run.finished_at is not None:
        parts.append(duration(max(0.0, run.finished_at - run.started_at) * 1000))
    if verdict.tokens is not None:
        parts.append(counted(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(inline(money(verdict.cost_usd, estimated=verdict.estimated)))
    return " · ".join(parts)


def _write_suites(verdict: RunVerdict, out: TextIO) -> None:
    if not verdict.suites:
        return
    out.write(table_head("Suite", "Verdict", "Cases", "Pass rate [95 %]", "Mean scores"))
    for suite in verdict.suites[:SUITES_SHOWN]:
        rate = "not measured" if suite.pass_rate is None else share(suite.pass_rate)
        means = [f"{item.evaluator} {item.scores.mean:.2f}" for item in suite.evaluators if item.scores is not None]
        cells = (inline(suite.name, TEXT), MARKS[suite.outcome], counts_text(suite.counts), rate)
        out.write(row(*cells, inline(", ".join(means), TEXT)))
    out.write("\n")
    if len(verdict.suites) > SUITES_SHOWN:
        out.write(f"{len(verdict.suites) - SUITES_SHOWN:,} more suites are not shown.\n\n")


def _write_failures(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Every case that went wrong, with its reasons while there is room for them, else by its name alone."""
    cases = failing_cases(run, verdict, most_reasons=CASES_WITH_REASONS, limit=TEXT)
    if not cases:
        return
    out.write("### What went wrong\n\n")
    for case in cases[:CASES_WITH_REASONS]:
        _write_case(case, out)
    out.write("\n")
    _write_names(cases[CASES_WITH_REASONS:], out)


def _write_case(case: FailingCase, out: TextIO) -> None:
    out.write(f"- {case_title(case, TEXT)}")
    shown = case.reasons[:REASONS_SHOWN]
    if len(shown) == 1 and shown[0].text:
        out.write(f": {inline(shown[0].text)}")
    out.write("\n")
    for reason in shown if len(shown) > 1 else ():
        out.write(f"  - {counted(reason.trials, 'time')}: {inline(reason.text)}\n")
    if more := len(case.reasons) - len(shown):
        out.write(f"  - and {counted(more, 'more reason')}\n")


def _write_names(cases: Sequence[FailingCase], out: TextIO) -> None:
    """The other cases; what no longer fits on the page is counted."""
    if not cases:
        return
    out.write(f"Also, without their reasons ({len(cases):,}):\n\n")
    room = NAMES_BYTES
    for number, case in enumerate(cases):
        line = f"- {case_title(case, NAME_TEXT)}\n"
        room -= len(line.encode("utf-8", "backslashreplace"))
        if room < 0:
            out.write(f"- and {len(cases) - number:,} more\n")
            break
        out.write(line)
    out.write("\n")
