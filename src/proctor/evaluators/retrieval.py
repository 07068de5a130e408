"""Whether an answer keeps to what was retrieved, is to the point and right, and how good the retrieval was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from proctor.base.errors import UsageError
from proctor.base.json_data import show
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import (
    AT_BEST,
    UNCLEAR,
    Judged,
    JudgedItem,
    items_as_details,
    reasons_of_items,
    score_of_items,
)
from proctor.evaluators.material import answer_text, expected_text, filled_passages, known_facts, question_text
from proctor.evaluators.reference import SIMILAR_FROM, require_embeddings, scaled, similarity
from proctor.judging.embeddings import NoEmbeddings, embeddings_of
from proctor.judging.judge import Judge
from proctor.judging.questions import (
    ClaimVerdict,
    Comparison,
    agreements,
    attributions,
    claims,
    comparison,
    entities,
    relevant_sentences,
    statements,
    useful_passages,
)

Mode = Literal["grounded", "contradicted"]
MODES: tuple[Mode, ...] = ("grounded", "contradicted")


@evaluator(family="passages", needs="question", judge="rules or model")
@dataclass(frozen=True)
class AnswerRelevancy(Judged):
    """The share of the answer's statements that address the question; background to it counts.

    The share of statements that address the question, background included.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        question, answer = question_text(evaluable), answer_text(evaluable)
        if not question.strip():
            raise NothingToCompare("needs a question (`input`), and there is none")
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        reply = await judge.ask(replace(statements(question, answer), accepts_unclear=True))
        if not reply.statements:
            return Evaluation(0.0, "the answer says nothing")
        found = [
            JudgedItem(item.text, UNCLEAR, False, item.reason, unclear=True)
            if item.unclear
            else JudgedItem(item.text, _RELEVANT[item.relevant], item.relevant != "no", item.reason)
            for item in reply.statements
        ]
        return score_of_items(found, "statements address the question")


_RELEVANT = {"yes": "relevant", "partly": "partly relevant", "no": "irrelevant"}


