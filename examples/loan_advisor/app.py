"""The loan advisor as an application with a life cycle, which is how pixie datasets run it."""

from __future__ import annotations

from typing import ClassVar

from agent import Advisor
from pydantic import BaseModel

import proctor


class Question(BaseModel):
    """The input of the application."""

    question: str


class LoanAdvisor(proctor.Runnable[Question]):
    """Created once for all cases; every question is a separate conversation."""

    advisor_class: ClassVar[type[Advisor]] = Advisor

    @classmethod
    def create(cls) -> LoanAdvisor:
        return cls()

    async def setup(self) -> None:
        self.advisor = self.advisor_class()

    async def run(self, args: Question) -> str:
        return self.advisor.answer(args.question, {})

    async def teardown(self) -> None:
        del self.advisor
