"""Facts about HoloDeck, one function each, by the original or by Proctor: `python holodeck_facts.py INPUTS OUTPUTS`.

The inputs are `{"who": "original" or "proctor", "facts": GROUP}`. The statements are those of the documentation of its
test runner; `differences` has what differs on purpose. A fact returns JSON; what it raises is its result too.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

INPUTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if __name__ == "__main__" else {}
ORIGINAL = INPUTS.get("who") == "original"
if not ORIGINAL:
    from proctor.compat.aliases import install_aliases

    install_aliases(["holodeck!"])

from holodeck.config.loader import ConfigLoader  # noqa: E402  the original, or Proctor under its name
from holodeck.lib.backends.base import BackendSessionError, ExecutionResult  # noqa: E402
from holodeck.lib.backends.selector import BackendSelector  # noqa: E402
from holodeck.lib.evaluators.base import BaseEvaluator  # noqa: E402
from holodeck.lib.evaluators.deepeval import FaithfulnessEvaluator  # noqa: E402
from holodeck.lib.evaluators.nlp_metrics import BLEUEvaluator  # noqa: E402
from holodeck.lib.evaluators.param_spec import EvalParam, ParamSpec  # noqa: E402
from holodeck.lib.test_runner.eval_kwargs_builder import (  # noqa: E402
    EvalKwargsBuilder,
    build_retrieval_context_from_tools,
)
from holodeck.lib.test_runner.executor import (  # noqa: E402
    RAG_EVALUATOR_MAP,
    RAGEvaluatorConstructor,
    TestExecutor,
    validate_tool_calls,
)
from holodeck.lib.test_runner.progress import ProgressIndicator  # noqa: E402
from holodeck.lib.test_runner.reporter import generate_markdown_report  # noqa: E402
from holodeck.models.config import ExecutionConfig  # noqa: E402
from holodeck.models.test_case import TestCaseModel  # noqa: E402
from holodeck.models.test_result import MetricResult, ReportSummary, TestReport, TestResult  # noqa: E402
from holodeck.models.token_usage import TokenUsage  # noqa: E402

FACTS: dict[str, dict[str, Callable[[], Any]]] = {"statements": {}, "behaviour": {}, "models": {}, "differences": {}}


def fact(name: str, group: str = "statements") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        assert name not in FACTS[group], name
        FACTS[group][name] = function
        return function

    return add


EQUALITY = {"type": "standard", "metric": "equality"}


def agent_file(*tests: dict[str, Any], metrics: list[dict[str, Any]] | None = None, **more: Any) -> str:
    """An agent.yaml (as JSON, which is YAML) in the working folder."""
    data: dict[str, Any] = {
        "name": "desk",
        "model": {"provider": "openai", "name": "gpt-4o", "api_key": "${KEY}"},
        "instructions": {"inline": "Be brief."},
        "evaluations": {"metrics": [EQUALITY] if metrics is None else metrics},
        "test_cases": list(tests),
        **more,
    }
    if metrics == []:
        del data["evaluations"]
    Path("agent.yaml").write_text(json.dumps(data))
    return "agent.yaml"


def case(name: str = "one", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input": "2 + 2", "ground_truth": "4", **fields}


class Backend:
    """An agent that answers with a function of the message, and writes down what happens to it."""

    def __init__(self, answer: Any = lambda message: "4", tools: list[str] | None = None, seconds: float = 0.0) -> None:
        self.answer, self.tools, self.seconds = answer, tools or [], seconds
        self.events: list[str] = []
        self.messages: list[str] = []
        self.running = self.most = 0

    async def initialize(self) -> None:
        self.events.append("initialize")

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        self.events.append("invoke_once")
        return await self._send(message)

    async def create_session(self, *, eager_connect: bool = True) -> Any:
        self.events.append("create_session")
        return SimpleNamespace(send=self._send, close=self._close, prepare=self._close)

    async def _close(self) -> None:
        self.events.append("close")

    async def _send(self, message: str) -> ExecutionResult:
        self.messages.append(message)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self.seconds)
        self.running -= 1
        said = self.answer(message)
        if isinstance(said, Exception):
            raise said
        calls = [{"name": name, "arguments": {}, "call_id": f"c{i}"} for i, name in enumerate(self.tools)]
        results = [{"name": name, "result": "done", "call_id": f"c{i}"} for i, name in enumerate(self.tools)]
        return ExecutionResult(response=said, tool_calls=calls, tool_results=results, token_usage=TokenUsage.zero())

    async def teardown(self) -> None:
        self.events.append("teardown")


def run(path: str, backend: Backend | None = None, **arguments: Any) -> Any:
    """The report of a run."""
    return asyncio.run(TestExecutor(path, backend=backend or Backend(), **arguments).execute_tests())


def only(path: str, backend: Backend | None = None, **arguments: Any) -> Any:
    [result] = run(path, backend, **arguments).results
    return result


# The documentation: what the runner does


@fact("1 the agent is loaded from YAML")
def _() -> Any:
    agent = ConfigLoader().load_agent_yaml(agent_file(case("one"), case("two")))
    return [agent.name, [test.name for test in agent.test_cases], agent.model.provider.value, agent.model.name]


def resolved(**arguments: Any) -> Any:
    return TestExecutor(agent_file(case(), **arguments.pop("file", {})), backend=Backend(), **arguments).config


@fact("2 settings of the caller come before the file's")
def _() -> Any:
    config = resolved(file={"execution": {"llm_timeout": 7}}, execution_config=ExecutionConfig(llm_timeout=5))
    return config.llm_timeout


@fact("3 settings of the file come before the environment's")
def _() -> Any:
    with mock.patch.dict(os.environ, {"HOLODECK_LLM_TIMEOUT": "9", "HOLODECK_FILE_TIMEOUT": "8"}):
        config = resolved(file={"execution": {"llm_timeout": 7}})
    return [config.llm_timeout, config.file_timeout]


@fact("4 the defaults come last")
def _() -> Any:
    config = resolved()
    return [config.file_timeout, config.download_timeout, config.cache_enabled, config.parallel_test_cases]


@fact("5 the text of files reaches the agent")
def _() -> Any:
    Path("notes.txt").write_text("the secret word is plum")
    backend = Backend()
    run(agent_file(case(files=[{"path": str(Path("notes.txt").resolve()), "type": "text"}])), backend)
    return ["the secret word is plum" in backend.messages[0], "2 + 2" in backend.messages[0]]


@fact("6 the agent's answer is in the result")
def _() -> Any:
    result = only(agent_file(case()))
    return [result.test_name, result.test_input, result.agent_response, result.ground_truth, result.passed]


@fact("7 tool calls are compared with the expected ones")
def _() -> Any:
    backend = Backend(tools=["vectorstore-search", "log"])
    report = run(agent_file(case("a", expected_tools=["search"]), case("b", expected_tools=["fetch"])), backend)
    return [[r.tool_calls, r.expected_tools, r.tools_matched, r.passed] for r in report.results]


@fact("8 metrics are computed")
def _() -> Any:
    report = run(agent_file(case("a"), case("b", ground_truth="5")))
    keys = ("metric_name", "kind", "score", "passed", "scale", "error")
    return [[{key: getattr(m, key) for key in keys} for m in r.metric_results] for r in report.results]


@fact("9 the report has summary statistics")
def _() -> Any:
    report = run(agent_file(case("a"), case("b", ground_truth="5")))
    names = ("total_tests", "passed", "failed", "pass_rate", "metrics_evaluated")
    return [report.agent_name, report.agent_config_path, {name: getattr(report.summary, name) for name in names}]


# The executor's parameters and attributes


@fact("10 an injected backend answers with invoke_once")
def _() -> Any:
    backend = Backend()
    run(agent_file(case("a"), case("b")), backend)
    return [event for event in backend.events if event != "initialize"]


@fact("11 without one, BackendSelector selects by provider")
def _() -> Any:
    return [
        inspect.iscoroutinefunction(BackendSelector.select),
        list(inspect.signature(BackendSelector.select).parameters),
    ]


@fact("12 the parameters of TestExecutor")
def _() -> Any:
    parameters = inspect.signature(TestExecutor).parameters.values()
    return [[p.name, None if p.default is p.empty else p.default] for p in parameters]


@fact("13 agent_config_path and cli_config")
def _() -> Any:
    executor = TestExecutor(agent_file(case()), ExecutionConfig(llm_timeout=5), backend=Backend())
    return [executor.agent_config_path, executor.cli_config.llm_timeout]


@fact("14 agent_config is loaded if it is not passed")
def _() -> Any:
    return TestExecutor(agent_file(case()), backend=Backend()).agent_config.name


@fact("15 a passed agent_config is used")
def _() -> Any:
    agent = ConfigLoader().load_agent_yaml(agent_file(case("a"), case("b")))
    agent.test_cases = agent.test_cases[:1]
    executor = TestExecutor("elsewhere.yaml", agent_config=agent, backend=Backend())
    return [executor.agent_config is agent, [r.test_name for r in asyncio.run(executor.execute_tests()).results]]


@fact("16 config is resolved, or passed as it is")
def _() -> Any:
    config = ExecutionConfig(llm_timeout=3, parallel_test_cases=2)
    return TestExecutor(agent_file(case()), resolved_execution_config=config, backend=Backend()).config is config


@fact("17 a passed file_processor reads the files")
def _() -> Any:
    processed = SimpleNamespace(
        error=None, markdown_content="plum", metadata=None, cached_path=None, processing_time_ms=1
    )
    processor = SimpleNamespace(process_file=lambda file: processed)
    backend = Backend()
    executor = TestExecutor(
        agent_file(case(files=[{"path": "x.pdf", "type": "pdf"}])), file_processor=processor, backend=backend
    )
    if not ORIGINAL:  # the original's result model accepts only its own class
        asyncio.run(executor.execute_tests())
        assert "plum" in backend.messages[0]
    return executor.file_processor is processor


@fact("18 evaluators are created by metric name")
def _() -> Any:
    metrics = [EQUALITY, {"type": "standard", "metric": "bleu"}]
    executor = TestExecutor(agent_file(case(), metrics=metrics), backend=Backend())
    return {name: evaluator.name for name, evaluator in sorted(executor.evaluators.items())}


class Mine(BaseEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.GROUND_TRUTH}))

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        return {"equality": 0.25, "passed": kwargs["response"] == "4", "reasoning": "mine"}


@fact("19 passed evaluators are used")
def _() -> Any:
    [metric] = only(agent_file(case()), evaluators={"equality": Mine()}).metric_results
    return [metric.score, metric.passed]


@fact("20 a passed config_loader loads the agent")
def _() -> Any:
    loads: list[str] = []

    class Loader(ConfigLoader):  # type: ignore[misc]
        def load_agent_yaml(self, file_path: str, *args: Any, **kwargs: Any) -> Any:
            loads.append(str(file_path))
            return super().load_agent_yaml(file_path, *args, **kwargs)

    loader = Loader()
    executor = TestExecutor(agent_file(case()), config_loader=loader, backend=Backend())
    return [executor.config_loader is loader, loads]


@fact("21 a passed config_loader resolves the settings")
def _() -> Any:
    class Loader(ConfigLoader):  # type: ignore[misc]
        def resolve_execution_config(self, *args: Any, **kwargs: Any) -> Any:
            return ExecutionConfig(llm_timeout=11, parallel_test_cases=3)

    config = TestExecutor(agent_file(case()), config_loader=Loader(), backend=Backend()).config
    return [config.llm_timeout, config.parallel_test_cases]


@fact("22 progress_callback is called with each result")
def _() -> Any:
    seen: list[Any] = []
    run(agent_file(case("a"), case("b", ground_truth="5")), progress_callback=seen.append)
    return [[type(result).__name__, result.test_name, result.passed] for result in seen]


@fact("23 on_test_start is called with each test")
def _() -> Any:
    seen: list[Any] = []
    run(agent_file(case("a"), case("b")), on_test_start=seen.append)
    return [[isinstance(test, TestCaseModel), test.name] for test in seen]


@fact("24 force_ingest is accepted")
def _() -> Any:
    return only(agent_file(case()), force_ingest=True).passed


# Running


@fact("25 tests run one after the other by default")
def _() -> Any:
    backend = Backend(seconds=0.02)
    run(agent_file(*(case(str(n)) for n in range(3))), backend)
    return backend.most


@fact("26 parallel_test_cases tests run at the same time")
def _() -> Any:
    backend = Backend(seconds=0.05)
    run(agent_file(*(case(str(n)) for n in range(4)), execution={"parallel_test_cases": 2}), backend)
    return backend.most


@fact("27 results keep the order of the file")
def _() -> Any:
    delays = {"0": 0.06, "1": 0.0, "2": 0.03}

    class Slow(Backend):
        async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
            await asyncio.sleep(delays[message])
            return await super().invoke_once(message, context)

    path = agent_file(*(case(n, input=n) for n in delays), execution={"parallel_test_cases": 3})
    return [result.test_name for result in run(path, Slow()).results]


TALK = {"name": "talk", "turns": [{"input": n, "ground_truth": f"after {n}"} for n in ("a", "b", "c")]}


@fact("28 turns run strictly one after the other in one session")
def _() -> Any:
    backend = Backend(lambda message: f"after {message}", seconds=0.01)
    result = only(agent_file(TALK, execution={"parallel_test_cases": 4}), backend)
    events = [event for event in backend.events if event != "initialize"]
    return [events, backend.messages, backend.most, [turn.response for turn in result.turns], result.passed]


@fact("29 callbacks do not overlap")
def _() -> Any:
    inside = {"now": 0, "most": 0}

    def callback(result: Any) -> None:
        inside["now"] += 1
        inside["most"] = max(inside.values())
        inside["now"] -= 1

    run(agent_file(*(case(str(n)) for n in range(4)), execution={"parallel_test_cases": 4}), progress_callback=callback)
    return inside["most"]


@fact("30 shutdown tears the backend down")
def _() -> Any:
    backend = Backend()

    async def work() -> None:
        executor = TestExecutor(agent_file(case()), backend=backend)
        await executor.execute_tests()
        await executor.shutdown()

    asyncio.run(work())
    return backend.events[-1]


@fact("31 an error in shutdown is logged, not raised")
def _() -> Any:
    class Stuck(Backend):
        async def teardown(self) -> None:
            raise RuntimeError("stuck")

    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)

    async def work() -> None:
        executor = TestExecutor(agent_file(case()), backend=Stuck())
        await executor.execute_tests()
        await executor.shutdown()

    asyncio.run(work())
    logging.getLogger().removeHandler(handler)
    return (
        True if ORIGINAL else any("stuck" in record for record in records)
    )  # the original's logger does not propagate


# validate_tool_calls and the RAG evaluators


@fact("32 a part of the name is enough")
def _() -> Any:
    return validate_tool_calls(["vectorstore-search"], ["search"])


@fact("33 every expected tool must be found")
def _() -> Any:
    return [
        validate_tool_calls(["search_tool", "fetch_data"], ["search", "fetch"]),
        validate_tool_calls(["fetch"], ["search"]),
        validate_tool_calls(["search"], []),
    ]


@fact("34 without an expectation nothing is validated")
def _() -> Any:
    return validate_tool_calls(["search"], None)


@fact("35 RAGEvaluatorConstructor is a protocol")
def _() -> Any:
    return bool(getattr(RAGEvaluatorConstructor, "_is_protocol", False))


@fact("36 RAG_EVALUATOR_MAP has a constructor for each metric type")
def _() -> Any:
    return {kind.name: [kind.value, evaluator.__name__] for kind, evaluator in RAG_EVALUATOR_MAP.items()}


# The reporter


def report() -> Any:
    def result(name: str, passed: bool, score: float) -> Any:
        metric = MetricResult(
            metric_name="equality", kind="standard", score=score, threshold=0.5, passed=passed, scale="0-1"
        )
        return TestResult(
            test_name=name,
            test_input="2 + 2",
            agent_response="4",
            tool_calls=["calc"],
            expected_tools=["calc"],
            tools_matched=True,
            metric_results=[metric],
            ground_truth="4",
            passed=passed,
            execution_time_ms=12,
            errors=[],
            timestamp="2026-01-01T00:00:00Z",
        )

    results = [result("good", True, 1.0), result("bad", False, 0.0)]
    summary = ReportSummary(
        total_tests=2, passed=1, failed=1, pass_rate=50.0, total_duration_ms=24, average_scores={"equality": 0.5}
    )
    return TestReport(
        agent_name="desk",
        agent_config_path="agent.yaml",
        results=results,
        summary=summary,
        timestamp="2026-01-01T00:00:00Z",
        holodeck_version="0.7.1",
        environment={"python_version": "3.11", "os": "Linux"},
    )


def has(*texts: str) -> list[bool]:
    markdown = generate_markdown_report(report())
    return [text in markdown for text in texts]


@fact("37 the header names the agent, its file, the time and the version")
def _() -> Any:
    return has(
        "# Test Report: desk", "**Configuration:** `agent.yaml`", "**Generated:** 2026", "**HoloDeck Version:** 0.7.1"
    )


@fact("38 the summary table")
def _() -> Any:
    return has("## Summary", "| Total Tests | 2 |", "| Passed | 1 |", "| Failed | 1 |", "50.00%")


@fact("39 the average scores")
def _() -> Any:
    return has("### Average Metric Scores", "| Metric | Average Score | Scale |", "| equality | 0.50 | 0-1 |")


@fact("40 a section for each test with all its fields")
def _() -> Any:
    return has("### Test: good ✅ PASSED", "### Test: bad ❌ FAILED", "calc", "#### Evaluation Metrics", "equality")


@fact("41 the final line counts and names the pass rate")
def _() -> Any:
    return has("## Report Summary", "**1 tests passed**", "**1 tests failed**", "**Pass Rate: 50.00%**")


# Progress


def progress(**options: Any) -> Any:
    indicator = ProgressIndicator(total_tests=2, **options)
    for result in report().results:
        indicator.update(result)
    return indicator


@fact("42 the attributes of ProgressIndicator")
def _() -> Any:
    fresh, done = ProgressIndicator(total_tests=2), progress()
    names = ("total_tests", "current_test", "passed", "failed", "quiet", "verbose")
    return [[getattr(indicator, name) for name in names] for indicator in (fresh, done)]


@fact("43 progress lines are plain text outside a terminal, and empty if quiet")
def _() -> Any:
    indicator, quiet = ProgressIndicator(total_tests=2), ProgressIndicator(total_tests=2, quiet=True)
    before = indicator.get_progress_line()
    indicator.update(report().results[0])
    quiet.update(report().results[0])
    return [before, indicator.get_progress_line(), quiet.get_progress_line()]


@fact("44 the spinner turns, and is empty outside a terminal")
def _() -> Any:
    indicator = ProgressIndicator(total_tests=2)
    characters = [indicator.get_spinner_char() for _ in range(11)]
    return [characters, indicator.get_spinner_line()]


@fact("45 start_test and the summary")
def _() -> Any:
    indicator = progress()
    indicator.start_test("third")
    lines = indicator.get_summary().split("\n")
    plain = [line for line in lines if "Duration" not in line]
    return [indicator.current_test_name, plain, ProgressIndicator(total_tests=0).get_summary()]


# Arguments of evaluators


@fact("46 arguments are built by the evaluator's specification")
def _() -> Any:
    passages = build_retrieval_context_from_tools(
        [{"name": "search_kb", "result": "30 days."}, {"name": "get_user", "result": "Alice"}], {"search_kb"}
    )
    builder = EvalKwargsBuilder("30 days", "How long?", "30-day guarantee", retrieval_context=passages)
    spec = FaithfulnessEvaluator.PARAM_SPEC
    deepeval = builder.build_for(SimpleNamespace(get_param_spec=lambda: spec, name="Faithfulness"))
    return [passages, deepeval, builder.build_for(BLEUEvaluator())]


# Behaviour beside the documentation


def verdict(path: str, backend: Backend | None = None, **arguments: Any) -> Any:
    result = only(path, backend, **arguments)
    return [result.passed, [[m.metric_name, m.score, m.passed] for m in result.metric_results]]


@fact("equality with flags", "behaviour")
def _() -> Any:
    flags = {**EQUALITY, "case_insensitive": True, "strip_punctuation": True, "strip_whitespace": True}
    return verdict(agent_file(case(ground_truth="Four, please!"), metrics=[flags]), Backend(lambda m: "  four please"))


@fact("numeric within a tolerance", "behaviour")
def _() -> Any:
    metric = {"type": "standard", "metric": "numeric", "absolute_tolerance": 0.5, "accept_thousands_separators": True}
    return verdict(agent_file(case(ground_truth="1000"), metrics=[metric]), Backend(lambda m: "1,000.4"))


@fact("numeric with a text as the answer", "behaviour")
def _() -> Any:
    return verdict(
        agent_file(case(), metrics=[{"type": "standard", "metric": "numeric"}]), Backend(lambda m: "about 4")
    )


@fact("numeric with a text as the ground truth", "differences")
def _() -> Any:
    metrics = [{"type": "standard", "metric": "numeric"}]
    return verdict(agent_file(case(ground_truth="four"), metrics=metrics))


@fact("bleu with a threshold", "behaviour")
def _() -> Any:
    metric = {"type": "standard", "metric": "bleu", "threshold": 0.3}
    text = "the order is on its way to you"
    passed, [[name, score, metric_passed]] = verdict(
        agent_file(case(ground_truth=text), metrics=[metric]), Backend(lambda m: "the order is on its way home")
    )
    return [passed, name, round(score, 3), metric_passed]


@fact("bleu without a threshold", "differences")
def _() -> Any:
    return verdict(agent_file(case(), metrics=[{"type": "standard", "metric": "bleu"}]), Backend(lambda m: "no"))[0]


@fact("rouge in a run", "differences")
def _() -> Any:
    path = agent_file(case(ground_truth="a b c"), metrics=[{"type": "standard", "metric": "rouge", "threshold": 0.5}])
    if not ORIGINAL:
        return verdict(path, Backend(lambda m: "a b c"))
    scores = {"rouge1": 1.0, "rouge2": 1.0, "rougeL": 1.0}  # it would download them
    with mock.patch("evaluate.load") as load:
        load.return_value = SimpleNamespace(compute=lambda **texts: scores)
        return verdict(path, Backend(lambda m: "a b c"))


@fact("an empty answer", "differences")
def _() -> Any:
    return verdict(agent_file(case()), Backend(lambda m: ""))


@fact("a test that nothing scores", "differences")
def _() -> Any:
    return only(agent_file({"name": "one", "input": "2 + 2"}, metrics=[])).passed


@fact("a wrong answer without metrics", "differences")
def _() -> Any:
    return only(agent_file(case(), metrics=[]), Backend(lambda m: "5")).passed


@fact("a judged metric without a judge", "differences")
def _() -> Any:
    try:
        return only(agent_file(case(), metrics=[EQUALITY, {"type": "standard", "metric": "relevance"}])).passed
    except Exception as error:
        return type(error).__name__


@fact("the tools of Claude Code that an agent has without asking for any", "differences")
def _() -> Any:
    Path("agent.yaml").write_text(
        json.dumps(
            {
                "name": "desk",
                "model": {"provider": "anthropic", "name": "claude-x"},
                "instructions": {"inline": "Be brief."},
                "test_cases": [case()],
            }
        )
    )
    with mock.patch.dict(os.environ, {"ANTHROPIC_API_KEY": "sk-none"}):
        if ORIGINAL:
            from holodeck.lib.backends.claude_backend import build_options

            agent = ConfigLoader().load_agent_yaml("agent.yaml")
            empty: dict[str, Any] = {"tool_names": [], "mcp_configs": {}, "auth_env": {}, "otel_env": {}}
            return build_options(agent=agent, tool_server=None, mode="test", **empty).tools
        from proctor.cases.formats.loading import load
        from proctor.compat.holodeck import claude_backend
        from proctor.compat.holodeck.agent_reader import read_agent

        [suite] = load(["agent.yaml"])
        return claude_backend.build_options(read_agent(suite.agent["holodeck"], suite.base)[0]).tools


@fact("defer_loading of a tool", "differences")
def _() -> Any:
    tool = named("models.tool:FunctionTool")
    return tool(name="a", description="b", file="a.py", function="c").defer_loading


@fact("an azure_openai model without an endpoint", "differences")
def _() -> Any:
    return accepts("models.llm:LLMProvider", provider="azure_openai", name="a")


@fact("a provider that HoloDeck does not have", "differences")
def _() -> Any:
    return accepts("models.llm:LLMProvider", provider="google", name="a")


def accepts(place: str, **values: Any) -> bool:
    try:
        named(place)(**values)
    except Exception:
        return False
    return True


@fact("no ground_truth in a test", "differences")
def _() -> Any:
    result = only(agent_file({"name": "one", "input": "2 + 2"}))
    return [result.passed, [metric.error is not None for metric in result.metric_results]]


@fact("no ground_truth in a turn", "differences")
def _() -> Any:
    return verdict(agent_file({"name": "one", "turns": [{"input": "2 + 2"}]}))


class Marks(BaseEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE}))

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        return {"score": 0.4, "relevance": 2.0, "passed": True}


@fact("a mark of 2 out of 5 against a threshold of 0.9", "differences")
def _() -> Any:
    metrics = [{"type": "standard", "metric": "relevance", "threshold": 0.9}]
    return verdict(agent_file(case(), metrics=metrics), evaluators={"relevance": Marks()})


@fact("enabled: false", "differences")
def _() -> Any:
    bleu = {"type": "standard", "metric": "bleu", "threshold": 0.9, "enabled": False}
    return verdict(agent_file(case(), metrics=[EQUALITY, bleu]), Backend(lambda m: "4"))[1]


@fact("one metric with other flags in a test", "differences")
def _() -> Any:
    loose = case("b", ground_truth="FOUR", evaluations=[{**EQUALITY, "case_insensitive": True}])
    results = run(agent_file(case("a", ground_truth="FOUR"), loose), Backend(lambda m: "four")).results
    return [result.passed for result in results]


@fact("one call for two expected tools", "differences")
def _() -> Any:
    expected = [{"name": "search", "count": 1, "args": {}}, {"name": "sea", "count": 1, "args": {}}]
    return only(agent_file(case(expected_tools=expected)), Backend(tools=["search"])).passed


@fact("an expected count that is not reached", "behaviour")
def _() -> Any:
    return only(agent_file(case(expected_tools=[{"name": "search", "count": 2}])), Backend(tools=["search"])).passed


class Broken(BaseEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE}))

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        raise ValueError("no such table")


@fact("a metric that crashes", "differences")
def _() -> Any:
    result = only(agent_file(case()), evaluators={"equality": Broken()})
    [metric] = result.metric_results
    return [result.passed, metric.score, metric.passed, "no such table" in metric.error]


@fact("an evaluator whose required argument is missing", "differences")
def _() -> Any:
    class NeedsContext(BaseEvaluator):
        PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.CONTEXT}), uses_context=True)

        async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
            return {"score": 1.0, "passed": True}

    return verdict(agent_file(case()), evaluators={"equality": NeedsContext()})


@fact("evaluators without one of the metrics", "differences")
def _() -> Any:
    return verdict(agent_file(case()), evaluators={"other": Mine()})


@fact("llm_timeout of a single test", "differences")
def _() -> Any:
    return only(agent_file(case(), execution={"llm_timeout": 1}), Backend(seconds=1.5)).passed


@fact("a relative file", "differences")
def _() -> Any:
    Path("sub").mkdir()
    here = Path.cwd()
    os.chdir("sub")
    path = agent_file(case(files=[{"path": "notes.txt", "type": "text"}]))
    Path("notes.txt").write_text("plum")
    os.chdir(here)
    return only(f"sub/{path}").errors == []


@fact("where the text of files is", "differences")
def _() -> Any:
    Path("notes.txt").write_text("plum")
    backend = Backend()
    run(agent_file(case(files=[{"path": str(Path("notes.txt").resolve()), "type": "text"}])), backend)
    return backend.messages[0].index("plum") < backend.messages[0].index("2 + 2")


@fact("a missing file", "behaviour")
def _() -> Any:
    gone = {"path": "/nowhere/gone.txt", "type": "text"}
    results = run(agent_file(case("a", files=[gone]), case("b"))).results
    return [[result.passed, bool(result.errors)] for result in results]


@fact("an agent that raises", "behaviour")
def _() -> Any:
    result = only(agent_file(case()), Backend(lambda m: ValueError("no key")))
    return [result.passed, result.errors]


@fact("a session that breaks twice", "behaviour")
def _() -> Any:
    result = only(agent_file(TALK), Backend(lambda m: BackendSessionError("lost")))
    return [result.passed, [turn.skipped for turn in result.turns]]


@fact("a turn that breaks once", "behaviour")
def _() -> Any:
    backend = Backend(lambda m: RuntimeError("lost") if m == "b" else f"after {m}")
    result = only(agent_file(TALK), backend)
    return [result.passed, backend.messages, [[turn.passed, turn.skipped] for turn in result.turns]]


@fact("a grader", "behaviour")
def _() -> Any:
    Path("graders.py").write_text("def short(context):\n    return len(context.agent_response) < 3\n")
    sys.path.insert(0, str(Path.cwd()))
    sys.modules.pop("graders", None)
    try:
        return verdict(agent_file(case(), metrics=[{"type": "code", "grader": "graders:short"}]))
    finally:
        sys.path.pop(0)


@fact("metrics of a test replace those of the file", "behaviour")
def _() -> Any:
    own = [{"type": "standard", "metric": "numeric"}]
    return verdict(agent_file(case(evaluations=own)))


INVALID: list[tuple[str, dict[str, Any]]] = [
    ("models.test_case:TestCaseModel", {"name": "a"}),
    ("models.test_case:TestCaseModel", {"name": " ", "input": "x"}),
    ("models.test_case:TestCaseModel", {"input": "x", "turns": [{"input": "y"}]}),
    ("models.test_case:TestCaseModel", {"turns": []}),
    ("models.test_case:FileInput", {"path": "a"}),
    ("models.test_case:FileInput", {"path": "a", "url": "b", "type": "pdf"}),
    ("models.test_case:FileInput", {"type": "pdf"}),
    ("models.test_case:FileInput", {"path": "a", "type": "tar"}),
    ("models.test_case:ExpectedTool", {"name": ""}),
    ("models.test_case:ExpectedTool", {"name": "a", "count": 0}),
    ("models.evaluation:EvaluationMetric", {}),
    ("models.evaluation:EvaluationMetric", {"metric": "f1"}),
    ("models.evaluation:RAGMetric", {"metric_type": "x"}),
    ("models.evaluation:GEvalMetric", {"name": "a", "criteria": ""}),
    ("models.llm:LLMProvider", {"provider": "openai"}),
    ("models.llm:LLMProvider", {"provider": "openai", "name": "a", "temperature": 3}),
    ("models.llm:LLMProvider", {"provider": "openai", "name": "a", "colour": 3}),
    ("models.agent:Instructions", {}),
    ("models.agent:Instructions", {"file": "a", "inline": "b"}),
    ("models.agent:Agent", {"name": "a"}),
    ("models.config:ExecutionConfig", {"parallel_test_cases": 0}),
    ("models.claude_config:ClaudeConfig", {"max_turns": 0}),
    ("models.claude_config:ClaudeConfig", {"setting_sources": ["all", "user"]}),
    ("lib.evaluators.deepeval.config:DeepEvalModelConfig", {"provider": "azure_openai"}),
]
VALID: list[tuple[str, dict[str, Any]]] = [
    ("models.evaluation:EvaluationMetric", {"metric": "bleu"}),
    ("models.evaluation:GEvalMetric", {"name": "a", "criteria": "b"}),
    ("models.evaluation:RAGMetric", {"metric_type": "faithfulness"}),
    ("models.test_case:ExpectedTool", {"name": "a"}),
    ("models.test_case:TestCaseModel", {"name": "a", "input": "b"}),
    ("models.test_case:Turn", {"input": "b"}),
    ("models.test_case:FileInput", {"path": "a", "type": "pdf"}),
    ("models.llm:LLMProvider", {"provider": "openai", "name": "a"}),
    ("lib.evaluators.deepeval.config:DeepEvalModelConfig", {}),
    ("models.config:ExecutionConfig", {}),
    ("models.claude_config:BashConfig", {}),
    ("models.claude_config:FileSystemConfig", {}),
    ("models.claude_config:ExtendedThinkingConfig", {}),
]


def created(place: str, values: dict[str, Any]) -> Any:
    """A model as data, or the exception."""
    try:
        return named(place)(**values).model_dump(mode="json")
    except Exception as error:
        return type(error).__name__


for where, fields in [*INVALID, *VALID]:
    FACTS["models"][f"{where.rpartition(':')[2]}({fields})"] = functools.partial(created, where, fields)


def named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"holodeck.{module}"), name)


def outcome(function: Callable[[], Any]) -> Any:
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"KEY": "sk-none"}):
        os.chdir(folder)
        try:
            return json.loads(json.dumps(function(), default=repr))
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"[:300]
        finally:
            os.chdir(here)


def outcomes(group: str) -> dict[str, Any]:
    logging.disable(logging.INFO)
    return {name: outcome(function) for name, function in FACTS[group].items()}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(outcomes(INPUTS["facts"])), encoding="utf-8")
