"""Facts about DeepEval, one function each, by the original or by Proctor: `python deepeval_facts.py INPUTS OUTPUTS`.

The inputs are `{"who": "original" or "proctor", "modules": [...], "names": {module: [name...]}}`. Without names, all
that the modules export is imported. No fact needs a model. A fact returns JSON. What it raises is its result too.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import importlib
import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

INPUTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
os.environ["OPENAI_API_KEY"] = "not a key: some metrics of the original ask for one when they are created"
if INPUTS["who"] == "proctor":
    from proctor.compat.aliases import install_aliases

    install_aliases(["deepeval!"])
warnings.simplefilter("ignore")

import deepeval  # noqa: E402  the original, or Proctor under its name
from deepeval import assert_test, evaluate  # noqa: E402
from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden  # noqa: E402
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.metrics import (  # noqa: E402
    BaseMetric,
    ExactMatchMetric,
    PatternMatchMetric,
    ToolCorrectnessMetric,
    ToolPermissionMetric,
)
from deepeval.test_case import (  # noqa: E402
    ArenaTestCase,
    Contestant,
    ConversationalTestCase,
    LLMTestCase,
    MCPServer,
    MLLMImage,
    SingleTurnParams,
    ToolCall,
    ToolCallParams,
    Turn,
    get_available_mcp_tool_names,
)
from deepeval.tracing import observe, update_current_span, update_current_trace  # noqa: E402

FACTS: dict[str, Callable[[], Any]] = {}
QUIET = {
    "display_config": DisplayConfig(show_indicator=False, print_results=False, verbose_mode=False),
    "cache_config": CacheConfig(write_cache=False, use_cache=False),
}


def fact(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        FACTS[name] = function
        return function

    return add


def outcome(function: Callable[[], Any]) -> Any:
    """What a fact returns, or the exception that a user could catch."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = function()
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        known = ("ValidationError", "MissingTestCaseParamsError", "AssertionError", "FileNotFoundError", "TypeError")
        return f"raises {next((name for name in (*known, 'ValueError', 'AttributeError') if name in names), names[0])}"
    return json.loads(json.dumps(result, default=repr))


def case(**changes: Any) -> LLMTestCase:
    return LLMTestCase(**{"input": "Where?", "actual_output": "Paris", "expected_output": "Paris"} | changes)


class Length(BaseMetric):
    """Passes if the output has more than three characters; fails in the ways that users' metrics do."""

    def __init__(self, failure: Exception | None = None, threshold: float = 0.5) -> None:
        self.threshold = threshold
        self.failure = failure

    def measure(self, test_case: LLMTestCase) -> float:
        if self.failure is not None and test_case.input == "bad":
            raise self.failure
        self.score = float(len(test_case.actual_output or "") > 3)
        self.reason = "counted"
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Length"


# Test cases

FIELDS = """input actual_output expected_output context retrieval_context tools_called expected_tools comments
    token_cost completion_time name tags mcp_servers mcp_tools_called mcp_resources_called mcp_prompts_called""".split()


@fact("a test case with only an input")
def _() -> Any:
    return [getattr(LLMTestCase(input="x"), name) for name in FIELDS]


@fact("a test case with everything")
def _() -> Any:
    whole = case(
        context=["a"],
        retrieval_context=["b", "c"],
        additional_metadata={"k": [1]},
        tools_called=[ToolCall(name="f", input_parameters={"q": 1}, output=[1])],
        expected_tools=[ToolCall(name="f")],
        comments="c",
        token_cost=0.05,
        completion_time=1.25,
        name="n",
        tags=["t"],
    )
    values = [getattr(whole, name) for name in FIELDS if "tools" not in name]
    return [*values, whole.additional_metadata, whole.tools_called[0].output, whole.expected_tools[0].name]


@fact("a test case in camelCase")
def _() -> Any:
    camel = LLMTestCase(input="x", actualOutput="y", retrievalContext=["c"], tokenCost=0.1, completionTime=2.5)
    return [camel.actual_output, camel.retrieval_context, camel.token_cost, camel.completion_time]


for label, fields in (
    ("no input", {"actual_output": "x"}),
    ("an input of None", {"input": None}),
):

    @fact(f"a test case with {label}")
    def _(fields: Any = fields) -> Any:
        return LLMTestCase(**fields)