# One made-up claim among four fails an answer: half of the truth is not faithful.
@evaluator(family="passages", needs="passages", judge="rules or model", threshold=0.8)
@dataclass(frozen=True)
class Faithfulness(Judged):
    """The share of the answer's claims that the passages bear out, or at least do not contradict.

    The share of claims that the passages bear out; with `mode: contradicted`, that they do not contradict. Greetings,
    questions and not knowing are no claims. Skipped if the answer claims nothing.
    """

    mode: Mode = "grounded"
    """`grounded`: only what is supported counts. `contradicted`: only what is contradicted counts against it."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"Faithfulness: mode is one of {', '.join(MODES)}, not {self.mode!r}")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty and claims nothing that the passages could bear out")
        # The same question as relevancy asks, so that a model is asked once for both.
        asked = statements(question_text(evaluable), answer)
        split = await judge.ask(replace(asked, accepts_unclear=True))
        claimed = [item.text for item in split.statements if item.claim == "yes"]
        if not claimed:
            raise NothingToCompare("the answer claims nothing that the passages could bear out")
        question = claims(claimed, texts, known_facts(evaluable))
        reply = await judge.ask(replace(question, accepts_unclear=True))
        found = [
            self._item(claimed[item.number - 1], item)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        what = "claims are supported" if self.mode == "grounded" else "claims are not contradicted"
        return score_of_items(found, f"{what} by the passages", mode=self.mode)

    def _item(self, text: str, item: ClaimVerdict) -> JudgedItem:
        if item.unclear:
            return JudgedItem(text, UNCLEAR, False, item.reason, unclear=True)
        if self.mode == "grounded":
            return JudgedItem(text, item.verdict, item.verdict == "supported", item.reason)
        return JudgedItem(text, item.verdict, item.verdict != "contradicted", item.reason)


@evaluator(family="passages", needs="passages", judge="rules or model", variant_of="Faithfulness")
@dataclass(frozen=True)
class Hallucination(Judged):
    """The share of the passages that the answer does not contradict; what it leaves out is not held against it.

    The share of passages that the answer does not contradict; what it leaves out does not matter. Skipped if the
    answer is empty.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable, ideal_first=True)
        answer = answer_text(evaluable)
        if not answer.strip():
            raise NothingToCompare("the answer is empty and contradicts nothing")
        reply = await judge.ask(replace(agreements(answer, texts, known_facts(evaluable)), accepts_unclear=True))
        found = [
            JudgedItem(texts[item.number - 1], UNCLEAR, False, item.reason, unclear=True)
            if item.unclear
            else JudgedItem(texts[item.number - 1], _AGREES[item.verdict], item.verdict == "yes", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        return score_of_items(found, "passages agree with the answer")


_AGREES = {"yes": "agrees", "no": "contradicts"}


@evaluator(family="reference", needs="reference", judge="rules or model")
@dataclass(frozen=True)
class AnswerCorrectness(Judged):
    """The F1 of statements shared with the expected answer, weighed with the similarity of the two texts.

    The weighted mean of F1 and similarity. F1 is shared statements divided by themselves and half of those that only
    one side makes; similarity is that of `AnswerSimilarity`. Without embeddings it is F1 alone, and the reason says
    so.
    """

    factuality_weight: float = 0.75
    answer_similarity_weight: float = 0.25
    embeddings: Any = None
    """Which embeddings measure similarity; `None` takes those installed, and does without if there are none."""

    def __post_init__(self) -> None:
        weights = [self.factuality_weight, self.answer_similarity_weight]
        numbers = all(isinstance(weight, (int, float)) and 0 <= weight < math.inf for weight in weights)
        if not numbers or not any(weights):
            raise UsageError(f"AnswerCorrectness: weights are at least 0 and not both 0; they are {weights}")
        require_embeddings(self.embeddings)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        expected, answer = expected_text(evaluable), answer_text(evaluable)
        if not answer.strip():
            return Evaluation(0.0, "the answer is empty")
        near, remark = await self._similarity(answer, expected)
        if not self.factuality_weight and near is not None:
            return Evaluation(near, f"Similarity {near:.2f}", {"similarity": near})
        reply = await judge.ask(comparison(question_text(evaluable), expected, answer))
        agreement = f1_of(reply)
        details: dict[str, Any] = {"factuality": agreement, "findings": items_as_details(_statements(reply))}
        if near is None:
            return Evaluation(agreement, _reason(reply) + remark, details)
        weight = self.factuality_weight + self.answer_similarity_weight
        score = (self.factuality_weight * agreement + self.answer_similarity_weight * near) / weight
        return Evaluation(min(1.0, score), f"{_reason(reply)}. Similarity {near:.2f}", {**details, "similarity": near})

    async def _similarity(self, answer: str, expected: str) -> tuple[float | None, str]:
        """How near the texts are; or `None`, and what to say about it."""
        if not self.answer_similarity_weight:
            return None, ""
        try:
            source = embeddings_of(self.embeddings)
        except NoEmbeddings:
            if not self.factuality_weight:
                raise
            return None, ". Scored by statements alone, since there are no embeddings"
        return scaled(await similarity(source, answer, expected), SIMILAR_FROM), ""


def f1_of(reply: Comparison) -> float:
    """Shared statements against those that only one of the texts makes; 0 if there are none at all."""
    shared = len(reply.shared)
    whole = shared + 0.5 * (len(reply.only_answer) + len(reply.only_reference))
    return shared / whole if whole else 0.0


def _statements(reply: Comparison) -> list[JudgedItem]:
    shared = [JudgedItem(text, "shared", True) for text in reply.shared]
    added = [JudgedItem(text, "only in the answer", False) for text in reply.only_answer]
    missing = [JudgedItem(text, "only in the expected answer", False) for text in reply.only_reference]
    return shared + added + missing


def _reason(reply: Comparison) -> str:
    parts = [f"{len(reply.shared)} statements shared, {len(reply.only_answer)} only in the answer"]
    parts[0] += f", {len(reply.only_reference)} only in the expected answer"
    if reply.contradictions:
        parts.append("contradicted: " + "; ".join(show(text, 200) for text in reply.contradictions[:5]))
    if reply.only_reference:
        parts.append("missing: " + "; ".join(show(text, 200) for text in reply.only_reference[:5]))
    return ". ".join(parts)


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextualPrecision(Judged):
    """Whether useful passages come before useless ones: average precision over the ranks of the useful ones.

    Whether useful passages come first: the mean, over the useful ones, of the share of useful ones up to there; 0 if
    none is.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable)
        reply = await judge.ask(useful_passages(question_text(evaluable), expected_text(evaluable), texts))
        found = [
            JudgedItem(texts[item.number - 1], _USEFUL[item.verdict], item.verdict == "yes", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
        ]
        useful = [finding.holds for finding in found]
        said = reasons_of_items(found, "passages are of use")
        return Evaluation(average_precision(useful), said, {"findings": items_as_details(found)})


_USEFUL = {"yes": "useful", "no": "useless"}


def average_precision(useful: Sequence[bool]) -> float:
    """The mean, over the useful ones, of the share of useful ones up to there; 0 if none is."""
    hits, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextualRecall(Judged):
    """The share of the expected answer's sentences that could have been written from the passages.

    The share of the expected output's sentences that the passages contain.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable)
        reply = await judge.ask(replace(attributions(expected_text(evaluable), texts), accepts_unclear=True))
        found = [
            JudgedItem(item.text, UNCLEAR, False, item.reason, unclear=True)
            if item.unclear
            else JudgedItem(
                item.text,
                _ATTRIBUTABLE[item.attributable],
                item.attributable == "yes",
                item.reason,
            )
            for item in reply.sentences
        ]
        return score_of_items(found, "sentences of the expected answer are in the passages")


_ATTRIBUTABLE = {"yes": "attributable", "no": "not attributable"}


@evaluator(family="passages", needs=("passages", "question"), judge="rules or model")
@dataclass(frozen=True)
class ContextualRelevancy(Judged):
    """The share of the passages' statements that are about the question.

    The share of the passages' statements that are about the question.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        found, _ = await _sentences(evaluable, judge)
        return score_of_items(found, "statements of the passages are about the question")


@evaluator(family="passages", needs=("passages", "question"), judge="rules or model", variant_of="ContextualRelevancy")
@dataclass(frozen=True)
class ContextRelevancy(Judged):
    """The share of the passages' text that is about the question, by length.

    The same by length: characters about the question divided by all.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        found, texts = await _sentences(evaluable, judge)
        relevant = sum(finding.credit * len(finding.text) for finding in found)
        score = min(1.0, relevant / len("\n".join(texts)))
        said = reasons_of_items(found, "statements of the passages are about the question")
        details: dict[str, Any] = {"findings": items_as_details(found)}
        if any(finding.unclear for finding in found):
            best = sum((1.0 if item.unclear else item.credit) * len(item.text) for item in found)
            details[AT_BEST] = min(1.0, best / len("\n".join(texts)))
        return Evaluation(score, said, details)


async def _sentences(evaluable: Evaluable, judge: Judge) -> tuple[list[JudgedItem], list[str]]:
    texts = filled_passages(evaluable)
    question = question_text(evaluable)
    if not question.strip():
        raise NothingToCompare("needs a question (`input`), and there is none")
    reply = await judge.ask(replace(relevant_sentences(question, texts), accepts_unclear=True))
    found = [
        JudgedItem(item.text, UNCLEAR, False, item.reason, unclear=True)
        if item.unclear
        else JudgedItem(item.text, _RELEVANT[item.relevant], item.relevant == "yes", item.reason)
        for item in reply.sentences
    ]
    return found, texts


@evaluator(family="passages", needs=("reference", "passages"), judge="rules or model")
@dataclass(frozen=True)
class ContextEntityRecall(Judged):
    """The share of the entities named in the expected answer that the passages name too.

    The share of names, dates and amounts of the expected output that the passages name. Skipped if the expected
    output names nothing.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable)
        reply = await judge.ask(entities(expected_text(evaluable), texts))
        if not reply.entities:
            raise NothingToCompare("the expected answer names nothing that the passages could name")
        found = [JudgedItem(item.text, _FOUND[item.found], item.found == "yes") for item in reply.entities]
        return score_of_items(found, "entities of the expected answer are in the passages")


_FOUND = {"yes": "found", "no": "missing"}
