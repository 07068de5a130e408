"""Traces leave for files and come back: whose they are, compressed or not, and in pixie's records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otlp_documents import to_otlp
from test_tracing_otlp import CALLS, STEPS

from proctor.base.errors import InvalidSuite
from proctor.tracing.otlp import find_traces, trial_resource
from proctor.tracing.pixie_records import to_lines
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span

TRIAL = {"run": "r1", "suite": "s", "case": "c", "number": 2}


def write(folder: Path, content: bytes) -> Path:
    path = folder / "trace"
    path.write_bytes(content)
    return path


def span(trace_id: str, span_id: str) -> ObserveSpan:
    return ObserveSpan(span_id, trace_id, name=span_id)


def test_spans_of_a_trial_stay_together_and_others_go_by_their_trace(tmp_path: Path) -> None:
    ours = [trial_resource([span("t1", "a"), span("t2", "b")], **TRIAL)]
    theirs = [to_otlp([span("t3", "c"), span("t4", "d")]), to_otlp([span("t3", "e")])]
    lines = [{"resourceSpans": ours}, *theirs]
    found = find_traces(write(tmp_path, "\n".join(map(json.dumps, lines)).encode()))
    assert [([s.name for s in trace.spans], dict(trace.about)) for trace in found] == [
        (["a", "b"], TRIAL),
        (["c", "e"], {}),
        (["d"], {}),
    ]


@pytest.mark.parametrize("number", ["two", None, 1.5])
def test_a_resource_that_only_half_names_a_trial_belongs_to_none(tmp_path: Path, number: Any) -> None:
    document = {"resourceSpans": [trial_resource([span("t", "a")], **{**TRIAL, "number": number})]}
    [found] = find_traces(write(tmp_path, json.dumps(document).encode()))
    assert found.about == {}


def test_a_compressed_file_is_unpacked(tmp_path: Path) -> None:
    [found] = find_traces(write(tmp_path, gzip.compress(json.dumps(to_otlp([span("t", "a")])).encode())))
    assert [s.name for s in found.spans] == ["a"]


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b", b"\x1f\x8b\x08rest", gzip.compress(b"{}" * 1000)[:-20]],
    ids=["only a beginning", "no stream", "cut short"],
)
def test_a_file_that_cannot_be_unpacked_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidSuite, match="cannot be read"):
        find_traces(write(tmp_path, content))


@settings(deadline=None)
@given(st.lists(CALLS | STEPS, max_size=3))
def test_any_trace_can_be_written_as_records_and_read_again(tmp_path_factory: Any, spans: list[Span]) -> None:
    path = tmp_path_factory.mktemp("records") / "t.jsonl"
    path.write_text(to_lines(spans), encoding="ascii")
    calls = [s for s in spans if isinstance(s, LLMSpan)]
    if not path.read_text():
        return
    [found] = find_traces(path)
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
    [found] = find_traces(write(tmp_path, text.encode()))
    assert [(s.name, s.started_at) for s in found.spans] == [("run", 2.0), ("profile", 2.0), ("answer", 4.0)]
