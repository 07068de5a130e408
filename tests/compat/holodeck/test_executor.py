from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor.compat.holodeck as holodeck
from proctor.base.errors import InvalidSuite
from proctor.compat.holodeck import (
    RAG_EVALUATOR_MAP,
    AnswerRelevancyEvaluator,
    BLEUEvaluator,
    CoherenceEvaluator,
    ConfigLoader,
    ContextualRecallEvaluator,
    EqualityEvaluator,
    EvalKwargsBuilder,
    EvaluationError,
    ExecutionConfig,
    ExecutionResult,
    FaithfulnessEvaluator,
    GEvalEvaluator,
    GroundednessEvaluator,
    MetricResult,
    NumericEvaluator,
    ProgressIndicator,
    RAGMetricType,
    ROUGEEvaluator,
    TestExecutor,
    TestReport,
    TestResult,
    build_retrieval_context_from_tools,
    generate_markdown_report,
    validate_tool_calls,
)

EVERYTHING = EvalKwargsBuilder("answer", "question", "truth", "files", ["passage"])


def test_every_documented_name_is_there() -> None:
    assert all(getattr(holodeck, name) is not None for name in holodeck.__all__)
    assert holodeck.AgentConfig is holodeck.Agent
    with pytest.raises(AttributeError, match="no attribute 'TestExecuter'"):
        holodeck.TestExecuter  # noqa: B018


@pytest.mark.parametrize(
    ("actual", "expected", "matched"),
    [
        (["search", "calculator"], ["search", "calculator"], True),
        (["fetch"], ["search"], False),
        (["search"], [], True),
        ([], ["search"], False),
        (["b", "a"], ["a", "b"], True),
        (["search"], ["search", "fetch"], False),
        (["search", "extra"], ["search"], True),
        (["vectorstore-search", "mcp-calculator"], ["search", "calculator"], True),
        (["search_v2", "calculator_advanced"], ["search", "calculator"], True),
        (["vectorstore-query", "mcp-math"], ["search"], False),
        (["Search"], ["search"], False),
        (["search"], None, None),
    ],
)
def test_expected_tools_are_found_within_the_names_of_calls(
    actual: list[str], expected: list[str] | None, matched: bool | None
) -> None:
    assert validate_tool_calls(actual, expected) is matched


@pytest.mark.parametrize(
    ("evaluator", "keys"),
    [
        (BLEUEvaluator(), {"response", "ground_truth"}),
        (GroundednessEvaluator(), {"response", "query", "context"}),
        (CoherenceEvaluator(), {"response", "query"}),
        (FaithfulnessEvaluator(), {"actual_output", "input", "retrieval_context"}),
        (ContextualRecallEvaluator(), {"actual_output", "input", "retrieval_context", "expected_output"}),
        (AnswerRelevancyEvaluator(), {"actual_output", "input"}),
        (
            GEvalEvaluator(criteria="Polite."),
            {"actual_output", "input", "expected_output", "context", "retrieval_context"},
        ),
    ],
)
def test_each_evaluator_is_given_what_it_takes_under_its_own_names(evaluator: Any, keys: set[str]) -> None:
    assert EVERYTHING.build_for(evaluator).keys() == keys


def test_only_the_answer_is_given_where_nothing_else_is_known_even_if_it_is_empty() -> None:
    assert EvalKwargsBuilder("", "", None, "", []).build_for(GEvalEvaluator(criteria="c")) == {"actual_output": ""}
    assert EVERYTHING.build_for(GEvalEvaluator(criteria="c"))["context"] == ["files"]


def test_passages_come_from_retrieving_tools_alone() -> None:
    results: list[dict[str, Any]] = [
        {"name": "kb", "result": ["a", None, "", 0, {"t": 1}]},
        {"name": "kb", "result": "whole"},
        {"name": "kb", "result": {"not": "a passage"}},
        {"name": "kb", "result": ""},
        {"name": "user", "result": "Alice"},
        {"result": "nameless"},
    ]
    assert build_retrieval_context_from_tools(results, {"kb"}) == ["a", "0", "{'t': 1}", "whole"]
    assert build_retrieval_context_from_tools(results, set()) is None
    assert build_retrieval_context_from_tools([], {"kb"}) is None


@given(st.lists(st.dictionaries(st.sampled_from(["name", "result"]), st.text() | st.none() | st.lists(st.text()))))
def test_passages_are_texts_that_say_something(results: list[dict[str, Any]]) -> None:
    found = build_retrieval_context_from_tools(results, {"", "kb"})
    assert found is None or (found and all(isinstance(text, str) and text for text in found))


