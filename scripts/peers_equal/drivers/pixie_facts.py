"""Facts about pixie, one function each, by the original or by Proctor: `python pixie_facts.py INPUTS OUTPUTS`.

The inputs are `{"who": "original" or "proctor", "facts": "0.4" or "0.6"}`. A fact returns JSON. What it raises is its
result too: the names of the exception's types that users may catch.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

INPUTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
if INPUTS["who"] == "proctor":
    from proctor.compat.aliases import install_aliases

    install_aliases(["pixie!"])

import pixie  # noqa: E402  the original, or Proctor under its name

FACTS: dict[str, dict[str, Callable[[], Any]]] = {"0.4": {}, "0.6": {}}


def fact(name: str, *versions: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a fact for these versions of pixie; for both by default."""

    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        for version in versions or FACTS:
            FACTS[version][name] = function
        return function

    return add


def module(name: str) -> Any:
    return importlib.import_module(f"pixie.{name}")


def outcome(function: Callable[[], Any]) -> Any:
    """What a fact returns, or the exceptions that a user could catch."""
    try:
        result = function()
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        common = ("ValidationError", "FrozenInstanceError", "AssertionError", "FileNotFoundError", "FileExistsError")
        known = (*common, "IndexError", "KeyError", "AttributeError", "TypeError", "ValueError", "RuntimeError")
        return f"raises {next((name for name in known if name in names), names[0])}"
    return json.loads(json.dumps(result, default=repr))


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def step(**changes: Any) -> Any:
    fields = {
        "span_id": "a" * 16,
        "trace_id": "b" * 32,
        "parent_span_id": None,
        "started_at": NOW,
        "ended_at": NOW + timedelta(seconds=1),
        "duration_ms": 1000.0,
        "name": "desk",
        "input": {"question": "Where?"},
        "output": "Here.",
        "metadata": {"env": "test"},
        "error": None,
    }
    return module("instrumentation.spans").ObserveSpan(**fields | changes)


def call(**changes: Any) -> Any:
    spans = module("instrumentation.spans")
    fields = {
        "span_id": "c" * 16,
        "trace_id": "b" * 32,
        "parent_span_id": "a" * 16,
        "started_at": NOW,
        "ended_at": NOW + timedelta(seconds=1),
        "duration_ms": 350.0,
        "operation": "chat",
        "provider": "openai",
        "request_model": "gpt-4o",
        "response_model": "gpt-4o-mini",
        "input_tokens": 150,
        "output_tokens": 42,
        "cache_read_tokens": 30,
        "cache_creation_tokens": 0,
        "request_temperature": 0.5,
        "request_max_tokens": None,
        "request_top_p": None,
        "finish_reasons": ("stop",),
        "response_id": None,
        "output_type": None,
        "error_type": None,
        "input_messages": (spans.SystemMessage(content="Be brief."), spans.UserMessage.from_text("Where?")),
        "output_messages": (
            spans.AssistantMessage(content=(spans.TextContent(text="Here."),), tool_calls=(), finish_reason="stop"),
        ),
        "tool_definitions": (),
    }
    return spans.LLMSpan(**fields | changes)


def score(value: float, reasoning: str = "why") -> Any:
    return pixie.Evaluation(score=value, reasoning=reasoning)


def scorer(value: float, seen: list[Any] | None = None, take: Callable[[Any], Any] = lambda item: item) -> Any:
    """An evaluator with this score, which notes what it takes of each evaluable."""

    async def evaluator(evaluable: Any, *, trace: Any = None) -> Any:
        if seen is not None:
            seen.append(take(evaluable))
        return score(value)

    return evaluator


def new_evaluable() -> Any:
    """An evaluable with one input and one output, as each version writes it."""
    if INPUTS["facts"] == "0.4":
        return pixie.Evaluable(eval_input="in", eval_output="out")
    named = module("eval.evaluable").NamedData
    return pixie.Evaluable(eval_input=[named(name="q", value="in")], eval_output=[named(name="a", value="out")])


# Evaluations and evaluate()


@fact("an evaluation has no details by default")
def _() -> Any:
    return [score(0.8).score, score(0.8).reasoning, score(0.8).details]


@fact("an evaluation needs a reasoning")
def _() -> Any:
    return pixie.Evaluation(score=0.5)


