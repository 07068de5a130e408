"""Reading ADK's test_config.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest

from proctor.base.errors import InvalidSuite
from proctor.cases.suite import EvaluatorSpec, Suite


def specs(folder: Path, criteria: Any) -> tuple[EvaluatorSpec, ...]:
    return docs.read(folder, docs.eval_set(), {"criteria": criteria}).evaluators


def problems(folder: Path, config: Any) -> list[str]:
    with pytest.raises(InvalidSuite) as caught:
        docs.read(folder, docs.eval_set(), config)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_without_a_config_adk_defaults_are_in_force(tmp_path: Path) -> None:
    suite: Suite = docs.read(tmp_path, docs.eval_set())
    trajectory, match = suite.evaluators
    assert (trajectory.name, trajectory.threshold, trajectory.title) == (
        "ToolTrajectory",
        1.0,
        "tool_trajectory_avg_score",
    )
    assert (match.name, match.threshold, match.arguments) == ("ROUGE", 0.8, {"variant": "rouge1", "stem": True})


def test_chosen_criteria_hold_for_every_case_even_where_there_is_nothing_to_compare(tmp_path: Path) -> None:
    suite = docs.read(tmp_path, docs.case("a", docs.ANSWERED), {"criteria": {"tool_trajectory_avg_score": 1.0}})
    assert [spec.title for spec in suite.evaluators_of(suite.cases[0])] == ["tool_trajectory_avg_score"]


@pytest.mark.parametrize(
    ("metric", "evaluator"),
    [
        ("safety_v1", "Safety"),
        ("final_response_match_v2", "FinalResponseMatch"),
        ("rubric_based_final_response_quality_v1", "FinalResponseQuality"),
        ("rubric_based_tool_use_quality_v1", "ToolUseQuality"),
        ("rubric_based_multi_turn_trajectory_quality_v1", "TrajectoryQuality"),
        ("hallucinations_v1", "Hallucinations"),
        ("per_turn_user_simulator_quality_v1", "UserSimulatorQuality"),
    ],
)
def test_each_judged_metric_has_its_evaluator(tmp_path: Path, metric: str, evaluator: str) -> None:
    rubrics = [{"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}}]
    suite = docs.read(tmp_path, docs.eval_set(docs.case(rubrics=rubrics)), {"criteria": {metric: 0.75}})
    [spec] = suite.evaluators
    assert (spec.name, spec.threshold, spec.label) == (evaluator, 0.75, metric)


@pytest.mark.parametrize(("given", "share"), [(1, 0.0), (3, 0.5), (5, 1.0)])
def test_a_threshold_from_one_to_five_becomes_a_share(tmp_path: Path, given: float, share: float) -> None:
    [spec] = specs(tmp_path, {"response_evaluation_score": given})
    assert (spec.name, spec.threshold) == ("ResponseEvaluation", share)


@pytest.mark.parametrize("word", ["IN_ORDER", "in order", " In-Order ", 1])
def test_every_spelling_of_a_match_type_is_understood(tmp_path: Path, word: Any) -> None:
    [spec] = specs(tmp_path, {"tool_trajectory_avg_score": {"threshold": 1, "matchType": word, "ignore_args": True}})
    assert (spec.arguments["match"], spec.arguments["ignore_args"]) == ("IN_ORDER", True)


def test_a_number_and_its_criterion_object_are_the_same_evaluator(tmp_path: Path) -> None:
    as_number = specs(tmp_path, {"tool_trajectory_avg_score": 1})
    assert as_number == specs(tmp_path, {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "EXACT"}})


def test_the_words_of_the_typescript_edition_can_be_asked_for(tmp_path: Path) -> None:
    [spec] = specs(tmp_path, {"response_match_score": {"threshold": 0.8, "tokenizer": "typescript"}})
    assert spec.arguments == {"variant": "rouge1", "tokenizer": "typescript"}


@pytest.mark.parametrize(("thoughts", "evaluator"), [(True, "RougeWithThoughts"), (False, "ROUGE")])
def test_thoughts_can_count_as_they_do_in_adk_python(tmp_path: Path, thoughts: bool, evaluator: str) -> None:
    [spec] = specs(tmp_path, {"response_match_score": {"threshold": 0.8, "thoughts": thoughts}})
    assert (spec.name, spec.arguments) == (evaluator, {"variant": "rouge1", "stem": True})


def test_judge_options_and_rubrics_reach_the_evaluator_in_one_spelling(tmp_path: Path) -> None:
    criterion = {
        "threshold": 0.8,
        "judgeModelOptions": {"judgeModel": "small", "numSamples": 3},
        "rubrics": [{"rubricId": "polite", "rubricContent": {"textProperty": "It is polite."}}],
    }
    [spec] = specs(tmp_path, {"rubric_based_final_response_quality_v1": criterion})
    assert spec.arguments == {
        "judge_model_options": {"judge_model": "small", "num_samples": 3},
        "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}}],
    }


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{not json", "test_config.json:1: is not valid JSON"),
        ("", "test_config.json:1: is not valid JSON"),
        ("null", "must be an object, not nothing"),
        ("[]", "must be an object, not a list"),
        ({}, "needs 'criteria'"),
        ({"criterai": {"safety_v1": 1}}, "test_config.json:1: criterai is not a known key; did you mean 'criteria'?"),
        ({"criteria": {}}, "criteria is empty"),
        ({"criteria": []}, "criteria must be an object"),
        ({"criteria": {"response_mach_score": 0.8}}, "did you mean 'response_match_score'?"),
        ({"criteria": {"RESPONSE_MATCH_SCORE": 0.8}}, "did you mean 'response_match_score'?"),
        ({"criteria": {"token_usage_v1": 0.8}}, "criteria.token_usage_v1 is only reported and has no threshold"),
        ({"criteria": {"multi_turn_task_success_v1": 1}}, "is an ADK metric that Proctor does not have"),
        ({"criteria": {"safety_v1": "0.8"}}, "criteria.safety_v1 must be a number, not text"),
        ({"criteria": {"safety_v1": True}}, "must be a number, not true or false"),
        ({"criteria": {"safety_v1": None}}, "must be a number, not nothing"),
        ({"criteria": {"safety_v1": 80}}, "must be between 0 and 1"),
        ('{"criteria": {"safety_v1": NaN}}', "NaN is not JSON"),
        ('{"criteria": {"safety_v1": 1e999}}', "too large for a number"),
        ('{"criteria": {"safety_v1": 1' + "0" * 400 + "}}", "must be between 0 and 1"),
        ({"criteria": {"response_evaluation_score": 0.8}}, "must be between 1 and 5"),
        ({"criteria": {"safety_v1": {}}}, "criteria.safety_v1.threshold must be a number"),
        ({"criteria": {"safety_v1": {"threshold": 1, "match_type": "EXACT"}}}, "match_type is not a known key"),
        ({"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "SOME"}}}, "must be one of EXACT"),
        (
            {"criteria": {"safety_v1": {"threshold": 1, "judge_model_options": {"num_samples": 0}}}},
            "num_samples must be at least 1",
        ),
        ({"criteria": {"mine": 1}, "custom_metrics": {"mine": {}}}, "custom_metrics.mine.code_config is missing"),
        ({"criteria": {"mine": 1}, "custom_metrics": {"mine": 7}}, "custom_metrics.mine must be an object"),
        (
            {"criteria": {"mine": 1}, "custom_metrics": {"mine": {"code_config": {"name": "fn"}}}},
            "write package.module",
        ),
        (
            {"criteria": {"mine": 1}, "custom_metrics": {"mine": {"code_config": {"args": 1}}}},
            "args is not a known key",
        ),
        ({"criteria": {"mine": 2}, "custom_metrics": {"mine": {"code_config": {"name": "a.b"}}}}, "between 0 and 1"),
        (
            {
                "criteria": {"mine": 1},
                "custom_metrics": {
                    "mine": {
                        "code_config": {"name": "a.b"},
                        "metric_info": {"metric_value_info": {"interval": {"min_value": 2, "max_value": 1}}},
                    }
                },
            },
            "must be greater than min_value",
        ),
        ({"criteria": {"safety_v1": 1}, "user_simulator_config": {"type": "llm_audio"}}, "must be llm_backed"),
        ({"criteria": {"safety_v1": 1}, "user_simulator_config": {"turns": 3}}, "turns is not a known key"),
        ({"criteria": {"safety_v1": 1}, "user_simulator_config": {"max_allowed_invocations": 0}}, "from 1 to 1000"),
        (
            {"criteria": {"safety_v1": 1}, "user_simulator_config": {"custom_instructions": "{{ stop_signal }}"}},
            "needs {{ conversation_plan }}",
        ),
        (
            {"criteria": {"safety_v1": 1}, "user_simulator_config": {"custom_instructions": "{% if x %}"}},
            "only placeholders such as {{ stop_signal }} are supported",
        ),
        ({"criteria": {"safety_v1": 1}, "live_model_config": {}}, "needs a live session"),
    ],
)
def test_a_config_that_cannot_be_used_is_a_problem_and_never_the_defaults(
    tmp_path: Path, config: Any, said: str
) -> None:
    found = problems(tmp_path, config)
    assert any(problem.startswith("test_config.json") and said in problem for problem in found), found


def test_problems_of_the_config_and_of_the_cases_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text('{"criteria": {}}')
    with pytest.raises(InvalidSuite) as caught:
        docs.read(tmp_path, {"evalSetId": "x", "evalCases": []})
    assert {problem.path.name for problem in caught.value.problems if problem.path} == {
        "test_config.json",
        "desk.test.json",
    }


def test_a_function_of_ones_own_measures_on_its_own_scale(tmp_path: Path) -> None:
    described = {
        "code_config": {"name": "desk.metrics.politeness"},
        "metric_info": {"metric_value_info": {"interval": {"min_value": -10, "max_value": 10}}},
    }
    config = {"criteria": {"polite": {"threshold": 5, "language": "nl"}}, "customMetrics": {"polite": described}}
    [spec] = docs.read(tmp_path, docs.eval_set(), config).evaluators
    assert spec == EvaluatorSpec(
        "AdkMetric",
        {
            "function": "desk.metrics.politeness",
            "metric": "polite",
            "criterion": {"language": "nl"},
            "interval": [-10.0, 10.0],
        },
        threshold=0.75,
        label="polite",
        scope="case",
    )


def test_an_evaluator_of_ones_own_is_named_as_file_and_name(tmp_path: Path) -> None:
    config = {"criteria": {"polite": 0.5}, "custom_metrics": {"polite": {"code_config": {"name": "checks.py:polite"}}}}
    [spec] = docs.read(tmp_path, docs.eval_set(), config).evaluators
    assert spec == EvaluatorSpec("checks.py:polite", threshold=0.5, label="polite")


def test_a_custom_metric_that_is_not_a_criterion_is_pointed_out(tmp_path: Path) -> None:
    config = {"criteria": {"safety_v1": 1}, "custom_metrics": {"polite": {"code_config": {"name": "checks.py:polite"}}}}
    [warning] = docs.read(tmp_path, docs.eval_set(), config).warnings
    assert "custom_metrics.polite is not listed under criteria" in str(warning)


@pytest.mark.parametrize("value", [None, {}])
def test_efficiency_is_reported_and_decides_nothing(tmp_path: Path, value: Any) -> None:
    _, spec = specs(tmp_path, {"safety_v1": 1, "token_usage_v1": value})
    assert (spec.name, spec.arguments, spec.report_only) == ("Measured", {"what": "tokens"}, True)


@pytest.mark.parametrize("spelling", ["include_intermediate_responses_in_final", "includeIntermediateResponsesInFinal"])
def test_an_option_that_adk_accepts_everywhere_is_warned_about_if_it_has_no_effect(
    tmp_path: Path, spelling: str
) -> None:
    def criterion(said: bool) -> dict[str, Any]:
        return {"criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, spelling: said}}}

    plain = docs.read(tmp_path, docs.eval_set(), {"criteria": {"tool_trajectory_avg_score": 1.0}})
    silent, told = (docs.read(tmp_path, docs.eval_set(), criterion(said)) for said in (False, True))
    assert silent.evaluators == told.evaluators == plain.evaluators
    assert silent.warnings == ()
    assert [warning.message for warning in told.warnings] == ["has no effect on this metric"]