def test_evaluators_score_by_themselves() -> None:
    found = asyncio.run(ROUGEEvaluator(threshold=0.9).evaluate(response="the cat", ground_truth="the cat"))
    assert (found["score"], found["rouge"], found["passed"]) == (1.0, 1.0, True)
    with pytest.raises(EvaluationError, match="EqualityEvaluator needs ground_truth"):
        asyncio.run(EqualityEvaluator().evaluate(response="x"))
    with pytest.raises(TypeError, match="no argument 'answer'"):
        asyncio.run(NumericEvaluator().evaluate(answer="x"))


def test_the_map_makes_an_evaluator_for_every_metric_of_retrieval() -> None:
    assert set(RAG_EVALUATOR_MAP) == set(RAGMetricType)
    quiet = RAG_EVALUATOR_MAP[RAGMetricType.ANSWER_RELEVANCY](threshold=0.3, include_reason=False)
    found = asyncio.run(quiet.evaluate(input="How tall is the tower?", actual_output="The tower is 30 m tall."))
    assert (found["threshold"], found["reasoning"]) == (0.3, "")


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def result(name: str, passed: bool, ms: int = 10, **rest: Any) -> TestResult:
    return TestResult(test_name=name, test_input="q", passed=passed, execution_time_ms=ms, **rest)


def test_progress_in_a_log_is_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    progress = ProgressIndicator(2)
    assert (progress.get_progress_line(), progress.get_spinner_line()) == ("", "")
    progress.update(result("one", True))
    assert progress.get_progress_line() == "[Test 1/2] PASS one"
    progress.update(result("two\nlines", False, 1500))
    assert progress.get_progress_line() == "[Test 2/2] FAIL two\\nlines (1.50s)"
    lines = progress.get_summary().split("\n")
    assert lines[:4] == ["", "=" * 60, "Test Results: 1/2 passed (50.0%)", "  Failed: 1"]
    assert ProgressIndicator(0).get_summary() == "No tests to execute"


def test_progress_at_a_terminal_spins_and_has_colours_unless_they_are_unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    progress = ProgressIndicator(2)
    assert progress.get_spinner_line() == "⠋ Test 1/2: Running..."
    assert [progress.get_spinner_char() for _ in range(10)][-1] == "⠋"
    progress.update(result("one", True))
    assert progress.get_progress_line() == "Test 1/2: \033[32m✓\033[0m one"
    monkeypatch.setenv("NO_COLOR", "1")
    assert progress.get_progress_line() == "Test 1/2: ✓ one"
    assert "Not run: 1" in progress.get_summary()


def test_quiet_tells_only_the_end_and_verbose_tells_every_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    metric = MetricResult(
        metric_name="bleu", kind="standard", score=0.5, threshold=0.4, passed=True, reasoning="half of it"
    )
    quiet, verbose = ProgressIndicator(2, quiet=True), ProgressIndicator(1, verbose=True)
    quiet.update(result("one", True))
    assert quiet.get_progress_line() == ""
    quiet.update(result("two", True))
    assert quiet.get_progress_line() == "[Test 2/2] PASS two"
    verbose.update(result("one", True, metric_results=(metric,)))
    assert verbose.get_progress_line() == "[Test 1/1] PASS one (10ms)"
    assert "      ✓ bleu: 0.50 (threshold 0.4)\n        Reasoning: half of it" in verbose.get_summary()


class Echo:
    """A backend that repeats what it is told."""

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        calls = [{"name": "vectorstore-kb", "arguments": {}, "call_id": "1"}]
        return ExecutionResult(message, calls, [{"name": "vectorstore-kb", "result": ["a fact"], "call_id": "1"}])

    async def teardown(self) -> None:
        raise RuntimeError("stuck")


def write(folder: Path, tests: list[dict[str, Any]], **rest: Any) -> str:
    metrics = [{"type": "standard", "metric": "equality"}]
    path = folder / "agent.yaml"
    path.write_text(json.dumps({"name": "a", "evaluations": {"metrics": metrics}, "test_cases": tests, **rest}))
    return str(path)


