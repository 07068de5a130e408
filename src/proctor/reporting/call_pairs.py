"""Pairs the tool calls of a turn with the expected ones, as the evaluator that failed did.

The pairs come from the details of that evaluator's score, so that a report never contradicts a score. Without such
details the calls are compared here, but only with matchers that run no pattern and no user code: a pattern may take
forever, and a report must not. Calls that cannot be compared that way are paired by name.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import UNSET, Json
from proctor.cases.matchers import Equals, Ignore
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import expand_counts, match_matrix, name_matrix, wrong_arguments
from proctor.evaluators.tools.differences import Fault, differences
from proctor.evaluators.tools.pairing import best_pairs
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

MAX_COMPARED_CALLS = 100
"""More calls than this in one turn are listed without comparing them."""


class CallFit(enum.StrEnum):
    """How an actual call relates to an expected one."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    MISSING = "missing"
    NOT_OBSERVED = "not observed"
    """The call is missing, but calls of this tool may have been made that nobody saw."""
    NOT_EXPECTED = "not expected"
    OUT_OF_ORDER = "out of order"
    FORBIDDEN = "forbidden"
    EARLIER = "called in an earlier turn"
    """It is not among the calls of this turn, and need not be."""
    IGNORED = "ignored"
    """The call ended in an error or was made inside another one, and the evaluator does not count those."""


@dataclass(frozen=True, slots=True)
class CallPair:
    """An expected call, an actual call, and how they compare; each is `None` if there is none or it is not known."""

    expected: ExpectedCall | None
    call: ToolCall | None
    fit: CallFit | None
    wrong: Mapping[str, str] = field(default_factory=dict)
    """The arguments that are not as expected, each with the reason."""
    expected_text: str = ""
    """What an evaluator expected, if it is not an expected call of the case."""


def pair_calls_of(trial: Trial, turn: int) -> list[CallPair]:
    """The pairs of one turn of a trial, which has a reply."""
    expected, reply = trial.case.turns[turn].expected.tools, trial.replies[turn]
    pairs = pair_calls(expected, reply.tool_calls, call_findings(trial, turn))
    return [replace(pair, fit=CallFit.NOT_OBSERVED) if _may_be_hidden(pair, reply) else pair for pair in pairs]


def _may_be_hidden(pair: CallPair, reply: Reply) -> bool:
    if reply.hidden_calls is None or pair.fit is not CallFit.MISSING:
        return False
    return pair.expected is None or pair.expected.name not in reply.hidden_calls.visible


def pair_calls(
    expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall], details: Mapping[str, Json] | None = None
) -> list[CallPair]:
    """The pairs in the order of the actual calls; missing calls come last.

    `details` are those of evaluators of tool calls (`call_findings`), which decide how calls compare.
    """
    details = details or {}
    if max(len(expected or ()), len(calls)) > MAX_COMPARED_CALLS:
        return [CallPair(call, None, None) for call in expected or ()] + [CallPair(None, c, None) for c in calls]
    if expected is None:
        rows = [CallPair(None, call, None) for call in calls]
    elif "pairs" in details:
        rows = _pair_as_scored(expected, calls, details)
    elif all(map(has_plain_arguments, expected)):
        rows = _pair_by_arguments(expected, calls)
    else:
        rows = _pair_by_name(expected, calls)
    return _add_faults(rows, details.get("faults", ()))


def call_findings(trial: Trial, turn: int) -> Mapping[str, Json] | None:
    """What evaluators found when they compared the tool calls of a turn, or `None` if none did.

    The pairs come from one evaluator that compares with the expected calls, if possible one that failed. The faults
    come from all that failed.
    """
    scores = [score for score in trial.scores if "pairs" in score.details or "faults" in score.details]
    scores.sort(key=lambda score: (score.outcome is not Outcome.FAILED, score.report_only))
    details: dict[str, Json] = {}
    for score in scores:
        if _is_of_turn(score, trial, turn) and "pairs" in score.details and "different" in score.details:
            details = dict(score.details)
            break
    details["faults"] = [
        fault for score in scores if score.outcome is Outcome.FAILED for fault in turn_faults(score, trial, turn)
    ]
    return details if len(details) > 1 or details["faults"] else None


