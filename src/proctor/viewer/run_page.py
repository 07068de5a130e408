"""One run: the verdict in words, what changed, and its cases with their scores, failures first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import groupby

from proctor.reporting.html.escaping import GLYPHS, code, escape, facts, inline
from proctor.reporting.html.overview import score_cell
from proctor.reporting.plots import BARS, Histogram, bar_plot
from proctor.reporting.wording import counted, duration, money
from proctor.results.run import Outcome, Run, ScoreRow
from proctor.results.store.encoding import SCORE_ROW_COLUMNS, score_row_from_row
from proctor.viewer.case_query import (
    PAGE,
    SORTS,
    CaseQuery,
    CaseRow,
    changes_of,
    evaluators_of,
    find_cases,
    tags_of,
)
from proctor.viewer.layout import agents_text, case_address, moment, page, pages_links, run_address, sign, suites_text
from proctor.viewer.library import Source
from proctor.viewer.run_index import RunIndex, SuiteTotals
from proctor.viewer.runs_page import commit, cost_text, progress, rate_cell, together, took

MOST_COLUMNS = 12
"""Evaluators that have a column; the case's own page has all."""
MOST_DOTS = 12
SORT_NAMES = {
    "worst": "failures first",
    "plan": "order of the suite",
    "case": "name",
    "slowest": "slowest first",
    "dearest": "dearest first",
    "flakiest": "flakiest first",
}
LARGE = 5_000
"""Trials from which on what needs every score of the run is shown only when it is asked for."""
Details = tuple[list[tuple[int, Outcome]], list[ScoreRow]]
"""How each trial of a case went, by its repetition, and all of their scores."""
LIKE = {"broken": "failed", "fixed": "passed", "flaky": "error"}
"""Whose colour a filter has that is no outcome."""
QUICK = ("failed", "flaky", "error", "pending", "broken", "fixed", "passed")


def run_page(source: Source, row: Run, query: CaseQuery, live: str = "") -> str:
    """`live` is where a run that goes on tells of changes."""
    totals = source.totals(row)
    earlier = source.earlier(row)
    before = earlier[0] if earlier else None
    if before is not None:
        source.ensure(before)
    status = row.status
    out = StringIO()
    _write_head(source, row, status, totals, out)
    large = sum(item.trials for item in totals.values()) > LARGE
    changes = {} if before is None else changes_of(source.index, row, before)
    if before is not None:
        _write_changes(row, before, changes, out)
    _write_suites(totals, query, out)
    if query.group == "cluster":
        source.ensure_clusters(row)
    cases, count = find_cases(source.index, row, query, before)
    details = _scores_of(source.index, cases)
    evaluators = list(dict.fromkeys(score.evaluator for case in cases for score in details[case.numbers][1]))
    named = [(name, name) for name in evaluators]
    if large:
        source.index.prepare_scores(row.no)
    else:
        named = [(name, f"{name} ({bad:,} not passed)") for name, bad in evaluators_of(source.index, row.no)]
    _write_filter(source.index, row, query, totals, changes, named, out)
    _write_cases(row, query, cases, count, details, evaluators, out)
    if large and not query.plots:
        place = escape(query.address(plots="all", page=query.page))
        out.write(f'<p><a href="{place}#distributions">Distributions of times and scores</a></p>\n')
    else:
        _write_plots(source.index, row, out)
    outcome = Outcome(row.stored_verdict.outcome) if row.stored_verdict else Outcome.SKIPPED
    title = f"{row.name or row.id}: {suites_text(row.suites)}"
    live = live if status != "finished" and not source.is_file else ""
    return page(title, f'<div id="live">\n{out.getvalue()}</div>\n', outcome=outcome, live=live)


