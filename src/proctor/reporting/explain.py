"""Explains one trial in plain words: what was asked, expected and answered, which tools were called, why it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from proctor.agents.reply import UNFINISHED_CALL, Reply, ToolCall
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.cases.matchers import Equals, Matcher, describe
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.evaluators.evaluation import collapse
from proctor.reporting.call_pairs import CallFit, CallPair, call_findings, pair_calls
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import is_cause, score_value
from proctor.results.run import Outcome, Score, TrialResult


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth knowing about a trial, with the word that introduces it."""

    label: str
    text: str
    outcome: Outcome | None = None
    """Of the score, where the fact is one."""
    pair: tuple[str, str] | None = None
    """What stands left and right, where the text has two columns."""


@dataclass(frozen=True, slots=True)
class DetailLevel:
    """How much is told."""

    value: int = 500
    """The most characters of an input, an answer or a reason."""
    result: int = 160
    """The most characters of what a tool gave back."""
    lines: int = 12
    """The most lines of any of them."""
    everything: bool = False
    """Also what went well: all turns, all scores."""


CALL_COLUMNS = ("expected", "made")
MAX_EXPECTED_WIDTH = 44
"""Columns for an expected call beside the one that was made."""

BRIEF = DetailLevel()
FULL = DetailLevel(4_000, 2_000, 80, True)


def explain(trial: TrialResult, detail: DetailLevel = BRIEF) -> list[Fact]:
    """Everything a person needs to see why the trial ended as it did."""
    facts: list[Fact] = []
    turns = trial.case.turns
    for index in _turns_to_show(trial, detail):
        if len(turns) > 1:
            facts.append(Fact("turn", f"{index + 1} of {len(turns)}"))
        facts.extend(_turn_facts(trial, index, detail))
    facts.extend(_state_facts(trial, detail))
    if trial.reason:
        facts.append(Fact("reason", shorten(trial.reason, detail.value)))
    facts.extend(_score_facts(trial.scores, detail))
    return facts


def as_text(facts: Sequence[Fact]) -> str:
    """Facts as plain text in two columns."""
    column = max((len(fact.label) for fact in facts), default=0) + 2
    lines = []
    for fact in facts:
        first, *rest = fact.text.split("\n")
        lines.append(f"{fact.label:<{column}}{first}")
        lines += [f"{'':<{column}}{line}" for line in rest]
    return "\n".join(lines)


def shorten(text: str, limit: int) -> str:
    """The beginning of a long text, saying how long it was."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters in all)"


def truncation_note(text: str) -> str:
    """What `shorten` says at the end of a text that it cut; the number of its lines is not known then."""
    told = re.search(r"\.\.\. \([0-9,]+ characters in all\)\Z", text)
    return "" if told is None else told.group()


def input_text(case: Case, turn: Turn) -> str:
    """What the agent was given: the words, or the values by name where there are no words."""
    if turn.input is None and case.inputs:
        return value_text({item.name: item.value for item in case.inputs})
    return value_text(turn.input)


def answer_text(reply: Reply) -> str:
    """What evaluators saw: the named outputs where there are any, else the words, else the data."""
    if reply.outputs:
        return value_text(collapse(reply.outputs))
    if reply.text or reply.structured is None:
        return reply.text
    return value_text(reply.structured)


def failure_locations(reply: Reply) -> list[str]:
    """Where in the user's files a turn broke, the outermost place first; nothing where that is not known."""
    lines = (reply.error or "").split("\n")[1:]
    return [line.removeprefix("  at ") for line in lines if line.startswith("  at ")]


def value_text(value: Json) -> str:
    return value if isinstance(value, str) else to_text(to_json(value))


def call_text(call: ToolCall, limit: int) -> str:
    """A call as code reads: `search(query="refund") -> [...]`."""
    if call.raw_arguments is not None:
        inside = shorten(call.raw_arguments, limit)
    else:
        inside = ", ".join(f"{name}={shorten(_literal(value), limit)}" for name, value in call.arguments.items())
    text = f"{call.name}({inside})"
    if call.error is not None:
        return f"{text} {'' if call.error == UNFINISHED_CALL else 'raised '}{shorten(call.error, limit)}"
    return text if call.result is None else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_call_text(call: ExpectedCall, limit: int) -> str:
    """An expected call in the same manner; without brackets where the arguments do not matter."""
    text = f"*{call.name}*" if call.substring else call.name
    if call.args is not None:
        inside = [f"{name}={shorten(_matcher_text(matcher), limit)}" for name, matcher in call.args.items()]
        text += f"({', '.join([*inside, '...'] if call.extra_args else inside)})"
    if call.count != 1:
        text += f" x{call.count}"
    return text if call.result is UNSET else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_lines(expected: Expected, limit: int) -> Iterator[str]:
    """Everything that is expected of one turn, a line each."""
    if expected.output is not UNSET:
        yield shorten(value_text(expected.output), limit)
    if expected.contains is not None:
        for words, some in ((expected.contains.any, "any"), (expected.contains.all, "all")):
            if words:
                yield shorten(f"mentions {some} of {', '.join(_literal(word) for word in words)}", limit)
    if expected.tools is not None:
        calls = [expected_call_text(call, limit) for call in expected.tools]
        yield from (f"calls {call}" for call in calls) if calls else ("calls no tool",)