def turn_faults(score: Score, trial: Trial, turn: int) -> list[Fault]:
    """The faults that a score reports in the calls of one turn. Its details may come from a file and be anything."""
    reported = score.details.get("faults")
    faults = [dict(fault) for fault in reported if isinstance(fault, Mapping)] if isinstance(reported, list) else []
    if _is_of_turn(score, trial, turn):
        return faults
    if score.turn is not None:
        return []
    first = sum(len(reply.tool_calls) for reply in trial.replies[:turn])
    last = first + len(trial.replies[turn].tool_calls) if turn < len(trial.replies) else first
    own: list[Fault] = []
    for fault in faults:
        actual = fault.get("actual")
        if isinstance(actual, int) and first <= actual < last:
            own.append({**fault, "actual": actual - first})
        elif actual is None and turn == len(trial.replies) - 1:
            own.append(fault)
    return own


def _is_of_turn(score: Score, trial: Trial, turn: int) -> bool:
    return score.turn == turn or (score.turn is None and len(trial.case.turns) == 1)


def has_plain_arguments(expected: ExpectedCall) -> bool:
    """Whether a call can be compared with it without running a pattern, a predicate or other code of a suite."""
    plain = all(isinstance(matcher, (Equals, Ignore)) for matcher in (expected.args or {}).values())
    return plain and expected.result is UNSET  # a result may hold patterns


def _pair_by_arguments(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> list[CallPair]:
    weights = match_matrix(expected, calls)
    units = expand_counts(expected, len(calls))
    pairs = [(units[unit], column) for unit, column in best_pairs([weights[index] for index in units])]
    left = differences(expected, calls, pairs)
    partners: dict[int, tuple[int, CallFit | None]] = {column: (index, CallFit.AS_EXPECTED) for index, column in pairs}
    partners |= {column: (index, CallFit.DIFFERS) for index, column, _ in left.different}
    return _rows(expected, calls, partners, left.missing)


def _rows(
    expected: Sequence[ExpectedCall],
    calls: Sequence[ToolCall],
    partners: Mapping[int, tuple[int, CallFit | None]],
    missing: Iterable[int],
) -> list[CallPair]:
    """The pairs; `partners` has the expected call of each actual call, by index, and how the two compare."""
    rows = []
    for column, call in enumerate(calls):
        if column not in partners:
            rows.append(CallPair(None, call, CallFit.NOT_EXPECTED))
            continue
        index, fit = partners[column]
        target = expected[index]
        rows.append(CallPair(target, call, fit, _wrong_plain_arguments(target, call) if fit is CallFit.DIFFERS else {}))
    return rows + [CallPair(expected[index], None, CallFit.MISSING) for index in missing]


def _pair_as_scored(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], details: Mapping[str, Json]
) -> list[CallPair]:
    """The pairs that an evaluator found. Its details may come from a file, so they are checked."""
    try:
        partners: dict[int, tuple[int, CallFit | None]] = {c: (i, CallFit.AS_EXPECTED) for i, c in details["pairs"]}
        partners |= {c: (i, CallFit.OUT_OF_ORDER) for i, c in details.get("out_of_order", ())}
        partners |= {item["actual"]: (item["expected"], CallFit.DIFFERS) for item in details["different"]}
        if not all(isinstance(i, int) and 0 <= i < len(expected) for i, _ in partners.values()):
            return _pair_by_name(expected, calls)
        rows = _rows(expected, calls, partners, [item["expected"] for item in details["missing"]])
        for item in details["different"]:
            column, reasons = item["actual"], [str(reason) for reason in item["reasons"]]
            rows[column] = replace(rows[column], wrong=_wrong_arguments_in(rows[column], reasons))
        rows += [CallPair(expected[index], None, CallFit.EARLIER) for index in details.get("earlier", ())]
        for column in details.get("left_out", ()):
            rows[column] = CallPair(None, calls[column], CallFit.IGNORED)
        return rows
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return _pair_by_name(expected, calls)


