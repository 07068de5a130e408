"""DeepEval's metrics on Proctor's evaluators: scores, thresholds, reasons, and what is refused."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import proctor.compat.deepeval as d
from proctor.compat.deepeval import LLMTestCase, ToolCall

PAYMENT = {"monthly_payment": 1498.54, "loan_amount": 50000, "annual_interest_rate": 0.05}
QUESTION = "What is the monthly payment for a $50,000 loan at 5%?"
GOOD = "The monthly payment is $1,498.54."


def case(answer: str | None = GOOD, **more: Any) -> LLMTestCase:
    return LLMTestCase(**{"input": QUESTION, "actual_output": answer, "retrieval_context": [PAYMENT], **more})


@pytest.fixture(autouse=True)
def only_the_rule_based_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROCTOR_JUDGE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "metric",
    [
        d.AnswerRelevancyMetric(0.7),
        d.FaithfulnessMetric(0.7),
        d.HallucinationMetric(),
    ],
    ids=lambda metric: str(metric.__name__),
)
def test_the_metrics_of_the_guide_need_no_model(metric: Any) -> None:
    score = metric.measure(case())
    assert score == metric.score
    assert metric.is_successful() is True
    assert metric.success is True
    assert metric.evaluation_model == "rules"
    assert metric.reason


def test_a_wrong_amount_is_neither_faithful_nor_free_of_hallucination() -> None:
    for metric in (d.FaithfulnessMetric(0.7), d.HallucinationMetric()):
        metric.measure(case("The monthly payment is $9,999.99."))
        assert metric.is_successful() is False


INVENTED = "The monthly payment is $1,498.54. The loan comes with a free toaster."


def test_faithfulness_is_grounded_unless_ambiguous_claims_are_let_pass() -> None:
    judge = Fixed(
        statements={"statements": [{"text": text, "claim": "yes", "relevant": "yes"} for text in ("a", "b")]},
        claims={
            "verdicts": [
                {"number": 1, "verdict": "supported", "reason": "so"},
                {"number": 2, "verdict": "unmentioned", "reason": "a toaster"},
            ]
        },
    )
    grounded, strict, lenient = (
        d.FaithfulnessMetric(0.9, model=judge, penalize_ambiguous_claims=p) for p in (None, True, False)
    )
    for metric in (grounded, strict, lenient):
        metric.measure(case(INVENTED))
    assert (grounded.success, strict.success, lenient.success) == (False, False, True)
    assert d.FaithfulnessMetric(mode="contradicted", model=judge).measure(case(INVENTED)) == 1.0
    with pytest.raises(ValueError, match="contradict each other"):
        d.FaithfulnessMetric(mode="contradicted", penalize_ambiguous_claims=True)
    with pytest.raises(proctor_usage_error(), match="mode"):
        d.FaithfulnessMetric(mode="other")


def proctor_usage_error() -> type[Exception]:
    from proctor.base.errors import UsageError

    return UsageError


def test_hallucination_takes_context_before_what_was_retrieved() -> None:
    metric = d.HallucinationMetric()
    assert metric.measure(case(context=["The monthly payment is $77."])) == 0.0
    assert metric.measure(case()) == 1.0


@pytest.mark.usefixtures("open_checks")
def test_what_is_made_up_without_contradicting_anything_is_left_to_a_model() -> None:
    for metric in (d.HallucinationMetric(threshold=0.9), d.HallucinationMetric(threshold=0.9, mode="grounded")):
        metric.measure(case(INVENTED))
        assert (metric.success, metric.pending) == (None, True)
    with pytest.raises(ValueError, match="grounded, contradicted"):
        d.HallucinationMetric(mode="strict")


def test_strict_mode_knows_only_all_or_nothing() -> None:
    metric = d.FaithfulnessMetric(threshold=0.3, strict_mode=True)
    assert metric.measure(case("The monthly payment is $9,999.99.")) == 0.0
    assert metric.threshold == 1.0


def test_a_reason_is_left_out_where_none_is_wanted() -> None:
    metric = d.FaithfulnessMetric(include_reason=False)
    metric.measure(case())
    assert metric.reason is None


def test_verbose_mode_prints_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    metric = d.FaithfulnessMetric(verbose_mode=True)
    metric.measure(case())
    printed = capsys.readouterr().out
    assert "Faithfulness: 1 " in printed
    assert printed.strip() == str(metric.verbose_logs).strip()
    assert "findings" in printed


def test_without_a_threshold_there_is_a_score_and_no_verdict() -> None:
    metric = d.AnswerRelevancyMetric(threshold=None)
    assert metric.measure(case()) is not None
    assert metric.is_successful() is None


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", True, float("nan")])
def test_a_threshold_beyond_the_scale_is_refused(threshold: Any) -> None:
    with pytest.raises(ValueError, match="threshold"):
        d.AnswerRelevancyMetric(threshold=threshold)


@pytest.mark.parametrize("name", ["evaluation_template", "nonsense"])
def test_a_parameter_without_effect_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        d.FaithfulnessMetric(**{name: 1})


def test_a_test_case_that_lacks_something_is_an_error_that_names_it() -> None:
    metric = d.FaithfulnessMetric()
    with pytest.raises(d.MissingTestCaseParamsError, match="Faithfulness needs retrieval_context"):
        metric.measure(LLMTestCase(input="a", actual_output="b"))
    assert metric.error is not None
    assert metric.is_successful() is False
    with pytest.raises(d.MissingTestCaseParamsError, match="context or retrieval_context"):
        d.HallucinationMetric().measure(LLMTestCase(input="a", actual_output="b"))


def test_an_empty_answer_is_an_answer() -> None:
    metric = d.AnswerRelevancyMetric()
    assert metric.measure(case("")) == 0.0
    faithfulness = d.FaithfulnessMetric()
    faithfulness.measure(case(""))
    assert faithfulness.skipped
    assert faithfulness.success is None


def test_an_earlier_verdict_is_forgotten() -> None:
    metric = d.FaithfulnessMetric()
    metric.measure(case())
    metric.measure(case(""))
    assert math.isnan(metric.score)
    assert metric.success is None


@pytest.mark.usefixtures("open_checks")
def test_criteria_need_a_model_and_say_so_when_they_are_asked_and_not_before() -> None:
    metric = d.GEval(name="Polite", criteria="be polite", evaluation_params=[d.LLMTestCaseParams.ACTUAL_OUTPUT])
    assert metric.__name__ == "Polite (GEval)"
    metric.measure(case())
    assert (metric.pending, metric.success, metric.error) == (True, None, None)
    assert "needs a model; set one with model=, PROCTOR_JUDGE or" in str(metric.reason)


@pytest.mark.parametrize("model", [3, object(), ["gpt"]])
def test_a_judge_of_another_tool_is_refused(model: Any) -> None:
    with pytest.raises(TypeError, match="model"):
        d.FaithfulnessMetric(model=model)


def test_a_model_without_a_provider_is_openais() -> None:
    from proctor.compat.deepeval.metric_base import as_judge

    assert as_judge("gpt-4o") == "openai:gpt-4o"
    assert as_judge("anthropic:claude") == "anthropic:claude"
    assert as_judge("rules") == "rules"


class Fixed:
    """A judge whose answers are known."""

    name = "fixed"

    def __init__(self, **replies: Any) -> None:
        self._replies = replies

    async def ask(self, question: Any, sample: int = 0) -> Any:
        return question.reply.model_validate(self._replies[question.kind.replace("-", "_")])


def test_criteria_are_judged_by_the_judge_that_is_named() -> None:
    judge = Fixed(geval={"mark": 8, "reason": "polite enough"})
    metric = d.GEval(
        name="Polite", evaluation_steps=["look"], evaluation_params=["actual_output"], threshold=0.8, model=judge
    )
    assert metric.measure(case()) == 0.8
    assert metric.is_successful()
    assert metric.reason == "polite enough"
    with pytest.raises(ValueError, match="evaluation_params"):
        d.GEval(name="x", criteria="y", evaluation_params=["nope"])


def test_a_graph_of_judgements_leads_to_a_score() -> None:
    after = d.NonBinaryJudgementNode(
        criteria="How long?",
        children=[d.VerdictNode(verdict="short", score=10), d.VerdictNode(verdict="long", score=4)],
    )
    polite = d.BinaryJudgementNode(
        criteria="Is it polite?",
        children=[d.VerdictNode(verdict=False, score=0), d.VerdictNode(verdict=True, child=after)],
    )
    facts = d.TaskNode(instructions="List the facts.", output_label="facts", children=[polite])
    judge = Fixed(
        dag_task={"output": "one fact"},
        dag_judgement={"verdict": "yes", "reason": "please"},
        dag_choice={"choice": "long", "reason": "many words"},
    )
    metric = d.DAGMetric(name="Manners", dag=d.DeepAcyclicGraph(root_nodes=[facts]), threshold=0.4, model=judge)
    assert metric.measure(case()) == 0.4
    assert "Is it polite?: yes" in str(metric.reason)
    with pytest.raises(TypeError, match="FaithfulnessMetric"):
        d.DAGMetric(name="x", dag=d.DeepAcyclicGraph(root_nodes=[d.FaithfulnessMetric()]))


def tools(*names: str) -> list[ToolCall]:
    return [ToolCall(name=name) for name in names]


@pytest.mark.parametrize(
    ("called", "expected", "options", "score"),
    [
        ("a", "a b", {}, 0.5),
        ("a b", "a", {}, 1.0),
        ("a a", "a a", {}, 1.0),  # DeepEval counts equal calls once
        ("a", "a a", {}, 0.5),
        ("b a", "a b", {"should_consider_ordering": True}, 0.5),
        ("a x b", "a b", {"should_consider_ordering": True}, 1.0),
        ("a x", "a", {"should_exact_match": True}, 0.0),
        ("", "", {}, 1.0),
        ("a", "", {}, 0.0),
    ],
)
def test_tool_correctness(called: str, expected: str, options: dict[str, Any], score: float) -> None:
    measured = case(tools_called=tools(*called.split()), expected_tools=tools(*expected.split()))
    assert d.ToolCorrectnessMetric(**options).measure(measured) == score


def test_arguments_and_outputs_count_where_that_is_asked() -> None:
    called = [ToolCall(name="a", input_parameters={"x": 1, "y": 2}, output=3)]
    expected = [ToolCall(name="a", input_parameters={"x": 1, "y": 3}, output=4)]
    measured = case(tools_called=called, expected_tools=expected)
    of_arguments = d.ToolCorrectnessMetric(evaluation_params=[d.ToolCallParams.INPUT_PARAMETERS])
    assert of_arguments.measure(measured) == 0.5
    assert d.ToolCorrectnessMetric(evaluation_params=[d.ToolCallParams.OUTPUT]).measure(measured) == 0.0
    unsaid = case(tools_called=called, expected_tools=tools("a"))
    assert of_arguments.measure(unsaid) == 1.0


def test_the_choice_among_available_tools_is_judged_where_they_are_named() -> None:
    judge = Fixed(tool_selection={"verdicts": [{"number": 1, "verdict": "no", "reason": "b fits"}], "missing": []})
    metric = d.ToolCorrectnessMetric(available_tools=[ToolCall(name="a"), "b"], model=judge)
    assert metric.measure(case(tools_called=tools("a"), expected_tools=tools("a"))) == 0.0


def test_tools_that_were_expected_come_from_somewhere_else_than_the_answer() -> None:
    with pytest.raises(d.MissingTestCaseParamsError, match="expected_tools"):
        d.ToolCorrectnessMetric().measure(case(tools_called=tools("a")))


@pytest.mark.parametrize(
    ("options", "answer", "passes"),
    [
        ({"any_of": ["1,498", "nothing"]}, "about $1498.54 a month", True),
        ({"all_of": ["1,498", "monthly payment"]}, GOOD, True),
        ({"all_of": ["1,498", "weekly"]}, GOOD, False),
        ({"any_of": ["1,498"]}, "$11,498.00", False),
    ],
)
def test_keywords_say_whether_any_or_all_and_know_how_numbers_are_written(
    options: dict[str, Any], answer: str, passes: bool
) -> None:
    metric = d.KeywordsMetric(**options)
    metric.measure(case(answer))
    assert metric.is_successful() is passes


def test_keywords_without_any_are_refused() -> None:
    with pytest.raises(ValueError, match="any_of or all_of"):
        d.KeywordsMetric()


class Answer(BaseModel):
    amount: float


def test_texts_patterns_and_json() -> None:
    assert d.ExactMatchMetric().measure(case(" a ", expected_output="a")) == 1.0
    assert d.PatternMatchMetric(r"a+", ignore_case=True).measure(case("  AAA\n")) == 1.0
    assert d.PatternMatchMetric(r"a+").measure(case("aab")) == 0.0
    assert d.JsonCorrectnessMetric(Answer).measure(case('{"amount": 3}')) == 1.0
    metric = d.JsonCorrectnessMetric(Answer)
    assert metric.measure(case('{"amount": "x"}')) == 0.0
    assert "amount" in str(metric.reason)
    with pytest.raises(TypeError, match="pydantic"):
        d.JsonCorrectnessMetric({"type": "object"})


def test_private_data_is_found_without_a_model() -> None:
    metric = d.PIILeakageMetric(1.0)
    metric.measure(case("Write to ann.smith@example.org, card 4111 1111 1111 1111."))
    assert metric.is_successful() is False


def test_conversations_are_measured_by_metrics_of_conversations() -> None:
    turns = [
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": "What is my payment?"},
        {"role": "assistant", "content": "It is $1,498.54."},
        {"role": "user", "content": "Thanks"},
    ]
    talk = d.ConversationalTestCase(turns=turns, chatbot_role="a loan advisor")
    verdicts = {"verdicts": [{"number": 1, "verdict": "yes", "reason": "in role"}]}
    assert d.RoleAdherenceMetric(model=Fixed(role_adherence=verdicts)).measure(talk) == 1.0
    assert d.TurnRelevancyMetric(model=Fixed(turn_relevancy=verdicts)).measure(talk) == 1.0
    with pytest.raises(d.MissingTestCaseParamsError, match="chatbot_role"):
        d.RoleAdherenceMetric().measure(d.ConversationalTestCase(turns=turns))
    with pytest.raises(TypeError, match="LLMTestCase"):
        d.FaithfulnessMetric().measure(talk)
    with pytest.raises(TypeError, match="ConversationalTestCase"):
        d.TurnRelevancyMetric().measure(case())


def test_a_metric_can_be_measured_where_an_event_loop_runs() -> None:
    async def inside() -> tuple[Any, Any]:
        return d.FaithfulnessMetric().measure(case()), await d.FaithfulnessMetric().a_measure(case())

    here, awaited = asyncio.run(inside())
    assert here == awaited


def test_test_cases_know_both_spellings_and_refuse_what_they_do_not_know() -> None:
    camel = LLMTestCase(input="a", actualOutput="b", retrievalContext=["c"], additionalMetadata={"k": 1})
    assert (camel.actual_output, camel.retrieval_context, camel.metadata) == ("b", ["c"], {"k": 1})
    assert camel.additional_metadata == {"k": 1}
    for wrong in ({"input": "a", "mcp_server": []}, {"input": None}, {}):
        with pytest.raises(ValidationError):
            LLMTestCase(**wrong)
    for wrong in ({"input": 1}, {"input": "a", "actual_output": {}}, {"input": "a", "context": "c"}):
        with pytest.raises(TypeError, match="must be"):
            LLMTestCase(**wrong)
    for turns in ([], ["Hello"], "Hello"):
        with pytest.raises(TypeError, match="'turns' must"):
            d.ConversationalTestCase(turns=turns)


def test_tool_calls_are_equal_by_name_parameters_and_output() -> None:
    one, other = (ToolCall(name="a", input_parameters={"x": [1]}, reasoning=why) for why in ("b", "c"))
    assert one == other
    assert len({one, other, ToolCall(name="a")}) == 2


@pytest.mark.usefixtures("open_checks")
@pytest.mark.parametrize("text", ["", "\ud800", "é" * 50_000, "{}", "NaN"])
def test_ugly_texts_are_measured_or_told(text: str) -> None:
    for metric in (d.FaithfulnessMetric(), d.AnswerRelevancyMetric(), d.HallucinationMetric()):
        metric.measure(case(text or None if text else "", retrieval_context=[text or "x"]))
        assert metric.error is None
