"""Checks of tool use in one list: which calls, with what arguments, in what order, how often; and the final state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.json_data import Json
from proctor.cases.matchers import (
    Difference,
    Matcher,
    describe,
    describe_change,
    differences_of,
    key_path,
    may_be_absent,
    parse_state,
    summarize,
)
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.tools.calls import (
    actual_text,
    counted_calls,
    expand_counts,
    expected_calls,
    match_matrix,
    name_matrix,
    require_failed_calls,
)
from proctor.evaluators.tools.differences import differences, fault
from proctor.evaluators.tools.pairing import Pairs, best_pairs, best_pairs_in_order, is_exact
from proctor.evaluators.values import require_bool

_ORDERS = ("EXACT", "IN_ORDER", "ANY_ORDER")


@evaluator(family="tools", needs="tools", threshold=1.0, version=2)
@dataclass(frozen=True, slots=True)
class ToolTrajectory:
    """The expected calls were made: exactly these, these in this order, or these in any order.

    1 if the calls are `EXACT`ly the expected ones, have them `IN_ORDER`, or in `ANY_ORDER`; the last two allow
    further calls unless `extra: false`, so that `ANY_ORDER` with `extra: false` means exactly these in any order.
    `tools: []` means no call in every mode. With `partial`, the share: of the longer list where no further calls are
    allowed, else of the expected one.
    """

    match: str | int = "EXACT"
    """`EXACT`, `IN_ORDER` or `ANY_ORDER`; the last two allow further calls unless `extra` is false."""
    ignore_args: bool = False
    partial: bool = False
    """Whether some of the calls earn a part of the score, or only all of them the whole."""
    extra: bool | None = None
    """Whether further calls may be made; `None` leaves it to `match`."""
    failed_calls: str = "count"
    """`ignore` leaves calls that ended in an error out of the comparison."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", _order(self.match))
        require_bool(ignore_args=self.ignore_args, partial=self.partial)
        require_failed_calls(self.failed_calls)
        if self.extra is None:
            object.__setattr__(self, "extra", self.match != "EXACT")
        require_bool(extra=self.extra)
        if self.extra and self.match == "EXACT":
            raise ValueError("match EXACT allows no extra calls; use IN_ORDER or ANY_ORDER to allow them")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = expected_calls(evaluable)
        places = counted_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            return _evaluate_no_calls(actual, places)
        fit = name_matrix(expected, actual) if self.ignore_args else match_matrix(expected, actual)
        units = expand_counts(expected, len(actual))
        pair = best_pairs if self.match == "ANY_ORDER" else best_pairs_in_order
        weights = [fit[index] for index in units]
        found = pair(weights)
        pairs = [(units[unit], column) for unit, column in found]
        wanted, made, matched = sum(call.count for call in expected), len(actual), len(pairs)
        share = matched / (wanted if self.extra else max(wanted, made))
        left = differences(expected, actual, pairs, fit)
        extra = bool(self.extra)
        return Evaluation(
            share if self.partial else float(share == 1.0),
            self._reason(matched, wanted, made) if share == 1.0 else left.explain(extra_allowed=extra),
            {
                **_precision_and_recall(matched, wanted, made),
                **left.details(extra_allowed=extra, places=places),
                **_ignored_calls(evaluable.tool_calls, places),
                **({"approximate": True} if self.match == "ANY_ORDER" and not is_exact(weights) else {}),
            },
        )

    def _reason(self, matched: int, wanted: int, made: int) -> str:
        order = {"EXACT": "exactly the expected calls", "IN_ORDER": "in order", "ANY_ORDER": "in any order"}
        further = f"; {made - matched} further" if made > matched else "" if self.extra else ", and no others"
        told = order[str(self.match)]
        return f"{matched} of {wanted} expected calls made, {told}{'' if self.match == 'EXACT' else further}"


def _ignored_calls(calls: Sequence[ToolCall], places: Sequence[int]) -> dict[str, Any]:
    """Which calls were not compared, where some were not."""
    kept = set(places)
    left = [index for index in range(len(calls)) if index not in kept]
    return {"left_out": left} if left else {}


def _order(match: str | int) -> str:
    """The canonical spelling: `in-order`, `In Order` and 1 all mean `IN_ORDER`."""
    if isinstance(match, int) and not isinstance(match, bool) and 0 <= match < len(_ORDERS):
        return _ORDERS[match]
    name = match.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(match, str) else ""
    if name not in _ORDERS:
        raise ValueError(f"match must be one of {', '.join(_ORDERS)}, not {match!r}")
    return name


def _precision_and_recall(matched: int, wanted: int, made: int) -> dict[str, Any]:
    precision = matched / made if made else float(not wanted)
    recall = matched / wanted if wanted else 1.0
    f1 = 2 * precision * recall / (precision + recall) if matched else float(not wanted and not made)
    return {"matched": matched, "precision": precision, "recall": recall, "f1": f1}


