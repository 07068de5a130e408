"""The tools of the advisor: a calculator and an eligibility check."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, Field


class LoanRequest(BaseModel):
    loan_amount: float = Field(gt=0)
    annual_interest_rate: float = Field(ge=0, lt=1)
    loan_term_months: int = Field(gt=0)


class LoanPayment(BaseModel):
    monthly_payment: float
    total_payment: float
    total_interest: float
    loan_amount: float
    loan_term_months: int


@dataclass
class Eligibility:
    eligible: bool
    credit_score: int
    minimum_credit_score: int
    loan_amount: float
    maximum_loan_amount: float


class LoanCalculatorTool:
    def calculate_monthly_payment(self, request: LoanRequest) -> LoanPayment:
        rate, months = request.annual_interest_rate / 12, request.loan_term_months
        growth = (1 + rate) ** months
        exact = request.loan_amount * rate * growth / (growth - 1) if rate else request.loan_amount / months
        return LoanPayment(
            monthly_payment=round(exact, 2),
            total_payment=round(exact * months, 2),
            total_interest=round(exact * months - request.loan_amount, 2),
            loan_amount=request.loan_amount,
            loan_term_months=months,
        )


class LoanEligibilityTool:
    def __init__(self, minimum_credit_score: int = 650, income_share: float = 0.5) -> None:
        self.minimum_credit_score = minimum_credit_score
        self.income_share = income_share

    def check(self, credit_score: int, annual_income: float, loan_amount: float) -> Eligibility:
        most = annual_income * self.income_share
        good = credit_score >= self.minimum_credit_score and loan_amount <= most
        return Eligibility(good, credit_score, self.minimum_credit_score, loan_amount, most)
