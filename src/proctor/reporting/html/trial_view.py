"""What a page shows of one trial: the outcome, the conversation, expected and actual tool calls, and the scores."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from proctor.agents.reply import UNFINISHED_CALL, Reply, ToolCall, Usage
from proctor.base.json_data import UNSET, to_json
from proctor.cases.matchers import Equals, Ignore, Matcher, describe
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.evaluators.evaluation import collapse
from proctor.reporting.call_pairs import CallFit, CallPair, pair_calls_of
from proctor.reporting.explain import empty_answer_text, failure_locations, output_tail
from proctor.reporting.html.environment import pretty
from proctor.reporting.html.run_view import NamedValue
from proctor.reporting.wording import duration, judge_title, money
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import distinct_decimals, headline_reason, mean_text
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

MAX_CALLS = 100
"""If a turn has more calls, the rest is only counted; the JSON report has all."""
MAX_PASSING_TEXT = 2_000
MAX_FAILING_TEXT = 10_000
MAX_PASSAGES = 20

FIT_SYMBOLS = {
    CallFit.AS_EXPECTED: "✓",
    CallFit.DIFFERS: "✗",
    CallFit.MISSING: "✗",
    CallFit.NOT_OBSERVED: "?",
    CallFit.NOT_EXPECTED: "+",
    CallFit.OUT_OF_ORDER: "✗",
    CallFit.FORBIDDEN: "✗",
    CallFit.EARLIER: "✓",
    CallFit.IGNORED: "-",
}

MarkedText = Sequence[tuple[bool, str]]
"""A text in pieces, each with whether it differs from the other text."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an actual or an expected call."""

    name: str
    value: str | None
    """`None` if it is missing, or if any value is accepted."""
    problem: str = ""
    """Why it is not as expected."""
    may_be_anything: bool = False


@dataclass(frozen=True, slots=True)
class CallSide:
    """An expected or an actual call."""

    name: str
    note: str = ""
    """How often it is expected, or how long it took."""
    arguments: Sequence[Argument] | None = None
    """`None` if any arguments are accepted."""
    more_arguments: int = 0
    and_others: bool = False
    """Whether further arguments are allowed."""
    raw_arguments: str | None = None
    """Arguments that are not an object."""
    error_label: str = ""
    error: str | None = None
    result: str | None = None


@dataclass(frozen=True, slots=True)
class CallRow:
    """An expected call next to the actual one."""

    fit: str
    """How the two compare, or "" if that is not known."""
    symbol: str
    expected: CallSide | None
    expected_text: str
    """What an evaluator expected, if it is not an expected call of the case."""
    actual: CallSide | None


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The tool calls of a turn."""

    note: str
    """That no calls were expected, if so."""
    compared: bool
    """Whether there is anything to compare the calls with."""
    rows: Sequence[CallRow] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class ExpectedView:
    """What a turn expects of the output."""

    text: str | None
    marked: MarkedText | None
    keywords: Sequence[tuple[str, Sequence[str], int]]
    """`any` or `all`, the words, and how many more there are."""
    passages: Sequence[str]


@dataclass(frozen=True, slots=True)
class ScoreView:
    """A score with its reason."""

    score: Score
    value: str
    threshold: str
    mean: str
    judge: str
    details: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn: input, expected and actual output, tool calls and scores."""

    number: int
    is_reached: bool
    facts: Sequence[NamedValue]
    input: str
    files: Sequence[tuple[str, str]]
    """Name and kind."""
    unanswered_calls: Sequence[CallSide]
    """The expected calls of a turn without an answer, of which the actual calls are not known."""
    failed_at: str
    calls: ToolCalls | None
    expected: ExpectedView | None
    answer_title: str
    """`Output` or `Partial output`; empty if there is none."""
    answer: str
    empty_answer: str
    """What is shown if the answer is empty."""
    answer_marked: MarkedText | None
    passages: Sequence[str]
    state: tuple[str, str] | None
    """The expected and the actual state after the turn, if one is expected."""
    scores: Sequence[ScoreView]