@evaluator(family="tools", needs="tools", threshold=1.0)
@dataclass(frozen=True, slots=True)
class ExpectedTools:
    """Each expected tool was called, at least as often as expected; further calls are allowed.

    The share of expected tools that were called as expected, at least `count` times; further calls are welcome.
    """

    failed_calls: str = "count"
    """`ignore` leaves calls that ended in an error out of the comparison."""

    def __post_init__(self) -> None:
        require_failed_calls(self.failed_calls)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = expected_calls(evaluable)
        places = counted_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            return _evaluate_no_calls(actual, places)
        satisfied, pairs = _max_satisfied(expected, actual)
        left = differences(expected, actual, pairs)
        found = left.details(extra_allowed=True, places=places)
        details = {"satisfied": sorted(satisfied), **found, **_ignored_calls(evaluable.tool_calls, places)}
        if len(satisfied) == len(expected):
            return Evaluation(1.0, f"all {len(expected)} expected tools were called", details)
        counted = f"{len(satisfied)} of {len(expected)} expected tools were called as expected"
        return Evaluation(len(satisfied) / len(expected), f"{counted}: {left.explain(extra_allowed=True)}", details)


def _max_satisfied(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> tuple[set[int], Pairs]:
    """The expected calls that can be satisfied together, no actual call counting twice, and the pairs that do so.

    The most that can be, where each is expected once. With higher counts that would take exponential time: the least
    demanding go first, by a rule that does not depend on their order. If all can be satisfied, all are.
    """
    taken = _Assignment([[column for column, fit in enumerate(row) if fit] for row in match_matrix(expected, actual)])
    order = sorted(range(len(expected)), key=lambda i: (expected[i].count, len(taken.fit[i]), taken.fit[i][::-1]))
    satisfied: set[int] = set()
    for index in order:
        count = expected[index].count
        if count <= len(taken.fit[index]) and all(taken.take(index) for _ in range(count)):
            satisfied.add(index)
        else:
            taken.release(index)
    for index in order:
        while index not in satisfied and taken.take(index):
            pass
    return satisfied, sorted((index, column) for column, index in taken.by.items())


class _Assignment:
    """Which expected call takes which actual one; grows call by call, which an assignment at one go cannot."""

    def __init__(self, fit: Sequence[Sequence[int]]) -> None:
        self.fit = fit
        """Per expected call, the actual ones that fit."""
        self.by: dict[int, int] = {}
        """Per actual call that is taken, the expected one."""

    def take(self, index: int) -> bool:
        """Take one more call for `index`; others may exchange theirs for another that fits, but keep their number."""
        free = next((column for column in self.fit[index] if column not in self.by), None)
        if free is not None:
            self.by[free] = index
            return True
        gives_up: dict[int, int | None] = {index: None}
        wanted_by: dict[int, int] = {}
        queue = [index]
        for current in queue:
            for column in self.fit[current]:
                if column in wanted_by:
                    continue
                wanted_by[column] = current
                holder = self.by.get(column)
                if holder is None:
                    self._exchange(column, wanted_by, gives_up)
                    return True
                if holder not in gives_up:
                    gives_up[holder] = column
                    queue.append(holder)
        return False

    def release(self, index: int) -> None:
        self.by = {column: holder for column, holder in self.by.items() if holder != index}

    def _exchange(self, free: int, wanted_by: Mapping[int, int], gives_up: Mapping[int, int | None]) -> None:
        column: int | None = free
        while column is not None:
            self.by[column] = wanted_by[column]
            column = gives_up[wanted_by[column]]


def _evaluate_no_calls(actual: Sequence[ToolCall], places: Sequence[int]) -> Evaluation:
    """`tools: []` means that no tool is called, whatever else a mode allows."""
    left = differences((), actual, [])
    details = {**_precision_and_recall(0, 0, len(actual)), **left.details(places=places)}
    if not actual:
        return Evaluation(1.0, "no tool was to be called, and none was", details)
    return Evaluation(0.0, f"no tool was to be called: {left.explain()}", details)


@evaluator(family="tools", threshold=1.0, example={"tool": "search", "at_most": 3})
@dataclass(frozen=True, slots=True)
class ToolCount:
    """A tool, or any tool, was called as often as it should be.

    1 if the tool, a name or a pattern such as `get_*`, was called that often; without `tool`, all calls count.
    """

    tool: str | None = None
    """A name or a shell-style pattern; `None` counts every call."""
    at_least: int | None = None
    at_most: int | None = None
    exactly: int | None = None
    failed_calls: str = "count"
    """`ignore` leaves calls that ended in an error out of the count."""

    def __post_init__(self) -> None:
        require_failed_calls(self.failed_calls)
        bounds = {"at_least": self.at_least, "at_most": self.at_most, "exactly": self.exactly}
        for name, bound in bounds.items():
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
                raise ValueError(f"{name} must be a whole number from 0, not {bound!r}")
        if all(bound is None for bound in bounds.values()):
            raise ValueError("give at_least, at_most or exactly")
        if self.exactly is not None and (self.at_least is not None or self.at_most is not None):
            raise ValueError("exactly leaves nothing to at_least and at_most; give one or the other")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least} is more than at_most {self.at_most}")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        every = evaluable.tool_calls
        calls = [every[index] for index in counted_calls(every, self.failed_calls)]
        count = len(calls) if self.tool is None else sum(_matches_name(call.name, self.tool) for call in calls)
        least = self.at_least if self.exactly is None else self.exactly
        most = self.at_most if self.exactly is None else self.exactly
        fits = (least is None or count >= least) and (most is None or count <= most)
        reason = f"{self.tool or 'tools'} called {count} {'time' if count == 1 else 'times'}, {self._bounds()} expected"
        return Evaluation(float(fits), reason, {"count": count})

    def _bounds(self) -> str:
        if self.exactly is not None:
            return f"exactly {self.exactly}"
        bounds = {"at least": self.at_least, "at most": self.at_most}
        return " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)


