"""Explains one trial in plain words: what was asked, expected and answered, which tools were called, why it failed."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from proctor.agents.agent import Reply, ToolCall
from proctor.base.json_data import UNSET, Json, plain, show
from proctor.base.records import record
from proctor.cases.matchers import Equals, Ignore, Matcher, Regex
from proctor.cases.suite import NOTHING, Case, Expected, ExpectedCall, Turn
from proctor.evaluators.evaluation import collapse
from proctor.evaluators.tools.call_comparison import fitting, fitting_names, repeated
from proctor.evaluators.tools.differences import differences
from proctor.evaluators.tools.matching import best_pairs
from proctor.reporting.wording import decisive, fell_short, score_value
from proctor.results.judge_calls import judge_name
from proctor.results.run import Outcome, Score, TrialResult

MOST_COMPARED = 100
"""More calls than this in one turn are only listed: the comparison would be too long to read."""


class Fit(enum.StrEnum):
    """How an actual call relates to an expected one. Which order is right is the evaluators' business."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    MISSING = "missing"
    NOT_EXPECTED = "not expected"


@record
class CallPair:
    """What was expected, what was done, and how the two fit; `None` where that is not known."""

    expected: ExpectedCall | None
    call: ToolCall | None
    fit: Fit | None
    wrong: Mapping[str, str] = NOTHING
    """Each argument that is not as expected, and why."""


def pair_calls(
    expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall], found: Mapping[str, Json] | None = None
) -> list[CallPair]:
    """In the order of what was done; what is missing comes last.

    Patterns and predicates of expected calls are never run here: one may take forever. Where there are any, `found`,
    the details that an evaluator of tool calls left, says how the calls fit; without it they stand side by side.
    """
    if expected is None:
        return [CallPair(None, call, None) for call in calls]
    if max(len(expected), len(calls)) > MOST_COMPARED:
        return [CallPair(wanted, None, None) for wanted in expected] + [CallPair(None, call, None) for call in calls]
    if all(map(is_plain, expected)):
        weights = fitting(expected, calls)
        units = repeated(expected, len(calls))
        pairs = [(units[unit], column) for unit, column in best_pairs([weights[index] for index in units])]
        left = differences(expected, calls, pairs)
        partners = {column: (index, Fit.AS_EXPECTED) for index, column in pairs}
        partners |= {column: (index, Fit.DIFFERS) for index, column, _ in left.different}
        return _rows(expected, calls, partners, {}, left.missing)
    return _as_scored(expected, calls, found) if found else _side_by_side(expected, calls)


def scored_calls(trial: TrialResult, turn: int) -> Mapping[str, Json] | None:
    """What an evaluator found when it compared the tool calls of a turn; `None` where none did."""
    for score in trial.scores:
        of_turn = score.turn == turn or (score.turn is None and len(trial.case.turns) == 1)
        if of_turn and "pairs" in score.details and "different" in score.details:
            return score.details
    return None


def is_plain(expected: ExpectedCall) -> bool:
    """Whether comparing a call with it runs no pattern, predicate or other code of a file."""
    return all(isinstance(matcher, (Equals, Ignore)) for matcher in (expected.arguments or {}).values())


def _rows(
    expected: Sequence[ExpectedCall],
    calls: Sequence[ToolCall],
    partners: Mapping[int, tuple[int, Fit | None]],
    reasons: Mapping[int, Sequence[str]],
    missing: Iterable[int],
) -> list[CallPair]:
    """`partners`: by index of a call, the expected call it is compared with; `reasons`: why it differs, if known."""
    rows = []
    for column, call in enumerate(calls):
        if column not in partners:
            rows.append(CallPair(None, call, Fit.NOT_EXPECTED))
            continue
        index, fit = partners[column]
        wanted = expected[index]
        wrong = _wrong_arguments(wanted, call, reasons.get(column, ())) if fit is Fit.DIFFERS else {}
        rows.append(CallPair(wanted, call, fit, wrong))
    return rows + [CallPair(expected[index], None, Fit.MISSING) for index in missing]


def _as_scored(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], found: Mapping[str, Json]
) -> list[CallPair]:
    """As an evaluator found it; its details may come from a file, so that nothing is taken for granted."""
    try:
        partners: dict[int, tuple[int, Fit | None]] = {
            column: (index, Fit.AS_EXPECTED) for index, column in [*found["pairs"], *found.get("out_of_order", ())]
        }
        partners |= {item["actual"]: (item["expected"], Fit.DIFFERS) for item in found["different"]}
        reasons = {item["actual"]: [str(reason) for reason in item["reasons"]] for item in found["different"]}
        return _rows(expected, calls, partners, reasons, [item["expected"] for item in found["missing"]])
    except (KeyError, IndexError, TypeError, ValueError):
        return _side_by_side(expected, calls)


