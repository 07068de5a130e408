"""Changes tool calls: drops, repeats, adds or reorders them, calls another tool, changes or drops an argument.

Each function yields the changed calls for every place. `CALL_CHANGES` and `ARGUMENT_CHANGES` are the tables of kinds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import Json, to_text
from proctor.cases.matchers import Matcher, may_be_absent
from proctor.cases.suite import EvaluatorSpec, ExpectedCall, Turn
from proctor.mutation import text_changes
from proctor.mutation.data_places import leaves, parse_number, replace_at
from proctor.mutation.text_changes import ID, SeededRandom, TextChange, evenly

MAX_SOURCES = 6
"""Values from other places that are tried for one argument."""
MAX_WORDS = 5
"""Words that are changed in one argument."""
MAX_ADDED_CALLS = 5
Calls = tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ChangedCalls:
    """The calls of a reply with one thing changed."""

    kind: str
    before: str
    after: str
    calls: Calls


@dataclass(frozen=True, slots=True)
class TurnCalls:
    """The calls of one turn, and what to know to change them."""

    calls: Calls
    turn: Turn
    conversation: Sequence[Reply]
    """All replies up to this turn."""
    tools: Sequence[str]
    """All tools that were called in the run."""

    @property
    def expected(self) -> Sequence[ExpectedCall]:
        return self.turn.expected.tools or ()


def change_calls(
    turn: Turn,
    conversation: Sequence[Reply],
    specs: Sequence[EvaluatorSpec],
    tools: Sequence[str],
    choices: SeededRandom,
    allowed: list[str],
) -> Iterator[ChangedCalls]:
    """The changed calls of the last turn; kinds that the expectation explicitly allows are added to `allowed`."""
    own = TurnCalls(conversation[-1].tool_calls, turn, conversation, tools)
    for kind, change in CALL_CHANGES.items():
        changed = list(change(own, choices.for_kind(kind)))
        if changed and _is_allowed(kind, specs):
            allowed.append(kind)
        else:
            yield from changed
    for kind, other_values in ARGUMENT_CHANGES.items():
        yield from _change_arguments(kind, own, other_values, choices.for_kind(kind), allowed)
    yield from _drop_arguments(own, allowed)
    yield from _call_forbidden(own.calls, specs)


def _drop_calls(own: TurnCalls, rng: random.Random) -> Iterator[ChangedCalls]:
    for at, call in enumerate(own.calls):
        yield ChangedCalls("call-dropped", call_text(call), "(no call)", (*own.calls[:at], *own.calls[at + 1 :]))


def _repeat_calls(own: TurnCalls, rng: random.Random) -> Iterator[ChangedCalls]:
    for at, call in enumerate(own.calls):
        twice = (*own.calls[: at + 1], call, *own.calls[at + 1 :])
        yield ChangedCalls("call-repeated", f"once: {call_text(call)}", f"twice: {call_text(call)}", twice)


def _call_other_tools(own: TurnCalls, rng: random.Random) -> Iterator[ChangedCalls]:
    for at, call in enumerate(own.calls):
        others = [name for name in own.tools if name != call.name] or [f"{call.name}_of_another_kind"]
        other = replace(call, name=rng.choice(others))
        yield ChangedCalls("other-tool", call_text(call), call_text(other), _replace_call(own.calls, at, other))


def _add_calls(own: TurnCalls, rng: random.Random) -> Iterator[ChangedCalls]:
    called = {call.name for call in own.calls}
    for name in evenly([tool for tool in own.tools if tool not in called], MAX_ADDED_CALLS, rng):
        added = ToolCall(name)
        yield ChangedCalls("call-added", _calls_text(own.calls), call_text(added), (*own.calls, added))


def _reorder(own: TurnCalls, rng: random.Random) -> Iterator[ChangedCalls]:
    calls = own.calls
    for at in range(len(calls) - 1):
        if (calls[at].name, calls[at].arguments) != (calls[at + 1].name, calls[at + 1].arguments):
            swapped = (*calls[:at], calls[at + 1], calls[at], *calls[at + 2 :])
            before, after = _calls_text(calls[at : at + 2]), _calls_text(swapped[at : at + 2])
            yield ChangedCalls("calls-reordered", before, after, swapped)


CALL_CHANGES: Mapping[str, Callable[[TurnCalls, random.Random], Iterator[ChangedCalls]]] = {
    "call-dropped": _drop_calls,
    "call-repeated": _repeat_calls,
    "other-tool": _call_other_tools,
    "call-added": _add_calls,
    "calls-reordered": _reorder,
}


def _is_allowed(kind: str, specs: Sequence[EvaluatorSpec]) -> bool:
    """Whether a `ToolTrajectory` says that the order, or other calls, do not matter."""
    matches = [(_match_of(spec), spec.arguments.get("extra")) for spec in specs if spec.name == "ToolTrajectory"]
    if kind == "calls-reordered":
        return any(match == "ANY_ORDER" for match, _ in matches)
    return kind == "call-added" and any(match != "EXACT" and extra is not False for match, extra in matches)


def _match_of(spec: EvaluatorSpec) -> str:
    match = spec.arguments.get("match", "EXACT")
    words = {0: "EXACT", 1: "IN_ORDER", 2: "ANY_ORDER"}.get(match) if isinstance(match, int) else None
    return words or str(match).strip().upper().replace("-", "_").replace(" ", "_")


def _call_forbidden(calls: Calls, specs: Sequence[EvaluatorSpec]) -> Iterator[ChangedCalls]:
    for name in _forbidden_tools(specs):
        wrong = (*calls, ToolCall(name))
        yield ChangedCalls("forbidden-tool", _calls_text(calls), _calls_text(wrong), wrong)


def _forbidden_tools(specs: Sequence[EvaluatorSpec]) -> list[str]:
    """Names that match the patterns of forbidden tools."""
    patterns: list[str] = []
    for spec in specs:
        if spec.name == "ForbiddenTools":
            tools = spec.arguments.get("tools", ())
            patterns += [tools] if isinstance(tools, str) else [str(tool) for tool in tools]
    return [pattern.replace("*", "all").replace("?", "x") for pattern in patterns if "[" not in pattern]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of one call."""

    own: TurnCalls
    at: int
    """The index of its call."""
    name: str

    @property
    def value(self) -> Json:
        return self.own.calls[self.at].arguments[self.name]