for label, fields in (
    ("a number as its input", {"input": 1}),
    ("a list as its output", {"input": "x", "actual_output": ["y"]}),
    ("a text as its context", {"input": "x", "context": "y"}),
    ("a text as its passages", {"input": "x", "retrieval_context": "y"}),
    ("a text as its tools", {"input": "x", "tools_called": "y"}),
):

    @fact(f"a test case with {label}")
    def _(fields: Any = fields) -> Any:
        return LLMTestCase(**fields)


for label, fields in (
    ("a tool as a dictionary", {"tools_called": [{"name": "f"}]}),
    ("a tool by its name", {"tools_called": ["f"]}),
    ("a passage that is a number", {"retrieval_context": ["a", 1]}),
):

    @fact(f"a test case with {label}")
    def _(fields: Any = fields) -> Any:
        return bool(case(**fields))


@fact("the keys of a dumped test case")
def _() -> Any:
    dumped = case(context=["a"]).model_dump(by_alias=True)
    return sorted(
        {"input", "actualOutput", "expectedOutput", "retrievalContext", "toolsCalled", "tokenCost"} & set(dumped)
    )


@fact("a test case with empty values")
def _() -> Any:
    empty = LLMTestCase(input="", actual_output="", context=[], tools_called=[], tags=[])
    return [empty.input, empty.actual_output, empty.context, empty.tools_called, empty.tags]


@fact("equal tool calls")
def _() -> Any:
    one, same = (ToolCall(name="f", input_parameters={"a": {"b": [1]}}, output={"r": 1}) for _ in range(2))
    other = ToolCall(name="g")
    return [one == same, one == other, one == "f", hash(one) == hash(same), len({one, same, other})]


for field in ("input_parameters", "output"):
    for number in (True, 1, 1.0):

        @fact(f"tool calls with equal numbers in {field}: {number!r}")
        def _(field: str = field, number: Any = number) -> Any:
            one = ToolCall(name="f", **{field: {"x": {"l": [True], "k": "v"}}})
            other = ToolCall(name="f", **{field: {"x": {"k": "v", "l": [number]}}})
            return [one == other, hash(one) == hash(other), len({one, other})]


@fact("the text of a tool call")
def _() -> Any:
    text = repr(ToolCall(name="f", description="d", reasoning="r", input_parameters={"q": 1}, output={"x": 1}))
    short = repr(ToolCall(name="f"))
    parts = ("ToolCall(", 'name="f"', 'description="d"', 'reasoning="r"', "input_parameters=", "output=")
    return [[part in text for part in parts], [part in short for part in parts[:4]]]


@fact("the parameters of a single turn")
def _() -> Any:
    names = "INPUT ACTUAL_OUTPUT EXPECTED_OUTPUT CONTEXT RETRIEVAL_CONTEXT TOOLS_CALLED EXPECTED_TOOLS MCP_SERVERS"
    return [SingleTurnParams[name].value for name in names.split()] + [item.value for item in ToolCallParams]


# Conversations


@fact("a turn")
def _() -> Any:
    turn = Turn(role="user", content="hi", user_id="u", retrieval_context=["r"], additional_metadata={"k": 1})
    return [turn.role, turn.content, turn.user_id, turn.retrieval_context, turn.tools_called, turn.mcp_tools_called]


for label, fields in (
    ("another role", {"role": "robot", "content": "x"}),
    ("no content", {"role": "user", "content": None}),
    ("a number as its content", {"role": "user", "content": 1}),
):

    @fact(f"a turn with {label}")
    def _(fields: Any = fields) -> Any:
        return Turn(**fields)


@fact("a conversation")
def _() -> Any:
    whole = ConversationalTestCase(
        turns=[Turn(role="user", content="a"), {"role": "assistant", "content": "b"}],
        scenario="s",
        context=["c"],
        expectedOutcome="o",
        chatbot_role="r",
        tags=[],
    )
    turns = [[type(turn).__name__, turn.role, turn.content] for turn in whole.turns]
    return [turns, whole.scenario, whole.context, whole.expected_outcome, whole.chatbot_role, whole.tags]


@fact("the turns of a conversation are copies")
def _() -> Any:
    turn = Turn(role="user", content="before")
    ConversationalTestCase(turns=[turn]).turns[0].content = "after"
    return turn.content


for label, fields in (
    ("no turns", {"turns": []}),
    ("a text as a turn", {"turns": ["hi"]}),
    ("a text as its context", {"turns": [Turn(role="user", content="x")], "context": "y"}),
):

    @fact(f"a conversation with {label}")
    def _(fields: Any = fields) -> Any:
        return ConversationalTestCase(**fields)


# Images, MCP, arenas