def test_tests_may_be_left_out_before_they_are_run(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": n, "input": n, "ground_truth": n} for n in ("a", "b", "c")])
    agent = ConfigLoader().load_agent_yaml(path)
    assert agent.test_cases is not None
    assert [(t.name, t.input, t.ground_truth) for t in agent.test_cases[:1]] == [("a", "a", "a")]
    agent.test_cases = agent.test_cases[1:]
    report = asyncio.run(TestExecutor(path, agent_config=agent, backend=Echo()).execute_tests())
    assert [(r.test_name, r.passed) for r in report.results] == [("b", True), ("c", True)]


def test_what_a_file_says_yields_to_the_caller(tmp_path: Path) -> None:
    path = write(tmp_path, [{"input": "q"}], execution={"llm_timeout": 5, "parallel_test_cases": 3, "cache_dir": "c"})
    executor = TestExecutor(path, ExecutionConfig(parallel_test_cases=2), backend=Echo())
    config = executor.config
    assert (config.llm_timeout, config.parallel_test_cases, config.cache_dir) == (5, 2, "c")
    assert (config.file_timeout, config.cache_enabled) == (30, True)
    with pytest.raises(ValueError, match="must be more than 0 seconds"):
        ExecutionConfig(llm_timeout=0)


def test_a_report_says_what_it_was_made_with(tmp_path: Path) -> None:
    path = write(tmp_path, [{"input": "q", "ground_truth": "q"}])
    known = asyncio.run(TestExecutor(path, backend=Echo()).execute_tests()).environment
    assert json.loads(known["execution_config"])["llm_timeout"] == 300
    assert known["agent_fingerprint"]


def test_a_declared_store_is_what_an_answer_rests_on_whatever_a_backend_calls_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(evaluable: Any) -> bool:
        seen.append(evaluable.retrieval_context)
        return True

    tools = [{"type": "vectorstore", "name": "kb", "description": "d", "source": "x"}]
    path = write(tmp_path, [{"input": "q", "ground_truth": "q"}], tools=tools)
    asyncio.run(TestExecutor(path, backend=Echo(), evaluators={"equality": look}).execute_tests())
    assert seen == [("a fact",)]


def test_files_are_read_by_the_processor_that_is_given(tmp_path: Path) -> None:
    class Processor:
        def process_file(self, file: Any) -> Any:
            return type("Processed", (), {"markdown_content": f"# {file.path}", "error": None})

    (tmp_path / "f.txt").write_text("real")
    path = write(tmp_path, [{"input": "q", "ground_truth": "q", "files": [{"path": "f.txt", "type": "text"}]}])
    [found] = asyncio.run(TestExecutor(path, backend=Echo(), file_processor=Processor()).execute_tests()).results
    assert "# f.txt" in (found.agent_response or "")
    assert found.processed_files[0].original.path == "f.txt"
    assert found.processed_files[0].markdown_content == "# f.txt"


def test_a_file_without_an_agent_says_so_when_it_is_run(tmp_path: Path) -> None:
    executor = TestExecutor(write(tmp_path, [{"input": "q"}]))
    with pytest.raises(InvalidSuite, match="has no agent"):
        asyncio.run(executor.execute_tests())


def test_what_is_not_an_agent_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\ncases:\n  - input: a\n    expected: b\n")
    with pytest.raises(InvalidSuite, match=r"is not an agent\.yaml"):
        ConfigLoader().load_agent_yaml(tmp_path / "x.yaml")
    with pytest.raises(InvalidSuite):
        ConfigLoader().load_agent_yaml(tmp_path / "gone.yaml")


def test_closing_never_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        executor = TestExecutor(write(tmp_path, [{"input": "q"}]), backend=Echo())
        await executor.execute_tests()
        await executor.shutdown()
        await executor.shutdown()

    asyncio.run(run())
    assert "stuck" in caplog.text


def conversation(tmp_path: Path) -> TestReport:
    (tmp_path / "desk.py").write_text(
        "def answer(question):\n    return question if question != '| `x` |' else 1 / 0\n"
    )
    turns = [{"input": "a", "ground_truth": "a"}, {"input": "| `x` |", "ground_truth": "a"}, {"input": "c"}]
    path = write(tmp_path, [{"name": "# <b>talk", "turns": turns}], agent="desk.py:answer")
    return asyncio.run(TestExecutor(path).execute_tests())


def test_a_conversation_is_reported_turn_by_turn(tmp_path: Path) -> None:
    report = conversation(tmp_path)
    [found] = report.results
    assert found.turns is not None
    assert [(t.response, t.skipped) for t in found.turns] == [("a", False), (None, False), ("c", False)]
    assert not found.passed
    assert "ZeroDivisionError" in found.errors[0]
    assert found.test_input == "a\n---\n| `x` |\n---\nc"


def test_reports_are_whole_whatever_stands_in_them(tmp_path: Path) -> None:
    report = conversation(tmp_path)
    markdown = generate_markdown_report(report)
    assert "### Test: \\# &lt;b&gt;talk ❌ FAILED" in markdown
    assert "##### Turn 3 " in markdown
    data = json.loads(report.model_dump_json(indent=2))
    assert data["summary"]["total_tests"] == 1
    assert data["results"][0]["turns"][0]["input"] == "a"
    assert data["environment"]["python_version"]
