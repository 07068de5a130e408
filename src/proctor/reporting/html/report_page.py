"""The whole run as one HTML file: no outside request, no script needed, written trial by trial."""

from __future__ import annotations

from dataclasses import replace
from typing import TextIO

from proctor.reporting.comparison_report import write_agents_html
from proctor.reporting.failing_cases import WORST_FIRST
from proctor.reporting.html.escaping import GLYPHS, badge, code, escape, facts, inline
from proctor.reporting.html.overview import (
    EVERYTHING,
    Shown,
    write_evaluators,
    write_failures,
    write_gate,
    write_grids,
    write_suites,
)
from proctor.reporting.html.page_frame import page_end, page_head, write_filter
from proctor.reporting.html.trial_section import write_trial
from proctor.reporting.judge_report import doubt_lines, judge_lines
from proctor.reporting.plots import write_distributions
from proctor.reporting.wording import counted, counts_text, duration, money, suites_with_trials, when
from proctor.results.run import Run, Trials
from proctor.results.verdict import RunVerdict

TRIALS_IN_FULL = 2_000
"""Trials that a page tells in full, the worst first: it is about 1.5 KB each, and a browser has to hold them all."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the page, one trial at a time; of a large run, those that did not pass before those that did."""
    shown = _shown(run)
    _write_head(run, verdict, out)
    _write_banner(run, verdict, out)
    out.write("<main>\n")
    write_gate(run, out)
    write_suites(run, verdict, out)
    write_failures(run, verdict, out, shown)
    if run.compares_agents:
        write_agents_html(run, out)
    write_evaluators(run, verdict, out)
    write_distributions(run, out)
    rows = write_grids(run, verdict, out, shown)
    _write_trials(run, verdict, rows, out, shown)
    out.write("</main>\n")
    _write_foot(run, out)


def _write_head(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    out.write(page_head(f"{GLYPHS[verdict.outcome]} {verdict.outcome.value}: {_agents(run)}", verdict.outcome))


def _write_banner(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    out.write(
        f'<header class="banner {verdict.outcome.value}">\n<div class="sign" aria-hidden="true">'
        f'{GLYPHS[verdict.outcome]}</div>\n<div class="words">\n'
        f'<p class="kicker">Proctor examined {inline(_agents(run), 300)}</p>\n'
        f"<h1>{verdict.outcome.value.capitalize()}</h1>\n"
        f'<p class="reason">{inline(verdict.reason, 2_000)}</p>\n'
    )
    if run.interrupted:
        planned = sum(info.planned for info in run.suites)
        out.write(f"<p>Interrupted after {len(run.summaries):,} of {counted(planned, 'trial')}.</p>\n")
    out.write(facts(_run_facts(run, verdict)))
    out.write("</div>\n</header>\n")
    out.write(
        '<nav aria-label="Sections"><a href="#suites">Suites</a> <a href="#evaluators">Evaluators</a> '
        '<a href="#cases">Cases</a> <a href="#trials">Trials</a></nav>\n'
    )


def _run_facts(run: Run, verdict: RunVerdict) -> list[tuple[str, str]]:
    pairs = [("Trials", f"{len(run.summaries):,} <small>({counts_text(verdict.counts)})</small>")]
    if run.finished_at is not None:
        pairs.append(("Time", duration(max(0.0, run.finished_at - run.started_at) * 1000)))
    pairs.append(("Agent time", duration(sum(summary.duration_ms for summary in run.summaries))))
    if verdict.tokens is not None:
        pairs.append(("Tokens", f"{verdict.tokens:,}"))
    if verdict.cost_usd is not None:
        pairs.append(("Cost", escape(money(verdict.cost_usd, estimated=verdict.estimated))))
    pairs.extend(("Judge", inline(f"{model}: {text}", 500)) for model, text in judge_lines(run))
    if run.uncounted:
        pairs.append(("Not counted", inline(run.uncounted, 500)))
    pairs.extend((title, inline(text, 1000)) for title, text in doubt_lines(run))
    pairs.append(("Started", when(run.started_at)))
    pairs.append(("Run", code(run.id)))
    return pairs


def _shown(run: Run) -> Shown:
    if len(run.summaries) <= TRIALS_IN_FULL:
        return EVERYTHING
    worst = sorted(run.summaries, key=lambda summary: WORST_FIRST.index(summary.outcome))
    return Shown(frozenset(summary.position for summary in worst[:TRIALS_IN_FULL]))


def _write_trials(run: Run, verdict: RunVerdict, rows: dict[tuple[str, str], int], out: TextIO, shown: Shown) -> None:
    out.write('<section id="trials">\n<h2>Trials</h2>\n')
    if shown is not EVERYTHING:
        shown_cases = {(item.suite, item.case_id) for item in run.summaries if item.position in shown}
        whole = run
        in_full = Trials(lambda _: (trial for trial in whole.trials_of(shown_cases) if trial.position in shown))
        run = replace(run, trials=in_full)
        out.write(
            f'<p class="cut">{TRIALS_IN_FULL:,} of {len(run.summaries):,} trials are told here, the worst first. '
            f"{code('proctor view')} shows all of them, {code(f'proctor show {run.id} --json FILE')} writes them.</p>\n"
        )
    write_filter(verdict.counts, out)
    for _, judged, trials in suites_with_trials(run, verdict):
        out.write(f'<div class="of-suite">\n<h3>{inline(judged.name)} {badge(judged.outcome)}</h3>\n')
        for trial in trials:
            write_trial(trial, rows.get((trial.suite, trial.case.id), -1), out)
        out.write("</div>\n")
    if not run.summaries:
        out.write('<p class="none">No trial was made.</p>\n')
    out.write("</section>\n")


def _write_foot(run: Run, out: TextIO) -> None:
    environment = dict(run.environment)
    version = environment.pop("proctor_version", "")
    parts = [f"Proctor {version}".strip()]
    parts += [f"{name.removesuffix('_version')} {value}" for name, value in environment.items()]
    out.write(f"<footer><p>{inline(' · '.join(parts), 1_000)}</p>\n")
    out.write(
        "<p>Numbers in brackets are 95 % intervals. Pass rates count the cases that have a verdict.</p></footer>\n"
    )
    out.write(page_end())


def _agents(run: Run) -> str:
    return ", ".join(dict.fromkeys(info.agent for info in run.suites if info.agent)) or "no agent"
