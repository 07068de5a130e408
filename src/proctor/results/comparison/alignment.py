"""Lays two trials of a case side by side, step by step, and finds the first step where they part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import to_json, to_text
from proctor.cases.matchers import Equals, literal, same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import actual_text, credit, mismatches
from proctor.evaluators.tools.pairing import best_pairs_in_order
from proctor.results.comparison.divergence import Divergence, DivergenceKind
from proctor.results.run import Outcome, TrialResult

SAME_TOOL_WEIGHT = 0.01
"""Worth of pairing two calls of one tool that have no argument in common."""
MAX_CALLS = 400
"""Calls of one turn that are aligned; those behind them are paired as they come."""
MAX_TRIALS = 12
"""Trials of each side among which the nearest pair is looked for."""
MAX_SENTENCE = 300

_SENTENCES = re.compile(r"[^.!?\n]*[.!?\n]+\s*|[^.!?\n]+$")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened in a trial."""

    kind: Literal["user", "call", "answer", "end"]
    turn: int
    """Counted from 1."""
    text: str
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """The same step of two trials; one side is `None` where only the other made it."""

    before: Step | None
    after: Step | None
    difference: str = ""
    """What differs, in words; empty where nothing does."""
    kind: DivergenceKind | None = None
    """What kind of difference it is."""


@dataclass(frozen=True, slots=True)
class AlignedTrials:
    """Two trials side by side."""

    before: TrialResult
    after: TrialResult
    steps: tuple[AlignedStep, ...]
    divergence: Divergence | None

    @property
    def distance(self) -> float:
        """How far apart they are: steps that differ, and as a fraction how much the answers do."""
        apart = [step for step in self.steps if step.kind not in (None, "result")]
        return sum(1.0 if step.before is None or step.after is None else _unlike(step) for step in apart)


def align_trials(before: TrialResult, after: TrialResult) -> AlignedTrials:
    """Both trials turn by turn; calls are paired in order so that as much as possible agrees."""
    steps = tuple(_aligned(before, after))
    return AlignedTrials(before, after, steps, _divergence(steps))


