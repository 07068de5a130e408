"""What users of HoloDeck's interface bring along: evaluators and file processors of their own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import proctor
from proctor.compat.holodeck import (
    BaseEvaluator,
    ConfigLoader,
    EvalKwargsBuilder,
    EvalParam,
    EvaluationError,
    ExecutionResult,
    FileInput,
    FileProcessor,
    ParamSpec,
    ProcessedFileInput,
    RetryConfig,
    TestExecutor,
    TestReport,
)

ONE = [{"name": "one", "input": "x", "ground_truth": "x"}]
AT_ONCE = RetryConfig(max_retries=3, base_delay=0.001)


class Echo:
    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message)


def write(folder: Path, tests: list[dict[str, Any]] = ONE, **more: Any) -> str:
    metrics = {"metrics": [{"type": "standard", "metric": "equality", **more}]}
    (folder / "agent.yaml").write_text(json.dumps({"name": "a", "evaluations": metrics, "test_cases": tests}))
    return str(folder / "agent.yaml")


def run_tests(path: str, **given: Any) -> TestReport:
    return asyncio.run(TestExecutor(path, backend=Echo(), **given).execute_tests())


class Mine(BaseEvaluator):
    """An evaluator as HoloDeck's documentation writes them."""

    PARAM_SPEC = ParamSpec(required=frozenset({EvalParam.RESPONSE, EvalParam.QUERY}))

    def __init__(self, *came: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self.came = list(came)
        self.calls: list[dict[str, Any]] = []

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        self.calls.append(kwargs)
        found = self.came.pop(0)
        if isinstance(found, Exception):
            raise found
        return dict(found)


def test_an_evaluator_of_ones_own_is_a_subclass_with_its_parameters() -> None:
    mine = Mine({"score": 0.85, "passed": True})
    kwargs = EvalKwargsBuilder("answer", "question", "truth").build_for(mine)
    assert kwargs == {"response": "answer", "query": "question"}
    assert asyncio.run(mine.evaluate(**kwargs)) == {"score": 0.85, "passed": True}
    assert (mine.name, mine.timeout, mine.retry_config) == ("Mine", 60.0, RetryConfig())


def test_what_the_network_broke_is_tried_again_and_nothing_else_is() -> None:
    mine = Mine(ConnectionError("reset"), OSError("pipe"), {"score": 1.0}, retry_config=AT_ONCE)
    assert asyncio.run(mine.evaluate(response="a"))["score"] == 1.0
    assert len(mine.calls) == 3
    mine = Mine(*[ConnectionError("reset")] * 5, retry_config=AT_ONCE)
    with pytest.raises(EvaluationError, match=r"after 3 attempts: .*reset"):
        asyncio.run(mine.evaluate(response="a"))
    assert len(mine.calls) == 3
    mine = Mine(ValueError("wrong"), {"score": 1.0}, retry_config=AT_ONCE)
    with pytest.raises(EvaluationError, match="ValueError: wrong"):
        asyncio.run(mine.evaluate(response="a"))


def test_an_evaluator_that_takes_too_long_is_a_timeout() -> None:
    class Slow(BaseEvaluator):
        async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
            await asyncio.sleep(60)
            return {}

    for kind in (TimeoutError, EvaluationError):
        with pytest.raises(kind, match=r"within 0\.01 s"):
            asyncio.run(Slow(timeout=0.01).evaluate(response="a"))


def test_a_subclass_that_evaluates_nothing_says_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="_evaluate_impl"):
        asyncio.run(BaseEvaluator().evaluate(response="a"))


@pytest.mark.parametrize(
    ("came", "given", "passed", "score"),
    [
        ({"score": 0.4, "passed": True}, {}, True, 0.4),
        ({"score": 0.9, "passed": False}, {}, False, 0.9),
        ({"score": 0.4, "passed": True}, {"threshold": 0.5}, False, 0.4),
        ({"score": 0.9, "passed": False}, {"threshold": 0.5}, True, 0.9),
        ({"equality": 0.9}, {}, True, 0.9),
    ],
)
def test_its_own_passed_counts_where_no_threshold_is_given(
    tmp_path: Path, came: Any, given: dict[str, Any], passed: bool, score: float
) -> None:
    [found] = run_tests(write(tmp_path, **given), evaluators={"equality": Mine(came)}).results
    [metric] = found.metric_results
    assert (found.passed, metric.passed, metric.score) == (passed, passed, score)


@pytest.mark.parametrize("passed", [True, False])
def test_its_own_passed_counts_also_for_a_metric_that_only_informs_by_itself(tmp_path: Path, passed: bool) -> None:
    tests = [{**ONE[0], "evaluations": [{"type": "standard", "metric": "bleu"}]}]
    [found] = run_tests(write(tmp_path, tests), evaluators={"bleu": Mine({"bleu": 0.1, "passed": passed})}).results
    assert (found.passed, found.metric_results[0].score) == (passed, 0.1)


