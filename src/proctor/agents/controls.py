"""Two agents that test the examination itself: one that gives the expected answer, and one that does nothing.

A suite that the oracle fails asks for something impossible; a suite that the nop agent passes asks for nothing.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping

from proctor.agents.doubles import needs_no_doubles
from proctor.agents.examples import NoExample, example_of, example_of_parts
from proctor.agents.model import Reply, ToolCall, Usage
from proctor.cases.model import UNSET, Case, Expected, ExpectedCall, Keywords, Turn
from proctor.errors import UnreadableReply
from proctor.plain import Json, plain, show

_FREE = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
_AN_INSTANT_MS = 0.001


class OracleAgent:
    """Answers every turn with what is expected of it."""

    name = "oracle"
    fingerprint = "oracle-1"

    def session(self, case: Case) -> OracleSession:
        return OracleSession(case)


class OracleSession:
    """Knows which turn is the last, after which the final state must be reached."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._left = len(case.turns)

    async def __aenter__(self) -> OracleSession:
        needs_no_doubles()
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def send(self, turn: Turn) -> Reply:
        self._left -= 1
        expected = turn.expected
        text, structured = _answer(expected)
        try:
            calls = tuple(call for wanted in expected.tool_calls or () for call in _calls(wanted))
            state = self._state()
        except NoExample as error:
            raise UnreadableReply(f"the oracle cannot invent {error}") from None
        return Reply(
            text=text,
            tool_calls=calls,
            usage=_FREE,
            structured=structured,
            state=state,
            retrieval_context=turn.retrieval_context or expected.context,
            duration_ms=_AN_INSTANT_MS,
        )

    def _state(self) -> Mapping[str, Json] | None:
        case = self._case
        if case.final_state is None and not case.state:
            return None
        state = copy.deepcopy(dict(case.state))
        if case.final_state is None or self._left > 0:
            return state
        return _merged(state, example_of_parts(dict(case.final_state)))


class NopAgent:
    """Answers every turn with nothing at all."""

    name = "nop"
    fingerprint = "nop-1"

    def session(self, case: Case) -> NopSession:
        return NopSession()


class NopSession:
    """Has nothing to remember."""

    async def __aenter__(self) -> NopSession:
        needs_no_doubles()
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def send(self, turn: Turn) -> Reply:
        return Reply()


def _answer(expected: Expected) -> tuple[str, Json]:
    """The reference answer, and after it whatever keywords it does not contain."""
    output = None if expected.output is UNSET else plain(expected.output)
    text = "" if output is None else show(output)
    words = [text] if text else []
    if expected.keywords is not None:
        words += _missing(expected.keywords, text)
    return " ".join(words), None if isinstance(output, str) else output


def _missing(keywords: Keywords, text: str) -> list[str]:
    missing = [word for word in keywords.all_of if not _mentions(text, word)]
    if not any(_mentions(text, word) for word in keywords.any_of):
        missing += [word for word in keywords.any_of if word not in missing]
    return missing


def _mentions(text: str, word: str) -> bool:
    """Whatever the case; digits only where no further digits make another number of them."""
    pattern = re.escape(word.casefold())
    if word[:1].isdigit():
        pattern = rf"(?<![\d.,]){pattern}"
    if word[-1:].isdigit():
        pattern = rf"{pattern}(?![\d.,]*\d)"
    return re.search(pattern, text.casefold()) is not None


def _calls(wanted: ExpectedCall) -> list[ToolCall]:
    arguments = {name: example_of(matcher) for name, matcher in (wanted.arguments or {}).items()}
    result = None if wanted.result is UNSET else plain(wanted.result)
    return [ToolCall(wanted.name, copy.deepcopy(arguments), result) for _ in range(wanted.count)]


def _merged(state: dict[str, Json], wanted: Mapping[str, Json]) -> dict[str, Json]:
    for key, value in wanted.items():
        old = state.get(key)
        state[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return state
