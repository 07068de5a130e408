"""One case of a run: the conversation, what was expected, the scores with their judges, the trace and the history."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from io import StringIO

from proctor.agents.pricing import price
from proctor.base.json_data import Json
from proctor.judging.judge import is_rule_based
from proctor.reporting.explain import one_line_reason, why_open
from proctor.reporting.html.escaping import GLYPHS, badge, block, code, escape, inline, percent, pretty
from proctor.reporting.html.trial_section import write_body
from proctor.reporting.judge_report import judged_scores
from proctor.reporting.wording import counted, duration, money, score_texts
from proctor.results.judge_usage import account_of
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.store.judge_cache import JudgeCalls
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.tracing.spans import LLMSpan, Message, ObservationNode, Span
from proctor.viewer.layout import case_address, moment, page, run_address, sign, with_levels
from proctor.viewer.library import NotFound, Source

MOST_BESIDE = 5
"""Repeats that stand beside each other."""
BESIDE_TEXT = 1_500
HISTORY_RUNS = 30
PATIENCE_SECONDS = 0.4
CALL_TEXT = 8_000


def case_page(source: Source, row: Run, suite: str, case_id: str, wanted: int | None, live: str = "") -> str:
    source.ensure(row)
    kept = _trials(source, row, suite, case_id)
    if not kept:
        raise NotFound(f"Run {row.id} has no case {case_id!r} of the suite {suite!r}.")
    number = wanted if wanted in kept else _telling(kept)
    with source.lock:
        trial = source.store.trial(kept[number][0])
        out = StringIO()
        _write_head(source, row, trial, kept, out)
        body = StringIO()
        write_body(trial, body)
        out.write(f'<article class="body conversation" aria-label="Conversation">\n{with_levels(body.getvalue(), 2)}')
        out.write("</article>\n")
        _write_judges(source, trial, out)
        if trial.spans:
            write_trace(trial.trace, out)
        if len(kept) > 1:
            _write_repeats(source, row, trial, kept, out)
    _write_history(source, row, suite, case_id, out)
    live = live if row.status == "running" else ""
    return page(case_id, f'<div id="live">\n{out.getvalue()}</div>\n', outcome=trial.outcome, live=live)


Kept = Mapping[int, tuple[int, Outcome]]
"""By repetition: the trial's number in the store, and how it went."""


def _trials(source: Source, row: Run, suite: str, case_id: str) -> dict[int, tuple[int, Outcome]]:
    found = source.index.rows(
        "SELECT numbers FROM case_rows WHERE run = ? AND suite = ? AND case_id = ?",
        (row.no, encode_text(suite), encode_text(case_id)),
    )
    numbers = [int(no) for no in found[0][0].split(",")] if found else []
    marks = ",".join("?" * len(numbers))
    rows = source.index.rows(
        f"SELECT number, no, outcome FROM store.trials WHERE no IN ({marks}) ORDER BY number",  # noqa: S608  marks only
        numbers,
    )
    return {number: (no, Outcome(outcome)) for number, no, outcome in rows}


def _telling(kept: Kept) -> int:
    """The repetition that tells most: the first that did not pass."""
    bad = (number for number, (_, outcome) in kept.items() if outcome not in (Outcome.PASSED, Outcome.SKIPPED))
    return next(bad, next(iter(kept)))


def _write_head(source: Source, row: Run, trial: TrialResult, kept: Kept, out: StringIO) -> None:
    up = run_address(row)
    out.write(
        f'<p class="crumbs"><a href="/">Runs</a> / <a href="{up}" data-up>{inline(row.name or row.id)}</a> / '
        f"{inline(trial.suite)}</p>\n"
        f'<div class="case-head"><h1 class="plain">{inline(trial.case.id, 200)}</h1> {badge(trial.outcome)}'
    )
    outcomes = [outcome for _, outcome in kept.values()]
    passed, failed = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED)
    if passed and failed:
        out.write(f' <strong class="flaky">{passed}/{passed + failed} flaky</strong>')
    out.write(_neighbours(source, row, trial))
    out.write("</div>\n")
    if trial.outcome is not Outcome.PASSED:
        failed_now = trial.outcome in (Outcome.FAILED, Outcome.ERROR)
        reason = one_line_reason(trial) if failed_now else why_open(trial)
        out.write(f'<p class="reason">{inline(reason, 1_000)}</p>\n')
    if len(kept) > 1:
        out.write('<nav class="strip repeats" aria-label="Repeats">')
        for number, (_, outcome) in kept.items():
            link = escape(case_address(row.id, trial.suite, trial.case.id, number))
            words = f"trial {number} {outcome.value}"
            current = ' aria-current="page"' if number == trial.number else ""
            out.write(
                f'<a class="dot {outcome.value}" href="{link}" title="{words}" aria-label="{words}"{current}>'
                f"{GLYPHS[outcome]}</a>"
            )
        out.write(f" <small>trial {trial.number} of {len(kept)}</small></nav>\n")