@dataclass(frozen=True, slots=True)
class TrialView:
    """Everything about a trial."""

    trial: Trial
    row: int
    """The number of the row of its case."""
    anchor: str
    reason: str
    """Why it did not pass, on one line."""
    limit: int
    """Maximum characters of a text."""
    facts: Sequence[NamedValue]
    has_turns: bool
    turns: Sequence[TurnView]
    is_conversation: bool
    state: tuple[str, str] | None
    """The expected and the actual state after the last turn."""
    whole_scores: Sequence[ScoreView]
    """Scores of the whole conversation."""
    printed: Sequence[tuple[str, str]] = ()
    """What the agent and the evaluators printed and logged: the title and the end of each part."""


def anchor(position: int) -> str:
    """The id of a trial's element on the page of the report."""
    return f"trial-{position}"


def trial_view(trial: Trial, *, row: int = -1, limit: int | None = None) -> TrialView:
    """A trial for a page; texts are cut at `limit` characters, by default later for trials that did not pass."""
    if limit is None:
        limit = MAX_FAILING_TEXT if trial.outcome in (Outcome.FAILED, Outcome.ERROR) else MAX_PASSING_TEXT
    several = len(trial.case.turns) > 1
    has_turns = bool(trial.replies) or trial.outcome is not Outcome.SKIPPED
    turns = [_turn(trial, index, several, limit) for index in range(len(trial.case.turns))] if has_turns else []
    whole = [score_view(score) for score in trial.scores if score.turn is None] if several and has_turns else []
    return TrialView(
        trial=trial,
        row=row,
        anchor=anchor(trial.position),
        reason=headline_reason(trial),
        limit=limit,
        facts=_facts(trial),
        has_turns=has_turns,
        turns=turns,
        is_conversation=several,
        state=_state(trial) if has_turns else None,
        whole_scores=whole,
        printed=[(title, output_tail(text, len(text), limit)) for title, text in trial.captured.sections()],
    )


def _facts(trial: Trial) -> list[NamedValue]:
    facts = [NamedValue("Agent time", duration(trial.duration_ms)), *_usage(trial.usage)]
    if trial.attempts > 1:
        facts.append(NamedValue("Attempts", f"{trial.attempts:,}"))
    if trial.reused:
        facts.append(NamedValue("Reused", "from an earlier run"))
    if trial.case.tags:
        facts.append(NamedValue("Tags", ", ".join(trial.case.tags)))
    return facts


def _usage(usage: Usage | None) -> list[NamedValue]:
    if usage is None:
        return []
    counts = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
    tokens = ", ".join(f"{count:,} {way}" for count, way in counts if count is not None)
    facts = [NamedValue("Tokens", tokens)] if tokens else []
    if usage.model_calls is not None:
        facts.append(NamedValue("Model calls", f"{usage.model_calls:,}"))
    if usage.cost_usd is not None:
        facts.append(NamedValue("Cost", money(usage.cost_usd, estimated=usage.estimated)))
    return facts


def _state(trial: Trial) -> tuple[str, str] | None:
    if trial.case.final_state is None or not trial.replies:
        return None
    return pretty(trial.case.final_state), pretty(trial.replies[-1].state)


def _turn(trial: Trial, index: int, several: bool, limit: int) -> TurnView:
    turn = trial.case.turns[index]
    reply = trial.replies[index] if index < len(trial.replies) else None
    scores = [score for score in trial.scores if score.turn == index] if several else trial.scores
    is_answered = reply is not None and (reply.error is None or bool(_answer(reply)))
    marked = _mark_answer(turn.expected, reply, limit) if reply is not None and is_answered else None
    title = "" if reply is None or not is_answered else "Output" if reply.error is None else "Partial output"
    calls = None
    if reply is not None:
        calls = _tool_calls(turn.expected.tools, reply, pair_calls_of(trial, index))
    return TurnView(
        number=index + 1,
        is_reached=reply is not None,
        facts=_turn_facts(reply) if several and reply is not None else (),
        input=pretty(_input(trial.case, turn)),
        files=[(item.path or item.url or "unnamed", item.kind or "") for item in turn.files],
        unanswered_calls=[_expected_call(call) for call in turn.expected.tools or ()] if reply is None else (),
        failed_at="" if reply is None else "\n".join(failure_locations(reply)),
        calls=calls,
        expected=_expected(turn.expected, None if marked is None else marked[0]),
        answer_title=title,
        answer=pretty(_answer(reply)) if reply is not None and is_answered and marked is None else "",
        empty_answer="" if reply is None else empty_answer_text(reply),
        answer_marked=None if marked is None else marked[1],
        passages=() if reply is None else reply.retrieval_context or (),
        state=_turn_state(turn, reply),
        scores=[score_view(score) for score in scores],
    )


