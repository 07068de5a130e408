"""Whether an answer keeps to what was retrieved: what it claims, whether that is borne out, whether it is to the point.

The statements of an answer are asked for once and serve relevancy and faithfulness: with hallucination, three calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from proctor.errors import UsageError
from proctor.evaluators.findings import Finding, share, texts_to_hold_against
from proctor.evaluators.judged import Judged, answer_text, question_text
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.judging.model import Judge
from proctor.judging.questions import ClaimVerdict, agreements, claims, statements

Mode = Literal["grounded", "contradicted"]
MODES: tuple[Mode, ...] = ("grounded", "contradicted")


@dataclass(frozen=True)
class AnswerRelevancy(Judged):
    """The share of the answer's statements that address the question; background to it counts."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        question, answer = question_text(evaluable), answer_text(evaluable)
        if not question.strip():
            raise NothingToCompare("needs a question (`input`), and there is none")
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        reply = await judge.ask(statements(question, answer))
        if not reply.statements:
            return Evaluation(0.0, "the answer says nothing")
        found = [
            Finding(item.text, _RELEVANT[item.relevant], item.relevant != "no", item.reason, item.degree)
            for item in reply.statements
        ]
        return share(found, "statements address the question")


_RELEVANT = {"yes": "relevant", "partly": "partly relevant", "no": "irrelevant"}


@dataclass(frozen=True)
class Faithfulness(Judged):
    """The share of the answer's claims that the passages bear out, or at least do not contradict."""

    mode: Mode = "grounded"
    """`grounded`: only what is supported counts. `contradicted`: only what is contradicted counts against it."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"Faithfulness: mode is one of {', '.join(MODES)}, not {self.mode!r}")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = texts_to_hold_against(evaluable)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty and claims nothing that the passages could bear out")
        split = await judge.ask(statements(question_text(evaluable), answer))
        claimed = [item.text for item in split.statements if item.claim == "yes"]
        if not claimed:
            raise NothingToCompare("the answer claims nothing that the passages could bear out")
        reply = await judge.ask(claims(claimed, texts))
        found = [
            Finding(claimed[item.number - 1], item.verdict, self._holds(item.verdict), item.reason, self._degree(item))
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        what = "claims are supported" if self.mode == "grounded" else "claims are not contradicted"
        evaluation = share(found, f"{what} by the passages", mode=self.mode)
        return (
            evaluation if reply.degree is None or self.mode != "grounded" else replace(evaluation, score=reply.degree)
        )

    def _holds(self, verdict: str) -> bool:
        return verdict == "supported" if self.mode == "grounded" else verdict != "contradicted"

    def _degree(self, item: ClaimVerdict) -> float | None:
        """A degree says how far a claim is supported, which is not how far it is contradicted."""
        return item.degree if self.mode == "grounded" else None


@dataclass(frozen=True)
class Hallucination(Judged):
    """The share of the passages that the answer does not contradict; what it leaves out is not held against it."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = texts_to_hold_against(evaluable, ideal_first=True)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty and contradicts nothing")
        reply = await judge.ask(agreements(answer, texts))
        found = [
            Finding(texts[item.number - 1], _AGREES[item.verdict], item.verdict == "yes", item.reason, item.degree)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        return share(found, "passages agree with the answer")


_AGREES = {"yes": "agrees", "no": "contradicts"}
