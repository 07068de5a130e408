"""The page of a case: conversation, expectations, scores, judge calls, trace, its trials and its history."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from proctor.agents.pricing import estimate_cost
from proctor.base.json_data import Json
from proctor.judging.judge import is_rule_based
from proctor.reporting.html.environment import pretty
from proctor.reporting.html.run_view import Dot
from proctor.reporting.html.trial_view import MAX_FAILING_TEXT, trial_view
from proctor.reporting.judge_report import judged_scores
from proctor.reporting.wording import duration, money, plural, score_texts
from proctor.results.judge_usage import judge_details
from proctor.results.reasons import headline_reason
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.trial import Trial
from proctor.results.verdict import CaseVerdict
from proctor.tracing.spans import LLMSpan, Message, ObservationNode, Span
from proctor.viewer.cases import CaseRow, RunCases
from proctor.viewer.events import live_address
from proctor.viewer.pages import Page, PageRoute, Visit, case_address, run_address
from proctor.viewer.sources import NotFound, Source

MAX_REPEATS = 5
"""Maximum trials side by side."""
MAX_HISTORY_RUNS = 30
HISTORY_SECONDS = 0.4


def case_page(visit: Visit) -> Page:
    live = live_address(visit.sources, visit.path["run"])
    source, row = visit.run()
    suite, case_id = visit.query.get("suite", ""), visit.query.get("case", "")
    with source.lock:
        run = source.cases(row)
        case = run.by_address.get((suite, case_id))
        if case is None:
            raise NotFound(f"Run {row.id} has no case {case_id!r} in the suite {suite!r}.")
        trials = {trial.number: trial for trial in run.run.trials_of({(suite, case_id)})}
        number = visit.number("trial")
        trial = trials[number] if number in trials else trials[_first_unsuccessful_trial(case)]
        values = {
            "row": row,
            "run_address": run_address(row.id),
            "view": trial_view(trial, limit=MAX_FAILING_TEXT),
            "case": case.verdict,
            "reason": headline_reason(trial, 1_000),
            "neighbours": _neighbours(run, row, case),
            "dots": [Dot(n, trials[n].outcome, case_address(row.id, suite, case_id, n)) for n in sorted(trials)],
            "judged": _judged_scores(source, trial),
            "trace": _trace(trial.trace) if trial.spans else None,
            "repeats": _repeats(row, trials) if len(trials) > 1 else (),
            "more_repeats": max(0, len(trials) - MAX_REPEATS),
        }
    values["history"] = _history(source, row, suite, case_id)
    is_live = row.status is RunStatus.RUNNING
    return Page("case.html", case_id, values, outcome=trial.outcome, live=live if is_live else "")


def _first_unsuccessful_trial(case: CaseRow) -> int:
    """The number of the first trial that did not pass, or else of the first."""
    trials = sorted(case.trials, key=lambda trial: trial.number)
    bad = (trial.number for trial in trials if trial.outcome not in (Outcome.PASSED, Outcome.SKIPPED))
    return next(bad, trials[0].number)


def _neighbours(run: RunCases, row: Run, case: CaseRow) -> list[tuple[str, str, str, str]]:
    """Links to the previous and the next case of the run: relation, title, symbol and address."""
    cases = run.cases
    at = cases.index(case)
    links = []
    for rel, title, symbol, index in (("prev", "previous case", "←", at - 1), ("next", "next case", "→", at + 1)):
        if 0 <= index < len(cases):
            links.append((rel, title, symbol, case_address(row.id, *cases[index].address)))
    return links


@dataclass(frozen=True, slots=True)
class JudgedScore:
    """A score that a judge gave, with its calls."""

    outcome: Outcome
    evaluator: str
    value: str
    note: str
    reasoning: str
    votes: Sequence[str]
    calls: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    """The title of each call, and its prompts and replies, if they are stored."""


def _judged_scores(source: Source, trial: Trial) -> list[JudgedScore]:
    if not any(judge_details(score) is not None for score in trial.scores):
        return []
    with closing(StoredJudgeCalls(source.store.database_path)) as calls:
        return [_judged_score(item) for item in judged_scores([trial], calls.get)]


def _judged_score(item: Mapping[str, Json]) -> JudgedScore:
    turn = "" if item["turn"] is None else f" at turn {item['turn'] + 1}"
    value = "" if item["value"] is None else f" {item['value']:.2f}"
    return JudgedScore(
        outcome=Outcome(item["outcome"]),
        evaluator=item["evaluator"],
        value=f"{value}{turn}",
        note=f"by {_judge(item['model'])}, {plural(len(item['calls']), 'call')}",
        reasoning=str(item["reasoning"]),
        votes=[pretty(vote) for vote in item["votes"]],
        calls=[_call(call) for call in item["calls"]],
    )


def _judge(model: Json) -> str:
    """A model's name; the rule-based judge is none."""
    return "the rule-based judge" if is_rule_based(model) else str(model)


def _call(call: Mapping[str, Json]) -> tuple[str, list[tuple[str, str]]]:
    title = f"{call.get('kind') or 'call'} by {_judge(call.get('model'))}{', from cache' if call.get('cached') else ''}"
    names = {"system": "System", "user": "User", "reply": "Reply", "unfit": "First reply (rejected)"}
    texts = [(label, pretty(call[name])) for name, label in names.items() if name in call]
    if not texts and not is_rule_based(call.get("model")):
        texts = [("", "The prompts of this call are not in this store.")]
    return title, texts