def _turn_state(turn: Turn, reply: Reply | None) -> tuple[str, str] | None:
    if turn.expected.state is None or reply is None:
        return None
    return pretty(turn.expected.state), pretty(reply.state)


def _turn_facts(reply: Reply) -> list[NamedValue]:
    time = [] if reply.duration_ms is None else [NamedValue("Time", duration(reply.duration_ms))]
    return [*time, *_usage(reply.usage)]


def _input(case: Case, turn: Turn) -> object:
    """The input of a turn; for an agent that takes named values, those values."""
    if turn.input is None and case.inputs:
        return {item.name: item.value for item in case.inputs}
    return turn.input


def _answer(reply: Reply) -> object:
    """The answer that evaluators scored: the named outputs if there are any, else the text, else the data."""
    if reply.outputs:
        return collapse(reply.outputs)
    return reply.text if reply.text or reply.structured is None else reply.structured


def _expected(expected: Expected, marked: MarkedText | None) -> ExpectedView | None:
    """What is expected of the output, or `None` if nothing is."""
    text = None if expected.output is UNSET else pretty(expected.output)
    words = () if expected.contains is None else (("any", expected.contains.any), ("all", expected.contains.all))
    keywords = [(some, each[:MAX_PASSAGES], max(0, len(each) - MAX_PASSAGES)) for some, each in words if each]
    if text is None and not keywords and not expected.context:
        return None
    return ExpectedView(text, marked, keywords, expected.context or ())


def _tool_calls(expected: Sequence[ExpectedCall] | None, reply: Reply, pairs: Sequence[CallPair]) -> ToolCalls | None:
    """The calls of a turn, or `None` if there were none and none were expected."""
    if expected is None and not pairs:
        return None
    if not expected and not reply.tool_calls:
        note = "No calls, as expected." if reply.hidden_calls is None else "No calls were observed."
        return ToolCalls(note, compared=False)
    note = "No calls were expected." if expected is not None and not expected else ""
    compared = expected is not None or any(pair.expected_text for pair in pairs)
    rows = [_call_row(pair) for pair in pairs[:MAX_CALLS]]
    return ToolCalls(note, compared, rows, len(pairs) - len(rows))


def _call_row(pair: CallPair) -> CallRow:
    return CallRow(
        fit="" if pair.fit is None else pair.fit.value,
        symbol="" if pair.fit is None else FIT_SYMBOLS[pair.fit],
        expected=None if pair.expected is None else _expected_call(pair.expected),
        expected_text=pair.expected_text,
        actual=None if pair.call is None else _actual_call(pair.call, pair),
    )


def _expected_call_note(call: ExpectedCall) -> str:
    notes = [f"at least {call.count:,} times"] if call.count != 1 else []
    return ", ".join([*notes, "or in an earlier turn"] if call.or_earlier else notes)


def _expected_call(call: ExpectedCall) -> CallSide:
    arguments = None
    if call.args is not None:
        arguments = [_expected_argument(name, matcher) for name, matcher in call.args.items()]
    return CallSide(
        name=f"…{call.name}…" if call.substring else call.name,
        note=_expected_call_note(call),
        arguments=arguments if arguments is None else arguments[:MAX_CALLS],
        more_arguments=max(0, len(arguments or ()) - MAX_CALLS),
        and_others=call.args is not None and call.extra_args,
        result=None if call.result is UNSET else pretty(call.result),
    )


