"""The loan advisor, evaluated as with DeepEval: goldens, test cases and metrics, in pytest, without a model.

pytest examples/loan_advisor/evaluation -s
pytest examples/loan_advisor/evaluation/test_loan_advisor_agent.py::test_tool_calls_info -s
python examples/loan_advisor/evaluation/test_loan_advisor_agent.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor import AgentRunner
from proctor.compat.deepeval import assert_test, evaluate
from proctor.compat.deepeval.dataset import EvaluationDataset, Golden
from proctor.compat.deepeval.metrics import (
    AnswerRelevancyMetric,
    BaseMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
    HallucinationMetric,
    KeywordsMetric,
    ToolCorrectnessMetric,
)
from proctor.compat.deepeval.test_case import LLMTestCase, ToolCall

TEST_CASES = [
    {
        "id": "loan_calculation_basic",
        "input": "Calculate my monthly payment for a $50,000 loan at 5% interest over 36 months.",
        "expected_output_contains": ["1,498", "monthly payment"],
    },
    {
        "id": "eligibility_check",
        "input": "With a credit score of 580 and an income of $30,000 a year, do I qualify for a $25,000 loan?",
        "expected_output_contains": ["not eligible"],
    },
]

DECLARED_TOOLS = {
    "loan_calculation_basic": ToolCall(
        name="calculate_loan_payment",
        input_parameters={"loan_amount": 50000, "annual_interest_rate": 0.05, "loan_term_months": 36},
    ),
    "eligibility_check": ToolCall(name="check_eligibility"),
}
"""Written by hand: calls taken from the answer itself would always be right."""


@pytest.fixture(scope="session")
def agent_runner() -> AgentRunner:
    return AgentRunner("agent.py:agent", base=Path(__file__).parents[1], tools="tools.py:TOOLS")


@pytest.fixture(scope="session")
def evaluation_dataset(agent_runner: AgentRunner) -> EvaluationDataset:
    return dataset_of(agent_runner)


@pytest.fixture(scope="session")
def reference_free_metrics() -> list[BaseMetric]:
    return [
        AnswerRelevancyMetric(threshold=0.7),
        FaithfulnessMetric(threshold=0.7),
        HallucinationMetric(threshold=0.5),
    ]


def say(sign: str, text: str) -> None:
    """Printed with `pytest -s`; a terminal that cannot show the sign gets only the text."""
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        sign = ""
    print(f"{sign} {text}".lstrip())


def dataset_of(runner: AgentRunner) -> EvaluationDataset:
    """The cases, each run once, with the agent's calls and the results of calling its tools again."""
    dataset = EvaluationDataset()
    for case in TEST_CASES:
        say("🤖", f"Running test case: {case['id']}")
        run = runner.run_test_case(case["input"], id=str(case["id"]))
        golden = Golden(
            name=case["id"],
            input=case["input"],
            actual_output=run.actual_output,
            retrieval_context=run.retrieval_context,
            tools_called=run.tool_calls_with_args,
            expected_tools=[DECLARED_TOOLS[str(case["id"])]],
            additional_metadata={
                "expected_output_contains": case["expected_output_contains"],
                "reexecuted": run.reexecuted,
            },
        )
        dataset.add_golden(golden)
        dataset.add_test_case(golden.test_case())
    return dataset


def test_agent_with_reference_free_metrics(
    evaluation_dataset: EvaluationDataset, reference_free_metrics: list[BaseMetric]
) -> None:
    result = evaluate(evaluation_dataset.test_cases, reference_free_metrics)
    # The rule-based judge leaves open what it cannot prove (`success` is None); with a model as judge, all are decided.
    assert [test.name for test in result.test_results if test.success is False] == []


def test_retrieved_context_is_about_the_question(evaluation_dataset: EvaluationDataset) -> None:
    payment: LLMTestCase = evaluation_dataset.test_cases[0]
    assert_test(payment, [ContextualRelevancyMetric(threshold=0.3)])


def test_tool_calls_info(evaluation_dataset: EvaluationDataset) -> None:
    for golden in evaluation_dataset.goldens:
        for call in golden.tools_called:
            say("🔧", f"Tool: {call.name}\n   Arguments:")
            for name, value in call.input_parameters.items():
                print(f"     - {name}: {value}")
        for again in golden.additional_metadata["reexecuted"]:
            print(f"   Called again: {again['result']}")
            assert again["differs"] is False, f"{again['name']} returns something else now: {again['result']}"
    for case in evaluation_dataset.test_cases:
        assert_test(case, [ToolCorrectnessMetric(threshold=1.0)])
    say("✅", "Tool call information extracted successfully")


def test_expected_output_keywords(evaluation_dataset: EvaluationDataset) -> None:
    for case in evaluation_dataset.test_cases:
        assert_test(case, [KeywordsMetric(all_of=case.metadata["expected_output_contains"])])
    say("✅", "All outputs contain expected keywords")


def test_individual_case_example(agent_runner: AgentRunner) -> None:
    run = agent_runner.run_test_case(TEST_CASES[0]["input"])
    case = LLMTestCase(
        input=run.input,
        actual_output=run.actual_output,
        retrieval_context=run.retrieval_context,
        tools_called=run.tool_calls_with_args,
    )
    metric = FaithfulnessMetric(threshold=0.7)
    metric.measure(case)
    print(f"Faithfulness: {metric.score}: {metric.success}")
    assert metric.is_successful() is not False, metric.reason


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s", *sys.argv[1:]]))
