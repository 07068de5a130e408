"""Groups failures by cause, so that ten failures with one cause are read once.

Two trials have the same cause if their *signatures* are equal: outcome, failing evaluators, tool, turn, and the reason
without what differs from case to case (quoted texts, numbers, ids). Comparing the reasons themselves would put nearly
every failure into its own group; comparing only evaluators would merge failures that need different fixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proctor.base.json_data import Json
from proctor.reporting.call_pairs import CallFit, pair_calls, turn_faults
from proctor.results.reasons import MAX_REASON_READ, deciding_score, headline_reason, normalize_reason
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

MAX_EXAMPLES = 5

_INNER_PATH = re.compile(r"((?:\[\d+\]|[\w-]+)(?:\[\d+\]|\.[\w-]+)*): ")
_INDEX = re.compile(r"\[\d+\]")
_ERROR_CLASS = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Failed|Timeout|Interrupt|Exit)\b")


@dataclass(frozen=True, slots=True)
class TrialReference:
    """The suite, case and number of a trial."""

    suite: str
    case_id: str
    number: int


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Trials that failed in the same way at the same place."""

    outcome: Outcome
    evaluators: tuple[str, ...]
    """Those that failed or raised an error; none if the agent did not answer."""
    cause: str
    """An error, what was wrong with a tool call, or the reason, without the values that differ from case to case."""
    tool: str
    turn: int | None
    """The index of the turn, in a conversation of several turns."""
    trials: int
    cases: int
    examples: tuple[TrialReference, ...]
    sample: str
    """The full reason of the first of these trials."""


class _Members:
    """The trials of one cause, while they are being added."""

    __slots__ = ("cases", "examples", "sample", "trials")

    def __init__(self, sample: str) -> None:
        self.trials = 0
        self.cases: set[tuple[str, str]] = set()
        self.examples: list[TrialReference] = []
        self.sample = sample

    def add(self, trial: Trial) -> None:
        self.trials += 1
        self.cases.add((trial.suite, trial.case.id))
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(TrialReference(trial.suite, trial.case.id, trial.number))


Signature = tuple[Outcome, tuple[str, ...], str, str, int | None]


class FailureCauses:
    """Collects causes trial by trial, without keeping the trials."""

    def __init__(self) -> None:
        self._members: dict[Signature, _Members] = {}

    def add(self, trial: Trial) -> None:
        if trial.outcome not in (Outcome.FAILED, Outcome.ERROR):
            return
        key = signature(trial)
        if key not in self._members:
            self._members[key] = _Members(headline_reason(trial))
        self._members[key].add(trial)

    def causes(self) -> tuple[FailureCause, ...]:
        """The most frequent first; equally frequent ones in the order in which they first occurred."""
        ordered = sorted(self._members.items(), key=lambda item: -item[1].trials)
        return tuple(
            FailureCause(*key, group.trials, len(group.cases), tuple(group.examples), group.sample)
            for key, group in ordered
        )


def cause_name(trial: Trial) -> str:
    """The cause of a trial's failure as one line, the same for all trials with this cause."""
    outcome, evaluators, cause, tool, turn = signature(trial)
    where = "" if turn is None else f" at turn {turn + 1}"
    text = f"{tool} {cause}" if tool else cause or outcome.value
    by = f" ({', '.join(evaluators)})" if evaluators else ""
    return f"{text}{where}{by}".encode("utf-8", "replace").decode()


def error_class(reason: str) -> str:
    """The name of the error class in a reason, or ""."""
    match = _ERROR_CLASS.search(reason[:MAX_REASON_READ])
    return match.group() if match else ""


def signature(trial: Trial) -> Signature:
    """What two trials that failed for the same cause have in common."""
    evaluators = dict.fromkeys(s.evaluator for s in trial.scores if not s.report_only and s.outcome is trial.outcome)
    score = deciding_score(trial)
    turn = _turn(trial, None if score is None else score.turn)
    reason = trial.end_reason or ("" if score is None else score.reasoning)
    tool, fault = ("", "") if trial.end_reason else _tool_fault(trial, score, turn)
    if error := error_class(reason) if trial.outcome is Outcome.ERROR or trial.end_reason else "":
        rest = normalize_reason(reason.partition(error)[2].lstrip(": "))
        return trial.outcome, tuple(evaluators), f"{error}: {rest}" if rest else error, tool, turn
    return trial.outcome, tuple(evaluators), fault or normalize_reason(reason), tool, turn


