"""Further names of DeepEval: models of one's own, criteria for conversations, summaries, flaky tests, observed runs."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from scripted_judge import ScriptedJudge

import proctor.compat.deepeval as d
from proctor.base.errors import JudgeFailed, UsageError
from proctor.compat.deepeval import ConversationalTestCase, LLMTestCase, ToolCall, Turn

YES = '{"reason": "so it is", "verdict": "yes"}'
MARK = '{"reason": "good", "mark": 8}'


class Own(d.DeepEvalBaseLLM):
    """A model of the user's, as DeepEval's guide has it."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    def load_model(self) -> Own:
        return self

    def generate(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        return self.replies.pop(0)

    async def a_generate(self, prompt: str) -> Any:
        return self.generate(prompt)

    def get_model_name(self) -> str:
        return "my own model"


def polite(model: Any) -> d.GEval:
    params = [d.SingleTurnParams.ACTUAL_OUTPUT]
    return d.GEval("Polite", evaluation_params=params, evaluation_steps=["see whether it is polite"], model=model)


CASE = LLMTestCase(input="Hi", actual_output="Good morning!")


def test_a_model_of_ones_own_judges() -> None:
    model = Own(MARK)
    metric = polite(model)
    assert metric.measure(CASE) == 0.8
    assert metric.evaluation_model == "my own model"
    assert "Good morning!" in model.prompts[0]


def test_an_unusable_reply_of_ones_own_model_is_sent_back_once_and_then_an_error() -> None:
    model = Own("certainly!", MARK)
    assert polite(model).measure(CASE) == 0.8
    assert "certainly!" in model.prompts[1]
    with pytest.raises(JudgeFailed, match="my own model gave no usable reply"):
        polite(Own("certainly!", "sure!")).measure(CASE)


def test_a_model_that_takes_a_schema_is_given_one_and_may_return_an_instance() -> None:
    seen: list[Any] = []

    class WithSchema(Own):
        async def a_generate(self, prompt: str, schema: type[BaseModel]) -> BaseModel:  # type: ignore[override]
            seen.append(schema)
            return schema.model_validate_json(MARK)

    assert polite(WithSchema()).measure(CASE) == 0.8
    assert issubclass(seen[0], BaseModel)


def test_a_model_that_is_only_synchronous_judges_too_and_its_cost_is_known() -> None:
    class Synchronous(d.DeepEvalBaseLLM):
        def generate(self, prompt: str, **kwargs: Any) -> tuple[str, float]:
            return MARK, 0.25

    metric = polite(Synchronous("cheap"))
    assert metric.measure(CASE) == 0.8
    assert (metric.evaluation_model, metric.evaluation_cost) == ("cheap", 0.25)


def test_a_model_that_raises_is_an_error_and_no_verdict() -> None:
    class Broken(Own):
        async def a_generate(self, prompt: str) -> Any:
            raise RuntimeError("no network here")

    metric = polite(Broken())
    with pytest.raises(JudgeFailed, match="my own model failed: RuntimeError: no network here"):
        metric.measure(CASE)
    assert (metric.score, metric.success) == (None, False)


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(TypeError, match="a DeepEvalBaseLLM or a Judge, not a int"):
        polite(3)


def test_a_wrong_judge_is_one_message_without_a_chain() -> None:
    metric = d.FaithfulnessMetric(model="opnai:gpt-5")
    case = LLMTestCase(input="a", actual_output="b", retrieval_context=["c"])
    with pytest.raises(UsageError, match="opnai") as caught:
        metric.measure(case)
    assert (caught.value.__cause__, caught.value.__suppress_context__ or caught.value.__context__ is None) == (
        None,
        True,
    )


TALK = ConversationalTestCase(
    scenario="a refund",
    chatbot_role="clerk",
    expected_outcome="the money is back",
    turns=[
        Turn(role="user", content="I want my money back"),
        Turn(role="assistant", content="Done.", tools_called=[ToolCall(name="refund", input_parameters={"id": 7})]),
    ],
)


def test_criteria_for_a_conversation_are_shown_all_of_it() -> None:
    judge = ScriptedJudge({"geval": {"reason": "kind", "mark": 9}})
    params = [d.TurnParams.CONTENT, d.TurnParams.SCENARIO, d.TurnParams.EXPECTED_OUTCOME, d.TurnParams.CHATBOT_ROLE]
    metric = d.ConversationalGEval("Kind", evaluation_params=params, evaluation_steps=["be kind"], model=judge)
    assert metric.measure(TALK) == 0.9
    shown = judge.asked[0].material
    assert "I want my money back" in shown["answer"]
    assert "refund" in shown["answer"]
    assert (shown["question"], shown["reference"]) == ("a refund", "the money is back")
    assert "clerk" in shown["metadata"]
    with pytest.raises(ValueError, match="evaluation_params must be some of role, content"):
        d.ConversationalGEval("Kind", evaluation_params=["input"], criteria="be kind")
    with pytest.raises(TypeError, match="measures a ConversationalTestCase"):
        metric.measure(CASE)


def test_a_graph_of_judgements_looks_at_a_conversation() -> None:
    judge = ScriptedJudge(
        {"dag-task": {"output": "a refund was asked for"}, "dag-judgement": {"reason": "it was", "verdict": "yes"}}
    )
    verdicts = [
        d.ConversationalVerdictNode(verdict=True, score=10),
        d.ConversationalVerdictNode(verdict=False, score=0),
    ]
    question = d.ConversationalBinaryJudgementNode(criteria="Was it given?", children=verdicts, label="given")
    task = d.ConversationalTaskNode(
        instructions="What was asked for?",
        output_label="wish",
        children=[question],
        evaluation_params=[d.TurnParams.ROLE, d.TurnParams.CONTENT],
    )
    metric = d.ConversationalDAGMetric("Refund", d.DeepAcyclicGraph(root_nodes=[task]), model=judge)
    assert metric.measure(TALK) == 1.0
    assert metric.reason is not None and metric.reason.startswith("given: yes")
    assert "I want my money back" in judge.asked[0].material["answer"]
    with pytest.raises(ValueError, match="turn_window is not supported"):
        d.ConversationalTaskNode("a", "b", [question], turn_window=(0, 1))


def test_goals_of_a_conversation_and_steps_of_an_answer_are_measured() -> None:
    goals = {"goal": "refund", "reached": 1.0, "reason": "done", "plan": 0.5, "plan_reason": "slow"}
    judge = ScriptedJudge({"goal-accuracy": {"goals": [goals]}})
    assert d.GoalAccuracyMetric(model=judge).measure(TALK) == 0.75
    twice = [ToolCall(name="refund", input_parameters={"id": 7}, output=1)] * 3
    case = LLMTestCase(input="Refund 7", actual_output="Done", tools_called=twice)
    metric = d.StepEfficiencyMetric()
    assert float(metric.measure(case) or 0) < 0.5
    assert "repeats step 1" in str(metric.reason)
    with pytest.raises(d.MissingTestCaseParamsError, match="tools_called"):
        metric.measure(CASE)


def _summary(*coverage: str) -> ScriptedJudge:
    rulings = [{"number": n, "reason": "r", "verdict": said} for n, said in enumerate(coverage, 1)]
    return ScriptedJudge(
        {
            "summary-questions": {"output": "Is it red?\n\nIs it big?\n"},
            "summary-answers": {"verdicts": rulings},
            "statements": {"statements": [{"text": "It is red.", "claim": "yes", "relevant": "yes", "reason": ""}]},
            "claims": {"verdicts": [{"number": 1, "verdict": "supported", "reason": ""}]},
        }
    )


def test_a_summary_is_as_good_as_what_it_leaves_out() -> None:
    case = LLMTestCase(input="It is red and big.", actual_output="It is red.")
    judge = _summary("yes", "no")
    metric = d.SummarizationMetric(model=judge, n=2)
    assert metric.measure(case) == 0.5
    assert "Is it big?" in str(metric.reason)
    asked = next(question for question in judge.asked if question.kind == "summary-answers")
    assert asked.material == {"text": "It is red.", "question": ["Is it red?", "Is it big?"]}
    with pytest.raises(ValueError, match="n must be"):
        d.SummarizationMetric(n=0)


def test_only_questions_that_the_original_answers_are_counted_against_a_summary() -> None:
    judge = _summary()
    judge.replies["summary-answers"] = [
        {"verdicts": [{"number": 1, "reason": "", "verdict": "yes"}, {"number": 2, "reason": "", "verdict": "no"}]},
        {"verdicts": [{"number": 1, "reason": "", "verdict": "yes"}]},
    ]
    questions = ["Is it red?", "Is it blue?"]
    metric = d.SummarizationMetric(model=judge, assessment_questions=questions, truths_extraction_limit=3)
    assert metric.measure(LLMTestCase(input="It is red.", actual_output="It is red.")) == 1.0


def test_a_tool_call_has_a_type_which_makes_no_other_call_of_it() -> None:
    assert ToolCall(name="a", type=d.ToolCallType.MCP) == ToolCall(name="a")
    assert ToolCall(name="a", type="MCP").type is d.ToolCallType.MCP
    assert ToolCall.model_validate_json(ToolCall(name="a").model_dump_json()) == ToolCall(name="a")


class Fixed(d.BaseMetric):
    def __init__(self, score: float, flaky: bool = False, threshold: float | None = 0.5) -> None:
        self.value, self.flaky, self.threshold = score, flaky, threshold

    def measure(self, test_case: Any) -> float:
        self.score = self.value
        return self.score


def test_a_flaky_metric_reports_and_never_decides() -> None:
    d.assert_test(CASE, [Fixed(1.0), Fixed(0.0, flaky=True)])
    (result,) = d.evaluate([CASE], [Fixed(1.0), Fixed(0.0, flaky=True)], display_config=QUIET).test_results
    assert result.success
    assert [data.success for data in result.metrics_data] == [True, False]
    with pytest.raises(ValueError, match="is not flaky"):
        d.assert_test(CASE, [Fixed(0.0, flaky=True)])
    assert d.ExactMatchMetric(flaky=True).flaky


def test_a_flaky_test_case_warns_instead_of_failing() -> None:
    case = LLMTestCase(input="Hi", actual_output="Good morning!", flaky=True)
    with pytest.warns(UserWarning, match="marked flaky: failed: Fixed"):
        d.assert_test(case, [Fixed(0.0)])


QUIET = d.DisplayConfig(print_results=False, show_indicator=False)


def test_what_was_evaluated_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    found = d.evaluate(
        [CASE],
        [Fixed(1.0)],
        hyperparameters={"model": "gpt-5", "temperature": 0},
        identifier="nightly",
        cache_config=d.CacheConfig(write_cache=False),
        async_config=d.AsyncConfig(throttle_value=0, max_concurrent=2),
    )
    assert (found.identifier, found.hyperparameters) == ("nightly", {"model": "gpt-5", "temperature": 0})
    assert "identifier: nightly\nmodel: gpt-5\ntemperature: 0\n" in capsys.readouterr().out


def test_replies_of_judges_are_kept_and_used_as_the_cache_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    d.evaluate([CASE], [Fixed(1.0)], display_config=QUIET)
    assert not (tmp_path / ".proctor").exists()
    from proctor.compat.deepeval.evaluating import judge_reply_cache
    from proctor.judging.session import current_session

    entry = {"reply": "yes", "judge": "x", "kind": "k", "version": 1}
    with judge_reply_cache(d.CacheConfig()):
        calls = current_session().judges.cache._call_store
        calls.put("key", entry)
        assert calls.get("key") is None
    with judge_reply_cache(d.CacheConfig(use_cache=True)):
        assert current_session().judges.cache._call_store.get("key")["reply"] == "yes"


def test_what_the_application_does_between_two_goldens_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    @d.observe(type="tool")
    def add(a: int, b: int) -> int:
        return a + b

    @d.observe(type="agent", name="calculator")
    def application(question: str) -> str:
        a, b = map(int, question.split("+"))
        return f"It is {add(a, b)}"

    goldens = [d.Golden(input="1+2", expected_output="It is 3"), d.Golden(input="2+2", expected_output="It is 5")]
    dataset = d.EvaluationDataset(goldens)
    for golden in dataset.evals_iterator(metrics=[d.ExactMatchMetric()], identifier="sums"):
        application(golden.input)
    results = dataset.evaluation_result.test_results
    assert [result.success for result in results] == [True, False]
    assert results[0].tools_called == [ToolCall(name="add", input_parameters={"a": 1, "b": 2}, output=3)]
    assert len(dataset.test_cases) == 2
    assert "identifier: sums" in capsys.readouterr().out


def test_an_application_that_shows_nothing_is_an_error_and_never_a_pass() -> None:
    dataset = d.EvaluationDataset([d.Golden(input="1+2", expected_output="3")])
    for _ in dataset.evals_iterator(metrics=[d.ExactMatchMetric()], display_config=QUIET):
        pass
    (data,) = dataset.evaluation_result.test_results[0].metrics_data
    assert "needs actual_output" in str(data.error)
    with pytest.raises(ValueError, match="needs metrics"):
        list(dataset.evals_iterator())


def test_columns_may_be_given_in_the_order_of_deepeval(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("q,a,e,ctx\nHi,Hello,Hello,one;two\n", encoding="utf-8")
    dataset = d.EvaluationDataset()
    dataset.add_test_cases_from_csv_file(str(path), "q", "a", "e", "ctx", ";")
    (case,) = dataset.test_cases
    assert (case.input, case.actual_output, case.expected_output, case.context) == (
        "Hi",
        "Hello",
        "Hello",
        ["one", "two"],
    )
    rows = tmp_path / "cases.json"
    rows.write_text(json.dumps([{"q": "Hi", "a": "Hello", "m": {"x": 1}}]), encoding="utf-8")
    dataset.add_test_cases_from_json_file(rows, "q", "a", addtional_metadata_key_name="m")
    assert dataset.test_cases[1].metadata == {"x": 1}
    with pytest.raises(TypeError, match="'input_col_name' is passed twice"):
        dataset.add_test_cases_from_csv_file(path, "q", input_col_name="q")
    with pytest.raises(TypeError, match="at most 12 positional"):
        dataset.add_test_cases_from_csv_file(path, *"abcdefghijklm")
    with pytest.raises(TypeError, match=re.escape("'inptu_col_name'; did you mean 'input_col_name'?")):
        dataset.add_test_cases_from_csv_file(path, inptu_col_name="q")


TURNS = [{"role": "user", "content": "Hi", "mcp_tools_called": None, "metadata": {"x": 1}}]
WRITTEN = {
    "scenario": "greeting",
    "turns": TURNS,
    "expected_outcome": "greeted",
    "user_description": "brief",
    "persona": {"characteristics": "brief"},
    "context": None,
    "expectations": None,
}


@pytest.mark.parametrize("as_text", [False, True])
def test_conversational_goldens_as_deepeval_writes_them_are_read(as_text: bool, tmp_path: Path) -> None:
    row = {**WRITTEN, "turns": json.dumps(TURNS) if as_text else TURNS}
    (tmp_path / "g.json").write_text(json.dumps([row]), encoding="utf-8")
    (tmp_path / "g.csv").write_text(
        'scenario,turns,expected_outcome,input\ngreeting,"' + json.dumps(TURNS).replace('"', '""') + '",greeted,\n',
        encoding="utf-8",
    )
    for read in ("add_goldens_from_json_file", "add_goldens_from_csv_file"):
        dataset = d.EvaluationDataset()
        getattr(dataset, read)(tmp_path / f"g.{read.split('_')[3]}")
        (golden,) = dataset.goldens
        assert (golden.scenario, golden.expected_outcome) == ("greeting", "greeted")
        assert golden.turns[0].additional_metadata == {"x": 1}


def test_a_row_with_an_empty_scenario_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps([{"input": "Hi", "scenario": None, "turns": None, "token_cost": 0.5}]), encoding="utf-8")
    dataset = d.EvaluationDataset()
    dataset.add_goldens_from_json_file(path)
    assert (dataset.goldens[0].input, dataset.goldens[0].token_cost) == ("Hi", 0.5)


def test_metadata_goes_by_its_older_name_everywhere() -> None:
    turn = Turn(role="user", content="Hi", additional_metadata={"a": 1})
    talk = ConversationalTestCase(turns=[turn], additional_metadata={"b": 2})
    assert (turn.additional_metadata, talk.additional_metadata) == ({"a": 1}, {"b": 2})
    talk.additional_metadata = {"c": 3}
    assert talk.metadata == {"c": 3}


def test_a_threshold_taken_away_takes_the_verdict_with_it() -> None:
    metric = d.ExactMatchMetric()
    metric.measure(LLMTestCase(input="a", actual_output="b", expected_output="b"))
    assert metric.is_successful() is True
    metric.threshold = None
    assert (metric.is_successful(), metric.success) == (None, None)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: d.FaithfulnessMetric(treshold=0.7),
            "has no parameter 'treshold'; did you mean 'threshold'?",
        ),
        (lambda: d.GEval("n", ["input"], criterion="c"), "did you mean 'criteria'?"),
        (lambda: LLMTestCase(input="a", actual_ouput="b"), "no field 'actual_ouput'; did you mean 'actual_output'?"),
        (lambda: setattr(LLMTestCase(input="a"), "actual_ouput", "b"), "did you mean 'actual_output'?"),
        (lambda: d.Golden(input="a", expected_ouput="b"), "did you mean 'expected_output'?"),
        (lambda: ToolCall(name="a", input_parameter={}), "did you mean 'input_parameters'?"),
    ],
)
def test_what_is_misspelt_is_refused_with_the_nearest(make: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=re.escape(told)):
        make()


JUDGE = {"model": "rules", "samples": 1}


def test_the_environment_may_name_a_judge_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    case = LLMTestCase(input="The sum?", actual_output="The sum is 3.", retrieval_context=["The sum is 3."])
    monkeypatch.setenv("PROCTOR_JUDGE", json.dumps(JUDGE))
    metric = d.FaithfulnessMetric()
    assert (metric.measure(case), metric.evaluation_model) == (1.0, "rules")
    monkeypatch.setenv("PROCTOR_JUDGE", '{"model": ')
    with pytest.raises(UsageError, match="PROCTOR_JUDGE: the judge is not valid JSON"):
        metric.measure(case)


def test_a_metric_measured_inside_a_loop_finds_its_own_model() -> None:
    async def main() -> float | None:
        return polite(Own(MARK)).measure(CASE)

    assert asyncio.run(main()) == 0.8
