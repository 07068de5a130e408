"""A reply with a value of a wrong type is an error of its trial, and all reports of the run are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from engine_helpers import only, run

from proctor import Case, Reply, Suite, ToolCall
from proctor.results.score import Outcome

WRONG = {
    "name None": Reply("hi", (ToolCall(None),)),  # type: ignore[arg-type]
    "name mock": Reply("hi", (ToolCall(MagicMock()),)),
    "arguments text": Reply("hi", (ToolCall("a", "text"),)),  # type: ignore[arg-type]
    "arguments None": Reply("hi", (ToolCall("a", None),)),  # type: ignore[arg-type]
    "error of a call": Reply("hi", (ToolCall("a", error=ValueError("x")),)),  # type: ignore[arg-type]
    "start of a call": Reply("hi", (ToolCall("a", started_at="now"),)),  # type: ignore[arg-type]
    "duration": Reply("hi", duration_ms="long"),  # type: ignore[arg-type]
    "no finite duration": Reply("hi", duration_ms=float("nan")),
    "passages as one text": Reply("hi", retrieval_context="one"),  # type: ignore[arg-type]
    "passages": Reply("hi", retrieval_context=(1, 2)),  # type: ignore[arg-type]
    "state": Reply("hi", state=MagicMock()),
}


@pytest.mark.parametrize("reply", WRONG.values(), ids=WRONG.keys())
def test_a_field_of_a_wrong_type_is_an_error_of_the_trial(tmp_path: Path, reply: Reply) -> None:
    def agent(message: str) -> Any:
        return reply

    found = run(Suite("desk", [Case("go", "hi", id="a")], evaluators=["ExactMatch"], agent=agent), store=tmp_path)
    assert only(found).outcome is Outcome.ERROR
    assert "the agent's reply cannot be read" in only(found).reason


def test_a_reply_with_fields_of_the_right_types_is_read(tmp_path: Path) -> None:
    call = ToolCall("a", {"x": 1}, error="no", started_at=1, duration_ms=2)
    reply = Reply("hi", (call,), retrieval_context=["one"], state={}, duration_ms=5)  # type: ignore[arg-type]
    suite = Suite("desk", [Case("go", "hi", id="a")], evaluators=["ExactMatch"], agent=lambda message: reply)
    assert only(run(suite, store=tmp_path)).outcome is Outcome.PASSED