@fact("an evaluation takes its fields by position")
def _() -> Any:
    one = pixie.Evaluation(0.5, "why", {"k": 1})
    return [one.score, one.reasoning, one.details, one == pixie.Evaluation(0.5, "why", {"k": 1})]


@fact("assigning to an evaluation")
def _() -> Any:
    score(0.5).score = 1.0


for over in (1.5, -0.3, 0.0, 1.0, 0.5):

    @fact(f"evaluate() with a score of {over}")
    def _(over: float = over) -> Any:
        return asyncio.run(pixie.evaluate(scorer(over), new_evaluable())).score


@fact("evaluate() with a sync evaluator")
def _() -> Any:
    def evaluator(evaluable: Any, *, trace: Any = None) -> Any:
        return score(0.7, "sync")

    result = asyncio.run(pixie.evaluate(evaluator, new_evaluable()))
    return [result.score, result.reasoning]


@fact("evaluate() with an object")
def _() -> Any:
    class Mine:
        async def __call__(self, evaluable: Any, *, trace: Any = None) -> Any:
            return score(0.6)

    return asyncio.run(pixie.evaluate(Mine(), new_evaluable())).score


@fact("evaluate() with an evaluator that raises")
def _() -> Any:
    async def evaluator(evaluable: Any, *, trace: Any = None) -> Any:
        raise KeyError("boom")

    return asyncio.run(pixie.evaluate(evaluator, new_evaluable()))


@fact("evaluate() passes the trace", "0.4")
def _() -> Any:
    seen: list[Any] = []

    async def evaluator(evaluable: Any, *, trace: Any = None) -> Any:
        seen.append(trace)
        return score(1.0)

    asyncio.run(pixie.evaluate(evaluator, new_evaluable(), trace=[]))
    return seen


# ScoreThreshold (0.4)

for label, rows, options in (
    ("all above", [[0.5], [0.8], [1.0]], {}),
    ("one below", [[0.5], [0.4], [1.0]], {}),
    ("a higher threshold", [[0.6], [0.55]], {"threshold": 0.7}),
    ("exactly the threshold", [[0.7], [0.9]], {"threshold": 0.7}),
    ("80% of 80%", [[0.9]] * 8 + [[0.1]] * 2, {"pct": 0.8}),
    ("70% of 80%", [[0.9]] * 7 + [[0.1]] * 3, {"pct": 0.8}),
    ("two evaluators, one fails", [[0.8, 0.3], [0.9, 0.7]], {}),
    ("two evaluators, both pass", [[0.8, 0.6], [0.9, 0.7]], {}),
    ("no inputs", [], {}),
):

    @fact(f"ScoreThreshold: {label}", "0.4")
    def _(rows: Any = rows, options: Any = options) -> Any:
        passed, message = pixie.ScoreThreshold(**options)([[score(value) for value in row] for row in rows])
        return [passed, message.split(":")[0]]


# Evaluables


@fact("an evaluable has its values", "0.4")
def _() -> Any:
    one = pixie.Evaluable(eval_input="i", eval_output="o", eval_metadata={"k": 1}, expected_output="e")
    return [one.eval_input == "i", one.eval_output == "o", one.eval_metadata, one.expected_output]


@fact("an evaluable has a part of its output", "0.4")
def _() -> Any:
    one = pixie.Evaluable(eval_input="i", eval_output="It is Paris.")
    return ["Paris" in one.eval_output, "Rome" in one.eval_output]


@fact("an evaluable without an input", "0.4")
def _() -> Any:
    return [pixie.Evaluable().eval_metadata, pixie.Evaluable().expected_output is pixie.UNSET]


@fact("the input of an evaluable without one", "0.4")
def _() -> Any:
    return pixie.Evaluable().eval_input


@fact("an expected output of None is a value", "0.4")
def _() -> Any:
    return [pixie.Evaluable(expected_output=None).expected_output, pixie.Evaluable().expected_output is pixie.UNSET]


@fact("assigning to an evaluable", "0.4")
def _() -> Any:
    pixie.Evaluable(eval_input="x").eval_input = "y"


@fact("assigning to an evaluable", "0.6")
def _() -> Any:
    new_evaluable().description = "changed"


