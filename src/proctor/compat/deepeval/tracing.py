"""DeepEval's `observe`, and the test case that `evals_iterator` builds from the recorded calls."""

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
    """Mark a function as a step of the application; one with `type="tool"` becomes a tool call of the test case."""
    if metrics:
        raise TypeError("metrics of a single step are not supported; pass them to evals_iterator(metrics=...)")
    if function is None:
        return lambda decorated_function: observe(decorated_function, type=type, name=name)
    decorated: Callable[..., Any] = tool(function) if type == "tool" else observe_step(name)(function)
    return decorated


def case_from_trace(golden: Golden, traces: MemoryTraceHandler) -> LLMTestCase:
    """The test case of a golden: the outermost step gives the answer, the tool spans give the tool calls."""
    fields: dict[str, Any] = {}
    roots = [nodes[0].span for nodes in traces.get_all_traces().values() if nodes]
    answers = [span.output for span in roots if hasattr(span, "output") and getattr(span, "kind", None) != "tool"]
    if answers and answers[-1] is not None:
        fields["actual_output"] = answers[-1] if isinstance(answers[-1], str) else to_text(to_json(answers[-1]))
    calls = [
        ToolCall(name=span.name or "", input_parameters=_parameters(span.input), output=span.output)
        for span in _tool_spans(traces)
    ]
    return golden.test_case(**fields, **({"tools_called": calls} if calls or golden.tools_called is None else {}))


def _tool_spans(traces: MemoryTraceHandler) -> Iterator[Any]:
    spans = (span for span in traces.spans if getattr(span, "kind", None) == "tool")
    return iter(sorted(spans, key=lambda span: span.started_at))


def _parameters(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"input": value}
