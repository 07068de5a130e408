"""The control agents, which test a suite: the oracle gives the expected answers, nop does nothing.

A suite that the oracle fails expects something impossible. A suite that nop passes expects nothing.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.tool_mocks import ignore_mocks
from proctor.base.errors import UnreadableReply
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.base.keywords import find_keywords
from proctor.cases.matchers import (
    Approx,
    Each,
    Equals,
    Fuzzy,
    Ignore,
    Including,
    InvalidMatcher,
    ListOf,
    Matcher,
    MaybeAbsent,
    ObjectOf,
    OfType,
    OneOf,
    Regex,
    Subset,
    may_be_absent,
    parse,
    parse_state,
)
from proctor.cases.suite import Case, Expected, ExpectedCall, Keywords, Turn

_ZERO_USAGE = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
_INSTANT_MS = 0.001


class OracleAgent(BaseAgent):
    """Answers every turn as expected."""

    name = "oracle"
    fingerprint = "oracle-1"
    reports_all_tool_calls = True
    reports_cost = True

    def session(self, case: Case) -> OracleSession:
        return OracleSession(case)


class OracleSession(BaseSession):
    """One conversation; with the last turn it reports the final state."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._turns_left = len(case.turns)

    async def open(self) -> None:
        ignore_mocks()

    async def send(self, turn: Turn) -> Reply:
        self._turns_left -= 1
        expected = turn.expected
        text, structured = _expected_answer(expected)
        try:
            calls = tuple(call for item in expected.tools or () for call in _example_calls(item))
            state = self._state()
        except NoExample as error:
            raise UnreadableReply(f"the oracle cannot make up {error}") from None
        return Reply(
            text=text,
            tool_calls=calls,
            usage=_ZERO_USAGE,
            structured=structured,
            state=state,
            retrieval_context=turn.retrieval_context or expected.context,
            duration_ms=_INSTANT_MS,
        )

    def _state(self) -> Mapping[str, Json] | None:
        case = self.case
        expected = [item.expected.state for item in case.turns]
        if case.final_state is None and not case.state and not any(expected):
            return None
        state: dict[str, Json] = copy.deepcopy(dict(case.state))
        done = expected[: len(expected) - self._turns_left]
        if self._turns_left == 0:
            done.append(case.final_state)
        for after in done:
            state = _merge_state(state, examples_of(parse_state(after).fields)) if after else state
        return state


class NopAgent(BaseAgent):
    """Answers every turn with an empty reply."""

    name = "nop"
    fingerprint = "nop-1"
    reports_all_tool_calls = True
    reports_cost = True

    def session(self, case: Case) -> NopSession:
        return NopSession(case)


class NopSession(BaseSession):
    """A conversation without content."""

    async def open(self) -> None:
        ignore_mocks()

    async def send(self, turn: Turn) -> Reply:
        return Reply()


def _expected_answer(expected: Expected) -> tuple[str, Json]:
    """The expected output as text, followed by the keywords that it does not contain; and as data, if it is data."""
    output = None if expected.output is UNSET else to_json(expected.output)
    text = "" if output is None else to_text(output)
    words = [text] if text else []
    if expected.contains is not None:
        words += _missing_keywords(expected.contains, text)
    return " ".join(words), None if isinstance(output, str) else output


def _missing_keywords(keywords: Keywords, text: str) -> list[str]:
    _, missing = find_keywords(keywords.all, text, ignore_case=True)
    any_found, any_missing = find_keywords(keywords.any, text, ignore_case=True)
    return missing if any_found else [*missing, *(word for word in any_missing if word not in missing)]


def _example_calls(expected: ExpectedCall) -> list[ToolCall]:
    arguments = examples_of(expected.args or {})
    result = None if expected.result is UNSET else to_json(expected.result)
    with contextlib.suppress(InvalidMatcher):  # a key with a `$` of another format is only a key
        result = result if isinstance(result, str) else example_of(parse(result))
    return [ToolCall(expected.name, copy.deepcopy(arguments), result) for _ in range(expected.count)]


def _merge_state(state: dict[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """Apply changes to a state in place; objects are merged key by key."""
    for key, value in changes.items():
        old = state.get(key)
        state[key] = _merge_state(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return state


_MAX_LIST_LENGTH = 100_000


class NoExample(Exception):
    """No value is known that certainly matches. The message is what is missing, such as "a value for ..."."""


def example_of(matcher: Matcher) -> Json:
    """A value that matches, checked with the matcher itself; raises `NoExample`."""
    value = _make_example(matcher)
    try:
        matches = matcher.mismatch(value) is None
    except Exception:
        matches = False
    if not matches:
        raise NoExample(f"a value for {to_text(matcher.to_json(), 120)}")
    return value


def examples_of(matchers: Mapping[str, Matcher]) -> dict[str, Json]:
    """An example for each name. A value that may be absent is left out if there is no example for it."""
    examples: dict[str, Json] = {}
    for name, matcher in matchers.items():
        try:
            examples[name] = example_of(matcher)
        except NoExample:
            if not may_be_absent(matcher):
                raise
    return examples


def _make_example(matcher: Matcher) -> Json:
    match matcher:
        case Equals(value=value) | Fuzzy(value=value) | Approx(value=value):
            return value
        case Subset(parts=inner) | MaybeAbsent(matcher=inner):
            return example_of(inner)
        case OneOf(matchers=matchers):
            return _first_example(matcher, matchers)
        case Ignore():
            return None
        case Regex(pattern=pattern):
            hint = "write the text itself, for example as expected.output"
            raise NoExample(f"a text for the pattern /{pattern[:100]}/; {hint}")
        case OfType():
            return _example_of_type(matcher)
        case ObjectOf(fields=fields):
            return examples_of(fields)
        case ListOf(items=items) | Including(items=items):
            return [example_of(item) for item in items]
        case Each():
            return _example_list(matcher)
        case _:
            raise NoExample(f"a value for {to_text(matcher.to_json(), 120)}")


_EXAMPLES_BY_TYPE: Mapping[str, Json] = {
    "string": "a",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def _example_of_type(matcher: OfType) -> Json:
    if matcher.value is None:
        return copy.deepcopy(_EXAMPLES_BY_TYPE[matcher.types[0]])
    value = example_of(matcher.value)
    return int(value) if isinstance(value, float) and value.is_integer() and "number" not in matcher.types else value


def _example_list(matcher: Each) -> list[Json]:
    count = max(matcher.at_least, 1 if matcher.at_most is None else min(1, matcher.at_most))
    if count > _MAX_LIST_LENGTH:
        raise NoExample(f"a list of {count:,} items")
    return [example_of(matcher.item)] * count if count else []


def _first_example(matcher: Matcher, alternatives: tuple[Matcher, ...]) -> Json:
    for alternative in alternatives:
        try:
            return example_of(alternative)
        except NoExample:
            continue
    raise NoExample(f"a value for {to_text(matcher.to_json(), 120)}")