def test_an_evaluator_whose_required_parameter_is_absent_is_skipped_and_not_called(tmp_path: Path) -> None:
    class Needs(Mine):
        PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.CONTEXT}), uses_context=True)

    needs = Needs({"score": 1.0})
    [found] = run_tests(write(tmp_path), evaluators={"equality": needs}).results
    assert needs.calls == []
    assert found.metric_results == []
    assert "equality was skipped: it requires context, which the test does not have" in found.warnings
    assert found.outcome == "error"


def test_an_evaluator_that_leaves_the_verdict_to_others_is_pending_and_not_tried_again(tmp_path: Path) -> None:
    mine = Mine(proctor.EvaluationPending("ask Ann"), retry_config=AT_ONCE)
    [found] = run_tests(write(tmp_path), evaluators={"equality": mine}).results
    assert (found.outcome, found.passed, len(mine.calls)) == ("pending", False, 1)
    assert [(metric.outcome, metric.error) for metric in found.metric_results] == [("pending", "Mine: ask Ann")]


def test_the_evaluators_of_an_executor_can_be_called(tmp_path: Path) -> None:
    tests = [{"input": "x", "evaluations": [{"metric": "bleu"}, {"metric_type": "faithfulness", "type": "rag"}]}]
    executor = TestExecutor(write(tmp_path, [*ONE, *tests], case_insensitive=True), backend=Echo())
    assert set(executor.evaluators) == {"equality", "bleu", "faithfulness"}
    equality = executor.evaluators["equality"]
    kwargs = EvalKwargsBuilder("YES", "q", "yes").build_for(equality)
    assert asyncio.run(equality.evaluate(**kwargs))["passed"] is True
    assert all(evaluator.get_param_spec().required for evaluator in executor.evaluators.values())


FILE = {"path": "data.xlsx", "type": "excel", "sheet": "Prices", "range": "A1:B2", "description": "prices"}


def test_a_file_processor_gets_the_file_as_holodeck_describes_it_and_may_make_it(tmp_path: Path) -> None:
    seen: list[FileInput] = []

    class Maker:
        def process_file(self, file: FileInput) -> ProcessedFileInput:
            seen.append(file)
            return ProcessedFileInput(original=file, markdown_content="made")

    path = write(tmp_path, [{"input": "x", "ground_truth": "x", "files": [FILE]}])
    report = run_tests(path, file_processor=Maker())
    [file] = seen
    assert (file.path, file.url, file.type, file.sheet, file.range, file.description) == (
        "data.xlsx",
        None,
        "excel",
        "Prices",
        "A1:B2",
        "prices",
    )
    assert (file.pages, file.cache) == (None, None)
    assert report.results[0].processed_files[0].markdown_content == "made"


def test_a_file_processor_may_be_put_in_place_after_the_executor_is_made(tmp_path: Path) -> None:
    path = write(tmp_path, [{"input": "x", "ground_truth": "x", "files": [FILE]}])
    executor = TestExecutor(path, backend=Echo())
    executor.file_processor = Mock(spec=FileProcessor)
    executor.file_processor.process_file = Mock(
        return_value=ProcessedFileInput(
            original=FileInput(path="data.xlsx", type="excel"), markdown_content="from a mock"
        )
    )
    [found] = asyncio.run(executor.execute_tests()).results
    assert "from a mock" in (found.agent_response or "")


def test_a_file_that_is_not_there_is_an_error_of_its_test_alone(tmp_path: Path) -> None:
    tests = [{"name": "gone", "input": "x", "ground_truth": "x", "files": [{"path": "no.txt", "type": "text"}]}, *ONE]
    gone, one = run_tests(write(tmp_path, tests)).results
    assert (gone.outcome, one.outcome) == ("error", "passed")
    assert "no.txt" in gone.errors[0]


def test_files_are_processed_by_a_program_too(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("# Returns\n")
    processor = FileProcessor(base_dir=tmp_path)
    read = processor.process_file(FileInput(path="policy.md", type="text"))
    assert (read.markdown_content, read.error) == ("# Returns", None)
    assert read.metadata is not None
    assert read.metadata["size_bytes"] == 10
    lost = processor.process_file(FileInput(path="lost.md", type="text"))
    assert lost.markdown_content == ""
    assert "lost.md cannot be read" in (lost.error or "")


def test_an_executor_has_a_file_processor_that_starts_from_the_agents_folder(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("within 30 days")
    executor = TestExecutor(write(tmp_path), backend=Echo())
    assert (
        executor.file_processor.process_file(FileInput(path="policy.md", type="text")).markdown_content
        == "within 30 days"
    )
    tests = [{"input": "x", "files": [{"path": "policy.md", "type": "text"}], "ground_truth": "x"}]
    report = run_tests(write(tmp_path, tests), file_processor=FileProcessor())
    assert report.results[0].processed_files[0].markdown_content == "within 30 days"


def test_an_agent_file_without_tests_loads(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("name: a\nmodel: {provider: openai, name: gpt}\ninstructions: {inline: Hi}\n")
    agent = ConfigLoader().load_agent_yaml(tmp_path / "agent.yaml")
    assert (agent.name, agent.test_cases or []) == ("a", [])
    (tmp_path / "agent.yaml").write_text("name: a\nagent: app.py:a\ntest_cases: []\n")
    assert ConfigLoader().load_agent_yaml(tmp_path / "agent.yaml").test_cases == []