def _expected_argument(name: str, matcher: Matcher) -> Argument:
    if isinstance(matcher, Ignore):
        return Argument(name, None, may_be_anything=True)
    return Argument(name, pretty(matcher.value) if isinstance(matcher, Equals) else describe(matcher))


def _actual_call(call: ToolCall, pair: CallPair) -> CallSide:
    arguments = list(_arguments(call, pair))
    return CallSide(
        name=call.name,
        note="" if call.duration_ms is None else duration(call.duration_ms),
        arguments=arguments[:MAX_CALLS],
        more_arguments=max(0, len(arguments) - MAX_CALLS),
        raw_arguments=call.raw_arguments,
        error_label="no result" if call.error == UNFINISHED_CALL else "raised",
        error=call.error,
        result=None if call.result is None or call.error is not None else pretty(call.result),
    )


def _arguments(call: ToolCall, pair: CallPair) -> Iterator[Argument]:
    """The arguments of a call in the order of the expected ones, so that both sides line up."""
    rules = {} if pair.expected is None or pair.expected.args is None else pair.expected.args
    names = [*(name for name in rules if name in call.arguments or name in pair.wrong)]
    names += [name for name in call.arguments if name not in rules]
    for name in names:
        value = pretty(call.arguments[name]) if name in call.arguments else None
        yield Argument(name, value, pair.wrong.get(name, ""))


def score_view(score: Score) -> ScoreView:
    """A score as a row of a table."""
    if score.value is not None and score.threshold is not None:
        value, threshold = distinct_decimals(score.value, score.threshold, 2)
    else:
        value, threshold = ("–" if number is None else f"{number:.2f}" for number in (score.value, score.threshold))
    details = pretty(score.details) if score.details else ""
    judge = judge_title(name) if (name := judge_name(score)) else ""
    return ScoreView(score, value, threshold, mean_text(score) or "", judge, details)


def _mark_answer(expected: Expected, reply: Reply, limit: int) -> tuple[MarkedText, MarkedText] | None:
    """The expected and the actual output with their differences marked; JSON in a text answer is read as data."""
    if expected.output is UNSET:
        return None
    output, answer = to_json(expected.output), _answer(reply)
    if isinstance(output, (dict, list)) and isinstance(answer, str):
        with contextlib.suppress(ValueError, RecursionError):
            answer = json.loads(answer)
    texts = pretty(output), pretty(answer)
    return mark_differences(*texts) if max(map(len, texts)) <= limit else None


MAX_MARKED_WORDS = 3_000
"""Maximum words per side; longer texts are shown without marks."""
MIN_SHARED = 0.25
"""Texts that share fewer of their words are shown without marks, which would cover nearly all of both."""

_PARTS = r"\s+|\d[\d.,]*\d|\w+|[^\w\s]"


def mark_differences(expected: str, actual: str) -> tuple[MarkedText, MarkedText] | None:
    """Both texts with their differences marked, or `None` if marks would not help."""
    if expected == actual or not expected or not actual:
        return None
    sides = [re.findall(_PARTS, text[: 20 * MAX_MARKED_WORDS]) for text in (expected, actual)]
    if (
        any(len(parts) > MAX_MARKED_WORDS for parts in sides)
        or "".join(sides[0]) != expected
        or "".join(sides[1]) != actual
    ):
        return None
    matcher = SequenceMatcher(None, sides[0], sides[1], autojunk=False)
    shared = sum(_words(sides[0][block.a : block.a + block.size]) for block in matcher.get_matching_blocks())
    if shared < MIN_SHARED * max(map(_words, sides)):
        return None
    left: list[tuple[bool, str]] = []
    right: list[tuple[bool, str]] = []
    for kind, start, end, first, last in matcher.get_opcodes():
        differs = kind != "equal"
        left.append((differs, "".join(sides[0][start:end])))
        right.append((differs, "".join(sides[1][first:last])))
    return [piece for piece in left if piece[1]], [piece for piece in right if piece[1]]


def _words(parts: list[str]) -> int:
    return sum(not part.isspace() for part in parts)