@dataclass(frozen=True, slots=True)
class Repeat:
    """One of several trials of a case: its last answer and its scores."""

    number: int
    outcome: Outcome
    href: str
    time: str
    reason: str
    answer: str | None
    tools: str
    scores: Sequence[tuple[str, Outcome]]


def _repeats(row: Run, trials: Mapping[int, Trial]) -> list[Repeat]:
    repeats = []
    for number in sorted(trials)[:MAX_REPEATS]:
        trial = trials[number]
        reply = trial.replies[-1] if trial.replies else None
        repeats.append(
            Repeat(
                number=number,
                outcome=trial.outcome,
                href=case_address(row.id, trial.suite, trial.case.id, number),
                time=duration(trial.duration_ms),
                reason=trial.end_reason,
                answer=None if reply is None else reply.text or pretty(reply.structured),
                tools=", ".join(call.name for each in trial.replies for call in each.tool_calls),
                scores=score_texts(trial.scores),
            )
        )
    return repeats


@dataclass(frozen=True, slots=True)
class CaseInRun:
    """The outcome of the case in one run."""

    row: Run
    href: str
    case: CaseVerdict
    time: str


def _history(source: Source, row: Run, suite: str, case_id: str) -> list[CaseInRun]:
    """The outcome of the case in recent runs, as far as they are read in time; empty for a single run."""
    until = time.monotonic() + HISTORY_SECONDS
    history = []
    for item in source.page(None, MAX_HISTORY_RUNS):
        if not any(info.name == suite for info in item.suites):
            continue
        if not source.has_totals(item) and time.monotonic() > until:
            continue
        known = source.totals(item).cases.get((suite, case_id))
        if known is not None:
            history.append(CaseInRun(item, case_address(item.id, suite, case_id), known[0], duration(known[1])))
    return history if len(history) > 1 else []


MAX_SPANS = 500
MAX_MESSAGES = 60


@dataclass(frozen=True, slots=True)
class SpanView:
    """A row of the trace, indented by its depth, with a bar for its time."""

    kind: str
    name: str
    depth: int
    start: float
    """As a share of the whole duration, like `length`."""
    length: float
    is_model: bool
    tokens: str
    time: str
    error: str
    messages: Sequence[tuple[str, Sequence[MessageView]]]
    values: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message to or from a model."""

    role: str
    text: str
    calls: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TraceView:
    """The spans of a trial."""

    count: int
    spans: Sequence[SpanView]


def _trace(roots: Sequence[ObservationNode]) -> TraceView | None:
    spans = [(depth, node.span) for root in roots for depth, node in root.walk()]
    if not spans:
        return None
    start = min(span.started_at for _, span in spans)
    whole = max(0.001, max(span.ended_at for _, span in spans) - start)
    return TraceView(len(spans), [_span(depth, span, start, whole) for depth, span in spans[:MAX_SPANS]])


def _span(depth: int, span: Span, start: float, whole: float) -> SpanView:
    is_model = isinstance(span, LLMSpan)
    messages: list[tuple[str, list[MessageView]]] = []
    values: list[tuple[str, str]] = []
    if isinstance(span, LLMSpan):
        both = (("Input", span.input_messages), ("Output", span.output_messages))
        messages = [(title, [_message(each) for each in items[-MAX_MESSAGES:]]) for title, items in both if items]
    else:
        both_values = (("Input", span.input), ("Output", span.output))
        values = [(title, pretty(value)) for title, value in both_values if value is not None]
    duration_ms = span.duration_ms
    return SpanView(
        kind="model" if is_model else getattr(span, "kind", None) or "step",
        name=span.name,
        depth=min(depth, 12),
        start=(span.started_at - start) / whole,
        length=max(0.0, span.ended_at - span.started_at) / whole,
        is_model=is_model,
        tokens=_tokens(span),
        time=f"{duration_ms:.3g} ms" if 0 <= duration_ms < 1000 else duration(duration_ms),
        error=span.error or "",
        messages=messages,
        values=values,
    )


def _message(message: Message) -> MessageView:
    calls = [(call.name, pretty(dict(call.arguments))) for call in getattr(message, "tool_calls", ())]
    return MessageView(message.role, message.text or "", calls)


def _tokens(span: Span) -> str:
    if not isinstance(span, LLMSpan) or (span.input_tokens is None and span.output_tokens is None):
        return ""
    counts = ((span.input_tokens, "in"), (span.output_tokens, "out"))
    text = ", ".join(f"{count:,} {way}" for count, way in counts if count is not None)
    cost = _cost(span)
    return text if cost is None else f"{text} · {money(cost, estimated=True)}"


def _cost(span: LLMSpan) -> float | None:
    """The cost of a model call by the price list; a trace has only tokens."""
    model = span.response_model or span.request_model
    if model is None or span.input_tokens is None or span.output_tokens is None:
        return None
    return estimate_cost(model, span.input_tokens, span.output_tokens)


PAGES = (PageRoute("/runs/{run}/case", case_page),)
