"""Where a test_config.json is, what it can hold for both tools, and which mistakes are found before the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest
from command_line import CommandResult

from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.formats.loading import load
from proctor.compat.adk import AgentEvaluator

AGENT = """
def agent(question):
    return "It is in Utrecht."
"""
POLITE = {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(AGENT)
    write("evaluation/parcels.test.json", docs.eval_set(docs.case("a", docs.ANSWERED)))
    return tmp_path


def write(name: str, data: Any) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


Command = Callable[..., CommandResult]
TEST = ("test", "evaluation", "--agent", "app.py:agent")


def problems(*paths: str) -> list[str]:
    with pytest.raises(InvalidSuite) as caught:
        load(paths)
    return [str(problem) for problem in caught.value.problems]


def test_a_config_elsewhere_replaces_the_one_next_to_the_file(project: Path, proctor: Command) -> None:
    write("evaluation/test_config.json", {"criteria": {"response_match_score": 0.5}})
    config = write("strict/config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    [suite] = load(["evaluation"], config)
    assert [spec.title for spec in suite.evaluators] == ["tool_trajectory_avg_score"]
    assert "response_match_score" in proctor(*TEST).out
    shown = proctor(*TEST, "--config", str(config))
    assert "tool_trajectory_avg_score" in shown.out
    assert "response_match_score" not in shown.out


def test_metric_functions_are_found_next_to_a_config_elsewhere(project: Path) -> None:
    write("strict/metrics.py", "def found(metric, actual, expected, scenario):\n    return {'overall_score': 1.0}\n")
    write("strict/checks.py", "def polite(evaluable):\n    return True\n")
    named = {
        "found": {"code_config": {"name": "metrics.found"}},
        "polite": {"code_config": {"name": "checks.py:polite"}},
    }
    config = write("strict/config.json", {"criteria": {"found": 1.0, "polite": 1.0}, "custom_metrics": named})
    run = AgentEvaluator.evaluate_sync(lambda question: "Hi", "evaluation", 1, config_file=config)
    assert [(score.evaluator, score.value) for trial in run.trials for score in trial.scores] == [
        ("found", 1.0),
        ("polite", 1.0),
    ]


def test_a_rescored_run_uses_the_same_config(project: Path, proctor: Command) -> None:
    config = write(
        "strict/config.json", {"criteria": {"response_match_score": 0.5}, "evaluators": [{"ToolCount": {"at_most": 1}}]}
    )
    assert proctor(*TEST, "--config", str(config)).code == 0
    assert "ToolCount" in proctor("rescore", "last").out


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "strict.json: does not exist"), ("{", "strict.json:1: is not valid JSON"), ("{}", "needs 'criteria'")],
)
def test_a_config_that_cannot_be_used_is_an_error(project: Path, proctor: Command, text: str | None, said: str) -> None:
    if text is not None:
        write("strict.json", text)
    ended = proctor(*TEST, "--config", "strict.json")
    assert (ended.code, said in ended.err) == (2, True)


def test_a_config_for_suites_without_one_is_an_error(project: Path) -> None:
    write("native.yaml", "agent: app.py:agent\ncases: [{id: a, input: Hi, expected: Hi}]\n")
    config = write("strict.json", {"criteria": {"response_match_score": 0.5}})
    with pytest.raises(UsageError, match="no suite uses the config file"):
        load(["native.yaml"], config)


def test_efficiency_metrics_and_limits_stand_where_adk_python_ignores_them(project: Path) -> None:
    more = ["tool_call_count_v1", {"ToolCount": {"at_most": 3, "report_only": True}}]
    write("evaluation/test_config.json", {"criteria": {"response_match_score": 0.5}, "evaluators": more})
    [suite] = load(["evaluation"])
    assert [(spec.name, spec.label, spec.report_only) for spec in suite.evaluators] == [
        ("ROUGE", "response_match_score", False),
        ("Measured", "tool_call_count_v1", True),
        ("ToolCount", None, True),
    ]


def test_a_metric_function_that_cannot_be_imported_is_reported_at_its_line(project: Path, proctor: Command) -> None:
    write("evaluation/broken.py", "def fine(*arguments):\n    return 1.0\n\nraise RuntimeError('no license')\n")
    code = {
        name: {"code_config": {"name": name}} for name in ("nowhere.metrics.brevity", "json.brevity", "broken.fine")
    }
    write("evaluation/test_config.json", {"criteria": dict.fromkeys(code, 1.0), "custom_metrics": code})
    lines = Path("evaluation/test_config.json").read_text().split("\n")
    ended = proctor(*TEST)
    assert ended.code == 2
    for name in code:
        line = next(at for at, text in enumerate(lines, 1) if f'"name": "{name}"' in text)
        [message] = [text for text in ended.err.split("\n") if f"test_config.json:{line}: " in text]
        assert name.rpartition(".")[0] in message
    assert "no license" in ended.err


@pytest.mark.parametrize(
    "metric",
    [
        "rubric_based_final_response_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
    ],
)
@pytest.mark.parametrize("criterion", [0.5, {"threshold": 0.5}, {"threshold": 0.5, "rubrics": []}])
def test_a_rubric_metric_without_rubrics_is_refused_before_the_run(project: Path, metric: str, criterion: Any) -> None:
    write("evaluation/test_config.json", {"criteria": {"response_match_score": 0.1, metric: criterion}})
    [problem] = problems("evaluation")
    assert problem.startswith(f"evaluation/test_config.json:4: {metric} needs rubrics")
    with pytest.raises(InvalidSuite, match="needs rubrics"):
        AgentEvaluator.evaluate_eval_set_sync(lambda question: "Hi", docs.eval_set(), {metric: criterion})


def test_rubrics_of_another_kind_do_not_count_and_those_of_the_kind_or_of_none_do(project: Path) -> None:
    write("evaluation/test_config.json", {"criteria": {"rubric_based_tool_use_quality_v1": 0.5}})
    for kind, is_enough in (("FINAL_RESPONSE_QUALITY", False), ("TOOL_USE_QUALITY", True), (None, True)):
        case = docs.case("a", docs.ANSWERED, rubrics=[{**POLITE, "type": kind}])
        write("evaluation/parcels.test.json", docs.eval_set(case))
        if is_enough:
            assert load(["evaluation"])
        else:
            assert "of type TOOL_USE_QUALITY" in problems("evaluation")[0]


ROW = {"reference": "It is in Utrecht."}


@pytest.mark.parametrize(
    ("rows", "line"), [([ROW], 2), (ROW, 1), ([{"query": "Where?", **ROW}, {"expected_tool_use": []}], 6)]
)
def test_a_legacy_row_without_a_query_is_named_with_its_line(project: Path, rows: Any, line: int) -> None:
    write("evaluation/parcels.test.json", rows)
    [problem] = problems("evaluation/parcels.test.json")
    assert problem.startswith(f"evaluation/parcels.test.json:{line}: ")
    assert "is a legacy row without 'query'" in problem