OtherValues = Callable[[Argument, random.Random], Iterable[Json]]
"""Returns the wrong values of an argument, one for each place in it."""


def _other_numbers(argument: Argument, rng: random.Random) -> Iterator[Json]:
    """Each digit changed, inserted and deleted: in numbers, and in texts that are neither dates nor ids."""
    for path, leaf in leaves(argument.value):
        if isinstance(leaf, str) and (ID.fullmatch(leaf) or _is_date(leaf)):
            continue
        text = leaf if isinstance(leaf, str) else to_text(leaf)
        for change in (text_changes.change_number, text_changes.insert_digit, text_changes.delete_digit):
            for edit in change(text, rng):
                new = edit.apply_to(text)
                yield replace_at(argument.value, path, new if isinstance(leaf, str) else parse_number(new, leaf))


def _other_texts(change: TextChange, fits: Callable[[str], bool]) -> OtherValues:
    def values(argument: Argument, rng: random.Random) -> Iterator[Json]:
        for path, leaf in leaves(argument.value):
            if isinstance(leaf, str) and fits(leaf):
                for edit in evenly(list(change(leaf, rng)), 2 * MAX_WORDS, rng):
                    yield replace_at(argument.value, path, edit.apply_to(leaf))

    return values


def _is_date(text: str) -> bool:
    return any(True for _ in text_changes.change_date(text, random.Random(0)))  # noqa: S311