for label, fields in (
    ("all fields", {"eval_input": "i", "eval_output": "o", "eval_metadata": {"k": "v"}, "expected_output": "e"}),
    ("nothing", {}),
    ("None is expected", {"expected_output": None}),
):

    @fact(f"an evaluable survives model_dump and model_validate: {label}", "0.4")
    def _(fields: Any = fields) -> Any:
        one = pixie.Evaluable(**fields)
        again = pixie.Evaluable.model_validate(one.model_dump(mode="json"))
        return [again == one, again.expected_output is one.expected_output or again.expected_output == "e"]


@fact("an evaluable can be copied with changes", "0.4")
def _() -> Any:
    return pixie.Evaluable(eval_input="i").model_copy(update={"expected_output": "e"}).expected_output


@fact("an evaluable survives model_dump and model_validate", "0.6")
def _() -> Any:
    one = new_evaluable()
    return [pixie.Evaluable.model_validate(one.model_dump(mode="json")) == one, sorted(one.model_dump())]


for label, fields in (
    ("an empty input", {"eval_input": [], "eval_output": [{"name": "a", "value": 1}]}),
    ("no input", {"eval_output": [{"name": "a", "value": 1}]}),
    ("an input without a name", {"eval_input": [{"value": 1}], "eval_output": [{"name": "a", "value": 1}]}),
    ("a description that is a number", {"eval_input": [{"name": "q", "value": 1}], "description": 3}),
):

    @fact(f"{label} is refused", "0.6")
    def _(fields: Any = fields) -> Any:
        return str((pixie.TestCase if "eval_output" not in fields else pixie.Evaluable)(**fields))


@fact("a test case has no output", "0.6")
def _() -> Any:
    case = pixie.TestCase(eval_input=[{"name": "q", "value": "x"}], expectation=None)
    return [case.eval_input[0].name, case.eval_input[0].value, case.expectation, case.description, case.eval_metadata]


@fact("an evaluable is a test case", "0.6")
def _() -> Any:
    return [isinstance(new_evaluable(), pixie.TestCase), issubclass(pixie.Evaluable, pixie.TestCase)]


@fact("collapse_named_data", "0.6")
def _() -> Any:
    data = module("eval.evaluable")
    items = [data.NamedData(name="a", value=1), data.NamedData(name="b", value=[2])]
    return [data.collapse_named_data(items), data.collapse_named_data(items[:1]), data.collapse_named_data([])]


# Datasets (0.4)


