"""The rule-based judge. It needs no model, no key and no network.

How it works: `RULE_FOR_KIND` maps each known kind of question to a rule, which compares words, numbers, dates, names
and negations. The replies have the same shape as a model's. A rule that cannot decide marks an item as unclear, and
unless the question accepts that, the judge abstains: a guess would be a wrong score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from proctor.agents.reply import Usage
from proctor.base.errors import JudgeFailed, NeedsModel
from proctor.base.json_data import fingerprint, to_json
from proctor.base.threads import run_in_thread
from proctor.judging.call_log import log_call
from proctor.judging.judge import (
    RULES,
    RULES_VERSION,
    CannotTell,
    JudgeCall,
    Question,
    ReplyT,
    Texts,
    abstention_message,
    as_list,
)
from proctor.judging.rule_judge.agreement import agreement
from proctor.judging.rule_judge.passage_reading import entities
from proctor.judging.rule_judge.relevance import Relevance, makes_claim, relevances
from proctor.judging.rule_judge.statements import split_statements
from proctor.judging.rule_judge.support import Support, support

NOTHING_SPENT = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
THREAD_FROM_LENGTH = 4_000
"""Characters of material from which a rule runs in a thread, so that the event loop is not blocked."""


class RuleJudge:
    """Answers the kinds of question that rules can answer, the same way every time."""

    name = RULES

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        rule = RULE_FOR_KIND.get(question.kind)
        if rule is None:
            raise NeedsModel("the rule-based judge has no rule for this")
        started = time.perf_counter()
        if _size(question) < THREAD_FROM_LENGTH:
            data = rule(question.material)
        else:
            data = await run_in_thread(rule, question.material)
        unclear = _undecided_items(data)
        if unclear and not question.accepts_abstentions:
            raise CannotTell(abstention_message(self.name, unclear))
        reply = question.reply.model_validate(data)
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"the rule-based judge's reply does not fit: {complaint}")
        spent = (time.perf_counter() - started) * 1000
        key = fingerprint(self.name, RULES_VERSION, question.kind, question.version, to_json(question.material))
        log_call(
            JudgeCall(
                question.kind, question.version, self.name, key, usage=NOTHING_SPENT, duration_ms=spent, sample=sample
            )
        )
        return reply


def _undecided_items(reply: Reply) -> list[str]:
    """The items that the rules cannot decide, or the reply as a whole, each with the reason."""
    items = [reply, *(item for items in reply.values() if isinstance(items, list) for item in items)]
    marked = [item for item in items if isinstance(item, dict) and item.get("unclear")]
    return [": ".join(filter(None, (item.get("text", ""), item.get("reason", "")))) for item in marked]


def _size(question: Question[ReplyT]) -> int:
    return sum(len(text) for name in question.material for text in _texts(question.material, name))


Material: TypeAlias = Mapping[str, Texts]
Reply: TypeAlias = dict[str, Any]


def answer_statements(material: Material) -> Reply:
    question = _text(material, "question")
    texts = split_statements(_text(material, "answer"))
    found = [
        {"text": text, "claim": "yes" if makes_claim(text) else "no", **_relevance_fields("relevant", relevance)}
        for text, relevance in zip(texts, relevances(question, texts), strict=True)
    ]
    return {"statements": found}


def _relevance_fields(field: str, relevance: Relevance) -> Reply:
    """Relevance as fields of a reply; a courtesy is part of an answer and counts as partly relevant."""
    words = {"relevant": "yes", "courtesy": "partly" if field == "relevant" else "no"}
    reason = "" if relevance.verdict == "relevant" else relevance.reason
    return {field: words.get(relevance.verdict, "no"), "reason": reason, "unclear": relevance.verdict == "unclear"}


def claim_verdicts(material: Material) -> Reply:
    passages, known = _texts(material, "passage"), _texts(material, "known")
    judged = [support(text, passages, known) for text in _texts(material, "statement")]
    return {"verdicts": [{"number": number, **_support_fields(found)} for number, found in enumerate(judged, 1)]}


def _support_fields(found: Support) -> Reply:
    unclear = found.verdict == "unclear"
    return {"verdict": "unmentioned" if unclear else found.verdict, "reason": found.reason, "unclear": unclear}


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a claim that it contradicts and that no other passage supports."""
    passages, known = _texts(material, "passage"), _texts(material, "known")
    claims = [text for text in split_statements(_text(material, "answer")) if makes_claim(text)]
    judged = [(text, support(text, passages, known).verdict) for text in claims]
    verdicts = []
    for number, passage in enumerate(passages, 1):
        found = [(text, support(text, [passage], known)) for text, whole in judged if whole == "contradicted"]
        against = next((f"“{text}”: {result.reason}" for text, result in found if result.verdict == "contradicted"), "")
        undecided = next((f"“{text}”" for text, whole in judged if whole == "unclear"), "")
        verdicts.append(
            {
                "number": number,
                "verdict": "no" if against else "yes",
                "reason": against or undecided or "nothing in the answer contradicts it",
                "unclear": bool(undecided) and not against,
            }
        )
    return {"verdicts": verdicts}


