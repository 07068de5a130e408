"""Evaluators of retrieval-augmented answers: relevance, faithfulness to the passages, quality of retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from proctor.base.errors import UsageError
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import (
    BEST_CASE,
    CANNOT_TELL,
    Finding,
    JudgedEvaluator,
    findings_as_details,
    mean_of_findings,
    summarize_findings,
)
from proctor.evaluators.material import answer_text, expected_text, nonblank_passages, question_text, user_messages
from proctor.evaluators.values import require_choice
from proctor.judging.judge import Judge
from proctor.judging.questions import (
    ClaimVerdict,
    attributions,
    claims,
    entities,
    relevant_sentences,
    statements,
    useful_passages,
)

Mode = Literal["grounded", "contradicted"]
By = Literal["count", "length"]
MODES: tuple[Mode, ...] = ("grounded", "contradicted")


@evaluator(family="passages", needs="question", judge="rules or model")
@dataclass(frozen=True)
class AnswerRelevancy(JudgedEvaluator):
    """The share of the answer's statements that address the question. Background counts as addressing it."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        question, answer = question_text(evaluable), answer_text(evaluable)
        if not question.strip():
            raise NothingToCompare("needs a question (`input`), and there is none")
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        reply = await judge.ask(replace(statements(question, answer), accepts_abstentions=True))
        if not reply.statements:
            return Evaluation(0.0, "the answer makes no statement")
        found = [
            Finding(item.text, CANNOT_TELL, False, item.reason, unclear=True)
            if item.unclear
            else Finding(item.text, _RELEVANT[item.relevant], item.relevant != "no", item.reason)
            for item in reply.statements
        ]
        return mean_of_findings(found, "statements address the question")


_RELEVANT = {"yes": "relevant", "partly": "partly relevant", "no": "irrelevant"}


