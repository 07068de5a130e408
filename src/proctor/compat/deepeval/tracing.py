"""DeepEval's `observe`, and the test case that `evals_iterator` makes of what was observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from proctor.base.json_data import to_json, to_text
from proctor.compat.deepeval.goldens import Golden
from proctor.compat.deepeval.test_case import LLMTestCase, ToolCall
from proctor.tracing.capture import MemoryTraceHandler
from proctor.tracing.observe import observe as observe_step
from proctor.tracing.tool import tool

__all__ = ["observe"]


def observe(function: Any = None, *, type: str | None = None, name: str | None = None, metrics: Any = None) -> Any:  # noqa: A002
    """Mark a function as a step of the application; one of the type `tool` is a tool call of its test case."""
    if metrics:
        raise TypeError("metrics of a single step are not measured here; give them to evals_iterator(metrics=...)")
    if function is None:
        return lambda given: observe(given, type=type, name=name)
    marked: Callable[..., Any] = tool(function) if type == "tool" else observe_step(name)(function)
    return marked


def observed_case(golden: Golden, seen: MemoryTraceHandler) -> LLMTestCase:
    """The golden with what the application did: its outermost step gives the answer, its tools the tool calls."""
    found: dict[str, Any] = {}
    roots = [nodes[0].span for nodes in seen.get_all_traces().values() if nodes]
    answers = [span.output for span in roots if hasattr(span, "output") and getattr(span, "kind", None) != "tool"]
    if answers and answers[-1] is not None:
        found["actual_output"] = answers[-1] if isinstance(answers[-1], str) else to_text(to_json(answers[-1]))
    calls = [
        ToolCall(name=span.name or "", input_parameters=_parameters(span.input), output=span.output)
        for span in _tool_spans(seen)
    ]
    return golden.test_case(**found, **({"tools_called": calls} if calls or golden.tools_called is None else {}))


def _tool_spans(seen: MemoryTraceHandler) -> Iterator[Any]:
    spans = (span for span in seen.spans if getattr(span, "kind", None) == "tool")
    return iter(sorted(spans, key=lambda span: span.started_at))


def _parameters(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"input": given}
