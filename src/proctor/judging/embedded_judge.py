"""The judge that needs no model, no key and no network: rules about words, numbers, dates, names and negations."""

from __future__ import annotations

import time

from proctor.agents.model import Usage
from proctor.agents.threads import call_in_thread
from proctor.errors import JudgeFailed
from proctor.judging.current import EMBEDDED
from proctor.judging.docket import note_call
from proctor.judging.model import JudgeCall, NeedsModel, Question, ReplyT
from proctor.plain import fingerprint, plain

NOTHING_SPENT = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
APART_FROM = 4_000
"""Characters of material from which the work leaves the event loop to others while it lasts."""


class EmbeddedJudge:
    """Answers the kinds of question that rules can answer, the same way every time."""

    name = EMBEDDED

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        from proctor.judging.embedded_answers import ANSWERS

        rule = ANSWERS.get(question.kind)
        if rule is None:
            raise NeedsModel(
                f"the embedded judge cannot tell {question.kind!r}; name a judge with --judge provider:model"
            )
        started = time.perf_counter()
        if _size(question) < APART_FROM:
            said = rule(question.material)
        else:
            said = await call_in_thread(rule, question.material)
        reply = question.reply.model_validate(said)
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"the embedded judge's reply does not fit: {complaint}")
        spent = (time.perf_counter() - started) * 1000
        key = fingerprint(self.name, question.kind, question.version, plain(question.material))
        note_call(
            JudgeCall(
                question.kind, question.version, self.name, key, usage=NOTHING_SPENT, duration_ms=spent, sample=sample
            )
        )
        return reply


def _size(question: Question[ReplyT]) -> int:
    return sum(
        len(texts) if isinstance(texts, str) else sum(len(text) for text in texts)
        for texts in question.material.values()
    )
