"""Explains one trial: its input, the expected and the actual output, the tool calls, and why it failed.

`explain` returns a list of facts, which the terminal, JUnit, pytest and notebooks lay out in their own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.agents.reply import UNFINISHED_CALL, Reply, ToolCall
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.cases.matchers import Equals, Matcher, describe
from proctor.cases.suite import Case, Expected, ExpectedCall, Turn
from proctor.evaluators.evaluation import collapse
from proctor.reporting.call_pairs import CallFit, CallPair, pair_calls_of
from proctor.reporting.wording import judge_title
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import is_cause, score_value, scores_by_importance
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial


@dataclass(frozen=True, slots=True)
class Fact:
    """One line about a trial: a label, and a text that may have several lines."""

    label: str
    """Empty if the line continues the fact before it."""
    text: str
    outcome: Outcome | None = None
    """The outcome of the score, if the fact is about a score."""
    pair: tuple[str, str] | None = None
    """The left and the right column, if the text has two."""
    ends_matter: bool = False
    """Whether the end of the text says more than its beginning, as with the output of a program."""


@dataclass(frozen=True, slots=True)
class DetailLevel:
    """How much of a trial is shown."""

    value: int = 500
    """Maximum characters of an input, an answer or a reason."""
    result: int = 160
    """Maximum characters of an argument or a result of a tool call."""
    lines: int = 12
    """Maximum lines of any of them."""
    output_lines: int = 10
    """Maximum lines of each part of what was printed: the last ones."""
    everything: bool = False
    """Whether to show all turns and all scores, not only those that failed."""


CALL_COLUMNS = ("expected", "actual")
MAX_EXPECTED_WIDTH = 44
"""Width of the column of expected calls, if actual calls are next to them."""

BRIEF = DetailLevel()
FULL = DetailLevel(4_000, 2_000, 80, 60, True)


def explain(trial: Trial, detail: DetailLevel = BRIEF) -> list[Fact]:
    """The facts that show why the trial ended as it did."""
    facts: list[Fact] = []
    turns = trial.case.turns
    for index in _turns_to_show(trial, detail):
        if len(turns) > 1:
            facts.append(Fact("turn", f"{index + 1} of {len(turns)}"))
        facts.extend(_turn_facts(trial, index, detail))
    facts.extend(_state_facts(trial, detail))
    if trial.end_reason:
        facts.append(Fact("reason", shorten(trial.end_reason, detail.value)))
    facts.extend(_score_facts(scores_by_importance(trial), detail))
    if detail.output_lines:
        facts.extend(
            Fact(title, output_tail(text, detail.output_lines, detail.value), ends_matter=True)
            for title, text in trial.captured.sections()
        )
    return facts


def output_tail(text: str, lines: int, characters: int) -> str:
    """The last lines of what was printed, with a line above them if there are more before."""
    every = text.rstrip("\n").split("\n")
    tail = "\n".join(every[-lines:])
    if len(tail) > characters:
        tail = tail[-characters:]
        tail = tail[tail.find("\n") + 1 :]
    return tail if len(tail) == len("\n".join(every)) else f"... (earlier lines are not shown)\n{tail}"


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
    """The text, cut after `limit` characters with a note on how long it was."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters in all)"


def truncation_note(text: str) -> str:
    """The note that `shorten` put at the end of a text, or "" if it did not cut the text."""
    note = re.search(r"\.\.\. \([0-9,]+ characters in all\)\Z", text)
    return "" if note is None else note.group()


def input_text(case: Case, turn: Turn) -> str:
    """The input of a turn as text; for an agent that takes named values, those values."""
    if turn.input is None and case.inputs:
        return value_text({item.name: item.value for item in case.inputs})
    return value_text(turn.input)


def answer_text(reply: Reply) -> str:
    """The answer that evaluators scored: the named outputs if there are any, else the text, else the data."""
    if reply.outputs:
        return value_text(collapse(reply.outputs))
    if reply.text or reply.structured is None:
        return reply.text
    return value_text(reply.structured)


def empty_answer_text(reply: Reply) -> str:
    """What stands for an empty answer."""
    return "(the agent returned None)" if reply.returned_none else "(empty)"


