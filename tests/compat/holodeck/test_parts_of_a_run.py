"""Parts of a run that programs replace or read: loaders, evaluators, keys, files, and what a result says about them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.cases.formats.loading import load
from proctor.compat.holodeck import (
    Agent,
    BaseEvaluator,
    ConfigLoader,
    EvalParam,
    EvaluationConfig,
    EvaluationMetric,
    ExecutionConfig,
    ExecutionResult,
    GlobalConfig,
    Instructions,
    LLMProvider,
    NumericEvaluator,
    ParamSpec,
    ROUGEEvaluator,
    TestCaseModel,
    TestExecutor,
)


class Echo:
    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message)


def write(folder: Path, **more: Any) -> Path:
    data = {
        "name": "echo",
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "one", "input": "x", "ground_truth": "x"}],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def run_tests(path: Path, **arguments: Any) -> Any:
    return asyncio.run(TestExecutor(str(path), backend=Echo(), **arguments).execute_tests())


class Grounded(BaseEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.ACTUAL_OUTPUT}))

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        return {"score": 0.9, "passed": True}


def test_a_rag_metric_of_an_injected_evaluator_is_a_rag_metric(tmp_path: Path) -> None:
    metrics = {"metrics": [{"type": "rag", "metric_type": "faithfulness", "threshold": 0.5}]}
    path = write(tmp_path, evaluations=metrics)
    [result] = run_tests(path, evaluators={"faithfulness": Grounded()}).results
    [metric] = result.metric_results
    assert (metric.kind, metric.metric_name, metric.score, metric.passed) == ("rag", "faithfulness", 0.9, True)


def test_rouge_has_all_three_variants() -> None:
    result = asyncio.run(ROUGEEvaluator(threshold=0.5).evaluate(response="a b c d", ground_truth="a b x d"))
    assert {name: round(result[name], 3) for name in ("rouge1", "rouge2", "rougeL")} == {
        "rouge1": 0.75,
        "rouge2": 0.333,
        "rougeL": 0.75,
    }
    assert (result["rouge"], result["passed"]) == (result["rougeL"], True)


def test_numeric_says_what_it_could_not_read(tmp_path: Path) -> None:
    result = asyncio.run(NumericEvaluator().evaluate(response="about 4", ground_truth="4"))
    assert (result["numeric"], result["passed"]) == (0.0, False)
    assert "which is not a number" in result["error"]
    assert asyncio.run(NumericEvaluator().evaluate(response="5", ground_truth="4"))["error"] is None

    tests = [{"input": "about 4", "ground_truth": "4"}]
    metrics = {"metrics": [{"type": "standard", "metric": "numeric"}]}
    for more in ({}, {"evaluators": {"numeric": NumericEvaluator()}}):
        [result] = run_tests(write(tmp_path, evaluations=metrics, test_cases=tests), **more).results
        [metric] = result.metric_results
        assert (result.outcome, metric.score, metric.passed) == ("failed", 0.0, False)
        assert "which is not a number" in (metric.error or "")


def test_a_missing_file_stops_its_test_and_not_the_run(tmp_path: Path) -> None:
    gone = {"name": "gone", "input": "x", "ground_truth": "x", "files": [{"path": "gone.txt", "type": "text"}]}
    path = write(tmp_path, test_cases=[gone, {"name": "one", "input": "x", "ground_truth": "x"}])
    [suite] = load([path])
    assert any("gone.txt, which does not exist" in str(warning) for warning in suite.warnings)
    first, second = run_tests(path).results
    assert (first.outcome, second.outcome) == ("error", "passed")
    assert "File error" in first.errors[0]


def test_an_injected_loader_resolves_the_settings(tmp_path: Path) -> None:
    class Loader(ConfigLoader):
        def load_project_config(self, project_dir: str | Path) -> GlobalConfig | None:
            return GlobalConfig(execution=ExecutionConfig(llm_timeout=21, file_timeout=22))

    path = write(tmp_path, execution={"llm_timeout": 9})
    config = TestExecutor(str(path), config_loader=Loader(), backend=Echo()).config
    assert (config.llm_timeout, config.file_timeout, config.parallel_test_cases) == (9, 22, 1)


def test_the_users_env_file_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".holodeck").mkdir(parents=True)
    project.mkdir()
    (home / ".holodeck" / ".env").write_text("WHO=user\nGREETING=hello from home\n")
    (project / ".env").write_text("WHO=project\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    agent = ConfigLoader().load_agent_yaml(write(project, description="${GREETING}, ${WHO}"))
    assert agent.description == "hello from home, project"


def test_a_key_in_python_is_used_and_never_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judge = LLMProvider(provider="openai", name="gpt-4o", api_key="sk-very-secret")
    agent = Agent(
        name="a",
        model=judge,
        instructions=Instructions(inline="Hi"),
        evaluations=EvaluationConfig(model=judge, metrics=[EvaluationMetric(metric="equality")]),
        test_cases=[TestCaseModel(name="one", input="x", ground_truth="x")],
    )
    executor = TestExecutor("agent.yaml", agent_config=agent, backend=Echo())
    report = asyncio.run(executor.execute_tests())
    assert report.results[0].passed
    assert "sk-very-secret" not in json.dumps(report.model_dump(), default=str)
    assert list(agent.written_keys.values()) == ["sk-very-secret"]
