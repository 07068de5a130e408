"""The rule-based judge. It needs no model, no key and no network.

How it works: `RULE_FOR_KIND` maps each known kind of question to a rule, which proves or refutes. The replies have the
same shape as a model's. A rule that can do neither marks an item as unclear, and unless the question accepts that, the
judge abstains: a guess would be a wrong score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
from proctor.judging.rule_judge.proof import judge_claims
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
        size = sum(len(text) for texts in question.material.values() for text in as_list(texts))
        data = rule(question.material) if size < THREAD_FROM_LENGTH else await run_in_thread(rule, question.material)
        unclear = _undecided_items(data)
        if unclear and not question.accepts_abstentions:
            raise CannotTell(abstention_message(self.name, unclear))
        reply = question.reply.model_validate(data)
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"the rule-based judge's reply does not fit: {complaint}")
        key = fingerprint(self.name, RULES_VERSION, question.kind, question.version, to_json(question.material))
        spent = (time.perf_counter() - started) * 1000
        call = JudgeCall(
            question.kind, question.version, self.name, key, usage=NOTHING_SPENT, duration_ms=spent, sample=sample
        )
        log_call(call)
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
                "reason": found.reason,
                "unclear": found.verdict == "cannot tell",
            }
            for text, found in zip(texts, relevances(_text(material, "question"), texts), strict=True)
        ]
    }


def relevant_sentences(material: Material) -> Reply:
    sentences = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        texts = split_statements(passage) or [passage]
        for text, found in zip(texts, relevances(_text(material, "question"), texts), strict=True):
            is_open = found.verdict == "cannot tell"
            fields = {"relevant": _yes_or_no(found.verdict == "relevant"), "reason": found.reason, "unclear": is_open}
            sentences.append({"passage": number, "text": text, **fields})
    return {"sentences": sentences}


def claim_verdicts(material: Material) -> Reply:
    return {"verdicts": _judge(_texts(material, "statement"), material)}


def attributions(material: Material) -> Reply:
    expected = _text(material, "expected")
    return {"sentences": _judge(split_statements(expected) or [expected], material)}


def sentence_labels(material: Material) -> Reply:
    """Sentences are compared with all other material."""
    grounds = [text for name in material if name not in ("sentence", "question") for text in _texts(material, name)]
    known = {"passage": grounds, "known": _texts(material, "question")}
    verdicts = _judge(_texts(material, "sentence"), known)
    no_claim = {"label": "not_applicable", "unclear": False}
    return {"verdicts": [each if makes_claim(each["text"]) else {**each, **no_claim} for each in verdicts]}


def _judge(claims: Sequence[str], material: Material) -> list[Reply]:
    """One item for each claim, with its verdict in the words of every kind of question that asks for it."""
    found = judge_claims(claims, _texts(material, "passage"), _texts(material, "known"))
    return [
        {
            "number": number,
            "text": text,
            "reason": each.reason,
            "unclear": each.answer == "cannot tell",
            "verdict": "unmentioned" if each.answer == "cannot tell" else each.answer,
            "attributable": _yes_or_no(each.answer == "supported"),
            "label": {"contradicted": "contradictory", "cannot tell": "unsupported"}.get(each.answer, each.answer),
        }
        for number, (text, each) in enumerate(zip(claims, found, strict=True), 1)
    ]


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a claim that it contradicts and that no other passage supports."""
    claims = [text for text in split_statements(_text(material, "answer")) if makes_claim(text)]
    whole = _judge(claims, material)
    open_claims = [claim for claim in whole if claim["unclear"]]
    refuted = [claim["text"] for claim in whole if claim["verdict"] == "contradicted"]
    verdicts = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        alone = _judge(claims, {**material, "passage": passage})
        wrong = [claim for claim in alone if claim["verdict"] == "contradicted" and claim["text"] in refuted]
        reason = "; ".join(f"“{claim['text']}”: {claim['reason']}" for claim in (wrong or open_claims)[:1])
        is_open = bool(open_claims) and not wrong
        verdicts.append({"number": number, "verdict": _yes_or_no(not wrong), "reason": reason, "unclear": is_open})
    return {"verdicts": verdicts}


def comparison(material: Material) -> Reply:
    """The reply to `comparison`, which asks for statements, and to `factuality`, which asks for a choice."""
    reference, answer = _text(material, "reference"), _text(material, "answer")
    found = compare_answers(_text(material, "question"), reference, answer)
    claims = [text for text in split_statements(answer) if makes_claim(text)]
    is_same, is_longer = found.answer == "supported", len(claims) > max(1, len(split_statements(reference)))
    return {
        "shared": [reference] if is_same else [],
        "only_answer": [] if is_same else split_statements(answer),
        "only_reference": [] if is_same else [reference],
        "contradictions": [found.reason] if found.answer == "contradicted" else [],
        "choice": ("B" if is_longer else "C") if is_same else "D",
        "reason": found.reason,
        "unclear": found.answer == "cannot tell",
    }


RULE_FOR_KIND: Mapping[str, Callable[[Material], Reply]] = {
    "statements": answer_statements,
    "relevant-sentences": relevant_sentences,
    "claims": claim_verdicts,
    "attributions": attributions,
    "sentence-labels": sentence_labels,
    "agreements": passage_agreements,
    "comparison": comparison,
    "factuality": comparison,
}
"""The rules, by kind of question."""


def _yes_or_no(condition: bool) -> str:
    return "yes" if condition else "no"


def _text(material: Material, name: str) -> str:
    return "\n".join(_texts(material, name))


def _texts(material: Material, name: str) -> list[str]:
    return as_list(material.get(name, ()))