def failure_locations(reply: Reply) -> list[str]:
    """The lines of the user's files in which a turn raised an error, the outermost first; empty if not known."""
    lines = (reply.error or "").split("\n")[1:]
    return [line.removeprefix("  at ") for line in lines if line.startswith("  at ")]


def value_text(value: Json) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_text(to_json(value))


def call_text(call: ToolCall, limit: int) -> str:
    """A call written like code: `search(query="refund") -> [...]`."""
    if call.raw_arguments is not None:
        arguments = shorten(call.raw_arguments, limit)
    else:
        arguments = ", ".join(f"{name}={shorten(_literal(value), limit)}" for name, value in call.arguments.items())
    text = f"{call.name}({arguments})"
    if call.error is not None:
        return f"{text} {'' if call.error == UNFINISHED_CALL else 'raised '}{shorten(call.error, limit)}"
    return text if call.result is None else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_call_text(call: ExpectedCall, limit: int) -> str:
    """An expected call in the same form, without parentheses if the arguments do not matter."""
    text = f"*{call.name}*" if call.substring else call.name
    if call.args is not None:
        inside = [f"{name}={shorten(_matcher_text(matcher), limit)}" for name, matcher in call.args.items()]
        text += f"({', '.join([*inside, '...'] if call.extra_args else inside)})"
    if call.count != 1:
        text += f" x{call.count}"
    if call.or_earlier:
        text += " or earlier"
    return text if call.result is UNSET else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_lines(expected: Expected, limit: int) -> Iterator[str]:
    """What a turn expects: output, keywords and tool calls, one line each."""
    if expected.output is not UNSET:
        yield shorten(value_text(expected.output), limit)
    if expected.contains is not None:
        for words, some in ((expected.contains.any, "any"), (expected.contains.all, "all")):
            if words:
                yield shorten(f"contains {some} of {', '.join(_literal(word) for word in words)}", limit)
    if expected.tools is not None:
        calls = [expected_call_text(call, limit) for call in expected.tools]
        yield from (f"calls {call}" for call in calls) if calls else ("calls no tool",)
    if expected.state is not None:
        yield shorten(f"state {value_text(expected.state)}", limit)


