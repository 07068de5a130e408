"""Traces in pixie's own lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from span_strategies import CALLS, STEPS

from proctor.compat.pixie.trace_lines import to_lines
from proctor.tracing.otlp import read_trace_file
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span


@settings(deadline=None)
@given(st.lists(CALLS | STEPS, max_size=3))
def test_any_trace_can_be_written_as_records_and_read_again(tmp_path_factory: Any, spans: list[Span]) -> None:
    path = tmp_path_factory.mktemp("records") / "t.jsonl"
    path.write_text(to_lines(spans), encoding="ascii")
    calls = [s for s in spans if isinstance(s, LLMSpan)]
    if not path.read_text():
        return
    [found] = read_trace_file(path)
    again = [s for s in found.spans if isinstance(s, LLMSpan)]
    assert [(s.request_model, s.input_tokens, s.finish_reasons) for s in again] == [
        (s.request_model, s.input_tokens, s.finish_reasons) for s in calls
    ]
    assert [len(s.output_messages) for s in again] == [len(s.output_messages) for s in calls]


def test_records_begin_with_the_arguments_and_say_what_was_wrapped(tmp_path: Path) -> None:
    root = ObserveSpan("1", "t", None, 1.0, 5.0, 4000.0, "run", {"q": "hi"})
    given_ = ObserveSpan("2", "t", "1", 2.0, 2.0, 0.0, "profile", {"a": 1}, None, {"purpose": "input"}, kind="wrap")
    taken = ObserveSpan("3", "t", "1", 4.0, 4.0, 0.0, "answer", None, "yes", {"purpose": "output"}, kind="wrap")
    text = to_lines([taken, root, given_])
    records = [json.loads(line) for line in text.splitlines()]
    assert [(r["type"], r.get("name"), r.get("purpose"), r.get("data", r.get("value"))) for r in records] == [
        ("kwargs", None, None, {"q": "hi"}),
        ("wrap", "profile", "input", {"a": 1}),
        ("wrap", "answer", "output", "yes"),
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="ascii")
    [found] = read_trace_file(path)
    assert [(s.name, s.started_at) for s in found.spans] == [("run", 2.0), ("profile", 2.0), ("answer", 4.0)]
