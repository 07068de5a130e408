"""Where two conversations about the same case part: the first tool call, argument or sentence that differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from proctor.agents.agent import Reply, ToolCall
from proctor.base.json_data import Json, canonical, plain, show
from proctor.base.records import record
from proctor.results.run import TrialResult

LONGEST = 300
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


@record
class Divergence:
    """The first step at which a failing trial does something else than a passing one."""

    turn: int
    """The index of the turn."""
    kind: Literal["call", "argument", "sentence", "end"]
    """`end`: one of them has no further turn, since the agent broke down."""
    passing: str | None
    """What the passing trial has there; `None` where it has nothing."""
    failing: str | None
    step: int = 0
    """The index of the call or sentence in its turn."""
    tool: str | None = None
    argument: str | None = None

    def __str__(self) -> str:
        where = f"turn {self.turn + 1}, {_place(self)}"
        return f"{where}: {_quoted(self.passing)} when it passed, {_quoted(self.failing)} when it failed"


def _place(found: Divergence) -> str:
    if found.kind == "argument":
        return f"call {found.step + 1}, {found.tool}({found.argument})"
    return {"call": f"call {found.step + 1}", "sentence": f"sentence {found.step + 1}", "end": "end"}[found.kind]


def _quoted(text: str | None) -> str:
    return "nothing" if text is None else text


def first_divergence(passing: TrialResult, failing: TrialResult) -> Divergence | None:
    """The first call or argument that differs; where all calls agree, the first sentence. `None` where nothing does.

    Wording varies from trial to trial without doing harm, so that calls are looked at first.
    """
    pairs = list(zip(passing.replies, failing.replies, strict=False))
    for turn, (one, other) in enumerate(pairs):
        made = one.tool_calls if other.error is None else one.tool_calls[: len(other.tool_calls)]
        if found := _calls(turn, made, other.tool_calls):
            return found
    for turn, (one, other) in enumerate(pairs):
        if other.error is not None:
            return Divergence(turn, "end", _first(passing, turn), failing.reason or other.error.partition("\n")[0])
        if found := _sentences(turn, one, other):
            return found
    if len(passing.replies) == len(failing.replies):
        return None
    sides = [trial.reason or "no reply" for trial in (passing, failing)]
    short = len(failing.replies) < len(passing.replies)
    return Divergence(len(pairs), "end", *((_first(passing, len(pairs)), sides[1]) if short else (sides[0], None)))


def nearest_divergence(passing: Iterable[TrialResult], failing: Iterable[TrialResult]) -> Divergence | None:
    """The divergence of the pair that stays together longest, which says most about what makes the difference."""
    failed = list(failing)
    found = [item for one in passing for other in failed if (item := first_divergence(one, other)) is not None]
    return max(found, key=lambda item: (item.turn, item.step, item.kind == "argument"), default=None)


def divergence_from_json(data: Mapping[str, Json]) -> Divergence:
    return Divergence(**data)


def _first(trial: TrialResult, turn: int) -> str:
    return show(trial.replies[turn].text, LONGEST)


def _calls(turn: int, one: Sequence[ToolCall], other: Sequence[ToolCall]) -> Divergence | None:
    for step in range(max(len(one), len(other))):
        first = one[step] if step < len(one) else None
        second = other[step] if step < len(other) else None
        if first is None or second is None or first.name != second.name:
            return Divergence(turn, "call", _call_text(first), _call_text(second), step)
        if name := _differing(first, second):
            here, there = _argument_text(first, name), _argument_text(second, name)
            return Divergence(turn, "argument", here, there, step, first.name, name)
    return None


def _differing(one: ToolCall, other: ToolCall) -> str | None:
    if one.raw_arguments != other.raw_arguments:
        return "arguments"
    names = dict.fromkeys([*one.arguments, *other.arguments])
    missing = object()
    for name in names:
        values = [call.arguments.get(name, missing) for call in (one, other)]
        if missing in values or canonical(plain(values[0])) != canonical(plain(values[1])):
            return name
    return None


def _argument_text(call: ToolCall, name: str) -> str | None:
    if name in call.arguments:
        return show(call.arguments[name], LONGEST)
    return None if call.raw_arguments is None else show(call.raw_arguments, LONGEST)


def _call_text(call: ToolCall | None) -> str | None:
    if call is None:
        return None
    given = ", ".join(f"{name}={show(value, 60)}" for name, value in call.arguments.items())
    return f"{call.name}({given})"[:LONGEST]


def _sentences(turn: int, one: Reply, other: Reply) -> Divergence | None:
    first, second = (_split(reply) for reply in (one, other))
    for step in range(max(len(first), len(second))):
        here = first[step] if step < len(first) else None
        there = second[step] if step < len(second) else None
        if here != there:
            return Divergence(turn, "sentence", _shown(here), _shown(there), step)
    return None


def _shown(text: str | None) -> str | None:
    return None if text is None else show(text, LONGEST)


def _split(reply: Reply) -> list[str]:
    """The answer as sentences, white space aside; data as one."""
    if reply.structured is not None:
        return [canonical(plain(reply.structured))]
    if reply.outputs:
        return [canonical([[item.name, plain(item.value)] for item in reply.outputs])]
    return [" ".join(part.split()) for part in _SENTENCE.split(reply.text or "") if part.strip()]