def _neighbours(source: Source, row: Run, trial: TrialResult) -> str:
    """Links to the case before and after, in the order of the plan."""
    links = []
    for name, title, sign_, order in (("prev", "previous case", "←", "<"), ("next", "next case", "→", ">")):
        way = "DESC" if order == "<" else "ASC"
        found = source.index.rows(
            "SELECT suite, case_id FROM case_rows WHERE run = ? AND position"  # noqa: S608  made of constants
            f" {order} (SELECT position FROM case_rows WHERE run = ? AND suite = ? AND case_id = ?)"
            f" ORDER BY position {way} LIMIT 1",
            (row.no, row.no, encode_text(trial.suite), encode_text(trial.case.id)),
        )
        for suite, case in found:
            link = escape(case_address(row.id, decode_text(suite), decode_text(case)))
            links.append(f'<a rel="{name}" href="{link}" aria-label="{title}">{sign_}</a>')
    return f'<span class="neighbours">{" ".join(links)}</span>' if links else ""


def _write_judges(source: Source, trial: TrialResult, out: StringIO) -> None:
    """What each judge was asked and replied."""
    if not any(account_of(score) is not None for score in trial.scores):
        return
    with closing(JudgeCalls(source.store.database_path)) as calls:
        judged = list(judged_scores([trial], calls.find))
    out.write('<section id="judges">\n<h2>Judges</h2>\n')
    for item in judged:
        turn = "" if item["turn"] is None else f" at turn {item['turn'] + 1}"
        value = "" if item["value"] is None else f" {item['value']:.2f}"
        by = f"by {item['model']}, {counted(len(item['calls']), 'call')}"
        out.write(
            f'<details class="judge"><summary>{sign(Outcome(item["outcome"]))} <b>{inline(item["evaluator"])}</b>'
            f"{value}{escape(turn)} <small>{inline(by)}</small></summary>\n"
        )
        if item["reasoning"]:
            out.write(block(str(item["reasoning"]), CALL_TEXT))
        for vote in item["votes"]:
            out.write(f'<p class="label">vote</p>\n{block(pretty(vote), CALL_TEXT)}')
        for call in item["calls"]:
            _write_call(call, out)
        out.write("</details>\n")
    out.write("</section>\n")


def _write_call(call: Mapping[str, Json], out: StringIO) -> None:
    told = f"{call.get('kind') or 'call'} by {call.get('model')}{', from cache' if call.get('cached') else ''}"
    out.write(f'<p class="label">{inline(told)}</p>\n')
    names = {"system": "Told", "user": "Asked", "reply": "Replied", "unfit": "Replied first, which did not fit"}
    words = [(title, call[name]) for name, title in names.items() if name in call]
    for title, text in words:
        out.write(f'<p class="label">{title}</p>\n{block(pretty(text), CALL_TEXT)}')
    if not words and not is_rule_based(call.get("model")):
        out.write('<p class="none">The words of this call are not kept here.</p>\n')


def _write_repeats(source: Source, row: Run, shown: TrialResult, kept: Kept, out: StringIO) -> None:
    """The last answer and the scores of each repetition, beside each other."""
    out.write(f'<section id="repeats">\n<h2>Repeats <small>{len(kept)} trials</small></h2>\n<div class="beside">\n')
    for number, (no, outcome) in list(kept.items())[:MOST_BESIDE]:
        trial = shown if number == shown.number else source.store.trial(no)
        link = escape(case_address(row.id, trial.suite, trial.case.id, number))
        out.write(
            f'<div class="card {outcome.value}"><h3><a href="{link}">Trial {number}</a> {badge(outcome)} '
            f"<small>{duration(trial.duration_ms)}</small></h3>\n"
        )
        if trial.reason:
            out.write(f'<p class="reason">{inline(trial.reason, 300)}</p>\n')
        if trial.replies:
            reply = trial.replies[-1]
            out.write(block(reply.text or pretty(reply.structured), BESIDE_TEXT))
            tools = [call.name for each in trial.replies for call in each.tool_calls]
            if tools:
                out.write(f"<p><small>called {inline(', '.join(tools), 300)}</small></p>\n")
        texts = "".join(
            f'<li class="{kind.value}"><span aria-hidden="true">{GLYPHS[kind]}</span> {inline(text, 200)}</li>'
            for text, kind in score_texts(trial.scores)
        )
        out.write(f'<ul class="counts">{texts}</ul></div>\n' if texts else "</div>\n")
    out.write("</div>\n")
    if len(kept) > MOST_BESIDE:
        out.write(f'<p class="cut">And {counted(len(kept) - MOST_BESIDE, "more trial")}: by the signs above.</p>\n')
    out.write("</section>\n")