def _write_head(source: Source, row: Run, status: str, totals: Mapping[str, SuiteTotals], out: StringIO) -> None:
    verdict = row.stored_verdict
    over = status == "finished" and verdict is not None
    kind = verdict.outcome if over and verdict else "skipped" if status == "running" else "error"
    title = verdict.outcome.capitalize() if over and verdict else "Running" if status == "running" else "Interrupted"
    glyph = GLYPHS[Outcome(kind)] if over else "●" if status == "running" else "◼"
    out.write(
        f'<p class="crumbs"><a href="/" data-up>Runs</a> / {inline(row.name or row.id)}</p>\n'
        f'<section class="banner {kind}"><div class="sign" aria-hidden="true">{glyph}</div><div class="words">\n'
        f"<h1>{escape(title)}</h1>\n"
    )
    out.write(f'<p class="reason">{inline(_reason(row, status), 2_000)}</p>\n')
    if status != "finished":
        made = source.index.count(row.no)
        out.write(f"<p>{progress(made, sum(info.planned for info in row.suites))}</p>\n")
    whole = together(list(totals.values()))
    pairs = [("Pass rate", rate_cell(whole))] if whole is not None else []
    pairs += [
        ("Trials", f"{sum(item.trials for item in totals.values()):,}"),
        ("Agent", inline(agents_text(row.suites), 200)),
        *([("Commit", commit(row.git))] if row.git is not None else []),
        *([("Cost", cost_text(list(totals.values())))] if any(t.cost_usd is not None for t in totals.values()) else []),
        ("Took", took(row)),
        ("Started", moment(row.started_at)),
        ("Run", code(row.id) + (f" <small>{inline(row.name)}</small>" if row.name else "")),
    ]
    out.write(facts(pairs))
    waiting = sum(item.outcomes[Outcome.PENDING] for item in totals.values())
    if waiting and not source.is_file:
        told = counted(waiting, "case waits", "cases wait")
        out.write(f'<p><a class="button" href="{run_address(row)}/grade">{told} for a person: grade</a></p>\n')
    out.write("</div></section>\n")


def _reason(row: Run, status: str) -> str:
    if status == "running":
        return "The run is still going on; this page follows it."
    if status == "died":
        return "The process died before the run was over; what it had finished is here."
    if row.stored_verdict is None or status == "interrupted":
        return row.note or "The run was interrupted; what it had finished is here."
    return row.stored_verdict.reason


def _write_changes(row: Run, before: Run, changes: Mapping[str, int], out: StringIO) -> None:
    words = [f"{count:,} {name}" for name, count in changes.items() if count]
    told = ", ".join(words) if words else "no case changed its outcome"
    out.write(
        f'<p class="changed">Since <a href="{run_address(before)}">{inline(before.name or before.id)}</a>: '
        f'<b>{escape(told)}</b> · <a href="/compare?a={escape(before.id)}&amp;b={escape(row.id)}">compare</a></p>\n'
    )


def _write_suites(totals: Mapping[str, SuiteTotals], query: CaseQuery, out: StringIO) -> None:
    """A line for each suite, where there are several."""
    if len(totals) < 2:
        return
    out.write('<div class="scroll" role="region" aria-label="Suites" tabindex="0"><table class="list">\n<thead><tr>')
    out.write('<th scope="col">Suite</th><th scope="col">Pass rate</th><th scope="col">Cases</th>')
    out.write('<th scope="col" class="number">Time of a trial</th></tr></thead>\n<tbody>\n')
    for item in totals.values():
        counts = " ".join(
            sign(outcome, f"{count:,} {outcome.value}") for outcome, count in item.outcomes.items() if count
        )
        link = f'<a href="{escape(query.address(suite=item.suite))}#cases">{inline(item.suite, 120)}</a>'
        out.write(
            f'<tr><th scope="row">{link}</th><td class="rate-cell">{rate_cell(item.rate)}</td><td>{counts}</td>'
            f'<td class="number">{duration(item.mean_ms)}</td></tr>\n'
        )
    out.write("</tbody></table></div>\n")


def _write_filter(
    index: RunIndex,
    row: Run,
    query: CaseQuery,
    totals: Mapping[str, SuiteTotals],
    changes: Mapping[str, int],
    evaluators: Sequence[tuple[str, str]],
    out: StringIO,
) -> None:
    out.write('<section id="cases">\n<h2>Cases</h2>\n')
    counts = {outcome.value: sum(item.outcomes[outcome] for item in totals.values()) for outcome in Outcome}
    counts |= {"flaky": sum(item.flaky for item in totals.values()), **changes}
    out.write('<div class="filters" role="search">\n<nav class="toggles" aria-label="Outcomes shown">')
    every = sum(sum(item.outcomes.values()) for item in totals.values())
    current = ' aria-current="true"' if not query.show else ""
    out.write(f'<a class="toggle" href="{escape(query.address(show=""))}"{current}>all {every:,}</a>')
    for name in QUICK:
        if counts.get(name) or query.show == name:
            current = ' aria-current="true"' if query.show == name else ""
            kind = LIKE.get(name, name)
            glyph = GLYPHS[Outcome(kind)] if name != "flaky" else "≈"
            out.write(
                f'<a class="toggle {kind}" href="{escape(query.address(show=name))}"{current}>'
                f'<span aria-hidden="true">{glyph}</span> {name} {counts.get(name, 0):,}</a>'
            )
    out.write("</nav>\n")
    _write_form(index, row, query, totals, evaluators, out)
    out.write("</div>\n")