def most_similar_trials(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> AlignedTrials | None:
    """The two trials that differ least, if possible one that passed and one that failed."""
    pairs = [(a, b) for a in before[:MAX_TRIALS] for b in after[:MAX_TRIALS]]
    split = [(a, b) for a, b in pairs if {a.outcome, b.outcome} == {Outcome.PASSED, Outcome.FAILED}]
    found = [align_trials(a, b) for a, b in split or pairs]
    return min(found, key=lambda pair: pair.distance, default=None)


def _aligned(before: TrialResult, after: TrialResult) -> Iterator[AlignedStep]:
    for index in range(max(len(before.replies), len(after.replies))):
        one, other = _reply(before, index), _reply(after, index)
        asked = _pair(_question(before, index, one), _question(after, index, other), _text_difference("question"))
        yield asked
        yield from _aligned_calls(one, other, index + 1)
        said = _answer(one, index), _answer(other, index)
        if said != (None, None):
            yield _pair(*said, _text_difference("sentence"))
    if before.reason != after.reason:
        last = max(len(before.replies), len(after.replies))
        sides = [Step("end", last, trial.reason) if trial.reason else None for trial in (before, after)]
        told = f"{_said(sides[0], 'ended by itself')} → {_said(sides[1], 'ended by itself')}"
        yield AlignedStep(sides[0], sides[1], told, "end")


def _reply(trial: TrialResult, index: int) -> Reply | None:
    return trial.replies[index] if index < len(trial.replies) else None


def _question(trial: TrialResult, index: int, reply: Reply | None) -> Step | None:
    if reply is None:
        return None
    turns = trial.case.turns
    asked = turns[index].input if index < len(turns) else ""
    return Step("user", index + 1, asked if isinstance(asked, str) else to_text(asked))


def _answer(reply: Reply | None, index: int) -> Step | None:
    if reply is None:
        return None
    text = reply.text
    if not text:
        named = {item.name: to_json(item.value) for item in reply.outputs}
        text = to_text(reply.structured if reply.structured is not None else named) if reply.structured or named else ""
    return None if reply.error is not None and not text else Step("answer", index + 1, text)


def _aligned_calls(one: Reply | None, other: Reply | None, turn: int) -> Iterator[AlignedStep]:
    first, second = (() if reply is None else reply.tool_calls for reply in (one, other))
    weights = [[_worth(a, b) for b in second[:MAX_CALLS]] for a in first[:MAX_CALLS]]
    pairs = best_pairs_in_order(weights) if first and second else []
    pairs += [(at, at) for at in range(MAX_CALLS, min(len(first), len(second)))]
    row = column = 0
    for next_row, next_column in [*pairs, (len(first), len(second))]:
        is_last = next_row == len(first)
        there, here = (_absent_call(reply if is_last else None) for reply in (other, one))
        yield from (
            AlignedStep(_call(a, turn), None, f"{_text(a)} → {there[0]}", there[1]) for a in first[row:next_row]
        )
        yield from (
            AlignedStep(None, _call(b, turn), f"{here[0]} → {_text(b)}", here[1]) for b in second[column:next_column]
        )
        if next_row < len(first) and next_column < len(second):
            yield _paired_calls(first[next_row], second[next_column], turn)
        row, column = next_row + 1, next_column + 1


def _absent_call(reply: Reply | None) -> tuple[str, DivergenceKind]:
    """What stands for a call that was not made; an agent that broke off never came to its last ones."""
    if reply is None or reply.error is None:
        return "no such call", "call"
    return _short(reply.error.partition("\n")[0]), "end"


def _worth(before: ToolCall, after: ToolCall) -> float:
    return (
        0.0
        if before.name != after.name
        else SAME_TOOL_WEIGHT + credit(_wanted(before), after)
        if not _is_raw(before, after)
        else SAME_TOOL_WEIGHT
    )


def _is_raw(*calls: ToolCall) -> bool:
    return any(call.raw_arguments is not None for call in calls)


def _wanted(call: ToolCall) -> ExpectedCall:
    return ExpectedCall(call.name, {name: Equals(value) for name, value in call.arguments.items()})


def _paired_calls(before: ToolCall, after: ToolCall, turn: int) -> AlignedStep:
    sides = _call(before, turn), _call(after, turn)
    if _is_raw(before, after):
        differs = before.raw_arguments != after.raw_arguments or dict(before.arguments) != dict(after.arguments)
        told = f"{before.name}: {_text(before)} → {_text(after)}" if differs else ""
    else:
        told = (
            f"{before.name}: {'; '.join(_arguments_apart(before, after))}"
            if any(mismatches(_wanted(before), after))
            else ""
        )
    if told:
        return AlignedStep(*sides, told, "argument")
    if before.error != after.error or not same(before.result, after.result):
        told = f"{before.name} gave {_outcome_of(before)} → {_outcome_of(after)}"
        return AlignedStep(*sides, told, "result")
    return AlignedStep(*sides)


def _arguments_apart(before: ToolCall, after: ToolCall) -> Iterator[str]:
    for name in dict.fromkeys((*before.arguments, *after.arguments)):
        old, new = (
            literal(call.arguments[name]) if name in call.arguments else "not given" for call in (before, after)
        )
        if old != new or not same(before.arguments.get(name), after.arguments.get(name)):
            yield f"{name} {old} → {new}"


def _outcome_of(call: ToolCall) -> str:
    return f"the error {literal(call.error)}" if call.error is not None else literal(call.result)


def _call(call: ToolCall, turn: int) -> Step:
    return Step("call", turn, _text(call), call)


def _text(call: ToolCall) -> str:
    return actual_text(call)


def _pair(
    before: Step | None, after: Step | None, difference: Callable[[Step, Step], tuple[str, DivergenceKind | None]]
) -> AlignedStep:
    if before is None or after is None:
        told = f"{_said(before, 'no further turn')} → {_said(after, 'no further turn')}"
        return AlignedStep(before, after, told, "end")
    return AlignedStep(before, after, *difference(before, after))


def _said(step: Step | None, absent: str) -> str:
    return absent if step is None else _short(step.text)


def _text_difference(kind: DivergenceKind) -> Callable[[Step, Step], tuple[str, DivergenceKind | None]]:
    def difference(before: Step, after: Step) -> tuple[str, DivergenceKind | None]:
        if before.text.split() == after.text.split():
            return "", None
        old, new = _sentences(before.text), _sentences(after.text)
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        sides = (f'"{_short(part[at])}"' if at < len(part) else "nothing further" for part in (old, new))
        return " → ".join(sides), kind

    return difference


def _sentences(text: str) -> list[str]:
    return [words for part in _SENTENCES.findall(text) if (words := " ".join(part.split()))]


def _short(text: str) -> str:
    words = " ".join(text[: 4 * MAX_SENTENCE].split())
    return words if len(words) <= MAX_SENTENCE else f"{words[: MAX_SENTENCE - 1]}…"


def _divergence(steps: Sequence[AlignedStep]) -> Divergence | None:
    """The first that matters most: wording varies without harm, and results of tools (a time) come from outside."""
    apart = [(at, step) for at, step in enumerate(steps) if step.kind is not None]
    for at, step in sorted(apart, key=lambda item: {"sentence": 1, "result": 2}.get(item[1].kind or "", 0)):
        side = step.before or step.after
        if side is not None and step.kind is not None:
            return Divergence(step.kind, side.turn, at, step.difference)
    return None


def _unlike(step: AlignedStep) -> float:
    if step.before is None or step.after is None:
        return 1.0
    old, new = step.before.text[:2000].split(), step.after.text[:2000].split()
    return 1.0 - 0.9 * SequenceMatcher(None, old, new, autojunk=False).ratio()