def _turn(trial: Trial, scored: int | None) -> int | None:
    if len(trial.case.turns) == 1:
        return None
    unreached = len(trial.replies) if len(trial.replies) < len(trial.case.turns) else None
    return unreached if trial.end_reason else scored


def _tool_fault(trial: Trial, score: Score | None, turn: int | None) -> tuple[str, str]:
    """The tool call that was wrong, and how, according to the evaluator that failed.

    An evaluator that does not look at tool calls reports none. Then only a call that raised an error can be the cause.
    If no evaluator reported what it found in the calls, they are compared here.
    """
    if score is not None and (reported := _reported_faults(trial, score, turn)):
        return reported[0]
    compared = any("pairs" in item.details or "faults" in item.details for item in trial.scores)
    faults = sorted(_faults(trial, turn, compared), key=lambda fault: fault[0])
    return faults[0][1:] if faults else ("", "")


def _reported_faults(trial: Trial, score: Score, turn: int | None) -> list[tuple[str, str]]:
    turns = range(len(trial.replies)) if turn is None else [turn]
    faults = [fault for index in turns for fault in turn_faults(score, trial, index)]
    return [
        (str(fault.get("tool", "")), _fault_text(fault, no_tool=_expects_no_tool(trial, turn)))
        for fault in faults
        if fault.get("kind") in (*_FAULT_TEXTS, "arguments")
    ]


NO_TOOL_EXPECTED = "was called but no tool was expected"
_FAULT_TEXTS = {
    "missing": "was not called",
    "order": "was called out of order",
    "extra": "was called but not expected",
    "forbidden": "was called but is forbidden",
}


def _fault_text(fault: Mapping[str, Json], *, no_tool: bool) -> str:
    kind = str(fault["kind"])
    if kind == "arguments":
        wrong = fault.get("arguments")
        return argument_fault(wrong if isinstance(wrong, Mapping) else {})
    return NO_TOOL_EXPECTED if no_tool and kind == "extra" else _FAULT_TEXTS[kind]


def _expects_no_tool(trial: Trial, turn: int | None) -> bool:
    turns = trial.case.turns if turn is None else trial.case.turns[turn : turn + 1]
    return all(item.expected.tools == () for item in turns)


def _faults(trial: Trial, chosen: int | None, compared: bool) -> Iterator[tuple[int, str, str]]:
    """Each fault with its rank: a missing or wrong call explains more than one that raised an error."""
    for index, (turn, reply) in enumerate(zip(trial.case.turns, trial.replies, strict=False)):
        if chosen not in (None, index):
            continue
        expected = turn.expected.tools
        for pair in pair_calls(None if compared else expected, reply.tool_calls):
            if pair.expected is not None and pair.fit is CallFit.MISSING and reply.hidden_calls is None:
                yield 0, pair.expected.name, "was not called"
            elif pair.expected is not None and pair.call is not None and pair.fit is CallFit.DIFFERS:
                yield 0, pair.expected.name, argument_fault(pair.wrong)
            elif pair.call is not None and pair.call.error is not None:
                yield 1, pair.call.name, f"raised {error_class(pair.call.error) or normalize_reason(pair.call.error)}"
            elif pair.call is not None and expected == () and not compared:
                yield 2, pair.call.name, NO_TOOL_EXPECTED


def argument_fault(wrong: Mapping[str, Json]) -> str:
    """What was wrong with the arguments of a call: wrong, missing and unexpected ones, by the reason for each."""
    if not wrong or "" in wrong:
        return "was called with arguments that are not an object"
    kinds: dict[str, list[str]] = {"with the wrong": [], "without": [], "with an unexpected": []}
    for name, text in wrong.items():
        inner = _INNER_PATH.match(str(text))
        reason = str(text)[inner.end() :] if inner else str(text)
        path = _argument_path(str(name), inner.group(1) if inner else "")
        kind = "without" if reason.startswith("missing") else "with the wrong"
        kinds["with an unexpected" if reason.startswith("not expected") else kind].append(path)
    parts = [f"{kind} {_join_names(names)}" for kind, names in kinds.items() if names]
    return f"was called {' and '.join(parts)}"


def _argument_path(name: str, inner: str) -> str:
    """The path of a difference in an argument, without the indexes of lists: `payment[].amount`."""
    path = _INDEX.sub("[]", inner)
    return f"{name}{path}" if path.startswith("[") or not path else f"{name}.{path}"


def _join_names(names: list[str]) -> str:
    return f"{', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"