def _write_form(
    index: RunIndex,
    row: Run,
    query: CaseQuery,
    totals: Mapping[str, SuiteTotals],
    evaluators: Sequence[tuple[str, str]],
    out: StringIO,
) -> None:
    out.write('<form method="get" class="fields" data-auto>\n')
    if query.show:
        out.write(f'<input type="hidden" name="show" value="{escape(query.show)}">')
    out.write(
        f'<label class="wide">Find <input type="search" name="q" value="{escape(query.q)}" autocomplete="off" '
        'spellcheck="false" placeholder="a case, a word of the input or answer"></label>\n'
    )
    out.write(_choice("Sort", "sort", [(name, SORT_NAMES[name]) for name in SORTS], query.sort))
    groups = [("", "nothing"), ("tag", "tag"), ("cluster", "cause of failure")]
    out.write(_choice("Group by", "group", groups, query.group))
    used = any((query.evaluator, query.tag, query.suite, query.slower, query.cost))
    out.write(f'<details class="more"{" open" if used else ""}><summary>More filters</summary>\n<div class="fields">\n')
    out.write(_choice("Not passed by", "evaluator", [("", "any evaluator"), *evaluators], query.evaluator))
    if tags := tags_of(index, row.no):
        told = [(tag, f"{tag} ({count:,})") for tag, count in tags]
        out.write(_choice("Tag", "tag", [("", "any"), *told], query.tag))
    if len(totals) > 1:
        out.write(_choice("Suite", "suite", [("", "all"), *((name, name) for name in totals)], query.suite))
    out.write(_amount("Slower than (ms)", "slower", query.slower))
    out.write(_amount("Dearer than ($)", "cost", query.cost))
    out.write("</div></details>\n")
    out.write('<button class="apply">Apply</button>')
    if query.is_filtered:
        out.write(' <a class="clear" href="?">clear</a>')
    out.write("</form>\n")


def _choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    listed = list(options)
    if chosen and chosen not in {value for value, _ in listed}:
        listed.append((chosen, chosen))
    texts = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{inline(text, 80)}</option>'
        for value, text in listed
    )
    return f'<label>{label} <select name="{name}">{texts}</select></label>\n'


def _amount(label: str, name: str, value: str) -> str:
    return (
        f'<label>{label} <input type="number" name="{name}" value="{escape(value)}" min="0" step="any" '
        'inputmode="decimal"></label>\n'
    )


