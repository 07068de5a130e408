"""The loan desk with smolagents; a real one names a model such as `InferenceClientModel()` instead of `Rules`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

from smolagents import ChatMessage, MessageRole, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, Call, calculate_loan_payment, check_eligibility, next_step

_NUMBERS = itertools.count(1)


class LoanPayment(Tool):
    """smolagents wants the inputs of a tool described."""

    name = "calculate_loan_payment"
    description = "The monthly payment of a loan."
    inputs = {  # noqa: RUF012
        "loan_amount": {"type": "number", "description": "in dollars"},
        "annual_interest_rate": {"type": "number", "description": "5% is 0.05"},
        "loan_term_months": {"type": "integer", "description": "how many months it takes"},
    }
    output_type = "object"

    def forward(self, loan_amount: float, annual_interest_rate: float, loan_term_months: int) -> dict[str, Any]:
        return calculate_loan_payment(loan_amount, annual_interest_rate, loan_term_months)


class Eligibility(Tool):
    """The other tool."""

    name = "check_eligibility"
    description = "Whether this lender would grant a loan."
    inputs = {  # noqa: RUF012
        "credit_score": {"type": "integer", "description": "between 300 and 850"},
        "annual_income": {"type": "number", "description": "in dollars"},
        "loan_amount": {"type": "number", "description": "in dollars"},
    }
    output_type = "object"

    def forward(self, credit_score: int, annual_income: float, loan_amount: float) -> dict[str, Any]:
        return check_eligibility(credit_score, annual_income, loan_amount)


class Rules(Model):
    """Stands in for a model: questions are the tasks it was given, results are observations, answers a tool."""

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        said = [(message.role, text) for message in messages if (text := _text(message))]
        questions = [text.removeprefix("New task:\n") for role, text in said if role == MessageRole.USER]
        role, latest = said[-1]
        seen = latest.removeprefix("Observation:\n") if role == MessageRole.TOOL_RESPONSE else None
        step = next_step(questions, None if seen is None else json.loads(seen.replace("'", '"').lower()))
        call = step if isinstance(step, Call) else Call("final_answer", {"answer": step})
        function = ChatMessageToolCallFunction(name=call.name, arguments=call.arguments)
        used = ChatMessageToolCall(id=f"c{next(_NUMBERS)}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[used])


def _text(message: Any) -> str:
    content = message.content
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


agent = ToolCallingAgent(tools=[LoanPayment(), Eligibility()], model=Rules(model_id="rules"), instructions=INSTRUCTIONS)