def _matches_name(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


@evaluator(family="tools", threshold=1.0, example={"tools": ["delete_account"]})
@dataclass(frozen=True, slots=True)
class ForbiddenTools:
    """None of these tools was called.

    1 if none of these names or patterns was called.
    """

    tools: Sequence[str]
    """Names or shell-style patterns such as `delete_*`."""

    def __post_init__(self) -> None:
        tools = (self.tools,) if isinstance(self.tools, str) else tuple(self.tools)
        if not tools or not all(isinstance(tool, str) and tool for tool in tools):
            raise ValueError(f"tools must be names or patterns of tools, at least one, not {self.tools!r}")
        object.__setattr__(self, "tools", tools)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        calls = evaluable.tool_calls
        used = [i for i, call in enumerate(calls) if any(_matches_name(call.name, tool) for tool in self.tools)]
        if not used:
            return Evaluation(1.0, "no forbidden tool was called", {"forbidden": []})
        shown = [f"call {index + 1}: {actual_text(calls[index])}" for index in used[:8]]
        more = f"; and {len(used) - 8} more" if len(used) > 8 else ""
        forbidden = [{"actual": index, "name": calls[index].name} for index in used]
        faults = [fault("forbidden", calls[index].name, index) for index in used]
        reason = f"forbidden tools were called; {'; '.join(shown)}{more}"
        return Evaluation(0.0, reason, {"forbidden": forbidden, "faults": faults})


@evaluator(family="tools", needs="final state", threshold=1.0, scope="case")
@dataclass(frozen=True, slots=True)
class FinalState:
    """The state of the session ends as expected; keys that are not expected do not matter.

    1 if the session's state has each key of `final_state` with a value that fits: objects and lists have at least
    these parts, empty ones are empty, and parts may be matchers. Skipped if the agent does not report its state.
    """

    base: Path | None = None
    """The folder from which predicates in the expected state are looked up."""

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, state = evaluable.expected_state, evaluable.state
        if not expected:
            raise NothingToCompare("no final state is expected")
        if state is None:
            raise NothingToCompare("the agent does not tell its state")
        wrong: dict[str, str] = {}
        for key, matcher in parse_state(expected, self.base).fields.items():
            found = self._differences(expected[key], matcher, state, key)
            if reason := summarize(found):
                wrong[key] = reason
        if not wrong:
            return Evaluation(1.0, f"all of {', '.join(expected)} as expected", {"different": {}})
        return Evaluation(0.0, "; ".join(wrong.values()), {"different": wrong})

    def _differences(self, wanted: Json, matcher: Matcher, state: Mapping[str, Json], key: str) -> Iterator[Difference]:
        """What is wrong at a key. An expected empty list or object means empty, although every value contains it."""
        if key in state:
            yield from differences_of(matcher, state[key], key)
            yield from _nonempty_differences(wanted, state[key], key)
        elif not may_be_absent(matcher):
            yield Difference(key, f"missing, expected {describe(matcher)}")


def _nonempty_differences(wanted: Json, actual: Json, path: str) -> Iterator[Difference]:
    if wanted in ([], {}):
        if isinstance(actual, type(wanted)) and actual:  # of another kind of value, it is told already
            yield Difference(path, describe_change(wanted, actual))
    elif isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        for name, item in wanted.items():
            if name in actual:
                yield from _nonempty_differences(item, actual[name], key_path(path, name))