def _write_history(source: Source, row: Run, suite: str, case_id: str, out: StringIO) -> None:
    """How the case went in the runs around this one, as far as there is time to look."""
    latest = [item for item in source.page(None, HISTORY_RUNS) if any(info.name == suite for info in item.suites)]
    found = _in_runs(source, latest, suite, case_id)
    if len(found) < 2:
        return
    out.write('<section id="history">\n<h2>History</h2>\n<ol class="history">\n')
    for item, outcome, passed, trials, mean_ms in found:
        link = escape(case_address(item.id, suite, case_id))
        current = ' aria-current="page"' if item.id == row.id else ""
        out.write(
            f'<li class="{outcome.value}"><a href="{link}"{current}>{sign(outcome)} {passed}/{trials}'
            f"<small>{inline(item.name or item.id)}</small><small>{moment(item.started_at)}</small>"
            f"<small>{duration(mean_ms)}</small></a></li>\n"
        )
    out.write("</ol>\n</section>\n")


def _in_runs(
    source: Source, rows: Sequence[Run], suite: str, case_id: str
) -> list[tuple[Run, Outcome, int, int, float]]:
    until = time.monotonic() + PATIENCE_SECONDS
    found = []
    for row in rows:
        if not source.index.is_ready(row.no) and time.monotonic() > until:
            continue
        source.ensure(row)
        for outcome, passed, trials, total_ms in source.index.rows(
            "SELECT outcome, passed, trials, duration_ms FROM case_rows WHERE run = ? AND suite = ? AND case_id = ?",
            (row.no, encode_text(suite), encode_text(case_id)),
        ):
            found.append((row, Outcome(outcome), passed, trials, total_ms / max(1, trials)))
    return found


MOST_SPANS = 500
TEXT = 5_000
MOST_MESSAGES = 60


def write_trace(roots: Sequence[ObservationNode], out: StringIO) -> None:
    """A row for each span, indented by its depth, its bar where it lay in time; opened, it shows in and out."""
    spans = [(depth, node.span) for root in roots for depth, node in root.walk()]
    if not spans:
        return
    start = min(span.started_at for _, span in spans)
    whole = max(0.001, max(span.ended_at for _, span in spans) - start)
    out.write(f'<section id="trace">\n<h2>Trace <small>{counted(len(spans), "span")}</small></h2>\n')
    out.write('<div class="waterfall">\n')
    for depth, span in spans[:MOST_SPANS]:
        _write_span(depth, span, start, whole, out)
    if len(spans) > MOST_SPANS:
        out.write(f'<p class="cut">And {counted(len(spans) - MOST_SPANS, "more span")}.</p>\n')
    out.write("</div>\n</section>\n")


def _write_span(depth: int, span: Span, start: float, whole: float, out: StringIO) -> None:
    model = isinstance(span, LLMSpan)
    kind = "model" if model else getattr(span, "kind", None) or "step"
    place = (
        f"--at:{percent((span.started_at - start) / whole)};--long:{percent((span.ended_at - span.started_at) / whole)}"
    )
    failed = ' <span class="why"><span aria-hidden="true">✗</span> failed</span>' if span.error else ""
    out.write(
        f'<details class="span{" model" if model else ""}{" failed" if span.error else ""}">'
        f'<summary><span class="name" style="--depth:{min(depth, 12)}"><small>{inline(kind, 30)}</small> '
        f'{inline(span.name, 80)}{failed}</span><span class="lane" style="{place}" aria-hidden="true"><i></i></span>'
        f'<span class="took">{_tokens(span)}{_took(span.duration_ms)}</span></summary>\n<div class="inside">\n'
    )
    if span.error:
        out.write(block(span.error, TEXT, "failed"))
    if isinstance(span, LLMSpan):
        _write_messages("Told", span.input_messages, out)
        _write_messages("Said", span.output_messages, out)
    else:
        for title, value in (("Input", span.input), ("Output", span.output)):
            if value is not None:
                out.write(f'<p class="label">{title}</p>\n{block(pretty(value), TEXT)}')
    out.write("</div></details>\n")


def _took(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms" if 0 <= milliseconds < 1000 else duration(milliseconds)


def _tokens(span: Span) -> str:
    if not isinstance(span, LLMSpan) or (span.input_tokens is None and span.output_tokens is None):
        return ""
    known = (
        f"{count:,} {way}"
        for count, way in ((span.input_tokens, "in"), (span.output_tokens, "out"))
        if count is not None
    )
    cost = _cost(span)
    told = ", ".join(known) + ("" if cost is None else f" · {money(cost, estimated=True)}")
    return f"<small>{escape(told)}</small> "


def _cost(span: LLMSpan) -> float | None:
    """By the price list; a trace tells tokens and no cost."""
    model = span.response_model or span.request_model
    if model is None or span.input_tokens is None or span.output_tokens is None:
        return None
    return price(model, span.input_tokens, span.output_tokens)


def _write_messages(title: str, messages: Sequence[Message], out: StringIO) -> None:
    if messages:
        out.write(f'<p class="label">{title}</p>\n')
    for message in messages[-MOST_MESSAGES:]:
        out.write(f'<div class="message {message.role}"><p class="label">{escape(message.role)}</p>\n')
        if message.text:
            out.write(block(message.text, TEXT))
        for call in getattr(message, "tool_calls", ()):
            out.write(f"<p>{code(call.name)} {code(pretty(dict(call.arguments)), TEXT)}</p>\n")
        out.write("</div>\n")
