"""Evaluates the loan advisor with DeepEval: cases have an input and keywords; the rest comes from the response."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from deepeval import assert_test
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric, HallucinationMetric
from deepeval.test_case import LLMTestCase, ToolCall
from src.agent.loan_advisor_agent import create_loan_advisor_agent
from src.tools.loan_tools import LoanCalculatorTool, LoanEligibilityTool, LoanRequest

TEST_CASES: list[dict[str, Any]] = [
    {
        "id": "loan_calculation_basic",
        "input": "Calculate my monthly payment for a $50,000 loan at 5% interest over 36 months.",
        "expected_output_contains": ["1,498", "monthly payment"],
    },
    {
        "id": "eligibility_check",
        "input": "My credit score is 720 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": ["eligible"],
    },
]


class AgentRunner:
    """Runs test cases and extracts what the agent did from its response."""

    def __init__(self) -> None:
        self.agent = create_loan_advisor_agent()

    def run_test_case(self, test_input: str) -> dict[str, Any]:
        response = self.agent.run(test_input)
        tool_calls_with_args = []
        for message in response.messages or []:
            for call in message.tool_calls or []:
                function = call["function"]
                arguments = json.loads(function.get("arguments") or "{}")
                tool_calls_with_args.append({"name": function.get("name"), "arguments": arguments})
        return {
            "actual_output": response.content,
            "tools_called": [call["name"] for call in tool_calls_with_args],
            "tool_calls_with_args": tool_calls_with_args,
            "retrieval_context": self._reconstruct_context(tool_calls_with_args),
        }

    def _reconstruct_context(self, tool_calls_with_args: list[dict[str, Any]]) -> list[str]:
        """Call the tools again, with the agent's own arguments."""
        from dataclasses import asdict, is_dataclass

        def serialize_result(result: Any) -> str:
            if hasattr(result, "model_dump"):
                return json.dumps(result.model_dump())
            if is_dataclass(result) and not isinstance(result, type):
                return json.dumps(asdict(result), default=str)
            return json.dumps(str(result))

        retrieval_context = []
        for call in tool_calls_with_args:
            if call["name"] == "calculate_loan_payment":
                request = LoanRequest(**call["arguments"])
                retrieval_context.append(serialize_result(LoanCalculatorTool().calculate_monthly_payment(request)))
            elif call["name"] == "check_loan_eligibility":
                retrieval_context.append(serialize_result(LoanEligibilityTool().check(**call["arguments"])))
        return retrieval_context


@pytest.fixture(scope="session")
def agent_runner() -> AgentRunner:
    return AgentRunner()


@pytest.fixture(scope="session")
def evaluation_dataset(agent_runner: AgentRunner) -> EvaluationDataset:
    goldens = []
    for case in TEST_CASES:
        print(f"\n🤖 Running test case: {case['id']}")
        result = agent_runner.run_test_case(case["input"])
        goldens.append(
            Golden(
                name=case["id"],
                input=case["input"],
                actual_output=result["actual_output"],
                context=result["retrieval_context"],
                retrieval_context=result["retrieval_context"],
                tools_called=[
                    ToolCall(name=call["name"], input_parameters=call["arguments"])
                    for call in result["tool_calls_with_args"]
                ],
                additional_metadata={"expected_output_contains": case["expected_output_contains"]},
            )
        )
    return EvaluationDataset(goldens=goldens)


@pytest.fixture(scope="session")
def reference_free_metrics() -> list[Any]:
    return [
        AnswerRelevancyMetric(threshold=0.7),
        FaithfulnessMetric(threshold=0.7),
        HallucinationMetric(threshold=0.5),
    ]


def test_agent_with_reference_free_metrics(
    evaluation_dataset: EvaluationDataset, reference_free_metrics: list[Any]
) -> None:
    for golden in evaluation_dataset.goldens:
        test_case = LLMTestCase(
            input=golden.input,
            actual_output=golden.actual_output,
            context=golden.context,
            retrieval_context=golden.retrieval_context,
            tools_called=golden.tools_called,
        )
        assert_test(test_case, reference_free_metrics)


def test_tool_calls_info(evaluation_dataset: EvaluationDataset) -> None:
    for golden in evaluation_dataset.goldens:
        assert golden.tools_called, f"{golden.name}: no tool was called"
        for tool in golden.tools_called:
            print(f"\n🔧 Tool: {tool.name}\n   Arguments:")
            for name, value in tool.input_parameters.items():
                print(f"     - {name}: {value}")
    print("\n✅ Tool call information extracted successfully")


def test_expected_output_keywords(evaluation_dataset: EvaluationDataset) -> None:
    for golden in evaluation_dataset.goldens:
        for keyword in golden.additional_metadata["expected_output_contains"]:
            assert keyword in golden.actual_output, f"{golden.name}: {keyword!r} is not in {golden.actual_output!r}"
    print("\n✅ All outputs contain expected keywords")


def test_individual_case_example(agent_runner: AgentRunner) -> None:
    case = TEST_CASES[1]
    result = agent_runner.run_test_case(case["input"])
    metric = AnswerRelevancyMetric(threshold=0.7)
    metric.measure(LLMTestCase(input=case["input"], actual_output=result["actual_output"]))
    print(f"\nAnswer relevancy: {metric.score} ({metric.reason})")
    assert metric.is_successful()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v", "-s", *sys.argv[1:]]))