def missing_and_extra_tools(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> tuple[list[str], list[str]]:
    """The names of expected tools that were not called often enough, and of called tools that were not expected."""
    unmatched = [call.name for call in calls]
    missing: list[str] = []
    # The most specific expectation takes its calls first; one that matches part of a name could take them all.
    for item in sorted(expected, key=lambda call: (call.substring, -len(call.name))):
        matches = [name for name in unmatched if item.accepts_name(name)][: item.count]
        for name in matches:
            unmatched.remove(name)
        if (count := item.count - len(matches)) and not item.or_earlier:
            missing.append(item.name if count == 1 else f"{item.name} x{count}")
    extra = [call.name for call in calls if not any(item.accepts_name(call.name) for item in expected)]
    return missing, list(dict.fromkeys(extra))


def _turns_to_show(trial: Trial, detail: DetailLevel) -> list[int]:
    """The indexes of the turns that failed; of the last turn if none did."""
    every = range(len(trial.case.turns))
    if detail.everything or len(every) == 1:
        return list(every)
    failed = {score.turn for score in trial.scores if score.outcome in (Outcome.FAILED, Outcome.ERROR)}
    broken = {index for index, reply in enumerate(trial.replies) if reply.error is not None}
    unreached = len(trial.replies) if len(trial.replies) < len(every) and not broken else None
    failed |= broken
    chosen = [index for index in every if index in failed or index == unreached]
    return chosen or list(every)[-1:]


def _turn_facts(trial: Trial, index: int, detail: DetailLevel) -> Iterator[Fact]:
    turn = trial.case.turns[index]
    yield Fact("input", shorten(input_text(trial.case, turn), detail.value))
    was_answered = index < len(trial.replies)
    # The calls of a turn that was answered come below, next to the actual ones.
    expected = replace(turn.expected, tools=None) if was_answered else turn.expected
    for number, line in enumerate(expected_lines(expected, detail.value)):
        yield Fact("" if number else "expected", line)
    if not was_answered:
        return
    reply = trial.replies[index]
    output = shorten(answer_text(reply), detail.value)
    if output or reply.error is None:
        yield Fact("output" if reply.error is None else "partial output", output or empty_answer_text(reply))
    pairs = pair_calls_of(trial, index)
    for number, line in enumerate(failure_locations(reply)):
        yield Fact("" if number else "failed at", shorten(line, detail.value))
    if turn.expected.state is not None:
        yield Fact("state", shorten(value_text(reply.state), detail.value))
    for number, (line, pair) in enumerate(_call_lines(turn.expected.tools, reply, pairs, detail)):
        yield Fact("" if number else "calls", line, pair=pair)


def _call_lines(
    expected: Sequence[ExpectedCall] | None, reply: Reply, pairs: Sequence[CallPair], detail: DetailLevel
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """The tool calls as lines of text; next to the expected calls, if the turn expects any, also as two columns."""
    if expected is None:
        yield from ((_line(pair, detail), None) for pair in pairs)
        return
    if not expected and not reply.tool_calls:
        yield "no calls, as expected" if reply.hidden_calls is None else "no calls were observed", None
        return
    rows = [CALL_COLUMNS, *(_row(pair, detail) for pair in pairs)]
    width = min(MAX_EXPECTED_WIDTH, max(len(left) for left, _ in rows))
    yield from ((f"{left:<{width}} | {right}", (left, right)) for left, right in rows)


def _line(pair: CallPair, detail: DetailLevel) -> str:
    """A call, and what an evaluator found wrong with it."""
    if pair.call is None:
        return f"(not called) {pair.expected_text}"
    return call_text(pair.call, detail.result) + _remark(pair)


_NO_CALL: Mapping[CallFit | None, str] = {
    CallFit.MISSING: "(not called)",
    CallFit.NOT_OBSERVED: "(not observed)",
    CallFit.EARLIER: f"({CallFit.EARLIER})",
}
"""What stands in the place of an expected call that is missing."""


def _row(pair: CallPair, detail: DetailLevel) -> tuple[str, str]:
    expected, call = pair.expected, pair.call
    left = pair.expected_text or "(not expected)" if expected is None else expected_call_text(expected, detail.result)
    if call is None:
        return left, _NO_CALL.get(pair.fit, "")
    return left, call_text(call, detail.result) + _remark(pair)


def _remark(pair: CallPair) -> str:
    """What to look at in a call: `  <- out of order`, or the names of its wrong arguments."""
    remarks = [pair.fit.value] if pair.fit in (CallFit.FORBIDDEN, CallFit.OUT_OF_ORDER, CallFit.IGNORED) else []
    remarks += [name or "arguments" for name in pair.wrong]
    return f"  <- {', '.join(remarks)}" if remarks else ""


def _state_facts(trial: Trial, detail: DetailLevel) -> Iterator[Fact]:
    if trial.case.final_state is None or not trial.replies:
        return
    yield Fact("state", shorten(f"expected {value_text(trial.case.final_state)}", detail.value))
    yield Fact("", shorten(f"actual   {value_text(trial.replies[-1].state)}", detail.value))


def _score_facts(scores: Sequence[Score], detail: DetailLevel) -> Iterator[Fact]:
    hidden = () if detail.everything else (Outcome.PASSED, Outcome.SKIPPED)
    several = len({score.turn for score in scores if score.turn is not None}) > 1
    for score in scores:
        if score.outcome in hidden or (hidden and not is_cause(score)):
            continue
        text = score_value(score) + (" (report only)" if score.report_only else "")
        if judge := judge_name(score):
            text += f" ({judge_title(judge)})"
        if several and score.turn is not None:
            text += f" at turn {score.turn + 1}"
        reason = shorten(score.reasoning.strip(), detail.value)
        yield Fact(score.evaluator, f"{text}: {reason}" if reason else text, score.outcome)


def _literal(value: Json) -> str:
    """A value as JSON, which shows whether it is a string or a number."""
    return json.dumps(to_json(value), ensure_ascii=False)


def _matcher_text(matcher: Matcher) -> str:
    return _literal(matcher.value) if isinstance(matcher, Equals) else describe(matcher)
