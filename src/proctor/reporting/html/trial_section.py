"""One trial in the HTML report: how it ended, the conversation, and expected beside actual tool calls."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from proctor.agents.reply import NOT_BACK, Reply, ToolCall, Usage
from proctor.base.json_data import UNSET, Json, plain
from proctor.cases.matchers import Equals, Ignore, Matcher, describe
from proctor.cases.suite import Attachment, Case, Expected, ExpectedCall, Turn
from proctor.evaluators.evaluation import collapse
from proctor.reporting.call_pairs import CallPair, Fit, found_in_calls, pair_calls
from proctor.reporting.explain import broke_at, one_line_reason, why_open
from proctor.reporting.html.escaping import badge, block, code, escape, facts, inline, marked_pair, percent, pretty
from proctor.reporting.html.overview import anchor
from proctor.reporting.wording import counted, duration, mean_text, money, told_apart, trial_name
from proctor.results.judge_usage import judge_name
from proctor.results.run import Outcome, Score, TrialResult

CALLS_SHOWN = 100
"""More calls than this in one turn are counted, not shown: too many to read, and the JSON report has them."""
ARGUMENT_TEXT = 500

SIGNS = {
    Fit.AS_EXPECTED: "✓",
    Fit.DIFFERS: "✗",
    Fit.MISSING: "✗",
    Fit.NOT_EXPECTED: "+",
    Fit.OUT_OF_ORDER: "✗",
    Fit.FORBIDDEN: "✗",
    Fit.LEFT_OUT: "-",
}


def write_calls(
    expected: Sequence[ExpectedCall] | None,
    calls: Sequence[ToolCall],
    out: TextIO,
    limit: int,
    found: Mapping[str, Json] | None = None,
) -> None:
    """The section on tools; nothing where there were none and nothing was said about them."""
    rows = pair_calls(expected, calls, found)
    if expected is None and not rows:
        return
    out.write("<h5>Tool calls</h5>\n")
    if not expected and not calls:
        out.write('<p class="none">None, as expected.</p>\n')
        return
    if expected is not None and not expected:
        out.write('<p class="none">None was expected.</p>\n')
    compared = expected is not None or any(row.wanted for row in rows)
    out.write(f'<ol class="calls{" compared" if compared else ""}">\n')
    for row in rows[:CALLS_SHOWN]:
        _write_row(row, compared, out, limit)
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
        out.write(_no_call(row) if wanted is None else _expected_html_calls(wanted))
        out.write("</div>\n")
    out.write('<div class="side"><p class="label">Called</p>\n')
    out.write('<p class="none">not called</p>\n' if call is None else _actual(call, row, limit))
    out.write("</div>\n</li>\n")


def _no_call(row: CallPair) -> str:
    if not row.wanted:
        return '<p class="none">no such call</p>\n'
    return f'<p class="tool">{code(row.wanted, ARGUMENT_TEXT)}</p>\n'


def _expected_html_calls(call: ExpectedCall) -> str:
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


def _actual(call: ToolCall, row: CallPair, limit: int) -> str:
    time = "" if call.duration_ms is None else f" <small>{duration(call.duration_ms)}</small>"
    text = f'<p class="tool">{code(call.name)}{time}</p>\n'
    if call.raw_arguments is not None:
        text += f'<p class="label">arguments that are not an object</p>\n{block(call.raw_arguments, limit)}'
    else:
        text += _arguments(list(_given(call, row)))
    if call.error is not None:
        label = "✗ no result" if call.error == NOT_BACK else "✗ raised"
        text += f'<p class="label">{label}</p>\n{block(call.error, limit, "failed")}'
    elif call.result is not None:
        text += f'<p class="label">returned</p>\n{block(pretty(call.result), limit)}'
    return text


def _given(call: ToolCall, row: CallPair) -> Iterator[str]:
    """The arguments of a call in the order of the expected ones, so that the two sides can be read across."""
    rules = {} if row.expected is None or row.expected.arguments is None else row.expected.arguments
    wrong = row.wrong
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
    return code(pretty(matcher.value) if isinstance(matcher, Equals) else describe(matcher), ARGUMENT_TEXT)


def _arguments(items: Sequence[str]) -> str:
    shown = list(items[:CALLS_SHOWN])
    if len(items) > CALLS_SHOWN:
        shown.append(f"<dt>…</dt><dd>{escape(counted(len(items) - CALLS_SHOWN, 'more argument'))}</dd>")
    return f'<dl class="args">{"".join(shown)}</dl>\n' if shown else '<p class="none">no arguments</p>\n'


PASSING_TEXT = 2_000
FAILING_TEXT = 10_000
REASON_TEXT = 2_000
PASSAGES_SHOWN = 20


def write_trial(trial: TrialResult, row: int, out: TextIO) -> None:
    """The trial, folded; the anchor is inside the fold, so that a link to it opens it without any script."""
    limit = FAILING_TEXT if trial.outcome in (Outcome.FAILED, Outcome.ERROR) else PASSING_TEXT
    out.write(f'<details class="trial {trial.outcome.value}" data-outcome="{trial.outcome.value}" data-row="{row}">\n')
    _write_summary(trial, out)
    out.write(f'<div class="body" id="{anchor(trial.position)}">\n')
    write_body(trial, out, limit)
    out.write("</div>\n</details>\n")


def write_body(trial: TrialResult, out: TextIO, limit: int = FAILING_TEXT) -> None:
    """Everything about a trial: facts, why it ended as it did, the conversation and its scores."""
    if trial.case.description:
        out.write(f"<p>{inline(trial.case.description, REASON_TEXT)}</p>\n")
    out.write(facts(_facts(trial)))
    for warning in trial.warnings:
        out.write(f'<p class="warning"><b>Warning:</b> {inline(warning, REASON_TEXT)}</p>\n')
    if trial.reason:
        out.write(f"<h5>Why</h5>\n{block(trial.reason, limit, trial.outcome.value)}")
    if trial.replies or trial.outcome is not Outcome.SKIPPED:
        _write_turns(trial, out, limit)


def _write_summary(trial: TrialResult, out: TextIO) -> None:
    reason = ""
    if trial.outcome in (Outcome.FAILED, Outcome.ERROR):
        reason = one_line_reason(trial)
    elif trial.outcome is not Outcome.PASSED:
        reason = why_open(trial)
    told = f'<span class="why">{inline(reason)}</span>' if reason else ""
    out.write(
        f"<summary>{badge(trial.outcome)}<h4>{inline(trial_name(trial.case.id, trial.number), 200)}</h4>{told}"
        f'<span class="time">{duration(trial.duration_ms)}</span></summary>\n'
    )


def _facts(trial: TrialResult) -> list[tuple[str, str]]:
    pairs = [("Agent time", duration(trial.duration_ms)), *_usage(trial.usage)]
    if trial.attempts > 1:
        pairs.append(("Attempts", f"{trial.attempts:,}"))
    if trial.reused:
        pairs.append(("Reused", "taken from an earlier run"))
    if trial.case.tags:
        pairs.append(("Tags", inline(", ".join(trial.case.tags))))
    return pairs


def _usage(usage: Usage | None) -> list[tuple[str, str]]:
    if usage is None:
        return []
    counts = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
    tokens = ", ".join(f"{count:,} {way}" for count, way in counts if count is not None)
    pairs = [("Tokens", tokens)] if tokens else []
    if usage.model_calls is not None:
        pairs.append(("Model calls", f"{usage.model_calls:,}"))
    if usage.cost_usd is not None:
        pairs.append(("Cost", escape(money(usage.cost_usd, estimated=usage.estimated))))
    return pairs


def _write_turns(trial: TrialResult, out: TextIO, limit: int) -> None:
    several = len(trial.case.turns) > 1
    for index in range(len(trial.case.turns)):
        reply = trial.replies[index] if index < len(trial.replies) else None
        own = [score for score in trial.scores if score.turn == index] if several else trial.scores
        if several:
            state = "" if reply else " <small>not reached</small>"
            out.write(f'<section class="turn">\n<h5 class="number">Turn {index + 1}{state}</h5>\n')
            if reply is not None:
                out.write(facts(_turn_facts(reply)))
        _write_turn(trial, index, reply, out, limit)
        if not several:
            _write_state(trial, out, limit)
        write_scores(own, out)
        if several:
            out.write("</section>\n")
    whole = [score for score in trial.scores if score.turn is None]
    if several and (whole or trial.case.final_state is not None):
        out.write('<section class="turn">\n<h5 class="number">Whole conversation</h5>\n')
        _write_state(trial, out, limit)
        write_scores(whole, out)
        out.write("</section>\n")


def _turn_facts(reply: Reply) -> list[tuple[str, str]]:
    time = [] if reply.duration_ms is None else [("Time", duration(reply.duration_ms))]
    return [*time, *_usage(reply.usage)]


def _write_turn(trial: TrialResult, index: int, reply: Reply | None, out: TextIO, limit: int) -> None:
    case, turn = trial.case, trial.case.turns[index]
    out.write(f'<div class="said user"><h5>Input</h5>\n{block(pretty(_asked(case, turn)), limit)}')
    if turn.attachments:
        out.write(f'<p class="files">Files: {", ".join(_attachment(item) for item in turn.attachments)}</p>\n')
    out.write("</div>\n")
    if reply is None:
        out.write(_unknown_calls(turn.expected.tool_calls))
    else:
        if places := "\n".join(broke_at(reply)):
            out.write(f"<h5>Broke at</h5>\n{block(places, limit)}")
        write_calls(turn.expected.tool_calls, reply.tool_calls, out, limit, found_in_calls(trial, index))
    is_answered = reply is not None and (reply.error is None or bool(_answer(reply)))
    marked = _marked(turn.expected, reply, limit) if reply is not None and is_answered else None
    out.write('<div class="pair">\n')
    if wanted := _expected(turn.expected, limit, marked and marked[0]):
        out.write(f'<div class="wanted"><h5>Expected</h5>\n{wanted}</div>\n')
    if reply is not None and is_answered:
        title = "Answer" if reply.error is None else "Answer so far"
        told = f"<pre>{marked[1]}</pre>\n" if marked else block(pretty(_answer(reply)), limit)
        out.write(f'<div class="said agent"><h5>{title}</h5>\n{told}</div>\n')
    out.write("</div>\n")
    if reply is not None:
        _write_passages(reply.retrieval_context or (), out, limit)


def _unknown_calls(expected: Sequence[ExpectedCall] | None) -> str:
    """Of a turn without an answer it is not known which tools were called, so that none is said to be missing."""
    if not expected:
        return ""
    wanted = "".join(f"<li>{_expected_html_calls(call)}</li>\n" for call in expected)
    return f'<h5>Expected tool calls</h5>\n<ol class="calls">\n{wanted}</ol>\n'


def _marked(expected: Expected, reply: Reply, limit: int) -> tuple[str, str] | None:
    """What was expected and what came, with the differences marked; data that was written as text is read as data."""
    if expected.output is UNSET:
        return None
    wanted, came = plain(expected.output), _answer(reply)
    if isinstance(wanted, (dict, list)) and isinstance(came, str):
        with contextlib.suppress(ValueError, RecursionError):
            came = json.loads(came)
    texts = pretty(wanted), pretty(came)
    return marked_pair(*texts) if max(map(len, texts)) <= limit else None


def _asked(case: Case, turn: Turn) -> object:
    """The words, or the values by name where there are no words."""
    if turn.input is None and case.inputs:
        return {item.name: item.value for item in case.inputs}
    return turn.input


def _answer(reply: Reply) -> object:
    """What evaluators saw: the named outputs where there are any, else the words, else the data."""
    if reply.outputs:
        return collapse(reply.outputs)
    return reply.text if reply.text or reply.structured is None else reply.structured


def _expected(expected: Expected, limit: int, marked: str | None = None) -> str:
    text = "" if expected.output is UNSET else block(pretty(expected.output), limit)
    if marked is not None:
        text = f"<pre>{marked}</pre>\n"
    if expected.keywords is not None:
        for words, some in ((expected.keywords.any_of, "any"), (expected.keywords.all_of, "all")):
            if words:
                text += f'<p class="words">mentions {some} of {_list(words)}</p>\n'
    if expected.context:
        text += f'<p class="label">resting on</p>\n{_passages(expected.context, limit)}'
    return text


def _list(words: Sequence[str]) -> str:
    more = f" and {len(words) - PASSAGES_SHOWN:,} more" if len(words) > PASSAGES_SHOWN else ""
    return ", ".join(code(word) for word in words[:PASSAGES_SHOWN]) + more


def _write_passages(passages: Sequence[str], out: TextIO, limit: int) -> None:
    if passages:
        out.write(f"<details><summary>{counted(len(passages), 'passage')} retrieved</summary>\n")
        out.write(f"{_passages(passages, limit)}</details>\n")


def _passages(passages: Sequence[str], limit: int) -> str:
    more = f'<p class="cut">and {len(passages) - PASSAGES_SHOWN:,} more</p>\n'
    shown = "".join(block(passage, limit) for passage in passages[:PASSAGES_SHOWN])
    return shown + (more if len(passages) > PASSAGES_SHOWN else "")


def _attachment(item: Attachment) -> str:
    kind = f" ({inline(item.kind)})" if item.kind else ""
    return f"{code(item.path or item.url or 'unnamed')}{kind}"


def _write_state(trial: TrialResult, out: TextIO, limit: int) -> None:
    if trial.case.final_state is None or not trial.replies:
        return
    out.write(
        f'<div class="pair">\n<div><h5>Expected state</h5>\n{block(pretty(trial.case.final_state), limit)}</div>\n'
        f"<div><h5>State</h5>\n{block(pretty(trial.replies[-1].state), limit)}</div>\n</div>\n"
    )


def write_scores(scores: Iterable[Score], out: TextIO) -> None:
    """A table of scores with their reasons; nothing where there are none."""
    rows = "".join(_score(score) for score in scores)
    if not rows:
        return
    heads = "".join(f'<th scope="col">{title}</th>' for title in ("Evaluator", "Score", "Needs", "Outcome", "Reason"))
    out.write(
        '<h5>Scores</h5>\n<div class="scroll" role="group" aria-label="Scores" tabindex="0">\n'
        f'<table class="scores">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n'
    )


def _score(score: Score) -> str:
    informs = "" if score.gates else " <small>(informs)</small>"
    value, threshold = _numbers(score)
    bar = "" if score.value is None else f' style="--v:{percent(score.value)}"'
    mean = "" if (told := mean_text(score)) is None else f" <small>{escape(told)}</small>"
    reason = inline(score.reasoning, REASON_TEXT)
    if judge := judge_name(score):
        reason += f" <small>judge {inline(judge)}</small>"
    if score.details:
        inside = block(pretty(score.details), REASON_TEXT)
        reason += f"<details><summary>details</summary>\n{inside}</details>"
    return (
        f'<tr><th scope="row">{inline(score.evaluator, 200)}{informs}</th>'
        f'<td><span class="cell {score.outcome.value}"{bar}>{value}</span></td>'
        f'<td><span class="unseen">needs </span>{threshold}</td>'
        f'<td>{badge(score.outcome)}{mean}</td><td class="reason">{reason}</td></tr>\n'
    )


def _numbers(score: Score) -> tuple[str, str]:
    if score.value is not None and score.threshold is not None:
        return told_apart(score.value, score.threshold, 2)
    value, threshold = ("–" if number is None else f"{number:.2f}" for number in (score.value, score.threshold))
    return value, threshold
