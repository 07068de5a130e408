"""The loan advisor with two mistakes that models make too: it takes a yearly rate for a monthly one, and forgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent import Advisor, text_of
from app import LoanAdvisor
from figures import Figures


class WrongAdvisor(Advisor):
    """Answers as politely as the right one."""

    def figures(self, question: str) -> Figures:
        figures = super().figures(question)
        return replace(figures, rates=tuple(rate * 12 for rate in figures.rates))

    def memory(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}


class WrongLoanAdvisor(LoanAdvisor):
    """The same mistakes, in the shape that pixie datasets run."""

    advisor_class = WrongAdvisor


_ADVISOR = WrongAdvisor()


def agent(question: str | Mapping[str, str], state: dict[str, Any]) -> str:
    """The agent that every suite here must fail."""
    return _ADVISOR.answer(text_of(question), state)
