"""How good the retrieval was: whether what it brought is of use, comes first, is complete, and is to the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import Judged, expected_text, filled_passages, question_text
from proctor.evaluators.judged_items import (
    AT_BEST,
    UNCLEAR,
    JudgedItem,
    items_as_details,
    reasons_of_items,
    score_of_items,
)
from proctor.judging.judge import Judge
from proctor.judging.questions import attributions, entities, relevant_sentences, useful_passages


@dataclass(frozen=True)
class ContextualPrecision(Judged):
    """Whether useful passages come before useless ones: average precision over the ranks of the useful ones."""

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


@dataclass(frozen=True)
class ContextualRecall(Judged):
    """The share of the expected answer's sentences that could have been written from the passages."""

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
                item.partial_credit,
            )
            for item in reply.sentences
        ]
        return score_of_items(found, "sentences of the expected answer are in the passages")


_ATTRIBUTABLE = {"yes": "attributable", "no": "not attributable"}


@dataclass(frozen=True)
class ContextualRelevancy(Judged):
    """The share of the passages' statements that are about the question."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        found, _ = await _sentences(evaluable, judge)
        return score_of_items(found, "statements of the passages are about the question")


@dataclass(frozen=True)
class ContextRelevancy(Judged):
    """The share of the passages' text that is about the question, by length."""

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
        else JudgedItem(item.text, _RELEVANT[item.relevant], item.relevant == "yes", item.reason, item.partial_credit)
        for item in reply.sentences
    ]
    return found, texts


_RELEVANT = {"yes": "relevant", "no": "irrelevant"}


@dataclass(frozen=True)
class ContextEntityRecall(Judged):
    """The share of the entities named in the expected answer that the passages name too."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        texts = filled_passages(evaluable)
        reply = await judge.ask(entities(expected_text(evaluable), texts))
        if not reply.entities:
            raise NothingToCompare("the expected answer names nothing that the passages could name")
        found = [
            JudgedItem(item.text, _FOUND[item.found], item.found == "yes", partial_credit=item.partial_credit)
            for item in reply.entities
        ]
        return score_of_items(found, "entities of the expected answer are in the passages")


_FOUND = {"yes": "found", "no": "missing"}
