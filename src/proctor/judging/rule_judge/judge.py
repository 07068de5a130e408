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
from proctor.base.errors import NeedsModel
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
        spent = (time.perf_counter() - started) * 1000
        key = fingerprint(self.name, RULES_VERSION, question.kind, question.version, to_json(question.material))
        log_call(JudgeCall(question.kind, question.version, RULES, key, False, NOTHING_SPENT, spent, sample))
        return question.reply.model_validate(data)


def _undecided_items(reply: Reply) -> list[tuple[str, str]]:
    """The items that the rules cannot decide, or the reply as a whole: the text of each, and the reason."""
    items = [reply, *(item for items in reply.values() if isinstance(items, list) for item in items)]
    marked = [item for item in items if isinstance(item, dict) and item.get("unclear")]
    return [(item.get("text", ""), item.get("reason", "")) for item in marked]


def answer_statements(material: Material) -> Reply:
    """A courtesy is part of an answer and counts as partly relevant."""
    question, texts = _text(material, "question"), split_statements(_text(material, "answer"))
    items = _relevance_items(question, texts, courtesy="partly")
    return {"statements": [{**item, "claim": "yes" if makes_claim(item["text"]) else "no"} for item in items]}


def relevant_sentences(material: Material) -> Reply:
    question, passages = _text(material, "question"), enumerate(_texts(material, "passage"), 1)
    split = [(number, split_statements(passage) or [passage]) for number, passage in passages]
    items = [(number, item) for number, texts in split for item in _relevance_items(question, texts, courtesy="no")]
    return {"sentences": [{**item, "passage": number} for number, item in items]}


def _relevance_items(question: str, texts: Sequence[str], courtesy: str) -> list[Reply]:
    """One item for each text; `courtesy` is the word for courtesies."""
    words = {"relevant": "yes", "courtesy": courtesy, "irrelevant": "no", "cannot tell": "no"}
    return [
        {"text": text, "relevant": words[each.verdict], "reason": each.reason, "unclear": each.verdict == "cannot tell"}
        for text, each in zip(texts, relevances(question, texts), strict=True)
    ]


def claim_verdicts(material: Material) -> Reply:
    return {"verdicts": _judge(_texts(material, "statement"), material)}


def attributions(material: Material) -> Reply:
    expected = _text(material, "expected")
    return {"sentences": _judge(split_statements(expected) or [expected], material)}


def sentence_labels(material: Material) -> Reply:
    """Sentences are compared with all other material."""
    grounds = [text for name in material if name not in ("sentence", "question") for text in _texts(material, name)]
    items = _judge(_texts(material, "sentence"), {"passage": grounds, "known": _texts(material, "question")})
    no_claim = {"label": "not_applicable", "unclear": False}
    return {"verdicts": [item if makes_claim(item["text"]) else {**item, **no_claim} for item in items]}


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a claim that it contradicts and that no other passage supports."""
    claims = [text for text in split_statements(_text(material, "answer")) if makes_claim(text)]
    whole = _judge(claims, material)
    unclear = [item for item in whole if item["unclear"]]
    verdicts = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        pairs = zip(_judge(claims, {**material, "passage": passage}), whole, strict=True)
        wrong = [item for item, other in pairs if item["verdict"] == other["verdict"] == "contradicted"]
        reason = "; ".join(f"“{item['text']}”: {item['reason']}" for item in (wrong or unclear)[:1])
        is_open = bool(unclear) and not wrong
        verdicts.append({"number": number, "verdict": "no" if wrong else "yes", "reason": reason, "unclear": is_open})
    return {"verdicts": verdicts}


def _judge(claims: Sequence[str], material: Material) -> list[Reply]:
    """One item for each claim, with its verdict in the words of every kind of question that asks for it."""
    words: dict[str, Reply] = {
        "supported": {"verdict": "supported", "label": "supported", "attributable": "yes"},
        "contradicted": {"verdict": "contradicted", "label": "contradictory", "attributable": "no"},
        "cannot tell": {"verdict": "unmentioned", "label": "unsupported", "attributable": "no", "unclear": True},
    }
    found = judge_claims(claims, _texts(material, "passage"), _texts(material, "known"))
    return [
        {"number": number, "text": text, "reason": each.reason, "unclear": False, **words[each.answer]}
        for number, (text, each) in enumerate(zip(claims, found, strict=True), 1)
    ]


def comparison(material: Material) -> Reply:
    """The reply to `comparison`, which asks for statements, and to `factuality`, which asks for a choice."""
    reference, answer = _text(material, "reference"), _text(material, "answer")
    found = compare_answers(_text(material, "question"), reference, answer)
    is_same, texts = found.answer == "supported", split_statements(answer)
    is_longer = len([text for text in texts if makes_claim(text)]) > max(1, len(split_statements(reference)))
    return {
        "shared": [reference] if is_same else [],
        "only_answer": [] if is_same else texts,
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


def _text(material: Material, name: str) -> str:
    return "\n".join(_texts(material, name))


def _texts(material: Material, name: str) -> list[str]:
    return as_list(material.get(name, ()))