def _wrong_arguments_in(row: CallPair, reasons: Sequence[str]) -> dict[str, str]:
    """The wrong arguments and why, from reasons such as `city: 'Oslo' → 'Bergen'`."""
    rules = {} if row.expected is None else row.expected.args or {}
    actual = {} if row.call is None else row.call.arguments
    names = sorted({*rules, *actual}, key=len, reverse=True)
    wrong: dict[str, str] = {}
    for reason in reasons:
        name = next((name for name in names if reason.startswith(tuple(f"{name}{end}" for end in ":.[ "))), None)
        if name is not None:
            why = reason[len(name) :].removeprefix(":").removeprefix(".").lstrip()
            wrong[name] = f"{wrong[name]}, {why}" if name in wrong else why
    return {**wrong, **{name: why for name, why in row.wrong.items() if name not in wrong}}


def _pair_by_name(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> list[CallPair]:
    """The calls paired by name, with wrong arguments as far as no pattern is needed to find them."""
    relation = name_matrix(expected, calls)
    units = expand_counts(expected, len(calls))
    pairs = [(units[unit], column) for unit, column in best_pairs([relation[index] for index in units])]
    missing = Counter({index: call.count for index, call in enumerate(expected)})
    missing.subtract(index for index, _ in pairs)
    partners: dict[int, tuple[int, CallFit | None]] = {
        column: (index, CallFit.DIFFERS if _wrong_plain_arguments(expected[index], calls[column]) else None)
        for index, column in pairs
    }
    return _rows(expected, calls, partners, [index for index, count in missing.items() if count > 0])


def _wrong_plain_arguments(expected: ExpectedCall, call: ToolCall) -> dict[str, str]:
    """The wrong arguments and why, as far as no pattern is needed to find them."""
    rules = expected.args
    if rules is None or call.raw_arguments is not None:
        return {}
    safe = {
        name: matcher if isinstance(matcher, (Equals, Ignore)) or name not in call.arguments else Ignore()
        for name, matcher in rules.items()
    }
    return wrong_arguments(replace(expected, args=safe), call)


def _add_faults(rows: list[CallPair], faults: Iterable[Json]) -> list[CallPair]:
    """The rows with the faults of evaluators that use no expected calls: steps of a trajectory, forbidden tools."""
    marked = list(rows)
    places = [index for index, row in enumerate(rows) if row.call is not None]
    for fault in faults:
        kind, actual = fault.get("kind"), fault.get("actual")
        if isinstance(actual, int) and 0 <= actual < len(places):
            row = marked[places[actual]]
            marked[places[actual]] = _add_fault(row, kind, fault)
        elif kind == "missing" and not any(_is_missing_call(row, fault) for row in marked):
            marked.append(
                CallPair(None, None, CallFit.MISSING, expected_text=str(fault.get("call") or fault.get("tool")))
            )
    return marked


_FITS = {
    "forbidden": CallFit.FORBIDDEN,
    "order": CallFit.OUT_OF_ORDER,
    "arguments": CallFit.DIFFERS,
    "extra": CallFit.NOT_EXPECTED,
}


def _add_fault(row: CallPair, kind: Json, fault: Mapping[str, Json]) -> CallPair:
    fit = _FITS.get(kind) if isinstance(kind, str) else None
    if fit is None or row.fit is CallFit.FORBIDDEN or (row.fit is CallFit.AS_EXPECTED and fit is CallFit.NOT_EXPECTED):
        return row
    arguments = fault.get("arguments")
    wrong = {str(name): str(why) for name, why in arguments.items()} if isinstance(arguments, Mapping) else {}
    expected_text = str(fault.get("call", "")) if row.expected is None else ""
    return replace(row, fit=fit, wrong=row.wrong or wrong, expected_text=expected_text)


def _is_missing_call(row: CallPair, fault: Mapping[str, Json]) -> bool:
    return row.fit is CallFit.MISSING and row.expected is not None and row.expected.name == fault.get("tool")
