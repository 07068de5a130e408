"""The judge that needs no model, no key and no network: rules about words, numbers, dates, names and negations.

`ANSWERS` has a rule for each kind of question it knows; its replies have the shape of a model's.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from proctor.agents.agent import Usage
from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.base.json_data import fingerprint, plain
from proctor.base.threads import call_in_thread
from proctor.judging.context import EMBEDDED, log_call
from proctor.judging.judge import JudgeCall, Question, ReplyT, Texts, as_list
from proctor.judging.rule_judge.agreement import AGREES_FROM, Agreement, agreement
from proctor.judging.rule_judge.passage_reading import entities, read
from proctor.judging.rule_judge.relevance import RELEVANT_FROM, noncommittal, relevance, relevances
from proctor.judging.rule_judge.statements import statements
from proctor.judging.rule_judge.support import SUPPORTED_FROM, Support, support
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT

NOTHING_SPENT = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
IN_THREAD_FROM = 4_000
"""Characters of material from which a rule runs in a thread, so that the event loop is not blocked."""


class EmbeddedJudge:
    """Answers the kinds of question that rules can answer, the same way every time."""

    name = EMBEDDED

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        rule = ANSWERS.get(question.kind)
        if rule is None:
            raise NeedsModel(f"the embedded judge has no rule for {question.kind!r}")
        started = time.perf_counter()
        if _size(question) < IN_THREAD_FROM:
            said = rule(question.material)
        else:
            said = await call_in_thread(rule, question.material)
        reply = question.reply.model_validate(said)
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"the embedded judge's reply does not fit: {complaint}")
        spent = (time.perf_counter() - started) * 1000
        key = fingerprint(self.name, question.kind, question.version, plain(question.material))
        log_call(
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


Material: TypeAlias = Mapping[str, Texts]
Reply: TypeAlias = dict[str, Any]

HOLDS_FROM = 0.85
FAILS_UP_TO = 0.5
"""Partial credit avoids the middle: a verdict that holds counts nearly in full, one that does not less than half."""
_PARTLY_FROM = 0.3


def graded(score: float, line: float, low: float = FAILS_UP_TO, high: float = HOLDS_FROM) -> float:
    """A score of the rules as partial credit, in the same order: at most `low` below `line`, at least `high` above."""
    if score >= line:
        return min(1.0, high + (1.0 - high) * (score - line) / (1.0 - line))
    return max(0.0, min(low * score / line, math.nextafter(low, 0.0)))


def answer_statements(material: Material) -> Reply:
    question = _text(material, "question")
    found = []
    texts = statements(_text(material, "answer"))
    for text, (score, reason) in zip(texts, relevances(question, texts), strict=True):
        relevant = score >= RELEVANT_FROM
        found.append(
            {
                "text": text,
                "claim": "yes" if _claims(text) else "no",
                "relevant": "yes" if relevant else "no",
                "reason": "" if relevant else reason,
                "partial_credit": graded(score, RELEVANT_FROM),
            }
        )
    return {"statements": found}


def _claims(text: str) -> bool:
    """Whether it claims anything; `I am not sure, but …` claims what comes after it."""
    last = re.split(r"\b(?:but|however|though)\b", text, flags=re.IGNORECASE)[-1]
    return bool(_meaningful_words(last)) and not noncommittal(last)


def _meaningful_words(text: str) -> int:
    """How many words of a text carry meaning."""
    return sum(term.weight > GRAMMAR_WEIGHT for term in read(text).terms)


def claim_verdicts(material: Material) -> Reply:
    """The whole scores half by the average claim and half by the worst: people forgive no invented claim."""
    passages = _several(material, "passage")
    claims = _several(material, "statement")
    judged = [support(text, passages) for text in claims]
    weights = [max(1, _meaningful_words(text)) for text in claims]
    average = sum(found.score * weight for found, weight in zip(judged, weights, strict=True)) / max(1, sum(weights))
    whole = (average + min((found.score for found in judged), default=0.0)) / 2
    verdicts = [
        {"number": number, "verdict": found.verdict, "reason": found.reason, "partial_credit": _partial_credit(found)}
        for number, found in enumerate(judged, 1)
    ]
    return {"verdicts": verdicts, "partial_credit": graded(whole, SUPPORTED_FROM)}


def _partial_credit(found: Support) -> float:
    """On the side of the line that the verdict says: the verdict knows more than the score."""
    line = SUPPORTED_FROM
    score = max(found.score, line) if found.verdict == "supported" else min(found.score, line * 0.999)
    return graded(score, line)


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a statement that it contradicts and that no other passage supports."""
    passages = _several(material, "passage")
    doubtful = [
        text for text in statements(_text(material, "answer")) if support(text, passages).verdict == "contradicted"
    ]
    verdicts = []
    for number, passage in enumerate(passages, 1):
        found = ((text, support(text, [passage])) for text in doubtful)
        against = next(((text, judged) for text, judged in found if judged.verdict == "contradicted"), None)
        reason = (
            "nothing in the answer speaks against it" if against is None else f"“{against[0]}”: {against[1].reason}"
        )
        verdicts.append({"number": number, "verdict": "yes" if against is None else "no", "reason": reason})
    return {"verdicts": verdicts}