@fact("a remote image")
def _() -> Any:
    image = MLLMImage(url="https://example.com/a.png")
    return [image.local, image.filename, image.mimeType, image.dataBase64, str(image)[:16] == f"{image}"[:16]]


@fact("a local image")
def _() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.png")
        path.write_bytes(b"png")
        image = MLLMImage(url=str(path))
        return [image.local, image.filename, image.mimeType, image.dataBase64]


for label, fields in (
    ("nothing", {}),
    ("data without a type", {"dataBase64": "eA=="}),
):

    @fact(f"an image of {label}")
    def _(fields: Any = fields) -> Any:
        return MLLMImage(**fields)


@fact("the tools of MCP servers")
def _() -> Any:
    servers = [MCPServer(server_name="a", available_tools=[{"name": "f"}, {"x": 1}]), MCPServer(server_name="b")]
    return sorted(get_available_mcp_tool_names(servers))


for label, second in (
    ("two contestants", {}),
    ("the same name twice", {"name": "a"}),
    ("another input", {"input": "y"}),
    ("another expected output", {"expected_output": "z"}),
):

    @fact(f"an arena with {label}")
    def _(second: Any = second) -> Any:
        fields = {"input": "x", "actual_output": "o", "expected_output": "e"}
        other = fields | {key: value for key, value in second.items() if key != "name"}
        contestants = [
            Contestant(name="a", test_case=LLMTestCase(**fields)),
            Contestant(name=second.get("name", "b"), test_case=LLMTestCase(**other)),
        ]
        return len(ArenaTestCase(contestants=contestants).contestants)


# Datasets

GOLDEN = Golden(
    input="ask",
    expected_output="answer",
    actual_output="answer",
    retrieval_context=["r1", "r2"],
    context=["c"],
    source_file="s.txt",
    name="n",
    comments="c",
    tools_called=[ToolCall(name="search", input_parameters={"q": "x"})],
    expected_tools=[ToolCall(name="end")],
    additional_metadata={"k": "v"},
    custom_column_key_values={"col": "val"},
)
TALK = ConversationalGolden(
    scenario="s",
    expected_outcome="o",
    user_description="u",
    context=["c"],
    turns=[Turn(role="user", content="hi", user_id="u1", tools_called=[ToolCall(name="t")])],
    name="n",
    comments="c",
)


def saved(golden: Any, kind: str, **options: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = EvaluationDataset([golden]).save_as(kind, directory=folder, file_name="goldens", **options)
        return Path(path).read_text(encoding="utf-8")


@fact("goldens as JSON")
def _() -> Any:
    [row] = json.loads(saved(GOLDEN, "json"))
    keys = "input expected_output actual_output retrieval_context context source_file name comments additional_metadata"
    return [[row[key] for key in keys.split()], row["tools_called"][0]["name"], row["custom_column_key_values"]]


@fact("goldens as JSON Lines")
def _() -> Any:
    row = json.loads(saved(GOLDEN, "jsonl").splitlines()[0])
    return [row["input"], row["tools_called"][0]["name"], row["additional_metadata"], row["expected_output"]]


@fact("goldens as CSV")
def _() -> Any:
    header, row = list(csv.reader(io.StringIO(saved(GOLDEN, "csv"))))[:2]
    cells = dict(zip(header, row, strict=False))
    tools = json.loads(cells["tools_called"])[0]["name"]
    return [header[0], row[0], tools, json.loads(cells["additional_metadata"]), cells["expected_output"]]


@fact("conversations as JSON")
def _() -> Any:
    [row] = json.loads(saved(TALK, "json"))
    turn = row["turns"][0]
    return [row["scenario"], turn["role"], turn["content"], turn["user_id"], turn["tools_called"][0]["name"]]


@fact("conversations as CSV")
def _() -> Any:
    header, row = list(csv.reader(io.StringIO(saved(TALK, "csv"))))[:2]
    return ["scenario" in header, "s" in row]


@fact("an empty dataset is not saved")
def _() -> Any:
    return EvaluationDataset().save_as("json", directory=".")


for kind in ("json", "jsonl"):  # the original needs pandas to read CSV

    @fact(f"goldens survive a file: {kind}")
    def _(kind: str = kind) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = EvaluationDataset([GOLDEN]).save_as(kind, directory=folder, file_name="goldens")
            dataset = EvaluationDataset()
            getattr(dataset, f"add_goldens_from_{kind}_file")(file_path=str(path))
            [golden] = dataset.goldens
            return [golden.input, golden.expected_output, golden.retrieval_context, golden.context, golden.name]


@fact("test cases are saved too")
def _() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        dataset = EvaluationDataset()
        dataset.add_test_case(case(name="n"))
        path = dataset.save_as("json", directory=folder, include_test_cases=True)
        return [row["input"] for row in json.loads(Path(path).read_text(encoding="utf-8"))]


@fact("a dataset of both kinds")
def _() -> Any:
    dataset = EvaluationDataset([GOLDEN])
    dataset.add_golden(TALK)
    return len(dataset.goldens)


# Metrics and evaluate


for label, fields, options in (
    ("the same", {}, {}),
    ("another", {"actual_output": "Rome"}, {}),
    ("another case", {"actual_output": "paris"}, {}),
    ("spaces around it", {"actual_output": " Paris "}, {}),
):

    @fact(f"ExactMatchMetric: {label}")
    def _(fields: Any = fields, options: Any = options) -> Any:
        metric = ExactMatchMetric(**options)
        metric.measure(case(**fields))
        return [metric.score, metric.is_successful()]


for label, pattern, options in (
    ("the whole", r"P\w+s", {}),
    ("a part", r"ari", {}),
    ("another case", r"paris", {}),
    ("another case, ignored", r"paris", {"ignore_case": True}),
):

    @fact(f"PatternMatchMetric: {label}")
    def _(pattern: str = pattern, options: Any = options) -> Any:
        metric = PatternMatchMetric(pattern=pattern, **options)
        metric.measure(case())
        return [metric.score, metric.is_successful()]


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name=name) for name in names]


