"""A judge that says what a test tells it to, for tests of how replies become scores."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from builders import evaluable as seen  # noqa: F401  the tests of evaluators import it from here

from proctor.base.errors import JudgeFailed
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.judging.choosing import SUITE, JudgeSources, WrittenJudge
from proctor.judging.judge import Judge, Question, ReplyT
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession, judge_session


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


def session_of(judge: Any, threshold: float | None = None) -> JudgeSession:
    """A session in which this judge is the suite's: every evaluator asks it that names no other."""
    return JudgeSession(Judges(), JudgeSources(suite=WrittenJudge(judge, SUITE)), threshold=threshold)


def judged(
    evaluator: Any,
    evaluable: Evaluable,
    judge: Judge | Mapping[str, Any] | None = None,
    *,
    threshold: float | None = None,
) -> Evaluation:
    """What the evaluator says when `judge`, or one who replies like this, is asked."""
    who: Any = judge if hasattr(judge, "ask") else ScriptedJudge(judge)  # type: ignore[arg-type]
    with judge_session(session_of(who, threshold)):
        evaluation: Evaluation | None = asyncio.run(evaluator(evaluable))
    assert evaluation is not None
    return evaluation
