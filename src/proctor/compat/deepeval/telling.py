"""What a test case that did not pass was about, so that nobody has to run it again to see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from proctor.compat.deepeval.evaluables import evaluable_of
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, Turn
from proctor.evaluators.model import Evaluable
from proctor.reporting.explain import BRIEF, Fact, as_text, call_text, expected_call_text, shorten
from proctor.reporting.screen import visible


def story_of(case: Any) -> str:
    """Question, answer, tool calls with arguments and results, and passages, in two columns."""
    facts = _turns(case.turns) if isinstance(case, ConversationalTestCase) else _exchange(case)
    return visible(as_text([Fact(fact.label, shorten(fact.text, BRIEF.value)) for fact in facts]))


def _exchange(case: LLMTestCase) -> Iterator[Fact]:
    seen = evaluable_of(case)
    yield Fact("input", case.input)
    if case.expected_output is not None:
        yield Fact("expected", case.expected_output)
    if case.actual_output is not None:
        yield Fact("got", case.actual_output or "(an empty answer)")
    if seen.expected_tool_calls:
        yield Fact("expected calls", _lines(expected_call_text(call, BRIEF.value) for call in seen.expected_tool_calls))
    if case.tools_called is not None:
        yield Fact("calls", _calls(seen))
    for label in ("context", "retrieval_context"):
        if getattr(case, label):
            yield Fact(label.replace("_", " "), _lines(getattr(case, label)))


def _turns(turns: Iterable[Turn]) -> Iterator[Fact]:
    for turn in turns:
        yield Fact(turn.role, turn.content)
        if turn.tools_called:
            yield Fact("calls", _calls(evaluable_of(ConversationalTestCase(turns=[turn]))))


def _calls(seen: Evaluable) -> str:
    return _lines(call_text(call, BRIEF.result) for call in seen.tool_calls) or "none"


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)