def _is_id(text: str) -> bool:
    return ID.fullmatch(text) is not None and not _is_date(text)


def _is_words(text: str) -> bool:
    return not ID.fullmatch(text) and not _is_date(text)


def _flipped_flags(argument: Argument, rng: random.Random) -> Iterator[Json]:
    for path, leaf in leaves(argument.value, flags=True):
        if isinstance(leaf, bool):
            yield replace_at(argument.value, path, not leaf)


def _values_from_elsewhere(argument: Argument, rng: random.Random) -> list[Json]:
    """Values of the same shape from the wrong source: other arguments, results of earlier calls, earlier turns."""
    own, value = argument.own, argument.value
    call = own.calls[argument.at]
    values: list[Json] = [other for name, other in call.arguments.items() if name != argument.name]
    for other in own.calls:
        values += other.arguments.values() if other is not call else ()
    earlier = [*(call for reply in own.conversation[:-1] for call in reply.tool_calls), *own.calls[: argument.at]]
    values += [leaf for call in earlier for part in (call.result, dict(call.arguments)) for _, leaf in leaves(part)]
    fitting: list[Json] = []
    for other in values:
        if other != value and other not in fitting and _shape(other) == _shape(value) is not None:
            fitting.append(other)
    return evenly(fitting, MAX_SOURCES, rng)


def _shape(value: Json) -> str | None:
    """What a value looks like; `None` for what is not one word, number or date."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return "number"
    if not isinstance(value, str) or len(value) > 200:
        return None
    return "date" if _is_date(value) else "id" if ID.fullmatch(value) else "text"


ARGUMENT_CHANGES: Mapping[str, OtherValues] = {
    "argument-number": _other_numbers,
    "argument-date": _other_texts(text_changes.change_date, lambda text: True),
    "argument-id": _other_texts(text_changes.change_id, _is_id),
    "argument-text": _other_texts(text_changes.change_word, _is_words),
    "argument-flag": _flipped_flags,
    "argument-source": _values_from_elsewhere,
}


def _change_arguments(
    kind: str, own: TurnCalls, other_values: OtherValues, rng: random.Random, allowed: list[str]
) -> Iterator[ChangedCalls]:
    """Every argument with every other value; those that the expectation accepts are skipped."""
    skipped = made = False
    for at, call in enumerate(own.calls):
        for name, old in call.arguments.items():
            for new in list(other_values(Argument(own, at, name), rng)):
                if new == old:
                    continue
                if accepts_value(own.expected, call, name, new):
                    skipped = True
                    continue
                made = True
                changed = replace(call, arguments={**call.arguments, name: new})
                before, after = (f"{call.name}({name}={to_text(value, 120)})" for value in (old, new))
                yield ChangedCalls(kind, before, after, _replace_call(own.calls, at, changed))
    allowed += [kind] if skipped and not made else []


def _drop_arguments(own: TurnCalls, allowed: list[str]) -> Iterator[ChangedCalls]:
    places = [(at, name) for at, call in enumerate(own.calls) for name in call.arguments]
    needed = [(at, name) for at, name in places if not may_be_missing(own.expected, own.calls[at], name)]
    allowed += ["argument-missing"] if places and not needed else []
    for at, name in needed:
        call = own.calls[at]
        rest = {key: value for key, value in call.arguments.items() if key != name}
        before = f"{call.name}({name}={to_text(call.arguments[name], 60)})"
        changed = _replace_call(own.calls, at, replace(call, arguments=rest))
        yield ChangedCalls("argument-missing", before, f"{call.name}(), {name} is missing", changed)


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


def _replace_call(calls: Calls, at: int, call: ToolCall) -> Calls:
    return (*calls[:at], call, *calls[at + 1 :])


def call_text(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={to_text(value, 60)}' for name, value in call.arguments.items())})"


def _calls_text(calls: Sequence[ToolCall]) -> str:
    return ", ".join(call_text(call) for call in calls) or "(no call)"