def with_store(function: Callable[[Any, Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return function(pixie.DatasetStore(dataset_dir=folder), Path(folder))


def items(*values: str) -> list[Any]:
    return [pixie.Evaluable(eval_input=value, expected_output=f"to {value}", description=value) for value in values]


@fact("a dataset has its items", "0.4")
def _() -> Any:
    dataset = module("dataset.models").Dataset(name="set", items=tuple(items("a", "b")))
    return [dataset.name, len(dataset.items), dataset.items[0].eval_input == "a", dataset.items[1].expected_output]


@fact("a dataset without items", "0.4")
def _() -> Any:
    return list(module("dataset.models").Dataset(name="set").items)


@fact("a dataset without a name is refused", "0.4")
def _() -> Any:
    return module("dataset.models").Dataset(name="")


@fact("assigning to a dataset", "0.4")
def _() -> Any:
    module("dataset.models").Dataset(name="set").name = "other"


for values in ((), ("a",), ("a", "b")):

    @fact(f"a dataset of {len(values)} survives model_dump and model_validate", "0.4")
    def _(values: Any = values) -> Any:
        kind = module("dataset.models").Dataset
        one = kind(name="set", items=tuple(items(*values)))
        return kind.model_validate(one.model_dump(mode="json")) == one


@fact("the file of a new dataset", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: [store.create("My Set").name, [path.name for path in folder.iterdir()]])


@fact("the keys of a dataset's file", "0.4")
def _() -> Any:
    def keys(store: Any, folder: Path) -> Any:
        store.create("set", items=items("a"))
        return sorted(json.loads((folder / "set.json").read_text()))

    return with_store(keys)


@fact("a dataset is created once", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: [store.create("set"), store.create("set")])


@fact("a dataset with items", "0.4")
def _() -> Any:
    def read(store: Any, folder: Path) -> Any:
        made = store.create("set", items=items("a", "b"))
        again = store.get("set")
        return [len(made.items), again.items[0].eval_input == "a", again.items[1].expected_output, again.name]

    return with_store(read)


@fact("a dataset that is not there", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: store.get("nowhere"))


@fact("the names of all datasets", "0.4")
def _() -> Any:
    def names(store: Any, folder: Path) -> Any:
        store.create("beta")
        store.create("alpha")
        (folder / "bad.json").write_text("not json{{{")
        return store.list()

    return with_store(names)


@fact("the names of a folder that is not there", "0.4")
def _() -> Any:
    return pixie.DatasetStore(dataset_dir="nowhere").list()


@fact("a deleted dataset", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: [store.create("set") and None, store.delete("set"), list(folder.iterdir())])


@fact("deleting a dataset that is not there", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: store.delete("nowhere"))


@fact("items are appended", "0.4")
def _() -> Any:
    return with_store(
        lambda store, folder: [len((store.create("set"), store.append("set", *items("a", "b")))[1].items)]
    )


@fact("appending to a dataset that is not there", "0.4")
def _() -> Any:
    return with_store(lambda store, folder: store.append("nowhere", *items("a")))


for index in (1, 5, -1):

    @fact(f"removing item {index} of three", "0.4")
    def _(index: int = index) -> Any:
        def remove(store: Any, folder: Path) -> Any:
            store.create("set", items=items("a", "b", "c"))
            return [item.expected_output for item in store.remove("set", index).items]

        return with_store(remove)


for name in ("", "@#$%"):

    @fact(f"a dataset named {name!r}", "0.4")
    def _(name: str = name) -> Any:
        return with_store(lambda store, folder: store.create(name))


# Spans and traces (0.4)


@fact("contents and messages", "0.4")
def _() -> Any:
    spans = module("instrumentation.spans")
    user = spans.UserMessage.from_text("hi")
    picture = spans.ImageContent(url="https://example.com/a.png", detail="high")
    answer = spans.AssistantMessage(content=(), tool_calls=(spans.ToolCall(name="f", arguments={"q": 1}, id="1"),))
    result = spans.ToolResultMessage(content="{}", tool_call_id="1", tool_name="f")
    return [
        [user.role, user.content[0].text, user.content[0].type, picture.url, picture.detail, picture.type],
        [answer.role, answer.tool_calls[0].name, answer.tool_calls[0].arguments, answer.tool_calls[0].id],
        [result.role, result.content, result.tool_call_id, result.tool_name, spans.SystemMessage(content="s").role],
        [spans.ToolDefinition(name="n").description, spans.ToolDefinition(name="n").parameters],
    ]


@fact("assigning to a span", "0.4")
def _() -> Any:
    step().name = "changed"


@fact("assigning to a content", "0.4")
def _() -> Any:
    module("instrumentation.spans").TextContent(text="x").text = "y"


@fact("a span has its fields", "0.4")
def _() -> Any:
    one, other = step(parent_span_id="p"), call()
    return [one.span_id, one.parent_span_id, one.input, one.output, one.metadata, other.input_tokens, other.provider]


def tree(*spans: Any) -> Any:
    return module("storage.tree").build_tree(list(spans))


@fact("a tree of a step and a call", "0.4")
def _() -> Any:
    [root] = tree(call(), step())
    child = root.children[0]
    return [root.span_id, root.name, root.duration_ms, child.name, child.parent_span_id, child.trace_id, child.children]


@fact("children are sorted by start", "0.4")
def _() -> Any:
    late = call(span_id="d" * 16, started_at=NOW + timedelta(seconds=5))
    return [child.span_id for child in tree(late, step(), call())[0].children]


@fact("a span without its parent is a root", "0.4")
def _() -> Any:
    return [node.name for node in tree(step(parent_span_id="nowhere", name="orphan"))]


@fact("the name of a span without one", "0.4")
def _() -> Any:
    return tree(step(name=None))[0].name


@fact("finding by name and by type", "0.4")
def _() -> Any:
    spans = module("instrumentation.spans")
    [root] = tree(step(), call())
    kinds = (spans.LLMSpan, spans.ObserveSpan)
    return [len(root.find("gpt-4o")), len(root.find("x")), *(len(root.find_by_type(kind)) for kind in kinds)]


for label, changes in (
    ("a call", {}),
    ("an error", {"error_type": "TimeoutError", "output_messages": ()}),
    ("no tokens", {"input_tokens": 0, "output_tokens": 0}),
    ("cached tokens", {"cache_creation_tokens": 7}),
):

    @fact(f"the text of a tree: {label}", "0.4")
    def _(changes: Any = changes) -> Any:
        return tree(step(), call(**changes))[0].to_text()


@fact("the text of a tree: tools", "0.4")
def _() -> Any:
    spans = module("instrumentation.spans")
    asked = spans.ToolCall(name="search", arguments={"q": 1}, id="1")
    answer = spans.AssistantMessage(content=(spans.TextContent(text="So"),), tool_calls=(asked,), finish_reason="stop")
    result = spans.ToolResultMessage(content="found", tool_call_id="1", tool_name="search")
    tools = (spans.ToolDefinition(name="search"), spans.ToolDefinition(name="book"))
    return tree(call(output_messages=(answer,), input_messages=(result,), tool_definitions=tools))[0].to_text()


@fact("the text of a step without anything", "0.4")
def _() -> Any:
    return tree(step(name=None, input=None, output=None, metadata={}, error="ValueError"))[0].to_text(1)


@fact("a handler collects spans", "0.4")
def _() -> Any:
    handler = pixie.MemoryTraceHandler()
    asyncio.run(handler.on_observe(step()))
    asyncio.run(handler.on_llm(call()))
    asyncio.run(handler.on_observe(step(trace_id="e" * 32, span_id="f" * 16)))
    [root] = handler.get_trace("b" * 32)
    traces = handler.get_all_traces()
    shape = [len(handler.spans), root.span_id, [child.span_id for child in root.children], handler.get_trace("x")]
    handler.clear()
    return [shape, {name: len(roots) for name, roots in traces.items()}, handler.spans]


@fact("captured spans", "0.4")
def _() -> Any:
    with pixie.capture_traces() as first, pixie.start_observation(input="q", name="one") as observation:
        observation.set_output("a")
        observation.set_metadata("k", "v")
    with pixie.capture_traces() as second, pixie.start_observation(input="other"):
        pass
    [span], [other] = first.spans, second.spans
    return [span.name, span.input, span.output, span.metadata, span.error, other.input]


@fact("spans after a capture are not part of it", "0.4")
def _() -> Any:
    with pixie.capture_traces() as capture, pixie.start_observation(input="inside"):
        pass
    with pixie.start_observation(input="outside"):
        pass
    pixie.flush()
    return [span.input for span in capture.spans]


@fact("an exception in an observed block", "0.4")
def _() -> Any:
    with pixie.capture_traces() as capture, contextlib.suppress(ValueError), pixie.start_observation(input="q"):
        raise ValueError("boom")
    return "ValueError" in str(capture.spans[0].error)


@fact("an observed function", "0.4")
def _() -> Any:
    @pixie.observe(name="adds")
    def add(a: int, b: int = 2) -> int:
        return a + b

    with pixie.capture_traces() as capture:
        result = add(1)
    return [result, capture.spans[0].name, "a" in capture.spans[0].input, "3" in str(capture.spans[0].output)]


@fact("what an observed function stores", "0.4")
def _() -> Any:
    with pixie.capture_traces() as capture:
        pixie.observe()(lambda x: {"k": x})(1)
    return [capture.spans[0].input, capture.spans[0].output]


@fact("as_evaluable of a step", "0.4")
def _() -> Any:
    one = module("storage.evaluable").as_evaluable(step())
    same = [one.eval_input == {"question": "Where?"}, one.eval_output == "Here.", one.expected_output is pixie.UNSET]
    return [*same, one.eval_metadata["env"], one.eval_metadata["trace_id"], one.eval_metadata["span_id"]]


@fact("as_evaluable of a call", "0.4")
def _() -> Any:
    one = module("storage.evaluable").as_evaluable(call())
    keys = "provider request_model response_model operation input_tokens output_tokens finish_reasons error_type"
    return [
        one.eval_output == "Here.",
        isinstance(one.eval_input, list),
        [one.eval_metadata[key] for key in keys.split()],
    ]


@fact("as_evaluable of a call without an answer", "0.4")
def _() -> Any:
    output = module("storage.evaluable").as_evaluable(call(output_messages=())).eval_output
    return output == None  # noqa: E711  a list with the value None is equal to None


@fact("last_llm_call takes the one that ended last", "0.4")
def _() -> Any:
    late = call(span_id="d" * 16, ended_at=NOW + timedelta(seconds=9), request_model="late")
    return pixie.last_llm_call(tree(step(), late, call())).eval_metadata["request_model"]


@fact("last_llm_call without a call", "0.4")
def _() -> Any:
    return pixie.last_llm_call(tree(step()))


@fact("root of a trace", "0.4")
def _() -> Any:
    return [
        pixie.root(tree(step())).eval_input == {"question": "Where?"},
        pixie.root(tree(call())).eval_output == "Here.",
    ]


@fact("root of an empty trace", "0.4")
def _() -> Any:
    return pixie.root([])


# run_and_evaluate, assert_pass, assert_dataset_pass (0.4)


def echo(text: Any) -> None:
    with pixie.start_observation(input=text, name="app") as observation:
        observation.set_output(f"echo:{text}")


async def async_echo(text: Any) -> None:
    echo(text)


def nested(text: Any) -> None:
    with pixie.start_observation(input=text, name="outer") as outer:
        with pixie.start_observation(input=text, name="inner") as inner:
            inner.set_output("from inside")
        outer.set_output("final")


for application in (echo, async_echo):

    @fact(f"run_and_evaluate: {application.__name__}", "0.4")
    def _(application: Any = application) -> Any:
        seen: list[Any] = []
        evaluator = scorer(1.0, seen, lambda e: [e.eval_input == "hi", e.eval_output == "echo:hi"])
        result = asyncio.run(pixie.run_and_evaluate(evaluator, application, "hi"))
        return [result.score, seen]


@fact("run_and_evaluate scores the root", "0.4")
def _() -> Any:
    seen: list[Any] = []
    asyncio.run(pixie.run_and_evaluate(scorer(1.0, seen, lambda e: e.eval_output == "final"), nested, "q"))
    return seen


@fact("run_and_evaluate scores the span that from_trace chooses", "0.4")
def _() -> Any:
    seen: list[Any] = []
    choose = module("storage.evaluable").as_evaluable
    evaluator = scorer(1.0, seen, lambda e: e.eval_output == "from inside")
    work = pixie.run_and_evaluate(evaluator, nested, "q", from_trace=lambda t: choose(t[0].find("inner")[0].span))
    asyncio.run(work)
    return seen


for label, expected in (("a text", {"expected_output": "e"}), ("None", {"expected_output": None}), ("nothing", {})):

    @fact(f"run_and_evaluate with {label} expected", "0.4")
    def _(expected: Any = expected) -> Any:
        seen: list[Any] = []
        take = lambda e: "UNSET" if e.expected_output is pixie.UNSET else e.expected_output  # noqa: E731
        asyncio.run(pixie.run_and_evaluate(scorer(1.0, seen, take), echo, "q", **expected))
        return seen


@fact("run_and_evaluate passes the trace", "0.4")
def _() -> Any:
    seen: list[Any] = []

    async def evaluator(evaluable: Any, *, trace: Any = None) -> Any:
        seen.append([node.name for node in trace])
        return score(1.0)

    asyncio.run(pixie.run_and_evaluate(evaluator, nested, "q"))
    return seen


@fact("run_and_evaluate without spans", "0.4")
def _() -> Any:
    return asyncio.run(pixie.run_and_evaluate(scorer(1.0), lambda text: None, "q"))


@fact("run_and_evaluate with an application that raises", "0.4")
def _() -> Any:
    def broken(text: Any) -> None:
        raise KeyError("boom")

    return asyncio.run(pixie.run_and_evaluate(scorer(1.0), broken, "q"))


def asserted(*arguments: Any, **options: Any) -> Any:
    """The shape and the scores of a failed assert_pass, or that it passed."""
    try:
        asyncio.run(pixie.assert_pass(*arguments, **options))
    except pixie.EvalAssertionError as error:
        return [isinstance(error, AssertionError), [[item.score for item in row] for row in error.results]]
    return "passed"


for label, scores, options in (
    ("all pass", (1.0,), {}),
    ("all fail", (0.2,), {}),
    ("one of two fails", (1.0, 0.2), {}),
    ("exactly a half", (0.5,), {}),
    ("a lenient criterion", (0.2,), {"pass_criteria": lambda results: (True, "fine")}),
    ("a strict criterion", (1.0,), {"pass_criteria": lambda results: (False, "no")}),
):
    for questions in (["q1"], ["q1", "q2"]):

        @fact(f"assert_pass: {label}, {len(questions)} inputs", "0.4")
        def _(scores: Any = scores, options: Any = options, questions: Any = questions) -> Any:
            return asserted(echo, questions, [scorer(value) for value in scores], **options)


@fact("assert_pass: expected outputs of evaluables", "0.4")
def _() -> Any:
    seen: list[Any] = []
    known = [pixie.Evaluable(eval_input=text, expected_output=f"to {text}") for text in ("a", "b")]
    asserted(echo, ["a", "b"], [scorer(1.0, seen, lambda e: e.expected_output)], evaluables=known)
    return sorted(seen)


@fact("assert_pass: too few evaluables", "0.4")
def _() -> Any:
    return asserted(echo, ["a", "b"], [scorer(1.0)], evaluables=[pixie.Evaluable(eval_input="a")])


@fact("assert_pass: an evaluable with an output is not run", "0.4")
def _() -> Any:
    calls: list[Any] = []
    seen: list[Any] = []
    known = [pixie.Evaluable(eval_input="a", eval_output="known", expected_output="e")]
    evaluator = scorer(1.0, seen, lambda e: [e.eval_output == "known", e.expected_output])
    asserted(calls.append, ["a"], [evaluator], evaluables=known)
    return [calls, seen]


@fact("assert_pass: one call per input", "0.4")
def _() -> Any:
    calls: list[Any] = []

    def application(text: Any) -> None:
        calls.append(text)
        echo(text)

    asserted(application, ["a", "b"], [scorer(1.0), scorer(1.0), scorer(1.0)])
    return sorted(calls)


@fact("assert_dataset_pass", "0.4")
def _() -> Any:
    def run(store: Any, folder: Path) -> Any:
        store.create("set", items=items("a", "b"))
        seen: list[Any] = []
        evaluator = scorer(1.0, seen, lambda e: e.expected_output)
        asyncio.run(pixie.assert_dataset_pass(echo, "set", [evaluator], dataset_dir=str(folder)))
        return sorted(seen)

    return with_store(run)


@fact("assert_dataset_pass that fails", "0.4")
def _() -> Any:
    def run(store: Any, folder: Path) -> Any:
        store.create("set", items=items("a"))
        asyncio.run(pixie.assert_dataset_pass(echo, "set", [scorer(0.1)], dataset_dir=str(folder)))

    return with_store(run)


@fact("assert_dataset_pass without the dataset", "0.4")
def _() -> Any:
    return asyncio.run(pixie.assert_dataset_pass(echo, "nowhere", [scorer(1.0)], dataset_dir="nowhere"))


# Handlers


@fact("a handler that was not added cannot be removed", "0.4")
def _() -> Any:
    pixie.init()
    pixie.remove_handler(pixie.MemoryTraceHandler())


@fact("an added handler gets the spans of the process", "0.4")
def _() -> Any:
    seen: list[Any] = []

    class Handler(module("instrumentation.handler").InstrumentationHandler):  # type: ignore[misc]
        async def on_observe(self, span: Any) -> None:
            seen.append(span.name)

    pixie.init()
    handler = Handler()
    pixie.add_handler(handler)
    with pixie.start_observation(input="q", name="seen"):
        pass
    pixie.flush()
    pixie.remove_handler(handler)
    with pixie.start_observation(input="q", name="not seen"):
        pass
    pixie.flush()
    return seen


# AutoevalsAdapter


class Scored:
    name, score, metadata = "Mine", 0.75, {"rationale": "close"}


class AsyncScorer:
    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}

    async def eval_async(self, output: Any = None, expected: Any = None, **arguments: Any) -> Any:
        self.arguments = {"output": output, "expected": expected, **arguments}
        return Scored()


for label, options, metadata in (
    ("plain", {}, None),
    ("a fixed expected value", {"expected": "fixed"}, None),
    ("the expected value of the metadata", {}, {"expected": "meta"}),
    ("another key", {"expected_key": "reference"}, {"reference": "r"}),
    ("another input key", {"input_key": "instructions"}, None),
    ("no input", {"input_key": None}, None),
    ("metadata", {"extra_metadata_keys": ("context", "criteria")}, {"context": "c", "other": "o"}),
    ("arguments", {"language": "Spanish"}, None),
):

    @fact(f"AutoevalsAdapter: {label}")
    def _(options: Any = options, metadata: Any = metadata) -> Any:
        mine = AsyncScorer()
        evaluable = new_evaluable().model_copy(update={"eval_metadata": metadata})
        result = asyncio.run(pixie.AutoevalsAdapter(mine, **options)(evaluable))
        return [mine.arguments, result.score, result.reasoning, result.details.get("scorer_name")]


@fact("AutoevalsAdapter: a scorer that raises")
def _() -> Any:
    class Broken:
        async def eval_async(self, *arguments: Any, **options: Any) -> Any:
            raise ValueError("boom")

    return asyncio.run(pixie.AutoevalsAdapter(Broken())(new_evaluable())).score


# Deterministic evaluators

PAIRS = [
    ("same", "same"), ("abc", "abd"), ("", ""), ("kitten", "sitting"), (3, 3), (3, 4), (0, 0), (-1, 1), (105, 100),
    ({"a": 1, "b": "x"}, {"a": 1, "b": "x"}), ({"a": 1}, {"a": 2, "b": 3}), ([1, 2], [1, 2, 3]), ({}, {}), ("1", 1),
    ({"a": "kitten"}, {"a": "sitting"}), ([], []), ("héllo", "hello"),
]  # fmt: skip
EVALUATORS = {
    "ExactMatch": lambda one, other: True,
    "LevenshteinMatch": lambda one, other: isinstance(one, str) and isinstance(other, str),
    "NumericDiff": lambda one, other: all(isinstance(item, int) for item in (one, other)),
    "JSONDiff": lambda one, other: type(one) is type(other),
}
for name, fits in EVALUATORS.items():
    for output, expected in PAIRS:
        if fits(output, expected):

            @fact(f"{name}: {output!r} for {expected!r}")
            def _(name: str = name, output: Any = output, expected: Any = expected) -> Any:
                if INPUTS["facts"] == "0.4":
                    evaluable = pixie.Evaluable(eval_input="q", eval_output=output, expected_output=expected)
                else:
                    named = {
                        "eval_input": [{"name": "q", "value": "q"}],
                        "eval_output": [{"name": "a", "value": output}],
                    }
                    evaluable = pixie.Evaluable(**named, expectation=expected)
                return round(asyncio.run(pixie.evaluate(getattr(pixie, name)(), evaluable)).score, 6)


# Imports


def imported(path: str) -> Any:
    return bool(importlib.import_module(path))


MODULES = {
    "0.4": """config dataset dataset.models dataset.store evals evals.criteria evals.dataset_runner evals.eval_utils
        evals.evaluation evals.llm_evaluator evals.rate_limiter evals.scorecard evals.scorers evals.test_result
        evals.trace_capture evals.trace_helpers instrumentation instrumentation.context instrumentation.handler
        instrumentation.handlers instrumentation.instrumentors instrumentation.observation instrumentation.processor
        instrumentation.queue instrumentation.spans storage storage.evaluable storage.serialization storage.store
        storage.tables storage.tree dag dag.trace_check cli.main web.app web.server""",
    "0.6": """config eval eval.evaluable eval.evaluation eval.llm_evaluator eval.rate_limiter eval.scorers harness
        harness.run_result harness.runnable harness.runner instrumentation instrumentation.llm_tracing
        instrumentation.models instrumentation.wrap cli.main web.app web.server""",
}
for version, names in MODULES.items():
    for name in names.split():
        fact(f"import pixie.{name}", version)(lambda name=name: imported(f"pixie.{name}"))


@fact("from pixie import *")
def _() -> Any:
    space: dict[str, Any] = {}
    exec("from pixie import *", space)
    return sorted({"Evaluable", "Evaluation", "evaluate", "ExactMatch", "AutoevalsAdapter", "flush"} & set(space))


if __name__ == "__main__":
    facts = FACTS[INPUTS["facts"]]
    Path(sys.argv[2]).write_text(json.dumps({name: outcome(function) for name, function in facts.items()}))
