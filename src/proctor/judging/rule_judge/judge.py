"""The rule-based judge. It needs no model, no key and no network.

How it works: `RULE_FOR_KIND` maps each known kind of question to a rule, which proves or refutes. The replies have the
same shape as a model's. A rule that can do neither marks an item as unclear, and unless the question accepts that, the
judge abstains: a guess would be a wrong score.
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
from proctor.judging.rule_judge.agreement import compare_answers
from proctor.judging.rule_judge.claims import makes_claim, split_statements
from proctor.judging.rule_judge.proof import Verdict, judge_claims
from proctor.judging.rule_judge.relevance import relevances

NOTHING_SPENT = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0, model_calls=0)
THREAD_FROM_LENGTH = 4_000
"""Characters of material from which a rule runs in a thread, so that the event loop is not blocked."""
Material: TypeAlias = Mapping[str, Texts]
Reply: TypeAlias = dict[str, Any]


class RuleJudge:
    """Answers the kinds of question that rules can answer, the same way every time."""

    name = RULES

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        rule = RULE_FOR_KIND.get(question.kind)
        if rule is None:
            raise NeedsModel("the rule-based judge has no rule for this")
        started = time.perf_counter()
        size = sum(len(text) for name in question.material for text in _texts(question.material, name))
        data = rule(question.material) if size < THREAD_FROM_LENGTH else await run_in_thread(rule, question.material)
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


def _undecided_items(reply: Reply) -> list[tuple[str, str]]:
    """The items that the rules cannot decide, or the reply as a whole: the text of each, and the reason."""
    items = [reply, *(item for items in reply.values() if isinstance(items, list) for item in items)]
    marked = [item for item in items if isinstance(item, dict) and item.get("unclear")]
    return [(item.get("text", ""), item.get("reason", "")) for item in marked]


def answer_statements(material: Material) -> Reply:
    """A courtesy is part of an answer and counts as partly relevant."""
    texts = split_statements(_text(material, "answer"))
    words = {"relevant": "yes", "courtesy": "partly"}
    return {
        "statements": [
            {
                "text": text,
                "claim": _yes_or_no(makes_claim(text)),
                "relevant": words.get(found.verdict, "no"),
                "reason": "" if found.verdict == "relevant" else found.reason,
                "unclear": found.verdict == "cannot tell",
            }
            for text, found in zip(texts, relevances(_text(material, "question"), texts), strict=True)
        ]
    }


def claim_verdicts(material: Material) -> Reply:
    found = judge_claims(*(_texts(material, name) for name in ("statement", "passage", "known")))
    return {"verdicts": [{"number": number, **_verdict_fields(each)} for number, each in enumerate(found, 1)]}


def _verdict_fields(found: Verdict) -> Reply:
    is_open = found.answer == "cannot tell"
    return {"verdict": "unmentioned" if is_open else found.answer, "reason": found.reason, "unclear": is_open}


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a claim that it contradicts and that no other passage supports."""
    passages, known = _texts(material, "passage"), _texts(material, "known")
    claims = [text for text in split_statements(_text(material, "answer")) if makes_claim(text)]
    whole = dict(zip(claims, judge_claims(claims, passages, known), strict=True))
    open_claim = next((text for text, found in whole.items() if found.answer == "cannot tell"), "")
    verdicts = []
    for number, passage in enumerate(passages, 1):
        alone = zip(claims, judge_claims(claims, [passage], known), strict=True)
        wrong = [(text, own) for text, own in alone if whole[text].answer == own.answer == "contradicted"]
        reason = f"“{open_claim}”" if open_claim else "nothing in the answer contradicts it"
        reason = f"“{wrong[0][0]}”: {wrong[0][1].reason}" if wrong else reason
        is_open = bool(open_claim) and not wrong
        verdicts.append({"number": number, "verdict": _yes_or_no(not wrong), "reason": reason, "unclear": is_open})
    return {"verdicts": verdicts}


def attributions(material: Material) -> Reply:
    expected = _text(material, "expected")
    texts = split_statements(expected) or [expected]
    return {
        "sentences": [
            {"text": text, **_verdict_fields(found), "attributable": _yes_or_no(found.answer == "supported")}
            for text, found in zip(texts, judge_claims(texts, _texts(material, "passage")), strict=True)
        ]
    }


def relevant_sentences(material: Material) -> Reply:
    question = _text(material, "question")
    sentences = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        texts = split_statements(passage) or [passage]
        for text, found in zip(texts, relevances(question, texts, answer=False), strict=True):
            is_relevant, is_open = found.verdict == "relevant", found.verdict == "cannot tell"
            reason = "" if is_relevant else found.reason
            fields = {"relevant": _yes_or_no(is_relevant), "reason": reason, "unclear": is_open}
            sentences.append({"passage": number, "text": text, **fields})
    return {"sentences": sentences}


def sentence_labels(material: Material) -> Reply:
    """Label sentences by comparing them with all other material."""
    grounds = [text for name in material if name not in ("sentence", "question") for text in _texts(material, name)]
    texts = _texts(material, "sentence")
    labels = {"supported": "supported", "contradicted": "contradictory", "cannot tell": "unsupported"}
    verdicts = []
    for number, (text, found) in enumerate(
        zip(texts, judge_claims(texts, grounds, _texts(material, "question")), strict=True), 1
    ):
        is_claim = makes_claim(text)
        is_open = is_claim and found.answer == "cannot tell"
        fields = {"label": labels[found.answer] if is_claim else "not_applicable", "unclear": is_open}
        verdicts.append({"number": number, "reason": found.reason, "text": text, **fields})
    return {"verdicts": verdicts}


def statement_comparison(material: Material) -> Reply:
    reference, answer = _text(material, "reference"), _text(material, "answer")
    found = compare_answers(_text(material, "question"), reference, answer)
    is_same = found.answer == "supported"
    return {
        "shared": [reference] if is_same else [],
        "only_answer": [] if is_same else split_statements(answer),
        "only_reference": [] if is_same else [reference],
        "contradictions": [found.reason] if found.answer == "contradicted" else [],
        "unclear": found.answer == "cannot tell",
    }


def factuality(material: Material) -> Reply:
    reference, answer = _text(material, "reference"), _text(material, "answer")
    found = compare_answers(_text(material, "question"), reference, answer)
    claims = [text for text in split_statements(answer) if makes_claim(text)]
    agreement = "C" if len(claims) <= max(1, len(split_statements(reference))) else "B"
    choice = agreement if found.answer == "supported" else "D"
    return {"choice": choice, "reason": found.reason, "unclear": found.answer == "cannot tell"}


RULE_FOR_KIND: Mapping[str, Callable[[Material], Reply]] = {
    "statements": answer_statements,
    "claims": claim_verdicts,
    "agreements": passage_agreements,
    "attributions": attributions,
    "relevant-sentences": relevant_sentences,
    "comparison": statement_comparison,
    "factuality": factuality,
    "sentence-labels": sentence_labels,
}
"""The rules, by kind of question."""


def _yes_or_no(condition: bool) -> str:
    return "yes" if condition else "no"


def _text(material: Material, name: str) -> str:
    return "\n".join(_texts(material, name))


def _texts(material: Material, name: str) -> list[str]:
    return as_list(material.get(name, ()))