for label, called, expected, options in (
    ("the same", "a b", "a b", {}),
    ("another order", "b a", "a b", {}),
    ("another order, considered", "b a", "a b", {"should_consider_ordering": True}),
    ("one is missing", "a", "a b", {}),
    ("one too many", "a b c", "a b", {}),
    ("one too many, exactly", "a b c", "a b", {"should_exact_match": True}),
    ("none of them", "x y", "a b", {}),
    ("none called", "", "a", {}),
    ("none expected, none called", "", "", {}),
):

    @fact(f"ToolCorrectnessMetric: {label}")
    def _(called: str = called, expected: str = expected, options: Any = options) -> Any:
        metric = ToolCorrectnessMetric(**options)
        metric.measure(case(tools_called=calls(*called.split()), expected_tools=calls(*expected.split())))
        return [round(metric.score, 4), metric.is_successful()]


for label, called, expected in (
    ("the same", {"q": 1, "r": "x"}, {"q": 1, "r": "x"}),
    ("one of two differs", {"q": 1, "r": "x"}, {"q": 1, "r": "y"}),
    ("both differ", {"q": 2, "r": "z"}, {"q": 1, "r": "y"}),
):

    @fact(f"ToolCorrectnessMetric with parameters: {label}")
    def _(called: Any = called, expected: Any = expected) -> Any:
        metric = ToolCorrectnessMetric(evaluation_params=[ToolCallParams.INPUT_PARAMETERS])
        one, other = (ToolCall(name="f", input_parameters=value) for value in (called, expected))
        metric.measure(case(tools_called=[one], expected_tools=[other]))
        return [round(metric.score, 4), metric.is_successful()]


for label, options, called in (
    ("a denied tool", {"denied_tools": ["shell"]}, "search shell"),
    ("no denied tool", {"denied_tools": ["shell"]}, "search"),
    ("only allowed tools", {"allowed_tools": ["read", "write"]}, "read write read"),
    ("a tool that is not allowed", {"allowed_tools": ["read"]}, "read shell"),
    ("allowed and denied", {"allowed_tools": ["read", "shell"], "denied_tools": ["shell"]}, "shell"),
    ("no calls", {"denied_tools": ["shell"]}, ""),
):

    @fact(f"ToolPermissionMetric: {label}")
    def _(options: Any = options, called: str = called) -> Any:
        metric = ToolPermissionMetric(**options)
        metric.measure(case(tools_called=calls(*called.split())))
        return [round(metric.score, 4), metric.is_successful()]


for score, threshold, error in (
    (0.6, 0.5, None),
    (0.4, 0.5, None),
    (None, 0.5, None),
    (0.6, 0.5, "broken"),
    (0.6, None, None),
):

    @fact(f"is_successful with the score {score}, the threshold {threshold} and the error {error}")
    def _(score: Any = score, threshold: Any = threshold, error: Any = error) -> Any:
        metric = ExactMatchMetric()
        metric.score, metric.threshold, metric.error, metric.success = score, threshold, error, None
        return metric.is_successful()


