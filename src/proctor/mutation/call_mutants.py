"""Changes tool calls: drops, repeats or reorders them, calls another tool, changes or drops an argument."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import Json, to_text
from proctor.cases.matchers import Matcher, may_be_absent
from proctor.cases.suite import EvaluatorSpec, ExpectedCall, Turn
from proctor.mutation import text_changes
from proctor.mutation.text_changes import SeededRandom, TextChange

Calls = tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ChangedCalls:
    """The calls of a reply with one thing changed."""

    kind: str
    before: str
    after: str
    calls: Calls


def change_calls(
    turn: Turn,
    reply: Reply,
    specs: Sequence[EvaluatorSpec],
    tools: Sequence[str],
    choices: SeededRandom,
    allowed: list[str],
) -> Iterator[ChangedCalls]:
    """The changed calls of a turn; kinds of changes that the expectation explicitly allows are added to `allowed`."""
    calls = reply.tool_calls
    if calls:
        yield from _change_one_call(calls, tools, choices)
        yield from _reorder(calls, specs, choices.for_kind("calls-reordered"), allowed)
        yield from _change_arguments(calls, turn.expected.tools or (), choices, allowed)
    elif tools:
        added = ToolCall(choices.for_kind("call-added").choice(list(tools)))
        yield ChangedCalls("call-added", "(no call)", call_text(added), (added,))
    if forbidden := _forbidden_tools(specs):
        wrong = ToolCall(choices.for_kind("forbidden-tool").choice(forbidden))
        yield ChangedCalls("forbidden-tool", _calls_text(calls), _calls_text((*calls, wrong)), (*calls, wrong))


def _change_one_call(calls: Calls, tools: Sequence[str], choices: SeededRandom) -> Iterator[ChangedCalls]:
    rng = choices.for_kind("one-call")
    at = rng.randrange(len(calls))
    call = calls[at]
    others = [name for name in tools if name != call.name] or [f"{call.name}_of_another_kind"]
    other = replace(call, name=rng.choice(others))
    yield ChangedCalls("call-dropped", call_text(call), "(no call)", (*calls[:at], *calls[at + 1 :]))
    twice = (*calls[: at + 1], call, *calls[at + 1 :])
    yield ChangedCalls("call-repeated", f"once: {call_text(call)}", f"twice: {call_text(call)}", twice)
    yield ChangedCalls("other-tool", call_text(call), call_text(other), _replace_call(calls, at, other))


def _reorder(
    calls: Calls, specs: Sequence[EvaluatorSpec], rng: random.Random, allowed: list[str]
) -> Iterator[ChangedCalls]:
    pairs = [at for at in range(len(calls) - 1) if _name_and_arguments(calls[at]) != _name_and_arguments(calls[at + 1])]
    if not pairs:
        return
    if any(spec.name == "ToolTrajectory" and _accepts_any_order(spec) for spec in specs):
        allowed.append("calls-reordered")
        return
    at = rng.choice(pairs)
    swapped = (*calls[:at], calls[at + 1], calls[at], *calls[at + 2 :])
    yield ChangedCalls("calls-reordered", _calls_text(calls[at : at + 2]), _calls_text(swapped[at : at + 2]), swapped)


def _name_and_arguments(call: ToolCall) -> tuple[str, Json]:
    return call.name, call.arguments


def _accepts_any_order(spec: EvaluatorSpec) -> bool:
    match = spec.arguments.get("match", "EXACT")
    return match == 2 or str(match).strip().upper().replace("-", "_").replace(" ", "_") == "ANY_ORDER"


def _forbidden_tools(specs: Sequence[EvaluatorSpec]) -> list[str]:
    """Names that match the patterns of forbidden tools."""
    patterns: list[str] = []
    for spec in specs:
        if spec.name == "ForbiddenTools":
            tools = spec.arguments.get("tools", ())
            patterns += [tools] if isinstance(tools, str) else [str(tool) for tool in tools]
    return [pattern.replace("*", "all").replace("?", "x") for pattern in patterns if "[" not in pattern]


_TEXT_ARGUMENTS: Mapping[str, TextChange] = {
    "argument-date": text_changes.change_date,
    "argument-id": text_changes.change_id,
    "argument-text": text_changes.change_word,
}


def _change_arguments(
    calls: Calls, expected: Sequence[ExpectedCall], choices: SeededRandom, allowed: list[str]
) -> Iterator[ChangedCalls]:
    """One change of each kind that some argument allows; changes that the expectation accepts are skipped."""
    places = [(at, name) for at, call in enumerate(calls) for name in call.arguments]
    for kind in ("argument-number", *_TEXT_ARGUMENTS):
        rng = choices.for_kind(kind)
        change = functools.partial(_other_number, rng=rng) if kind == "argument-number" else _text_change(kind, rng)
        skipped = False
        for at, name in rng.sample(places, len(places)):
            call = calls[at]
            new = _change_inside(call.arguments[name], change, rng)
            if new is None:
                continue
            if accepts_value(expected, call, name, new):
                skipped = True
                continue
            changed = replace(call, arguments={**call.arguments, name: new})
            yield _argument_change(kind, calls, at, name, call.arguments[name], new, changed)
            skipped = False
            break
        allowed += [kind] if skipped else []
    yield from _drop_argument(calls, places, expected, choices.for_kind("argument-missing"), allowed)


def _drop_argument(
    calls: Calls,
    places: Sequence[tuple[int, str]],
    expected: Sequence[ExpectedCall],
    rng: random.Random,
    allowed: list[str],
) -> Iterator[ChangedCalls]:
    needed = [(at, name) for at, name in places if not may_be_missing(expected, calls[at], name)]
    if not needed:
        allowed += ["argument-missing"] if places else []
        return
    at, name = rng.choice(needed)
    call = calls[at]
    rest = {key: value for key, value in call.arguments.items() if key != name}
    before = f"{call.name}({name}={to_text(call.arguments[name], 60)})"
    changed = _replace_call(calls, at, replace(call, arguments=rest))
    yield ChangedCalls("argument-missing", before, f"{call.name}(), {name} is missing", changed)


def _argument_change(kind: str, calls: Calls, at: int, name: str, old: Json, new: Json, call: ToolCall) -> ChangedCalls:
    before, after = (f"{call.name}({name}={to_text(value, 120)})" for value in (old, new))
    return ChangedCalls(kind, before, after, _replace_call(calls, at, call))


def _expected_with_name(expected: Sequence[ExpectedCall], call: ToolCall) -> list[ExpectedCall]:
    return [item for item in expected if item.args is not None and item.accepts_name(call.name)]


def accepts_value(expected: Sequence[ExpectedCall], call: ToolCall, name: str, value: Json) -> bool:
    """Whether the expectation explicitly accepts another value: `$ignore`, a tolerance, `extra_args`."""
    for item in _expected_with_name(expected, call):
        matcher = (item.args or {}).get(name)
        if matcher is None and item.extra_args:
            return True
        if matcher is not None and _matches(matcher, value):
            return True
    return False


def _matches(matcher: Matcher, value: Json) -> bool:
    try:
        return matcher.mismatch(value) is None
    except Exception:  # a user's predicate may raise for values that it does not expect
        return False


def may_be_missing(expected: Sequence[ExpectedCall], call: ToolCall, name: str) -> bool:
    """Whether the expectation accepts the call without this argument."""
    for item in _expected_with_name(expected, call):
        matcher = (item.args or {}).get(name)
        if (matcher is None and item.extra_args) or (matcher is not None and may_be_absent(matcher)):
            return True
    return False


def _change_inside(value: Json, change: Callable[[Json], Json], rng: random.Random) -> Json:
    """The value with one of its parts changed, or `None` if none can be."""
    if isinstance(value, Mapping):
        for key in rng.sample(list(value), len(value)):
            if (new := _change_inside(value[key], change, rng)) is not None:
                return {**value, key: new}
        return None
    if isinstance(value, (list, tuple)):
        for at in rng.sample(range(len(value)), len(value)):
            if (new := _change_inside(value[at], change, rng)) is not None:
                return [*value[:at], new, *value[at + 1 :]]
        return None
    return change(value)


def _other_number(value: Json, rng: random.Random) -> Json:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    text = to_text(value)
    edit = text_changes.change_number(text, rng)
    new = None if edit is None else parse_number(edit.apply_to(text), value)
    return None if new == value else new


def parse_number(text: str, like: Json) -> Json:
    """The number in a text, with the type of `like`; the text itself if it is not a number any more."""
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return float(number) if isinstance(like, float) else number


def _text_change(kind: str, rng: random.Random) -> Callable[[Json], Json]:
    change = _TEXT_ARGUMENTS[kind]

    def changed(value: Json) -> Json:
        if not isinstance(value, str):
            return None
        if kind != "argument-date" and text_changes.change_date(value, random.Random(0)) is not None:  # noqa: S311
            return None
        if kind == "argument-text" and text_changes.ID.fullmatch(value):
            return None
        edit = change(value, rng)
        return None if edit is None else edit.apply_to(value)

    return changed


def _replace_call(calls: Calls, at: int, call: ToolCall) -> Calls:
    return (*calls[:at], call, *calls[at + 1 :])


def call_text(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={to_text(value, 60)}' for name, value in call.arguments.items())})"


def _calls_text(calls: Sequence[ToolCall]) -> str:
    return ", ".join(call_text(call) for call in calls) or "(no call)"
