"""DeepEval's `observe`, and the test case that `evals_iterator` builds from the recorded calls."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from proctor.base.json_data import to_json, to_text
from proctor.compat.deepeval.goldens import Golden
from proctor.compat.deepeval.test_case import LLMTestCase, ToolCall
from proctor.tracing.capture import MemoryTraceHandler
from proctor.tracing.observe import observe as observe_step
from proctor.tracing.tool import tool

__all__ = [
    "observe",
    "update_agent_span",
    "update_current_span",
    "update_current_trace",
    "update_llm_span",
    "update_retriever_span",
    "update_tool_span",
]

FIELDS = (
    "input actual_output expected_output context retrieval_context tools_called expected_tools metadata name tags"
).split()
"""The fields of a test case that an application may set while it runs."""


@dataclass
class Step:
    """What the application reports about one step, or about the whole call, as fields of a test case."""

    fields: dict[str, Any] = field(default_factory=dict)

    def update(self, test_case: LLMTestCase | None, values: dict[str, Any]) -> None:
        """Take the fields that are set; those of `test_case` first."""
        if test_case is not None:
            self.fields |= {name: getattr(test_case, name) for name in FIELDS if getattr(test_case, name) is not None}
        if "output" in values:
            values["actual_output"] = values.pop("output")
        self.fields |= {name: values[name] for name in FIELDS if values.get(name) is not None}


@dataclass
class Reports:
    """What the application reports while it works on one golden."""

    trace: Step = field(default_factory=Step)
    components: list[tuple[LLMTestCase, Sequence[Any]]] = field(default_factory=list)
    """The test cases of steps that have their own metrics."""


REPORTS: ContextVar[Reports | None] = ContextVar("proctor_deepeval_reports", default=None)
_STEP: ContextVar[Step | None] = ContextVar("proctor_deepeval_step", default=None)


_GOLDEN: ContextVar[Golden | None] = ContextVar("proctor_deepeval_golden", default=None)


def get_current_golden() -> Golden | None:
    """The golden that `evals_iterator` has yielded last, or None."""
    return _GOLDEN.get()


@contextlib.contextmanager
def collect_reports(golden: Golden) -> Iterator[Reports]:
    """Collect what the application reports while it works on a golden."""
    reports = Reports()
    tokens = REPORTS.set(reports), _GOLDEN.set(golden)
    try:
        yield reports
    finally:
        with contextlib.suppress(ValueError):  # a loop that is abandoned is closed in another context
            REPORTS.reset(tokens[0])
            _GOLDEN.reset(tokens[1])


def update_current_trace(*, test_case: LLMTestCase | None = None, metrics: Any = None, **values: Any) -> None:
    """Set fields of the test case that `evals_iterator` makes of this call; outside of it, nothing happens."""
    if metrics:
        raise TypeError("metrics of a trace are not supported; pass them to evals_iterator(metrics=...)")
    reports = REPORTS.get()
    if reports is not None:
        reports.trace.update(test_case, values)


def update_current_span(*, test_case: LLMTestCase | None = None, metrics: Any = None, **values: Any) -> None:
    """Set fields of the test case of the current step, if it has metrics: `@observe(metrics=[...])`."""
    if metrics:
        raise TypeError("metrics of a step are set with @observe(metrics=[...])")
    step = _STEP.get()
    if step is not None:
        step.update(test_case, values)


def update_retriever_span(**values: Any) -> None:
    """Nothing: `update_current_span(retrieval_context=...)` sets the passages."""


def update_llm_span(**values: Any) -> None:
    """Nothing: models and tokens are recorded by the instrumentation of the client."""


def update_agent_span(**values: Any) -> None:
    """Nothing: the tools of an agent are recorded when they are called."""


def update_tool_span(**values: Any) -> None:
    """Nothing: tool calls are recorded with their arguments and results."""


def observe(
    function: Any = None,
    *,
    type: str | None = None,  # noqa: A002
    name: str | None = None,
    metrics: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    """Mark a function as a step of the application; one with `type="tool"` becomes a tool call of the test case.

    `metrics` score the step on its own: its test case is what it passes to `update_current_span`, and otherwise its
    arguments and its result. `options` are for DeepEval's service and have no effect.
    """
    if function is None:
        return lambda decorated_function: observe(decorated_function, type=type, name=name, metrics=metrics)
    if metrics:
        function = _as_component(function, tuple(metrics))
    decorated: Callable[..., Any] = tool(function) if type == "tool" else observe_step(name)(function)
    return decorated


def _as_component(function: Callable[..., Any], metrics: Sequence[Any]) -> Callable[..., Any]:
    """The function, which adds a test case for its metrics to the reports of the current golden."""
    signature = inspect.signature(function)

    @contextlib.contextmanager
    def recorded(arguments: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Step]:
        step = Step({"input": _text(_only_value(signature.bind(*arguments, **named).arguments))})
        token = _STEP.set(step)
        try:
            yield step
        finally:
            _STEP.reset(token)
        reports = REPORTS.get()
        if reports is not None:
            reports.components.append((LLMTestCase(**step.fields), metrics))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asynchronous(*arguments: Any, **named: Any) -> Any:
            with recorded(arguments, named) as step:
                result = await function(*arguments, **named)
                step.fields.setdefault("actual_output", _text(result))
            return result

        return asynchronous

    @functools.wraps(function)
    def synchronous(*arguments: Any, **named: Any) -> Any:
        with recorded(arguments, named) as step:
            result = function(*arguments, **named)
            step.fields.setdefault("actual_output", _text(result))
        return result

    return synchronous


def _only_value(arguments: dict[str, Any]) -> Any:
    """The argument, if there is only one; otherwise all of them by name."""
    return next(iter(arguments.values())) if len(arguments) == 1 else dict(arguments)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_text(to_json(value))


def case_from_trace(golden: Golden, traces: MemoryTraceHandler, reports: Reports) -> LLMTestCase:
    """The test case of a golden: the outermost step gives the answer, the tool spans give the tool calls.

    What the application has set with `update_current_trace` comes first.
    """
    fields: dict[str, Any] = {}
    roots = [nodes[0].span for nodes in traces.get_all_traces().values() if nodes]
    answers = [span.output for span in roots if hasattr(span, "output") and getattr(span, "kind", None) != "tool"]
    if answers and answers[-1] is not None:
        fields["actual_output"] = _text(answers[-1])
    calls = [
        ToolCall(name=span.name or "", input_parameters=_parameters(span.input), output=span.output)
        for span in _tool_spans(traces)
    ]
    if calls or golden.tools_called is None:
        fields["tools_called"] = calls
    reported = {
        name: _text(value) if name in ("input", "actual_output") else value
        for name, value in reports.trace.fields.items()
    }
    return golden.test_case(**fields | reported)


def _tool_spans(traces: MemoryTraceHandler) -> Iterator[Any]:
    spans = (span for span in traces.spans if getattr(span, "kind", None) == "tool")
    return iter(sorted(spans, key=lambda span: span.started_at))


def _parameters(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"input": value}
