"""A judge that says what a test tells it to, for tests of how replies become scores."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from builders import evaluable as seen  # noqa: F401  the tests of evaluators import it from here

from proctor.base.errors import JudgeFailed
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.judging.context import JudgeContext, judge_context
from proctor.judging.judge import Judge, Question, ReplyT
from proctor.judging.panel import Panel


class ScriptedJudge:
    """Replies by kind of question: data, a list of data for one question after the other, or a function of it.

    Replies are validated and checked as a real judge's are; an exception is raised.
    """

    name = "scripted"

    def __init__(self, replies: Mapping[str, Any] | None = None) -> None:
        self.replies = {
            kind: list(reply) if isinstance(reply, list) else reply for kind, reply in (replies or {}).items()
        }
        self.asked: list[Question[Any]] = []

    @property
    def kinds(self) -> list[str]:
        """The kinds of question asked so far, in order."""
        return [question.kind for question in self.asked]

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        self.asked.append(question)
        if question.kind not in self.replies:
            raise AssertionError(f"nobody told the judge what to reply to {question.kind!r}")
        reply = self.replies[question.kind]
        if isinstance(reply, list):
            reply = reply.pop(0)
        elif callable(reply):
            reply = reply(question)
        if isinstance(reply, BaseException):
            raise reply
        answer = question.reply.model_validate(reply)
        complaint = question.check(answer) if question.check else None
        if complaint:
            raise JudgeFailed(complaint)
        return answer


class OneJudge:
    """A judge factory that gives one judge for every name."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def panel(self, named: Any) -> Panel:
        return named if isinstance(named, Panel) else Panel((self._judge,))


def judged(
    evaluator: Any,
    evaluable: Evaluable,
    judge: Judge | Mapping[str, Any] | None = None,
    *,
    threshold: float | None = None,
) -> Evaluation:
    """What the evaluator says when `judge`, or one who replies like this, is asked."""
    who: Any = judge if hasattr(judge, "ask") else ScriptedJudge(judge)  # type: ignore[arg-type]
    with judge_context(JudgeContext(OneJudge(who), threshold=threshold)):
        evaluation: Evaluation | None = asyncio.run(evaluator(evaluable))
    assert evaluation is not None
    return evaluation
