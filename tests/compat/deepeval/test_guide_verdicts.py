"""The loan agent of the evaluation guide, offline: right answers pass and wrong ones fail, by every way in."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor.compat.deepeval as d

Command = Callable[..., Any]

QUESTION = "What is the monthly payment for a $50,000 loan at 5% interest over 36 months?"
RESULT = {"monthly_payment": 1498.54, "total_payment": 53947.61, "total_interest": 3947.61}
CORRECT = "Your monthly payment is $1,498.54 for a $50,000 loan at 5 % over 36 months."
RIGHT = {
    "correct": CORRECT,
    "a question at the end": f"{CORRECT} Is there anything else I can help you with?",
    "small talk": f"Hello! Thanks for asking. {CORRECT} Let me know if you have any other questions!",
}
OPEN = {
    "in words": "With 36 monthly payments of $1,498.54 you pay $53,947.61 in total, of which $3,947.61 is interest.",
    "a paraphrase": "You would pay just under fifteen hundred dollars each month.",
}
WRONG = {
    "falsified payment": CORRECT.replace("1,498.54", "1,948.54"),
    "off by a digit": CORRECT.replace("1,498.54", "1,498.45"),
    "swapped figures": "Your monthly payment is $53,947.61, and the total payment is $1,498.54.",
    "figure of another label": "Your monthly payment is $3,947.61.",
    "falsified amid small talk": f"Hello! {CORRECT.replace('1,498.54', '1,948.54')} Have a great day!",
}

AGENT = """
import json
from pathlib import Path

from proctor import tool

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))

@tool
def calculate_loan_payment(loan_amount, annual_interest_rate, loan_term_months):
    return RESULT

def agent(question, case=None):
    calculate_loan_payment(50000, 0.05, 36)
    return ANSWERS[question.partition("#")[2]]
"""


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROCTOR_JUDGE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("the rule-based judge needs no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def metrics() -> list[Any]:
    return [d.AnswerRelevancyMetric(0.7), d.FaithfulnessMetric(0.7), d.HallucinationMetric()]


def case(answer: str) -> Any:
    return d.LLMTestCase(
        input=QUESTION, actual_output=answer, retrieval_context=[json.dumps(RESULT)], context=[json.dumps(RESULT)]
    )


@pytest.mark.parametrize("answer", RIGHT.values(), ids=RIGHT)
def test_the_guides_metrics_pass_a_right_answer(answer: str) -> None:
    for metric in metrics():
        metric.measure(case(answer))
        assert metric.is_successful() is True, metric.reason


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_the_guides_metrics_fail_a_wrong_answer_and_name_the_right_figure(answer: str) -> None:
    for metric in metrics()[1:]:
        metric.measure(case(answer))
        assert metric.is_successful() is False
        assert "1498.54" in metric.reason


@pytest.mark.usefixtures("open_checks")
@pytest.mark.parametrize("answer", OPEN.values(), ids=OPEN)
def test_what_the_rules_cannot_prove_is_pending(answer: str) -> None:
    for metric in metrics():
        metric.measure(case(answer))
        assert (metric.is_successful(), metric.pending) == (None, True)


def test_a_native_suite_gives_the_same_verdicts_on_what_the_tool_returned(proctor: Command, project: Path) -> None:
    answers = RIGHT | WRONG | OPEN
    (project / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    (project / "loan.py").write_text(AGENT.replace("RESULT", repr(RESULT)), encoding="utf-8")
    suite = {
        "name": "loan",
        "agent": "loan.py:agent",
        "evaluators": ["AnswerRelevancy", "Faithfulness", "Hallucination"],
        "cases": [{"id": name, "input": f"{QUESTION} #{name}"} for name in answers],
    }
    (project / "loan.json").write_text(json.dumps(suite), encoding="utf-8")
    assert proctor("test", "loan.json", "--json", "r.json").code == 1
    trials = json.loads((project / "r.json").read_text(encoding="utf-8"))["trials"]
    found = {trial["case"]["id"] if isinstance(trial["case"], dict) else trial["case"]: trial for trial in trials}
    assert {name: found[name]["outcome"] for name in answers} == {
        **dict.fromkeys(RIGHT, "passed"),
        **dict.fromkeys(WRONG, "failed"),
        **dict.fromkeys(OPEN, "pending"),
    }