def _write_cases(
    row: Run,
    query: CaseQuery,
    cases: Sequence[CaseRow],
    count: int,
    details: Mapping[tuple[int, ...], Details],
    evaluators: Sequence[str],
    out: StringIO,
) -> None:
    told = counted(count, "case") + (" shown" if query.is_filtered else "")
    out.write(f'<p class="quiet" role="status">{told}</p>\n')
    if not cases:
        out.write('<p class="none">No case is like that.</p>\n</section>\n')
        return
    shown = evaluators[:MOST_COLUMNS]
    repeats = any(case.trials > 1 for case in cases)
    out.write('<div class="scroll" role="region" aria-label="Cases" tabindex="0">\n<table class="grid list">\n')
    heads = ["Case", "Outcome", *(["Trials"] if repeats else [])]
    out.write("<thead><tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads))
    out.write("".join(f'<th scope="col">{inline(name, 60)}</th>' for name in shown))
    priced = any(case.cost_usd is not None for case in cases)
    last = ["Time", *(["Cost"] if priced else [])]
    out.write("".join(f'<th scope="col" class="number">{head}</th>' for head in last) + "</tr></thead>\n")
    width = len(heads) + len(shown) + len(last)
    for group, members in groupby(cases, key=lambda case: case.group):
        out.write("<tbody>\n")
        if query.group:
            out.write(f'<tr class="group"><th scope="rowgroup" colspan="{width}">{inline(group, 300)}</th></tr>\n')
        for case in members:
            _write_case(row, case, details[case.numbers], shown, repeats, priced, out)
        out.write("</tbody>\n")
    out.write("</table>\n</div>\n")
    if len(evaluators) > len(shown):
        more = counted(len(evaluators) - len(shown), "more evaluator")
        out.write(f'<p class="cut">{more}: on the page of a case.</p>\n')
    out.write(pages_links(query.page, -(-count // PAGE), lambda at: query.address(page=at) + "#cases"))
    out.write("</section>\n")


def _scores_of(index: RunIndex, cases: Sequence[CaseRow]) -> dict[tuple[int, ...], Details]:
    """By the numbers of its trials: how each trial of a case went, and all of its scores."""
    found: dict[tuple[int, ...], Details] = {}
    for case in cases:
        trials: list[tuple[int, Outcome]] = []
        marks = ",".join("?" * len(case.numbers))
        for number, outcome in index.rows(
            f"SELECT number, outcome FROM store.trials WHERE no IN ({marks}) ORDER BY number",  # noqa: S608
            case.numbers,
        ):
            trials.append((number, Outcome(outcome)))
        rows = index.rows(
            f"SELECT {SCORE_ROW_COLUMNS.select('s')} FROM store.trials t JOIN store.scores s ON s.trial = t.no"  # noqa: S608
            f" WHERE t.no IN ({marks}) ORDER BY t.number, s.place",
            case.numbers,
        )
        scores = [score_row_from_row(row) for row in rows]
        found[case.numbers] = trials, scores
    return found


def _write_case(
    row: Run,
    case: CaseRow,
    details: Details,
    evaluators: Sequence[str],
    repeats: bool,
    priced: bool,
    out: StringIO,
) -> None:
    trials, scores = details
    link = case_address(row.id, case.suite, case.case_id)
    flaky = ""
    if case.is_flaky:
        flaky = f' <strong class="flaky">{case.passed}/{case.passed + case.failed} flaky</strong>'
    notes = " <small>in quarantine</small>" if case.quarantined else ""
    if case.before is not None and case.before is not case.outcome:
        notes += f" <small>was {case.before.value}</small>"
    out.write(
        f'<tr data-item><th scope="row"><a href="{escape(link)}">{inline(case.case_id, 120)}</a></th>'
        f'<td class="outcome">{sign(case.outcome)}{flaky}{notes}</td>'
    )
    if repeats:
        dots = "".join(_dot(row, case, number, outcome) for number, outcome in trials[:MOST_DOTS])
        more = f" <small>+{len(trials) - MOST_DOTS}</small>" if len(trials) > MOST_DOTS else ""
        out.write(f'<td class="strip">{dots}{more}</td>')
    by_name: dict[str, list[ScoreRow]] = {}
    for score in scores:
        by_name.setdefault(score.evaluator, []).append(score)
    out.write("".join(score_cell(by_name.get(name, ())) for name in evaluators))
    out.write(f'<td class="number">{duration(case.duration_ms / case.trials)}</td>')
    if priced:
        cost = "" if case.cost_usd is None else escape(money(case.cost_usd / case.trials))
        out.write(f'<td class="number">{cost}</td>')
    out.write("</tr>\n")


def _dot(row: Run, case: CaseRow, number: int, outcome: Outcome) -> str:
    words = f"trial {number} {outcome.value}"
    link = escape(case_address(row.id, case.suite, case.case_id, number))
    return f'<a class="dot {outcome.value}" href="{link}" title="{words}" aria-label="{words}">{GLYPHS[outcome]}</a>'


def _write_plots(index: RunIndex, row: Run, out: StringIO) -> None:
    """How long trials took, and how the scores are distributed: SQLite counts, so that no trial is read."""
    plots = bar_plot("Time of a trial", _time_histogram(index, row.no), duration)
    for name, found in _score_histograms(index, row.no):
        plots += bar_plot(name, found, lambda value: f"{value:g}")
    if plots:
        out.write(
            f'<section id="distributions">\n<h2>Distributions</h2>\n<div class="plots">\n{plots}</div></section>\n'
        )


def _time_histogram(index: RunIndex, run: int) -> Histogram | None:
    low, high = index.rows("SELECT min(duration_ms), max(duration_ms) FROM store.trials WHERE run = ?", (run,))[0]
    if low is None:
        return None
    width = (high - low) / BARS or 1.0
    counts = [0] * BARS
    for part, count in index.rows(
        "SELECT min(?, CAST((duration_ms - ?) / ? AS INTEGER)) AS part, count(*) FROM store.trials WHERE run = ?"
        " GROUP BY part",
        (BARS - 1, low, width, run),
    ):
        counts[max(0, min(BARS - 1, part))] += count
    return Histogram(low, high, tuple(counts))


def _score_histograms(index: RunIndex, run: int) -> list[tuple[str, Histogram]]:
    """Of the evaluators whose scores are not all 0 or 1; those say everything in the grid."""
    index.ensure_scores(run)
    found: dict[str, list[int]] = {}
    for name, part, count in index.rows(
        "SELECT evaluator, part, sum(scores) FROM score_rows WHERE run = ? AND part >= 0 GROUP BY evaluator, part",
        (run,),
    ):
        counts = found.setdefault(str(name), [0] * BARS)
        counts[max(0, min(BARS - 1, part))] += count
    graded = [(name, counts) for name, counts in found.items() if any(counts[1:-1])]
    return [(name, Histogram(0.0, 1.0, tuple(counts))) for name, counts in graded[:MOST_COLUMNS]]
