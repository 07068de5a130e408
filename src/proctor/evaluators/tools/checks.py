"""Evaluators of a flat list of tool calls (which, in what order, how often) and of the final state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.observation import settle, settle_comparison
from proctor.evaluators.tools.calls import (
    actual_text,
    counted_calls,
    earlier_calls,
    expand_counts,
    expected_calls,
    match_matrix,
    name_matrix,
    require_failed_calls,
)
from proctor.evaluators.tools.differences import differences, fault, other_calls, with_expected_indices
from proctor.evaluators.tools.pairing import Pairs, best_pairs, best_pairs_in_order, is_exact
from proctor.evaluators.values import require_bool, require_choice

_ORDERS = ("EXACT", "IN_ORDER", "ANY_ORDER")


@evaluator(family="tools", needs="tools", threshold=1.0, version=3)
@dataclass(frozen=True, slots=True)
class ToolTrajectory(ScoreSettings):
    """The agent made the expected tool calls: exactly these, in order, or in any order.

    1 if the calls are exactly the expected ones (`EXACT`), or contain them `IN_ORDER` or in `ANY_ORDER`. The last two
    allow other calls unless `extra: false`, so `ANY_ORDER` with `extra: false` means exactly these in any order.
    `tools: []` means no calls in every mode, unless `empty: any calls`. With `partial`, the score is the share of
    matching calls: of the longer list if extra calls are not allowed, else of the expected list.
    """

    match: str | int = "EXACT"
    """`EXACT`, `IN_ORDER` or `ANY_ORDER`. The last two allow other calls unless `extra` is false."""
    ignore_args: bool = False
    """Whether to compare names only."""
    partial: bool = False
    """Whether some of the calls earn part of the score. Otherwise it is 1 or 0."""
    extra: bool | None = None
    """Whether other calls are allowed; `None` leaves it to `match`."""
    failed_calls: str = "count"
    """`ignore` leaves out calls that ended in an error."""
    inner_calls: str = "count"
    """`ignore` leaves out calls made inside another call, such as those of an agent used as a tool."""
    empty: str = "no calls"
    """What `tools: []` means with `IN_ORDER` and `ANY_ORDER`: `no calls`, or `any calls` as in adk-python."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", _order(self.match))
        require_bool(ignore_args=self.ignore_args, partial=self.partial)
        require_failed_calls(self.failed_calls)
        require_failed_calls(self.inner_calls, "inner_calls")
        require_choice("empty", self.empty, ("no calls", "any calls"))
        if self.extra is None:
            object.__setattr__(self, "extra", self.match != "EXACT")
        require_bool(extra=self.extra)
        if self.extra and self.match == "EXACT":
            raise ValueError("match EXACT does not allow extra calls; use IN_ORDER or ANY_ORDER")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        return _compare_turn(evaluable, self._compare)

    def _compare(self, evaluable: Evaluable, expected: Sequence[ExpectedCall], earlier: int) -> Evaluation:
        places = counted_calls(evaluable.tool_calls, self.failed_calls, self.inner_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            allowed = bool(self.extra) and (earlier > 0 or self.empty == "any calls")
            evaluation = _evaluate_no_calls(actual, places, allowed=allowed)
            return settle_comparison(evaluable, evaluation, extra_allowed=allowed)
        fit = name_matrix(expected, actual) if self.ignore_args else match_matrix(expected, actual)
        units = expand_counts(expected, len(actual))
        pair = best_pairs if self.match == "ANY_ORDER" else best_pairs_in_order
        weights = [fit[index] for index in units]
        unit_pairs = pair(weights)
        pairs = [(units[unit], column) for unit, column in unit_pairs]
        count = sum(call.count for call in expected) + earlier
        actual_count, matched = len(actual) + earlier, len(pairs) + earlier
        share = matched / (count if self.extra else max(count, actual_count))
        left = differences(expected, actual, pairs, fit)
        extra = bool(self.extra)
        evaluation = Evaluation(
            share if self.partial else float(share == 1.0),
            self._reason(matched, count, actual_count) if share == 1.0 else left.explain(extra_allowed=extra),
            {
                **_precision_and_recall(matched, count, actual_count),
                **left.details(extra_allowed=extra, places=places),
                **_ignored_calls(evaluable.tool_calls, places),
                **({"approximate": True} if self.match == "ANY_ORDER" and not is_exact(weights) else {}),
            },
        )
        return settle_comparison(evaluable, evaluation, extra_allowed=extra)

    def _reason(self, matched: int, expected: int, actual: int) -> str:
        if self.match == "EXACT":
            return f"{matched} of {expected} expected calls made, and no others"
        order = "in order" if self.match == "IN_ORDER" else "in any order"
        others = f"; {other_calls(actual - matched)}" if actual > matched else "" if self.extra else ", and no others"
        return f"{matched} of {expected} expected calls made, {order}{others}"


def _compare_turn(
    evaluable: Evaluable, compare: Callable[[Evaluable, Sequence[ExpectedCall], int], Evaluation]
) -> Evaluation:
    """The evaluation of a turn, in which calls with `or_earlier` may also come from earlier turns.

    `compare` takes the expected calls that have to be among those of the turn, and how many were made earlier. A call
    that could have been made earlier, and was made in this turn, counts as one of this turn.
    """
    expected = expected_calls(evaluable)
    result = compare(evaluable, expected, 0)
    earlier = earlier_calls(evaluable, expected) if result.score < 1.0 else []
    if not earlier:
        return result
    rest = [index for index in range(len(expected)) if index not in earlier]
    result = compare(evaluable, [expected[index] for index in rest], len(earlier))
    names = ", ".join(dict.fromkeys(expected[index].name for index in earlier))
    return replace(
        result,
        reasoning=f"{result.reasoning}; called in an earlier turn: {names}",
        details={**with_expected_indices(dict(result.details), rest), "earlier": earlier},
    )


def _ignored_calls(calls: Sequence[ToolCall], places: Sequence[int]) -> dict[str, Any]:
    """The indices of calls that were not compared, if there are any."""
    compared = set(places)
    ignored = [index for index in range(len(calls)) if index not in compared]
    return {"left_out": ignored} if ignored else {}


def _order(match: str | int) -> str:
    """The canonical spelling: `in-order`, `In Order` and 1 all mean `IN_ORDER`."""
    if isinstance(match, int) and not isinstance(match, bool) and 0 <= match < len(_ORDERS):
        return _ORDERS[match]
    name = match.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(match, str) else ""
    if name not in _ORDERS:
        raise ValueError(f"match must be one of {', '.join(_ORDERS)}, not {match!r}")
    return name


def _precision_and_recall(matched: int, expected: int, actual: int) -> dict[str, Any]:
    precision = matched / actual if actual else float(not expected)
    recall = matched / expected if expected else 1.0
    f1 = 2 * precision * recall / (precision + recall) if matched else float(not expected and not actual)
    return {"matched": matched, "precision": precision, "recall": recall, "f1": f1}


@evaluator(family="tools", needs="tools", threshold=1.0, version=2)
@dataclass(frozen=True, slots=True)
class ExpectedTools(ScoreSettings):
    """The agent called each expected tool at least as often as expected. Other calls are allowed.

    The share of expected calls that were made at least `count` times.
    """

    failed_calls: str = "count"
    """`ignore` leaves out calls that ended in an error."""

    def __post_init__(self) -> None:
        require_failed_calls(self.failed_calls)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        return _compare_turn(evaluable, self._compare)

    def _compare(self, evaluable: Evaluable, expected: Sequence[ExpectedCall], earlier: int) -> Evaluation:
        places = counted_calls(evaluable.tool_calls, self.failed_calls)
        actual = [evaluable.tool_calls[index] for index in places]
        if not expected:
            allowed = earlier > 0
            evaluation = _evaluate_no_calls(actual, places, allowed=allowed)
            return settle_comparison(evaluable, evaluation, extra_allowed=allowed)
        satisfied, pairs = _max_satisfied(expected, actual)
        left = differences(expected, actual, pairs)
        faults = left.details(extra_allowed=True, places=places)
        details = {"satisfied": sorted(satisfied), **faults, **_ignored_calls(evaluable.tool_calls, places)}
        count, called = len(expected) + earlier, len(satisfied) + earlier
        if called == count:
            return Evaluation(1.0, f"all {count} expected tools were called", details)
        counted = f"{called} of {count} expected tools were called as expected"
        evaluation = Evaluation(called / count, f"{counted}: {left.explain(extra_allowed=True)}", details)
        return settle_comparison(evaluable, evaluation, extra_allowed=True)


def _max_satisfied(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> tuple[set[int], Pairs]:
    """The expected calls that can be satisfied together, with no actual call counted twice, and the pairs.

    The maximum, if each is expected once. With higher counts the maximum would take exponential time, so the least
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
    """Which expected call takes which actual one. It grows call by call along augmenting paths."""

    def __init__(self, fit: Sequence[Sequence[int]]) -> None:
        self.fit = fit
        """Per expected call, the actual calls that match."""
        self.by: dict[int, int] = {}
        """Per actual call in use, the expected one."""

    def take(self, index: int) -> bool:
        """Take one more call for `index`. Others may swap theirs for another match, but keep their number."""
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


def _evaluate_no_calls(actual: Sequence[ToolCall], places: Sequence[int], *, allowed: bool = False) -> Evaluation:
    """The result for `tools: []`, which means no calls in every mode unless calls are `allowed`."""
    left = differences((), actual, [])
    details = {**_precision_and_recall(0, 0, len(actual)), **left.details(extra_allowed=allowed, places=places)}
    if not actual:
        return Evaluation(1.0, "no tool calls, as expected", details)
    if allowed:
        return Evaluation(1.0, f"no call is required; {other_calls(len(actual))}", details)
    return Evaluation(0.0, f"expected no tool calls: {left.explain()}", details)


@evaluator(family="tools", threshold=1.0, example={"tool": "search", "at_most": 3})
@dataclass(frozen=True, slots=True)
class ToolCount(ScoreSettings):
    """The agent called a tool (or tools in total) the right number of times.

    1 if the number of calls is within the bounds. Without `tool`, all calls count.
    """

    tool: str | None = None
    """A name or a pattern such as `get_*`; `None` counts every call."""
    at_least: int | None = None
    at_most: int | None = None
    exactly: int | None = None
    failed_calls: str = "count"
    """`ignore` does not count calls that ended in an error."""

    def __post_init__(self) -> None:
        require_failed_calls(self.failed_calls)
        bounds = {"at_least": self.at_least, "at_most": self.at_most, "exactly": self.exactly}
        for name, bound in bounds.items():
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
                raise ValueError(f"{name} must be a whole number of at least 0, not {bound!r}")
        if all(bound is None for bound in bounds.values()):
            raise ValueError("set at_least, at_most or exactly")
        if self.exactly is not None and (self.at_least is not None or self.at_most is not None):
            raise ValueError("exactly cannot be combined with at_least or at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least} is more than at_most {self.at_most}")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        every = evaluable.tool_calls
        calls = [every[index] for index in counted_calls(every, self.failed_calls)]
        count = len(calls) if self.tool is None else sum(_matches_name(call.name, self.tool) for call in calls)
        least = self.at_least if self.exactly is None else self.exactly
        most = self.at_most if self.exactly is None else self.exactly
        fits = (least is None or count >= least) and (most is None or count <= most)
        reason = (
            f"{self.tool or 'tools'} called {count} {'time' if count == 1 else 'times'} (expected {self._bounds()})"
        )
        exceeds = most is not None and count > most
        tools = () if self.tool is None else (self.tool,)
        evaluation = Evaluation(float(fits), reason, {"count": count})
        return settle(evaluable, evaluation, is_certain=exceeds or (fits and most is None), tools=tools)

    def _bounds(self) -> str:
        if self.exactly is not None:
            return f"exactly {self.exactly}"
        bounds = {"at least": self.at_least, "at most": self.at_most}
        return " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)


def _matches_name(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


@evaluator(family="tools", threshold=1.0, example={"tools": ["delete_account"]})
@dataclass(frozen=True, slots=True)
class ForbiddenTools(ScoreSettings):
    """The agent called none of these tools.

    1 if no call matches one of the names or patterns. Failed calls count too.
    """

    tools: Sequence[str]
    """Names or shell-style patterns such as `delete_*`."""

    def __post_init__(self) -> None:
        tools = (self.tools,) if isinstance(self.tools, str) else tuple(self.tools)
        if not tools or not all(isinstance(tool, str) and tool for tool in tools):
            raise ValueError(f"tools must be a non-empty list of names or patterns, not {self.tools!r}")
        object.__setattr__(self, "tools", tools)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        calls = evaluable.tool_calls
        used = [i for i, call in enumerate(calls) if any(_matches_name(call.name, tool) for tool in self.tools)]
        if not used:
            evaluation = Evaluation(1.0, "no forbidden tool was called", {"forbidden": []})
            return settle(evaluable, evaluation, is_certain=False, tools=self.tools)
        shown = [f"call {index + 1}: {actual_text(calls[index])}" for index in used[:8]]
        more = f"; and {len(used) - 8} more" if len(used) > 8 else ""
        forbidden = [{"actual": index, "name": calls[index].name} for index in used]
        faults = [fault("forbidden", calls[index].name, index) for index in used]
        reason = f"forbidden tools were called: {'; '.join(shown)}{more}"
        return Evaluation(0.0, reason, {"forbidden": forbidden, "faults": faults})


@evaluator(family="tools", needs="final state", threshold=1.0, scope="case")
@dataclass(frozen=True, slots=True)
class FinalState(ScoreSettings):
    """The session ends in the expected state. Other keys of the state do not matter.

    1 if the state has each key of `final_state` with a matching value: objects and lists must have at least these
    parts, empty ones must be empty, and parts may be matchers. Skipped if the agent does not report its state.
    """

    base: Path | None = None
    """The folder that references to predicates start from."""

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        if not evaluable.expected_state:
            raise NothingToCompare("the case has no `final_state`")
        return _compare_state(evaluable.expected_state, evaluable.state, self.base)


@evaluator(family="tools", needs="expected state", threshold=1.0)
@dataclass(frozen=True, slots=True)
class TurnState(ScoreSettings):
    """The session has the expected state after each turn that has one. Other keys of the state do not matter.

    1 if the state has each key of the turn's `expected.state` with a matching value, compared as by `FinalState`.
    """

    base: Path | None = None
    """The folder that references to predicates start from."""

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = evaluable.turns[-1].turn.expected.state if evaluable.turns else None
        if not expected:
            raise NothingToCompare("the turn has no `expected.state`")
        return _compare_state(expected, evaluable.state, self.base)


def _compare_state(expected: Mapping[str, Json], state: Mapping[str, Json] | None, base: Path | None) -> Evaluation:
    """1 if a state has the expected keys; raises `NothingToCompare` if the agent does not report its state."""
    if state is None:
        raise NothingToCompare("the agent does not report its state")
    wrong: dict[str, str] = {}
    for key, matcher in parse_state(expected, base).fields.items():
        if reason := summarize(_state_differences(expected[key], matcher, state, key)):
            wrong[key] = reason
    if not wrong:
        return Evaluation(1.0, f"as expected: {', '.join(expected)}", {"different": {}})
    return Evaluation(0.0, "; ".join(wrong.values()), {"different": wrong})


def _state_differences(expected: Json, matcher: Matcher, state: Mapping[str, Json], key: str) -> Iterator[Difference]:
    """What is wrong at a key. An expected empty list or object must be empty, although every value contains it."""
    if key in state:
        yield from differences_of(matcher, state[key], key)
        yield from _nonempty_differences(expected, state[key], key)
    elif not may_be_absent(matcher):
        yield Difference(key, f"missing, expected {describe(matcher)}")


def _nonempty_differences(expected: Json, actual: Json, path: str) -> Iterator[Difference]:
    if expected in ([], {}):
        if isinstance(actual, type(expected)) and actual:  # a value of another type is already reported
            yield Difference(path, describe_change(expected, actual))
    elif isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, item in expected.items():
            if name in actual:
                yield from _nonempty_differences(item, actual[name], key_path(path, name))