def missing_and_extra_tools(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> tuple[list[str], list[str]]:
    """The expected tools that were not called often enough, and the called ones that were not expected, by name."""
    left = [call.name for call in calls]
    missing: list[str] = []
    for wanted in sorted(expected, key=lambda call: (call.substring, -len(call.name))):
        fitting = [name for name in left if wanted.accepts_name(name)][: wanted.count]
        for name in fitting:
            left.remove(name)
        if lacking := wanted.count - len(fitting):
            missing.append(wanted.name if lacking == 1 else f"{wanted.name} x{lacking}")
    extra = [call.name for call in calls if not any(wanted.accepts_name(call.name) for wanted in expected)]
    return missing, list(dict.fromkeys(extra))


def _turns_to_show(trial: TrialResult, detail: DetailLevel) -> list[int]:
    """The turns in which something went wrong; the last one reached when none did."""
    every = range(len(trial.case.turns))
    if detail.everything or len(every) == 1:
        return list(every)
    failed = {score.turn for score in trial.scores if score.outcome in (Outcome.FAILED, Outcome.ERROR)}
    broken = {index for index, reply in enumerate(trial.replies) if reply.error is not None}
    unreached = len(trial.replies) if len(trial.replies) < len(every) and not broken else None
    failed |= broken
    chosen = [index for index in every if index in failed or index == unreached]
    return chosen or list(every)[-1:]


def _turn_facts(trial: TrialResult, index: int, detail: DetailLevel) -> Iterator[Fact]:
    turn = trial.case.turns[index]
    yield Fact("input", shorten(input_text(trial.case, turn), detail.value))
    was_answered = index < len(trial.replies)
    told = replace(turn.expected, tools=None) if was_answered else turn.expected
    for number, line in enumerate(expected_lines(told, detail.value)):
        yield Fact("" if number else "expected", line)
    if not was_answered:
        return
    reply = trial.replies[index]
    said = shorten(answer_text(reply), detail.value)
    if said or reply.error is None:
        yield Fact("got" if reply.error is None else "got so far", said or "(an empty answer)")
    pairs = pair_calls(turn.expected.tools, reply.tool_calls, call_findings(trial, index))
    for number, line in enumerate(failure_locations(reply)):
        yield Fact("" if number else "broke at", shorten(line, detail.value))
    for number, (line, pair) in enumerate(_call_lines(turn.expected.tools, reply.tool_calls, pairs, detail)):
        yield Fact("" if number else "calls", line, pair=pair)


def _call_lines(
    expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall], pairs: Sequence[CallPair], detail: DetailLevel
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """The calls that were made; beside those that were expected, where any were: as one text, and as two columns."""
    if expected is None:
        yield from ((_line(pair, detail), None) for pair in pairs)
        return
    if not expected and not calls:
        yield "none, as expected", None
        return
    rows = [CALL_COLUMNS, *(_row(pair, detail) for pair in pairs)]
    width = min(MAX_EXPECTED_WIDTH, max(len(left) for left, _ in rows))
    yield from ((f"{left:<{width}} | {right}", (left, right)) for left, right in rows)


def _line(pair: CallPair, detail: DetailLevel) -> str:
    """A call, and what an evaluator holds against it."""
    if pair.call is None:
        return f"(not made) {pair.expected_text}"
    return call_text(pair.call, detail.result) + _remark(pair)


def _row(pair: CallPair, detail: DetailLevel) -> tuple[str, str]:
    wanted, call = pair.expected, pair.call
    left = pair.expected_text or "(not expected)" if wanted is None else expected_call_text(wanted, detail.result)
    if call is None:
        return left, "(not made)" if pair.fit is CallFit.MISSING else ""
    return left, call_text(call, detail.result) + _remark(pair)


def _remark(pair: CallPair) -> str:
    told = [pair.fit.value] if pair.fit in (CallFit.FORBIDDEN, CallFit.OUT_OF_ORDER, CallFit.IGNORED) else []
    told += [name or "arguments" for name in pair.wrong]
    return f"  <- {', '.join(told)}" if told else ""


def _state_facts(trial: TrialResult, detail: DetailLevel) -> Iterator[Fact]:
    if trial.case.final_state is None or not trial.replies:
        return
    yield Fact("state", shorten(f"expected {value_text(trial.case.final_state)}", detail.value))
    yield Fact("", shorten(f"got {value_text(trial.replies[-1].state)}", detail.value))


def _score_facts(scores: Sequence[Score], detail: DetailLevel) -> Iterator[Fact]:
    quiet = () if detail.everything else (Outcome.PASSED, Outcome.SKIPPED)
    several = len({score.turn for score in scores if score.turn is not None}) > 1
    for score in scores:
        if score.outcome in quiet or (quiet and not is_cause(score)):
            continue
        words = score_value(score) + (" (informs)" if score.report_only else "")
        if judge := judge_name(score):
            words += f" (judge {judge})"
        if several and score.turn is not None:
            words += f" at turn {score.turn + 1}"
        reason = shorten(score.reasoning.strip(), detail.value)
        yield Fact(score.evaluator, f"{words}: {reason}" if reason else words, score.outcome)


def _literal(value: Json) -> str:
    """JSON, so that text and numbers can be told apart."""
    return json.dumps(to_json(value), ensure_ascii=False)


def _matcher_text(matcher: Matcher) -> str:
    return _literal(matcher.value) if isinstance(matcher, Equals) else describe(matcher)
