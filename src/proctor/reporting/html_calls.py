"""Tool calls of one turn: what was expected beside what was done, argument by argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from proctor.agents.model import ToolCall
from proctor.cases.matchers import Equals, Ignore, Matcher
from proctor.cases.model import UNSET, ExpectedCall
from proctor.reporting.call_pairs import CallPair, Fit, pair_calls, wrong_arguments
from proctor.reporting.html_text import block, code, escape, inline, pretty
from proctor.reporting.wording import counted, duration

CALLS_SHOWN = 100
"""More calls than this in one turn are counted, not shown; nobody reads them, and the JSON report has them."""
ARGUMENT_TEXT = 500

SIGNS = {Fit.AS_EXPECTED: "✓", Fit.DIFFERS: "✗", Fit.MISSING: "✗", Fit.NOT_EXPECTED: "+"}


def write_calls(expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall], out: TextIO, limit: int) -> None:
    """The section on tools; nothing where there were none and nothing was said about them."""
    if expected is None and not calls:
        return
    out.write("<h5>Tool calls</h5>\n")
    if not expected and not calls:
        out.write('<p class="none">None, as expected.</p>\n')
        return
    if expected is not None and not expected:
        out.write('<p class="none">None was expected.</p>\n')
    rows = pair_calls(expected, calls)
    out.write(f'<ol class="calls{"" if expected is None else " compared"}">\n')
    for row in rows[:CALLS_SHOWN]:
        _write_row(row, expected is not None, out, limit)
    out.write("</ol>\n")
    if len(rows) > CALLS_SHOWN:
        out.write(f'<p class="cut">and {counted(len(rows) - CALLS_SHOWN, "more call")}.</p>\n')


def _write_row(row: CallPair, compared: bool, out: TextIO, limit: int) -> None:
    wanted, call, fit = row.expected, row.call, row.fit
    if fit is None:
        out.write("<li>\n")
    else:
        out.write(f'<li class="{fit.replace(" ", "-")}">\n')
        out.write(f'<p class="fit"><span aria-hidden="true">{SIGNS[fit]}</span> {fit.value}</p>\n')
    if compared:
        out.write('<div class="side"><p class="label">Expected</p>\n')
        out.write('<p class="none">no such call</p>\n' if wanted is None else _expected(wanted))
        out.write("</div>\n")
    out.write('<div class="side"><p class="label">Called</p>\n')
    out.write('<p class="none">not called</p>\n' if call is None else _actual(call, wanted, limit))
    out.write("</div>\n</li>\n")


def _expected(call: ExpectedCall) -> str:
    name = f"…{call.name}…" if call.substring else call.name
    times = f" <small>at least {call.count:,} times</small>" if call.count != 1 else ""
    text = f'<p class="tool">{code(name)}{times}</p>\n'
    if call.arguments is None:
        text += '<p class="none">any arguments</p>\n'
    else:
        items = [f"<dt>{code(name)}</dt><dd>{_matcher(matcher)}</dd>" for name, matcher in call.arguments.items()]
        if call.extra_arguments:
            items.append("<dt>…</dt><dd>and any others</dd>")
        text += _arguments(items)
    if call.result is not UNSET:
        text += f'<p class="label">returns</p>\n{block(pretty(call.result), ARGUMENT_TEXT)}'
    return text


def _actual(call: ToolCall, wanted: ExpectedCall | None, limit: int) -> str:
    time = "" if call.duration_ms is None else f" <small>{duration(call.duration_ms)}</small>"
    text = f'<p class="tool">{code(call.name)}{time}</p>\n'
    if call.raw_arguments is not None:
        text += f'<p class="label">arguments that are not an object</p>\n{block(call.raw_arguments, limit)}'
    else:
        text += _arguments(list(_given(call, wanted)))
    if call.error is not None:
        text += f'<p class="label">✗ raised</p>\n{block(call.error, limit, "failed")}'
    elif call.result is not None:
        text += f'<p class="label">returned</p>\n{block(pretty(call.result), limit)}'
    return text


def _given(call: ToolCall, wanted: ExpectedCall | None) -> Iterator[str]:
    """The arguments of a call in the order of the expected ones, so that the two sides can be read across."""
    rules = {} if wanted is None or wanted.arguments is None else wanted.arguments
    wrong = {} if wanted is None else wrong_arguments(wanted, call)
    names = [*(name for name in rules if name in call.arguments or name in wrong)]
    names += [name for name in call.arguments if name not in rules]
    for name in names:
        value = code(pretty(call.arguments[name]), ARGUMENT_TEXT) if name in call.arguments else ""
        yield _argument(name, value, wrong.get(name, ""))


def _argument(name: str, value: str, why: str) -> str:
    if not why:
        return f"<dt>{code(name)}</dt><dd>{value}</dd>"
    told = f'<span class="why"><span aria-hidden="true">✗</span> {inline(why)}</span>'
    return f'<dt class="wrong">{code(name)}</dt><dd class="wrong">{value} {told}</dd>'


def _matcher(matcher: Matcher) -> str:
    if isinstance(matcher, Ignore):
        return '<span class="none">anything</span>'
    return code(pretty(matcher.value if isinstance(matcher, Equals) else matcher.to_json()), ARGUMENT_TEXT)


def _arguments(items: Sequence[str]) -> str:
    shown = list(items[:CALLS_SHOWN])
    if len(items) > CALLS_SHOWN:
        shown.append(f"<dt>…</dt><dd>{escape(counted(len(items) - CALLS_SHOWN, 'more argument'))}</dd>")
    return f'<dl class="args">{"".join(shown)}</dl>\n' if shown else '<p class="none">no arguments</p>\n'
