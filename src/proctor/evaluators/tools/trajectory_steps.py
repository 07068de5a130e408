"""The steps of a trajectory and what must come before what, from Python or from what a file says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.agents.agent import ToolCall
from proctor.base.fields import nearest
from proctor.base.records import record
from proctor.base.source import pointer_text
from proctor.cases.matchers import BadForm, parse_arguments
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.call_comparison import credit, expected_text

UNLIMITED = 10**9

_KEYS = ("name", "args", "substring", "extra_args", "id", "after", "optional", "repeat", "any_of", "steps")
_CALL_KEYS = ("name", "args", "substring", "extra_args")


@record
class Step:
    """A call to be made, or one of several: how often, after which others, and with what calls inside it."""

    any_of: tuple[ExpectedCall, ...]
    """The call, or the alternatives of which any will do."""
    id: str
    after: tuple[str, ...] = ()
    """The ids of steps all of whose calls come before any of this one's."""
    at_least: int = 1
    at_most: int = 1
    steps: tuple[Step, ...] = ()
    """Calls made inside this one, where an agent is used as a tool."""

    @property
    def text(self) -> str:
        return " or ".join(expected_text(call) for call in self.any_of)

    def best(self, call: ToolCall) -> ExpectedCall | None:
        """The alternative that a call comes closest to; `None` if it is another tool's."""
        named = [wanted for wanted in self.any_of if wanted.accepts_name(call.name)]
        return max(named, key=lambda wanted: credit(wanted, call), default=None)


def read_steps(given: Sequence[Any], base: Path | None = None, place: str = "steps") -> tuple[Step, ...]:
    """Steps as Python gives them or as a file writes them; raises `ValueError` that names the step at fault."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise ValueError(f"{place} must be a list of steps")
    steps = [_step(item, index, base, f"{place}[{index}]") for index, item in enumerate(given)]
    _check_ids(steps, place)
    _check_order(steps, place)
    return tuple(steps)


def read_calls(given: Any, base: Path | None, place: str) -> tuple[ExpectedCall, ...]:
    """One call or a list of them."""
    items = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return tuple(_call(item, base, f"{place}[{index}]") for index, item in enumerate(items))


def _step(item: Any, index: int, base: Path | None, place: str) -> Step:
    if isinstance(item, Step):
        return item if item.id else replace(item, id=f"#{index + 1}")
    if isinstance(item, (str, ExpectedCall)):
        call = _call(item, base, place)
        return Step((call,), f"#{index + 1}", at_least=call.count, at_most=call.count)
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be the name of a tool or an object, not {type(item).__name__}")
    _no_unknown_keys(item, _KEYS, place)
    if ("name" in item) == ("any_of" in item):
        raise ValueError(f"{place} needs either 'name' or 'any_of'")
    if "any_of" in item:
        calls = read_calls(item["any_of"], base, f"{place}.any_of")
        if not calls or any(key in item for key in ("args", "substring", "extra_args")):
            raise ValueError(f"{place}.any_of needs at least one call, each with its own arguments")
    else:
        calls = (_call({key: item[key] for key in _CALL_KEYS if key in item}, base, place),)
    at_least, at_most = _bounds(item, place)
    after = item.get("after") or ()
    return Step(
        any_of=calls,
        id=_text(item.get("id", f"#{index + 1}"), f"{place}.id"),
        after=tuple(_text(name, f"{place}.after") for name in (after if isinstance(after, (list, tuple)) else [after])),
        at_least=at_least,
        at_most=at_most,
        steps=read_steps(item["steps"], base, f"{place}.steps") if item.get("steps") else (),
    )


def _call(item: Any, base: Path | None, place: str) -> ExpectedCall:
    if isinstance(item, ExpectedCall):
        return item
    if isinstance(item, str):
        return ExpectedCall(_text(item, place))
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be the name of a tool or an object, not {type(item).__name__}")
    _no_unknown_keys(item, _CALL_KEYS, place)
    arguments = item.get("args")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ValueError(f"{place}.args must be an object")
    try:
        matchers = None if arguments is None else parse_arguments(arguments, base)
    except BadForm as error:
        raise BadForm(f"{place}.{pointer_text(('args', *error.pointer))}: {error}", error.pointer) from None
    return ExpectedCall(
        _text(item.get("name"), f"{place}.name"),
        matchers,
        substring=_flag(item, "substring", place),
        extra_arguments=_flag(item, "extra_args", place),
    )


def _bounds(item: Mapping[str, Any], place: str) -> tuple[int, int]:
    """How often: once, `repeat: 3`, `repeat: {at_least: 1, at_most: 3}`; `optional` allows none as well."""
    repeat = item.get("repeat", 1)
    if isinstance(repeat, Mapping):
        _no_unknown_keys(repeat, ("at_least", "at_most"), f"{place}.repeat")
        least, most = repeat.get("at_least", 1), repeat.get("at_most", UNLIMITED)
    else:
        least = most = repeat
    for name, bound in (("at_least", least), ("at_most", most)):
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
            raise ValueError(f"{place}.repeat: {name} must be a whole number from 0, not {bound!r}")
    if most < max(least, 1):
        raise ValueError(f"{place}.repeat allows no call; use `forbid` for tools that may not be called")
    return 0 if _flag(item, "optional", place) else least, most


def _flag(item: Mapping[str, Any], name: str, place: str) -> bool:
    value = item.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{place}.{name} must be true or false, not {value!r}")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{place} must be text that is not blank, not {value!r}")
    return value


def _no_unknown_keys(item: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in item:
        if name not in known:
            raise ValueError(f"{place} does not know {name!r}{nearest(str(name), known)}")


def _check_ids(steps: Sequence[Step], place: str) -> None:
    ids = [step.id for step in steps]
    for step in steps:
        if ids.count(step.id) > 1:
            raise ValueError(f"{place}: more than one step has the id {step.id!r}")
        for name in step.after:
            if name not in ids:
                raise ValueError(f"{place}: {step.id!r} comes after {name!r}, which is no step{nearest(name, ids)}")


def _check_order(steps: Sequence[Step], place: str) -> None:
    """Steps that wait for each other can never be made."""
    waiting = {step.id: set(step.after) for step in steps}
    while ready := [name for name, before in waiting.items() if not before & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if waiting:
        raise ValueError(f"{place}: {', '.join(map(repr, waiting))} wait for each other")