# One made-up claim among four fails an answer: a half-true answer is not faithful.
@evaluator(family="passages", needs="passages", judge="rules or model", threshold=0.8, version=2)
@dataclass(frozen=True)
class Faithfulness(JudgedEvaluator):
    """The share of the answer's claims that the passages support; 0 if they contradict one.

    With `mode: contradicted`, the share of claims that they do not contradict. A contradicted claim fails the answer
    whatever the threshold. Greetings, questions and admissions of not knowing are not claims. Skipped if the answer
    makes no claim.
    """

    mode: Mode = "grounded"
    """`grounded`: a claim must be supported. `contradicted`: a claim must not be contradicted."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"Faithfulness: mode must be one of {', '.join(MODES)}, not {self.mode!r}")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty")
        # AnswerRelevancy asks the same question, so a model is asked once for both.
        asked = statements(question_text(evaluable), answer)
        split = await judge.ask(replace(asked, accepts_abstentions=True))
        claimed = [item.text for item in split.statements if item.claim == "yes"]
        if not claimed:
            raise NothingToCompare("the answer makes no claim")
        question = claims(claimed, texts, user_messages(evaluable))
        reply = await judge.ask(replace(question, accepts_abstentions=True))
        found = [
            self._item(claimed[item.number - 1], item)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        # Shown first: one wrong fact fails an answer, however many right ones are around it.
        found.sort(key=lambda item: item.verdict != "contradicted")
        what = "claims are supported" if self.mode == "grounded" else "claims are not contradicted"
        evaluation = mean_of_findings(found, f"{what} by the passages", mode=self.mode)
        if found[0].verdict != "contradicted":
            # An open claim may be a contradicted one, which would fail the answer whatever the share.
            is_open = any(item.unclear for item in found)
            return Evaluation(0.0, evaluation.reasoning, evaluation.details) if is_open else evaluation
        details = {name: detail for name, detail in evaluation.details.items() if name != BEST_CASE}
        return Evaluation(0.0, evaluation.reasoning, details, passed=False)

    def _item(self, text: str, item: ClaimVerdict) -> Finding:
        if item.unclear:
            return Finding(text, CANNOT_TELL, False, item.reason, unclear=True)
        if self.mode == "grounded":
            return Finding(text, item.verdict, item.verdict == "supported", item.reason)
        return Finding(text, item.verdict, item.verdict != "contradicted", item.reason)


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextualPrecision(JudgedEvaluator):
    """Whether useful passages come before useless ones: average precision over the ranks of the useful ones.

    Whether useful passages come first: the mean, over the useful ones, of the share of useful ones up to there; 0 if
    none is.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable)
        reply = await judge.ask(useful_passages(question_text(evaluable), expected_text(evaluable), texts))
        found = [
            Finding(texts[item.number - 1], _USEFUL[item.verdict], item.verdict == "yes", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        useful = [finding.counts for finding in found]
        said = summarize_findings(found, "passages are useful")
        return Evaluation(average_precision(useful), said, {"findings": findings_as_details(found)})


_USEFUL = {"yes": "useful", "no": "useless"}


def average_precision(useful: Sequence[bool]) -> float:
    """The mean precision at the rank of each useful passage; 0 if none is useful."""
    hits, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextualRecall(JudgedEvaluator):
    """The share of the expected answer's sentences that the passages contain."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable)
        reply = await judge.ask(replace(attributions(expected_text(evaluable), texts), accepts_abstentions=True))
        found = [
            Finding(item.text, CANNOT_TELL, False, item.reason, unclear=True)
            if item.unclear
            else Finding(
                item.text,
                _ATTRIBUTABLE[item.attributable],
                item.attributable == "yes",
                item.reason,
            )
            for item in reply.sentences
        ]
        return mean_of_findings(found, "sentences of the expected answer are in the passages")


_ATTRIBUTABLE = {"yes": "attributable", "no": "not attributable"}


@evaluator(family="passages", needs=("passages", "question"), judge="rules or model")
@dataclass(frozen=True)
class ContextualRelevancy(JudgedEvaluator):
    """The share of the passages' statements that are about the question.

    With `by: length`, the share of their characters without spaces.
    """

    by: By = "count"
    """`count` counts statements, `length` counts their characters."""

    def __post_init__(self) -> None:
        require_choice("by", self.by, ("count", "length"))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        found, texts = await _sentences(evaluable, judge)
        counted = mean_of_findings(found, "statements of the passages are about the question")
        if self.by == "count":
            return counted
        whole = _characters(" ".join(texts))
        score = sum(item.credit * _characters(item.text) for item in found) / whole
        details = dict(counted.details)
        if BEST_CASE in details:
            best = sum((1.0 if item.unclear else item.credit) * _characters(item.text) for item in found)
            details[BEST_CASE] = min(1.0, best / whole)
        return Evaluation(min(1.0, score), counted.reasoning, details)


@evaluator(
    family="passages",
    needs=("passages", "question"),
    judge="rules or model",
    variant_of="ContextualRelevancy",
    version=2,
)
@dataclass(frozen=True)
class ContextRelevancy(ContextualRelevancy):
    """The share of the passages' text that is about the question: `ContextualRelevancy` with `by: length`."""

    by: By = "length"


def _characters(text: str) -> int:
    """The length of a text without white space."""
    return len("".join(text.split()))


async def _sentences(evaluable: Evaluable, judge: Judge) -> tuple[list[Finding], list[str]]:
    texts = nonblank_passages(evaluable)
    question = question_text(evaluable)
    if not question.strip():
        raise NothingToCompare("needs a question (`input`), and there is none")
    reply = await judge.ask(replace(relevant_sentences(question, texts), accepts_abstentions=True))
    found = [
        Finding(item.text, CANNOT_TELL, False, item.reason, unclear=True)
        if item.unclear
        else Finding(item.text, _RELEVANT[item.relevant], item.relevant == "yes", item.reason)
        for item in reply.sentences
    ]
    return found, texts


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextEntityRecall(JudgedEvaluator):
    """The share of the names, dates and amounts in the expected answer that the passages contain too.

    Skipped if the expected answer has none.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = nonblank_passages(evaluable)
        reply = await judge.ask(entities(expected_text(evaluable), texts))
        if not reply.entities:
            raise NothingToCompare("the expected answer has no names, dates or amounts")
        found = [Finding(item.text, _FOUND[item.found], item.found == "yes") for item in reply.entities]
        return mean_of_findings(found, "entities of the expected answer are in the passages")


_FOUND = {"yes": "found", "no": "missing"}