def _side_by_side(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> list[CallPair]:
    """Paired by name; whether the arguments fit is said only where no pattern is needed to see that they do not."""
    relation = fitting_names(expected, calls)
    units = repeated(expected, len(calls))
    pairs = [(units[unit], column) for unit, column in best_pairs([relation[index] for index in units])]
    missing = Counter({index: call.count for index, call in enumerate(expected)})
    missing.subtract(index for index, _ in pairs)
    partners: dict[int, tuple[int, Fit | None]] = {
        column: (index, Fit.DIFFERS if _wrong_arguments(expected[index], calls[column], ()) else None)
        for index, column in pairs
    }
    return _rows(expected, calls, partners, {}, [index for index, count in missing.items() if count > 0])


def _wrong_arguments(expected: ExpectedCall, call: ToolCall, reasons: Sequence[str]) -> dict[str, str]:
    """Each argument that is not as expected, and why: compared where that runs no pattern, else as `reasons` say."""
    rules = expected.arguments
    if rules is None or call.raw_arguments is not None:
        return {}
    wrong: dict[str, str] = {}
    for name, matcher in rules.items():
        if name not in call.arguments:
            if not isinstance(matcher, Ignore):
                wrong[name] = "is missing"
        elif isinstance(matcher, Equals):
            if why := matcher.mismatch(call.arguments[name]):
                wrong[name] = why
        elif why := next((reason[len(name) + 1 :] for reason in reasons if reason.startswith(f"{name} ")), ""):
            wrong[name] = why
    if not expected.extra_arguments:
        wrong |= {name: "was not expected" for name in call.arguments if name not in rules}
    return wrong


@record
class Fact:
    """One thing worth knowing about a trial, with the word that introduces it."""

    label: str
    text: str
    outcome: Outcome | None = None
    """Of the score, where the fact is one."""


@record
class Detail:
    """How much is told."""

    value: int = 500
    """The most characters of an input, an answer or a reason."""
    result: int = 160
    """The most characters of what a tool gave back."""
    lines: int = 12
    """The most lines of any of them."""
    everything: bool = False
    """Also what went well: all turns, all scores."""


WIDEST_EXPECTED = 44
"""Columns for an expected call beside the one that was made."""

BRIEF = Detail()
FULL = Detail(4_000, 2_000, 80, True)


def explain(trial: TrialResult, detail: Detail = BRIEF) -> list[Fact]:
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


def one_line_reason(trial: TrialResult, limit: int = 200) -> str:
    """Why the trial did not pass, in one short line."""
    score = decisive(trial.scores)
    if trial.reason or score is None:
        text = trial.reason
    else:
        turn = f" at turn {score.turn + 1}" if score.turn is not None and len(trial.case.turns) > 1 else ""
        text = f"{score.evaluator} {score_value(score)}{turn}"
        text += f": {score.reasoning}" if score.reasoning else ""
    return shorten(" ".join(text[: limit * 4].split()), limit)


def why_open(trial: TrialResult, limit: int = 200) -> str:
    """Why a trial was skipped or still waits, in one short line."""
    score = decisive(trial.scores)
    text = trial.reason or ("" if score is None else score.reasoning)
    return shorten(" ".join(text[: limit * 4].split()), limit)


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


def length_told(text: str) -> str:
    """What `shorten` says at the end of a text that it cut; the number of its lines is not known then."""
    import re

    told = re.search(r"\.\.\. \([0-9,]+ characters in all\)\Z", text)
    return "" if told is None else told.group()


def asked(case: Case, turn: Turn) -> str:
    """What the agent was given: the words, or the values by name where there are no words."""
    if turn.input is None and case.inputs:
        return shown({item.name: item.value for item in case.inputs})
    return shown(turn.input)


def answer(reply: Reply) -> str:
    """What evaluators saw: the named outputs where there are any, else the words, else the data."""
    if reply.outputs:
        return shown(collapse(reply.outputs))
    if reply.text or reply.structured is None:
        return reply.text
    return shown(reply.structured)


def shown(value: Json) -> str:
    return value if isinstance(value, str) else show(plain(value))


def call_text(call: ToolCall, limit: int) -> str:
    """A call as code reads: `search(query="refund") -> [...]`."""
    if call.raw_arguments is not None:
        inside = shorten(call.raw_arguments, limit)
    else:
        inside = ", ".join(f"{name}={shorten(_literal(value), limit)}" for name, value in call.arguments.items())
    text = f"{call.name}({inside})"
    if call.error is not None:
        return f"{text} raised {shorten(call.error, limit)}"
    return text if call.result is None else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_call_text(call: ExpectedCall, limit: int) -> str:
    """An expected call in the same manner; without brackets where the arguments do not matter."""
    text = f"*{call.name}*" if call.substring else call.name
    if call.arguments is not None:
        inside = [f"{name}={shorten(_matcher_text(matcher), limit)}" for name, matcher in call.arguments.items()]
        text += f"({', '.join([*inside, '...'] if call.extra_arguments else inside)})"
    if call.count != 1:
        text += f" x{call.count}"
    return text if call.result is UNSET else f"{text} -> {shorten(_literal(call.result), limit)}"


def expected_lines(expected: Expected, limit: int) -> Iterator[str]:
    """Everything that is expected of one turn, a line each."""
    if expected.output is not UNSET:
        yield shorten(shown(expected.output), limit)
    if expected.keywords is not None:
        for words, some in ((expected.keywords.any_of, "any"), (expected.keywords.all_of, "all")):
            if words:
                yield shorten(f"mentions {some} of {', '.join(_literal(word) for word in words)}", limit)
    if expected.tool_calls is not None:
        calls = [expected_call_text(call, limit) for call in expected.tool_calls]
        yield from (f"calls {call}" for call in calls) if calls else ("calls no tool",)


def missing_and_extra(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> tuple[list[str], list[str]]:
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


def _turns_to_show(trial: TrialResult, detail: Detail) -> list[int]:
    """The turns in which something went wrong; the last one reached when none did."""
    every = range(len(trial.case.turns))
    if detail.everything or len(every) == 1:
        return list(every)
    failed = {score.turn for score in trial.scores if score.outcome in (Outcome.FAILED, Outcome.ERROR)}
    unreached = len(trial.replies) if len(trial.replies) < len(every) else None
    failed |= {index for index, reply in enumerate(trial.replies) if reply.error is not None}
    chosen = [index for index in every if index in failed or index == unreached]
    return chosen or list(every)[-1:]


def _turn_facts(trial: TrialResult, index: int, detail: Detail) -> Iterator[Fact]:
    turn = trial.case.turns[index]
    yield Fact("input", shorten(asked(trial.case, turn), detail.value))
    was_answered = index < len(trial.replies)
    told = replace(turn.expected, tool_calls=None) if was_answered else turn.expected
    for number, line in enumerate(expected_lines(told, detail.value)):
        yield Fact("" if number else "expected", line)
    if not was_answered:
        return
    reply = trial.replies[index]
    yield Fact("got", shorten(answer(reply) or reply.error or "", detail.value) or "(an empty answer)")
    pairs = pair_calls(turn.expected.tool_calls, reply.tool_calls, scored_calls(trial, index))
    for number, line in enumerate(_call_lines(turn.expected.tool_calls, reply.tool_calls, pairs, detail)):
        yield Fact("" if number else "calls", line)


def _call_lines(
    expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall], pairs: Sequence[CallPair], detail: Detail
) -> Iterator[str]:
    """The calls that were made; beside those that were expected, where any were."""
    if expected is None:
        yield from (call_text(call, detail.result) for call in calls)
        return
    if not expected and not calls:
        yield "none, as expected"
        return
    rows = [_row(pair, detail) for pair in pairs]
    width = min(WIDEST_EXPECTED, max(len(left) for left, _ in [("expected", ""), *rows]))
    yield f"{'expected':<{width}} | made"
    yield from (f"{left:<{width}} | {right}" for left, right in rows)


def _row(pair: CallPair, detail: Detail) -> tuple[str, str]:
    wanted, call = pair.expected, pair.call
    left = "(not expected)" if wanted is None else expected_call_text(wanted, detail.result)
    if call is None:
        return left, "(not made)" if pair.fit is Fit.MISSING else ""
    right = call_text(call, detail.result)
    return left, right + (f"  <- {', '.join(pair.wrong)}" if pair.wrong else "")


def _state_facts(trial: TrialResult, detail: Detail) -> Iterator[Fact]:
    if trial.case.final_state is None or not trial.replies:
        return
    yield Fact("state", shorten(f"expected {shown(trial.case.final_state)}", detail.value))
    yield Fact("", shorten(f"got {shown(trial.replies[-1].state)}", detail.value))


def _score_facts(scores: Sequence[Score], detail: Detail) -> Iterator[Fact]:
    quiet = () if detail.everything else (Outcome.PASSED, Outcome.SKIPPED)
    several = len({score.turn for score in scores if score.turn is not None}) > 1
    for score in scores:
        if score.outcome in quiet or (quiet and not fell_short(score)):
            continue
        words = score_value(score) + ("" if score.gates else " (informs)")
        if judge := judge_name(score):
            words += f" (judge {judge})"
        if several and score.turn is not None:
            words += f" at turn {score.turn + 1}"
        reason = shorten(score.reasoning.strip(), detail.value)
        yield Fact(score.evaluator, f"{words}: {reason}" if reason else words, score.outcome)


def _literal(value: Json) -> str:
    """JSON, so that text and numbers can be told apart."""
    return json.dumps(plain(value), ensure_ascii=False)


def _matcher_text(matcher: Matcher) -> str:
    if isinstance(matcher, Regex):
        return f"/{matcher.pattern}/"
    return _literal(matcher.value) if isinstance(matcher, Equals) else _literal(matcher.to_json())