def useful_passages(material: Material) -> Reply:
    """A passage is useful if it gives the expected answer or supports any part of it."""
    question, expected = _text(material, "question"), _text(material, "expected")
    parts = split_statements(expected)
    verdicts = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        found = {support(part, [passage]).verdict for part in parts} | {agreement(question, expected, passage).verdict}
        useful = not found.isdisjoint(("same", "supported"))
        unclear = not useful and "unclear" in found
        reason = "it supports the expected answer" if useful else "it has nothing of the expected answer"
        reason = "it may have a part of the expected answer" if unclear else reason
        verdicts.append({"number": number, "verdict": _yes_or_no(useful), "reason": reason, "unclear": unclear})
    return {"verdicts": verdicts}


def attributions(material: Material) -> Reply:
    passages, expected = _texts(material, "passage"), _text(material, "expected")
    judged = [(text, support(text, passages)) for text in split_statements(expected) or [expected]]
    sentences = [
        {"text": text, **_support_fields(found), "attributable": _yes_or_no(found.verdict == "supported")}
        for text, found in judged
    ]
    return {"sentences": sentences}


def relevant_sentences(material: Material) -> Reply:
    question = _text(material, "question")
    sentences = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        texts = split_statements(passage) or [passage]
        judged = zip(texts, relevances(question, texts, answer=False), strict=True)
        sentences += [
            {"passage": number, "text": text, **_relevance_fields("relevant", found)} for text, found in judged
        ]
    for sentence in sentences:
        sentence["relevant"] = "no" if sentence["relevant"] == "no" else "yes"
    return {"sentences": sentences}


def named_entities(material: Material) -> Reply:
    """An entity of the expected answer is found if the passages support its bare name."""
    passages = _texts(material, "passage")
    found = [(name, support(name, passages).verdict) for name in entities(_text(material, "expected"))]
    return {
        "entities": [
            {"text": name, "found": _yes_or_no(verdict == "supported"), "unclear": verdict == "unclear"}
            for name, verdict in found
        ]
    }


def sentence_labels(material: Material) -> Reply:
    """Label sentences by comparing them with all other material."""
    known = _texts(material, "question")
    grounds = [text for name in material if name not in ("sentence", "question") for text in _texts(material, name)]
    verdicts = []
    for number, text in enumerate(_texts(material, "sentence"), 1):
        found = support(text, grounds, known)
        label = {"supported": "supported", "contradicted": "contradictory"}.get(found.verdict, "unsupported")
        label = label if makes_claim(text) else "not_applicable"
        unclear = found.verdict == "unclear" and label != "not_applicable"
        verdicts.append({"number": number, "label": label, "reason": found.reason, "unclear": unclear, "text": text})
    return {"verdicts": verdicts}


def statement_comparison(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = agreement(question, reference, answer)
    same = found.verdict == "same"
    return {
        "shared": [reference] if same else [],
        "only_answer": [] if same else split_statements(answer),
        "only_reference": list(found.missing) if same else list(found.missing or (reference,)),
        "contradictions": [found.reason] if found.verdict == "contradicted" else [],
        "unclear": found.verdict == "unclear",
    }


def factuality(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = agreement(question, reference, answer)
    beyond = [text for text in split_statements(answer) if makes_claim(text)]
    choice = "D" if found.verdict != "same" else "C" if len(beyond) <= max(1, len(split_statements(reference))) else "B"
    return {"choice": choice, "reason": found.reason, "unclear": found.verdict == "unclear"}


RULE_FOR_KIND: Mapping[str, Callable[[Material], Reply]] = {
    "statements": answer_statements,
    "claims": claim_verdicts,
    "agreements": passage_agreements,
    "useful-passages": useful_passages,
    "attributions": attributions,
    "relevant-sentences": relevant_sentences,
    "comparison": statement_comparison,
    "factuality": factuality,
    "entities": named_entities,
    "sentence-labels": sentence_labels,
}
"""The rules, by kind of question."""


def _yes_or_no(condition: bool) -> str:
    return "yes" if condition else "no"


def _text(material: Material, name: str) -> str:
    value = material.get(name, "")
    return value if isinstance(value, str) else "\n".join(value)


def _texts(material: Material, name: str) -> list[str]:
    return as_list(material.get(name, ()))
