"""Traces leave for files and come back: whose they are, compressed or not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from otlp_documents import to_otlp

from proctor.base.errors import InvalidSuite
from proctor.tracing.otlp import read_trace_file, trial_resource
from proctor.tracing.spans import ObserveSpan

TRIAL = {"run": "r1", "suite": "s", "case": "c", "number": 2}


def write(folder: Path, content: bytes) -> Path:
    path = folder / "trace"
    path.write_bytes(content)
    return path


def span(trace_id: str, span_id: str) -> ObserveSpan:
    return ObserveSpan(span_id, trace_id, name=span_id)


def test_spans_are_grouped_by_trial_or_else_by_trace(tmp_path: Path) -> None:
    ours = [trial_resource([span("t1", "a"), span("t2", "b")], **TRIAL)]
    theirs = [to_otlp([span("t3", "c"), span("t4", "d")]), to_otlp([span("t3", "e")])]
    lines = [{"resourceSpans": ours}, *theirs]
    trace = read_trace_file(write(tmp_path, "\n".join(map(json.dumps, lines)).encode()))
    assert [([s.name for s in trace.spans], dict(trace.trial)) for trace in trace] == [
        (["a", "b"], TRIAL),
        (["c", "e"], {}),
        (["d"], {}),
    ]


@pytest.mark.parametrize("number", ["two", None, 1.5])
def test_a_resource_with_only_some_attributes_of_a_trial_belongs_to_none(tmp_path: Path, number: Any) -> None:
    document = {"resourceSpans": [trial_resource([span("t", "a")], **{**TRIAL, "number": number})]}
    [trace] = read_trace_file(write(tmp_path, json.dumps(document).encode()))
    assert trace.trial == {}


def test_a_compressed_file_is_unpacked(tmp_path: Path) -> None:
    [trace] = read_trace_file(write(tmp_path, gzip.compress(json.dumps(to_otlp([span("t", "a")])).encode())))
    assert [s.name for s in trace.spans] == ["a"]


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b", b"\x1f\x8b\x08rest", gzip.compress(b"{}" * 1000)[:-20]],
    ids=["only a beginning", "no stream", "cut short"],
)
def test_a_file_that_cannot_be_unpacked_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidSuite, match="cannot be read"):
        read_trace_file(write(tmp_path, content))