def useful_passages(material: Material) -> Reply:
    """A passage is useful if it gives the expected answer or supports any part of it."""
    question, expected = _text(material, "question"), _text(material, "expected")
    parts = statements(expected)
    verdicts = []
    for number, passage in enumerate(_several(material, "passage"), 1):
        whole = agreement(question, expected, passage)
        useful = whole.verdict == "same" or any(support(part, [passage]).verdict == "supported" for part in parts)
        reason = "it bears out the expected answer" if useful else "it holds nothing of the expected answer"
        verdicts.append({"number": number, "verdict": "yes" if useful else "no", "reason": reason})
    return {"verdicts": verdicts}


def attributions(material: Material) -> Reply:
    passages, expected = _several(material, "passage"), _text(material, "expected")
    sentences = []
    for text in statements(expected) or [expected]:
        found = support(text, passages)
        verdict = "yes" if found.verdict == "supported" else "no"
        sentences.append(
            {"text": text, "attributable": verdict, "reason": found.reason, "partial_credit": _partial_credit(found)}
        )
    return {"sentences": sentences}


def relevant_sentences(material: Material) -> Reply:
    question = _text(material, "question")
    sentences = []
    for number, passage in enumerate(_several(material, "passage"), 1):
        for text in statements(passage) or [passage]:
            score, reason = relevance(question, text)
            relevant = score >= RELEVANT_FROM
            verdict = {"relevant": "yes" if relevant else "no", "reason": "" if relevant else reason}
            sentences.append({"passage": number, "text": text, **verdict})
    return {"sentences": sentences}


def named_entities(material: Material) -> Reply:
    """An entity of the expected answer is found if the passages support its bare name."""
    passages = _several(material, "passage")
    found = [(name, support(name, passages)) for name in entities(_text(material, "expected"))]
    return {
        "entities": [
            {"text": name, "found": "yes" if judged.verdict == "supported" else "no"} for name, judged in found
        ]
    }


def sentence_labels(material: Material) -> Reply:
    """Labels sentences by comparing them with all other material."""
    grounds = [text for name in material if name != "sentence" for text in _several(material, name)]
    verdicts = []
    for number, text in enumerate(_several(material, "sentence"), 1):
        found = support(text, grounds)
        label = _LABELS[found.verdict] if _claims(text) else "not_applicable"
        verdicts.append({"number": number, "label": label, "reason": found.reason})
    return {"verdicts": verdicts}


_LABELS = {"supported": "supported", "contradicted": "contradictory", "unmentioned": "unsupported"}


def compared(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = agreement(question, reference, answer)
    same = found.verdict == "same"
    return {
        "shared": [reference] if same else [],
        "only_answer": _beyond(reference, answer),
        "only_reference": list(found.missing) if same else list(found.missing or (reference,)),
        "contradictions": [found.reason] if found.verdict == "contradicted" else [],
        "partial_credit": graded(found.score, AGREES_FROM)
        if same
        else graded(min(found.score, AGREES_FROM * 0.999), AGREES_FROM),
    }


def _beyond(reference: str, answer: str) -> list[str]:
    """What the answer says that the reference does not."""
    return [text for text in statements(answer) if support(text, [reference]).verdict != "supported"]


def factuality(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = agreement(question, reference, answer)
    choice = _choice(found, lambda: _beyond(reference, answer))
    least, most = _BANDS[choice]
    return {
        "choice": choice,
        "reason": found.reason,
        "partial_credit": least + (most - least) * min(1.0, max(0.0, found.score)),
    }


def _choice(found: Agreement, beyond: Callable[[], Sequence[str]]) -> str:
    if found.verdict == "same":
        return "B" if beyond() else "C"
    return "A" if found.verdict == "different" and found.score >= _PARTLY_FROM else "D"


_BANDS = {"A": (0.25, 0.45), "B": (0.5, 0.7), "C": (0.9, 1.0), "D": (0.0, 0.24)}
"""The range of scores of each choice: around the score a model's choice has, in the order of the rules' own score."""

ANSWERS: Mapping[str, Callable[[Material], Reply]] = {
    "statements": answer_statements,
    "claims": claim_verdicts,
    "agreements": passage_agreements,
    "useful-passages": useful_passages,
    "attributions": attributions,
    "relevant-sentences": relevant_sentences,
    "comparison": compared,
    "factuality": factuality,
    "entities": named_entities,
    "sentence-labels": sentence_labels,
}
"""The rules, by kind of question."""


def _text(material: Material, name: str) -> str:
    value = material.get(name, "")
    return value if isinstance(value, str) else "\n".join(value)


def _several(material: Material, name: str) -> list[str]:
    return as_list(material.get(name, ()))