def results(cases: list[Any], metrics: list[Any], **options: Any) -> Any:
    found = evaluate(test_cases=cases, metrics=metrics, **QUIET | options)
    return sorted([row.input, row.success, row.metrics_data[0].score] for row in found.test_results)


for run_async in (True, False):

    @fact(f"evaluate, async {run_async}")
    def _(run_async: bool = run_async) -> Any:
        cases = [case(input="a"), case(input="b", actual_output="Rome")]
        return results(cases, [ExactMatchMetric()], async_config=AsyncConfig(run_async=run_async))

    @fact(f"evaluate with a metric of a user's, async {run_async}")
    def _(run_async: bool = run_async) -> Any:
        cases = [case(input="a"), case(input="b", actual_output="x")]
        return results(cases, [Length()], async_config=AsyncConfig(run_async=run_async))

    @fact(f"evaluate with a metric that raises, errors ignored, async {run_async}")
    def _(run_async: bool = run_async) -> Any:
        found = evaluate(
            [case(input="bad"), case(input="good")],
            metrics=[Length(ValueError("boom"))],
            error_config=ErrorConfig(ignore_errors=True),
            async_config=AsyncConfig(run_async=run_async),
            **QUIET,
        )
        rows = {row.input: row for row in found.test_results}
        bad, good = rows["bad"].metrics_data[0], rows["good"].metrics_data[0]
        return [rows["bad"].success, "boom" in bad.error, rows["good"].success, good.error, good.score]

    @fact(f"evaluate with a metric that raises, async {run_async}")
    def _(run_async: bool = run_async) -> Any:
        return results([case(input="bad")], [Length(ValueError("boom"))], async_config=AsyncConfig(run_async=run_async))


@fact("evaluate without what a metric needs")
def _() -> Any:
    return results([LLMTestCase(input="x", actual_output="y")], [ExactMatchMetric()])


@fact("the data of a metric")
def _() -> Any:
    found = evaluate([case()], [ExactMatchMetric()], **QUIET)
    [data] = found.test_results[0].metrics_data
    return [data.name, data.score, data.success, data.threshold, data.error, isinstance(data.reason, str)]


@fact("assert_test that passes")
def _() -> Any:
    return assert_test(case(), [ExactMatchMetric()], run_async=False)


@fact("assert_test that fails")
def _() -> Any:
    return assert_test(case(actual_output="Rome"), [ExactMatchMetric()], run_async=False)


@fact("assert_test with a metric of a user's")
def _() -> Any:
    return assert_test(case(actual_output="x"), [Length()], run_async=False)


# Traces


@fact("goldens through an application")
def _() -> Any:
    @observe()
    def application(text: str) -> str:
        update_current_trace(input=text, output=f"re: {text}")
        return "not this"

    dataset = EvaluationDataset([Golden(input="a"), Golden(input="b")])
    metric = Length()
    for golden in dataset.evals_iterator(metrics=[metric], async_config=AsyncConfig(run_async=False), **QUIET):
        application(golden.input)
    return "ran"


@fact("updates outside of an evaluation")
def _() -> Any:
    @observe(type="tool", name="named")
    def look_up(text: str) -> str:
        update_current_span(input="i", output="o", metadata={"k": 1}, test_case=case())
        update_current_trace(name="n", tags=["t"])
        return text.upper()

    @observe
    async def application(text: str) -> str:
        return look_up(text)

    return asyncio.run(application("x"))


@fact("hyperparameters in a module")
def _() -> Any:
    @deepeval.log_hyperparameters
    def hyperparameters() -> dict[str, Any]:
        return {"temperature": 1}

    return callable(hyperparameters)


def exported(module_name: str) -> list[str]:
    found = importlib.import_module(module_name)
    public = [name for name, value in vars(found).items() if name[0] != "_" and not isinstance(value, ModuleType)]
    return list(getattr(found, "__all__", None) or public)


# Proctor is asked for what the original has.
NAMES = INPUTS["names"] or {name: exported(name) for name in INPUTS["modules"]}
for module_name, names in NAMES.items():
    for one in names:

        @fact(f"from {module_name} import {one}")
        def _(module_name: str = module_name, one: str = one) -> Any:
            return getattr(importlib.import_module(module_name), one) is not None


if __name__ == "__main__":
    results_by_name = {name: outcome(function) for name, function in FACTS.items()}
    Path(sys.argv[2]).write_text(json.dumps({"names": NAMES, "facts": results_by_name}), encoding="utf-8")
