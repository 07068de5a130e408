"""What mutants say about suites, as one HTML page: figures, remarks, survivors with the change marked, proposals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from proctor.base.json_data import Json
from proctor.base.secrets import mask
from proctor.reporting.html.escaping import block, code, escape, gauge, inline
from proctor.reporting.html.report_page import page_end, page_head
from proctor.reporting.mutation_report import (
    KEPT_IN,
    explanation,
    grouped_proposals,
    mutant_title,
    rate_text,
    remarks,
    verdict_text,
)
from proctor.results.run import Outcome, Run
from proctor.results.statistics import Estimate
from proctor.running.mutation.findings import Fate, MutationReport, Rate, SuiteFindings, Tried

MOST_LISTED = 500
OUTCOMES = {0: Outcome.PASSED, 1: Outcome.FAILED}


def write(report: MutationReport, out: TextIO) -> None:
    outcome = OUTCOMES.get(report.exit_code, Outcome.PENDING)
    out.write(page_head(f"Mutants of run {report.run}", outcome))
    out.write(
        f'<main>\n<header class="banner {outcome.value}"><div class="words">\n<p class="kicker">Mutants</p>\n'
        f'<h1>{escape(rate_text(report.rate))}</h1>\n<p class="reason">{inline(verdict_text(report), 2000)}</p>\n'
        f'<dl class="facts"><div><dt>Run</dt><dd>{code(report.run)}</dd></div>'
        f"<div><dt>Seed</dt><dd>{report.seed}</dd></div></dl>\n</div></header>\n"
    )
    for suite in report.suites:
        write_section(suite, out)
    out.write("</main>\n" + page_end())


def write_section(suite: SuiteFindings, out: TextIO) -> None:
    """Everything about one suite."""
    out.write(f"<section>\n<h2>{inline(suite.suite)}: {escape(rate_text(suite.rate))}</h2>\n")
    if suite.controls.broken:
        out.write(f'<p class="reason">The suite is broken: {inline(suite.controls.broken, 2000)}</p>\n')
    if told := remarks(suite):
        out.write("<ul>\n" + "".join(f"<li>{inline(text, 1000)}</li>\n" for text in told) + "</ul>\n")
    evaluators = [
        (item.evaluator + ("" if item.gates else " (informs)"), item.rate, f"{item.alone:,}")
        for item in suite.evaluators
    ]
    _write_rates("Evaluator", evaluators, out)
    _write_rates("Case", [(case, rate, "") for case, rate in suite.cases[:MOST_LISTED]], out)
    for title, fate in (("Survivors", Fate.SURVIVED), ("Unsettled", Fate.UNSETTLED), ("Waived", Fate.WAIVED)):
        _write_mutants(title, suite.of_fate(fate), suite, out)
    if suite.proposals:
        out.write("<h3>What to add</h3>\n")
    for place, lines in grouped_proposals(suite):
        out.write(f"<p>{inline(place)}</p>\n{block(lines, 4_000)}")
    out.write("</section>\n")


def write_kept(run: Run, out: TextIO) -> None:
    """The section of a run's own page: what its mutants said when they were last made; nothing where there are none."""
    rows = _kept(run)
    suites = dict.fromkeys(str(row.get("suite")) for row in rows)
    if not suites:
        return
    out.write('<section id="mutants">\n<h2>Mutants</h2>\n')
    for suite in suites:
        own = [row for row in rows if row.get("suite") == suite and row.get("fate") != Fate.WAIVED]
        rate = Rate(sum(row.get("fate") == Fate.KILLED for row in own), len(own))
        survivors = [row for row in own if row.get("fate") == Fate.SURVIVED]
        out.write(f"<h3>{inline(suite)}: {escape(rate_text(rate))} killed</h3>\n")
        if survivors:
            out.write(f"<details><summary>Survivors ({len(survivors):,})</summary>\n")
        for row in survivors[:MOST_LISTED]:
            before, after = escape(mask(str(row.get("before")))), escape(mask(str(row.get("after"))))
            out.write(f"<p>{inline(str(row.get('name')))}: {inline(str(row.get('what')))}</p>\n")
            out.write(f"<pre><del>- {before}</del>\n<ins>+ {after}</ins></pre>\n")
        out.write("</details>\n" if survivors else "")
    out.write("</section>\n")


def _kept(run: Run) -> list[dict[str, Json]]:
    """The lines of the file that was written last, without its first; what is no JSON is left out."""
    folder = Path(run.store or "") / KEPT_IN
    files = sorted(folder.glob(f"{run.id}-seed-*.jsonl"), key=lambda path: path.stat().st_mtime)
    rows = []
    for line in files[-1].read_text(encoding="utf-8", errors="replace").splitlines()[1:] if files else ():
        with suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def _write_rates(title: str, rows: Sequence[tuple[str, Rate, str]], out: TextIO) -> None:
    if not rows:
        return
    alone = '<th scope="col">Alone</th>' if any(extra for _, _, extra in rows) else ""
    out.write(
        f'<div class="scroll"><table class="grid">\n<thead><tr><th scope="col">{title}</th><th scope="col">Killed</th>'
        f'<th scope="col">Share (95 %)</th>{alone}</tr></thead>\n<tbody>\n'
    )
    for name, rate, extra in rows:
        low, high = rate.interval
        drawn = gauge(Estimate(rate.share, low, high, rate.total)) if rate.total else ""
        cell = f"<td>{extra}</td>" if alone else ""
        out.write(
            f'<tr><th scope="row">{inline(name)}</th><td>{rate.killed:,} of {rate.total:,}</td>'
            f"<td>{drawn} {escape(rate_text(rate))}</td>{cell}</tr>\n"
        )
    out.write("</tbody>\n</table></div>\n")


def _write_mutants(title: str, items: Sequence[Tried], suite: SuiteFindings, out: TextIO) -> None:
    if not items:
        return
    out.write(f"<details{' open' if title == 'Survivors' else ''}><summary>{title} ({len(items):,})</summary>\n")
    for item in items[:MOST_LISTED]:
        note = mask(item.note) or explanation(item, suite)
        out.write(f"<p>{inline(mutant_title(item))}{f' <small>{inline(note)}</small>' if note else ''}</p>\n")
        before, after = escape(mask(item.mutant.before)), escape(mask(item.mutant.after))
        out.write(f"<pre><del>- {before}</del>\n<ins>+ {after}</ins></pre>\n")
    if len(items) > MOST_LISTED:
        out.write(f'<p class="cut">And {len(items) - MOST_LISTED:,} more.</p>\n')
    out.write("</details>\n")
