"""Lays two trials of a case side by side, step by step, and finds their first difference.

A trial is a sequence of steps: user message, tool calls, answer, per turn. Comparing step 1 with step 1, step 2 with
step 2 would report everything after one extra tool call as different. So the calls of a turn are paired in order such
that as many arguments as possible agree (`best_pairs_in_order`); a call without a partner was made in one trial only.
The first difference that is shown is the most serious kind first: another call or argument matters more than another
wording, and another tool result least, because results such as the time come from outside the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import to_json, to_text
from proctor.cases.matchers import Equals, json_equal, literal
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import actual_text, credit, mismatches
from proctor.evaluators.tools.pairing import best_pairs_in_order
from proctor.results.comparison.divergence import Divergence, DivergenceKind
from proctor.results.score import Outcome
from proctor.results.trial import Trial

SAME_TOOL_WEIGHT = 0.01
"""Weight of pairing two calls of one tool that have no argument in common."""
MAX_CALLS = 400
"""Calls of one turn that are aligned; later ones are paired by position."""
MAX_TRIALS = 12
"""Trials of each run that are considered for the most similar pair."""
MAX_SENTENCE = 300

_SENTENCES = re.compile(r"[^.!?\n]*[.!?\n]+\s*|[^.!?\n]+$")


@dataclass(frozen=True, slots=True)
class Step:
    """A user message, a tool call, an answer, or the reason why the trial ended."""

    kind: Literal["user", "call", "answer", "end"]
    turn: int
    """Counted from 1."""
    text: str
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """The same step of two trials; one side is `None` if only the other trial has it."""

    before: Step | None
    after: Step | None
    difference: str = ""
    """What differs, in words; empty if nothing does."""
    kind: DivergenceKind | None = None
    """The kind of difference; `None` if nothing differs."""


@dataclass(frozen=True, slots=True)
class AlignedTrials:
    """Two trials side by side."""

    before: Trial
    after: Trial
    steps: tuple[AlignedStep, ...]
    divergence: Divergence | None

    @property
    def distance(self) -> float:
        """How different the trials are: the number of steps that differ, less where their texts are similar."""
        different = [step for step in self.steps if step.kind not in (None, "result")]
        return sum(1.0 if step.before is None or step.after is None else _dissimilarity(step) for step in different)


def align_trials(before: Trial, after: Trial) -> AlignedTrials:
    """Align two trials turn by turn."""
    steps = tuple(_aligned_steps(before, after))
    return AlignedTrials(before, after, steps, _divergence(steps))


def most_similar_trials(before: Sequence[Trial], after: Sequence[Trial]) -> AlignedTrials | None:
    """The two trials that differ least, if possible one that passed and one that failed."""
    pairs = [(a, b) for a in before[:MAX_TRIALS] for b in after[:MAX_TRIALS]]
    mixed = [(a, b) for a, b in pairs if {a.outcome, b.outcome} == {Outcome.PASSED, Outcome.FAILED}]
    aligned = [align_trials(a, b) for a, b in mixed or pairs]
    return min(aligned, key=lambda pair: pair.distance, default=None)


def _aligned_steps(before: Trial, after: Trial) -> Iterator[AlignedStep]:
    for index in range(max(len(before.replies), len(after.replies))):
        one, other = _reply(before, index), _reply(after, index)
        yield _pair(_question(before, index, one), _question(after, index, other), _text_difference("question"))
        yield from _aligned_calls(one, other, index + 1)
        answers = _answer(one, index), _answer(other, index)
        if answers != (None, None):
            yield _pair(*answers, _text_difference("sentence"))
    if before.end_reason != after.end_reason:
        last = max(len(before.replies), len(after.replies))
        sides = [Step("end", last, trial.end_reason) if trial.end_reason else None for trial in (before, after)]
        difference = f"{_text_or(sides[0], 'ended normally')} → {_text_or(sides[1], 'ended normally')}"
        yield AlignedStep(sides[0], sides[1], difference, "end")


def _reply(trial: Trial, index: int) -> Reply | None:
    return trial.replies[index] if index < len(trial.replies) else None


def _question(trial: Trial, index: int, reply: Reply | None) -> Step | None:
    if reply is None:
        return None
    turns = trial.case.turns
    value = turns[index].input if index < len(turns) else ""
    return Step("user", index + 1, value if isinstance(value, str) else to_text(value))


def _answer(reply: Reply | None, index: int) -> Step | None:
    if reply is None:
        return None
    text = reply.text
    if not text:
        outputs = {item.name: to_json(item.value) for item in reply.outputs}
        data = outputs if reply.structured is None else reply.structured
        text = to_text(data) if reply.structured or outputs else ""
    return None if reply.error is not None and not text else Step("answer", index + 1, text)


def _aligned_calls(one: Reply | None, other: Reply | None, turn: int) -> Iterator[AlignedStep]:
    first, second = (() if reply is None else reply.tool_calls for reply in (one, other))
    weights = [[_weight(a, b) for b in second[:MAX_CALLS]] for a in first[:MAX_CALLS]]
    pairs = best_pairs_in_order(weights) if first and second else []
    pairs += [(at, at) for at in range(MAX_CALLS, min(len(first), len(second)))]
    row = column = 0
    for next_row, next_column in [*pairs, (len(first), len(second))]:
        is_last = next_row == len(first)
        missing_after, missing_before = (_missing_call(reply if is_last else None) for reply in (other, one))
        yield from (
            AlignedStep(_call_step(a, turn), None, f"{actual_text(a)} → {missing_after[0]}", missing_after[1])
            for a in first[row:next_row]
        )
        yield from (
            AlignedStep(None, _call_step(b, turn), f"{missing_before[0]} → {actual_text(b)}", missing_before[1])
            for b in second[column:next_column]
        )
        if next_row < len(first) and next_column < len(second):
            yield _paired_calls(first[next_row], second[next_column], turn)
        row, column = next_row + 1, next_column + 1


def _missing_call(reply: Reply | None) -> tuple[str, DivergenceKind]:
    """The text for a call that only the other trial has: the error, if the agent stopped before it could call."""
    if reply is None or reply.error is None:
        return "not called", "call"
    return _short(reply.error.partition("\n")[0]), "end"


def _weight(before: ToolCall, after: ToolCall) -> float:
    return (
        0.0
        if before.name != after.name
        else SAME_TOOL_WEIGHT + credit(_as_expected(before), after)
        if not _is_raw(before, after)
        else SAME_TOOL_WEIGHT
    )


def _is_raw(*calls: ToolCall) -> bool:
    return any(call.raw_arguments is not None for call in calls)


def _as_expected(call: ToolCall) -> ExpectedCall:
    return ExpectedCall(call.name, {name: Equals(value) for name, value in call.arguments.items()})


def _paired_calls(before: ToolCall, after: ToolCall, turn: int) -> AlignedStep:
    sides = _call_step(before, turn), _call_step(after, turn)
    if _is_raw(before, after):
        differs = before.raw_arguments != after.raw_arguments or dict(before.arguments) != dict(after.arguments)
        difference = f"{before.name}: {actual_text(before)} → {actual_text(after)}" if differs else ""
    else:
        differs = any(mismatches(_as_expected(before), after))
        difference = f"{before.name}: {'; '.join(_changed_arguments(before, after))}" if differs else ""
    if difference:
        return AlignedStep(*sides, difference, "argument")
    if before.error != after.error or not json_equal(before.result, after.result):
        difference = f"{before.name} returned {_result_text(before)} → {_result_text(after)}"
        return AlignedStep(*sides, difference, "result")
    return AlignedStep(*sides)


def _changed_arguments(before: ToolCall, after: ToolCall) -> Iterator[str]:
    for name in dict.fromkeys((*before.arguments, *after.arguments)):
        old, new = (literal(call.arguments[name]) if name in call.arguments else "missing" for call in (before, after))
        if old != new or not json_equal(before.arguments.get(name), after.arguments.get(name)):
            yield f"{name} {old} → {new}"


def _result_text(call: ToolCall) -> str:
    return f"the error {literal(call.error)}" if call.error is not None else literal(call.result)


def _call_step(call: ToolCall, turn: int) -> Step:
    return Step("call", turn, actual_text(call), call)


def _pair(
    before: Step | None, after: Step | None, difference: Callable[[Step, Step], tuple[str, DivergenceKind | None]]
) -> AlignedStep:
    if before is None or after is None:
        texts = f"{_text_or(before, 'no further turn')} → {_text_or(after, 'no further turn')}"
        return AlignedStep(before, after, texts, "end")
    return AlignedStep(before, after, *difference(before, after))


def _text_or(step: Step | None, otherwise: str) -> str:
    return otherwise if step is None else _short(step.text)


def _text_difference(kind: DivergenceKind) -> Callable[[Step, Step], tuple[str, DivergenceKind | None]]:
    def difference(before: Step, after: Step) -> tuple[str, DivergenceKind | None]:
        if before.text.split() == after.text.split():
            return "", None
        old, new = _sentences(before.text), _sentences(after.text)
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        sides = (f'"{_short(part[at])}"' if at < len(part) else "(end)" for part in (old, new))
        return " → ".join(sides), kind

    return difference


def _sentences(text: str) -> list[str]:
    return [words for part in _SENTENCES.findall(text) if (words := " ".join(part.split()))]


def _short(text: str) -> str:
    words = " ".join(text[: 4 * MAX_SENTENCE].split())
    return words if len(words) <= MAX_SENTENCE else f"{words[: MAX_SENTENCE - 1]}…"


def _divergence(steps: Sequence[AlignedStep]) -> Divergence | None:
    """The first difference of the most serious kind: calls and arguments, then wording, then tool results."""
    different = [(at, step) for at, step in enumerate(steps) if step.kind is not None]
    for at, step in sorted(different, key=lambda item: {"sentence": 1, "result": 2}.get(item[1].kind or "", 0)):
        side = step.before or step.after
        if side is not None and step.kind is not None:
            return Divergence(step.kind, side.turn, at, step.difference)
    return None


def _dissimilarity(step: AlignedStep) -> float:
    if step.before is None or step.after is None:
        return 1.0
    old, new = step.before.text[:2000].split(), step.after.text[:2000].split()
    return 1.0 - 0.9 * SequenceMatcher(None, old, new, autojunk=False).ratio()
