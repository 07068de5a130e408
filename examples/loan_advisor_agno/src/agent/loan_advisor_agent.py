"""A loan advisor made with Agno."""

from __future__ import annotations

import json
from dataclasses import asdict

from agno.agent import Agent
from agno.models.openai import OpenAIChat

from src.tools.loan_tools import LoanCalculatorTool, LoanEligibilityTool, LoanRequest

INSTRUCTIONS = "You advise people on loans. Use your tools for every figure, and say nothing that they do not tell you."


def calculate_loan_payment(loan_amount: float, annual_interest_rate: float, loan_term_months: int) -> str:
    """Monthly payment, total payment and total interest of a loan; the rate is a fraction, such as 0.05."""
    request = LoanRequest(
        loan_amount=loan_amount, annual_interest_rate=annual_interest_rate, loan_term_months=loan_term_months
    )
    return json.dumps(LoanCalculatorTool().calculate_monthly_payment(request).model_dump())


def check_loan_eligibility(credit_score: int, annual_income: float, loan_amount: float) -> str:
    """Whether a person gets a loan of this amount."""
    return json.dumps(asdict(LoanEligibilityTool().check(credit_score, annual_income, loan_amount)))


def create_loan_advisor_agent(model: str = "gpt-5-mini") -> Agent:
    return Agent(
        name="loan advisor",
        model=OpenAIChat(id=model),
        instructions=INSTRUCTIONS,
        tools=[calculate_loan_payment, check_loan_eligibility],
        telemetry=False,
    )
