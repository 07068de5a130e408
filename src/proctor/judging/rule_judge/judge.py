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
from proctor.judging.rule_judge.reading import Token, matches, names_in, read, read_sources
from proctor.judging.rule_judge.records import Verdict
from proctor.judging.rule_judge.relevance import Relevance, relevances

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
    return {field: words.get(relevance.verdict, "no"), "reason": reason, "unclear": relevance.verdict == "cannot tell"}


def claim_verdicts(material: Material) -> Reply:
    judged = judge_claims(_texts(material, "statement"), _texts(material, "passage"), _texts(material, "known"))
    return {"verdicts": [{"number": number, **_verdict_fields(found)} for number, found in enumerate(judged, 1)]}


def _verdict_fields(found: Verdict) -> Reply:
    unclear = found.answer == "cannot tell"
    return {"verdict": "unmentioned" if unclear else found.answer, "reason": found.reason, "unclear": unclear}


def passage_agreements(material: Material) -> Reply:
    """A passage disagrees with a claim that it contradicts and that no other passage supports."""
    passages, known = _texts(material, "passage"), _texts(material, "known")
    claims = [text for text in split_statements(_text(material, "answer")) if makes_claim(text)]
    whole = judge_claims(claims, passages, known)
    open_claims = [text for text, found in zip(claims, whole, strict=True) if found.answer == "cannot tell"]
    verdicts = []
    for number, passage in enumerate(passages, 1):
        alone = judge_claims(claims, [passage], known)
        against = next(
            (
                f"“{text}”: {own.reason}"
                for text, found, own in zip(claims, whole, alone, strict=True)
                if found.answer == own.answer == "contradicted"
            ),
            "",
        )
        reason = against or (f"“{open_claims[0]}”" if open_claims else "nothing in the answer contradicts it")
        unclear = bool(open_claims) and not against
        verdicts.append({"number": number, "verdict": _yes_or_no(not against), "reason": reason, "unclear": unclear})
    return {"verdicts": verdicts}


def useful_passages(material: Material) -> Reply:
    """A passage is useful if it proves a part of the expected answer, and useless if it shares nothing with it."""
    question, expected = _text(material, "question"), _text(material, "expected")
    parts = split_statements(expected)
    verdicts = []
    for number, passage in enumerate(_texts(material, "passage"), 1):
        proven = any(found.answer == "supported" for found in judge_claims(parts, [passage]))
        useful = proven or compare_answers(question, expected, passage).verdict == "same"
        unclear = not useful and _shares_content(f"{question} {expected}", passage)
        reason = "it states a part of the expected answer" if useful else "it has nothing of the expected answer"
        reason = "it may have a part of the expected answer" if unclear else reason
        verdicts.append({"number": number, "verdict": _yes_or_no(useful), "reason": reason, "unclear": unclear})
    return {"verdicts": verdicts}


def _shares_content(one: str, other: str) -> bool:
    """Whether two texts share a content word or a value; texts that share none are about different things."""
    names = names_in([one, other])
    keys = {word for token in read(other, names) if token.is_content for word in token.key.partition("+")[0].split()}
    return any(
        word in keys for token in read(one, names) if token.is_content for word in token.key.partition("+")[0].split()
    )


def attributions(material: Material) -> Reply:
    passages, expected = _texts(material, "passage"), _text(material, "expected")
    texts = split_statements(expected) or [expected]
    return {
        "sentences": [
            {"text": text, **_verdict_fields(found), "attributable": _yes_or_no(found.answer == "supported")}
            for text, found in zip(texts, judge_claims(texts, passages), strict=True)
        ]
    }


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
    """An entity of the expected answer is found if a passage has it, and missing if no word of it is in any."""
    passages, expected = _texts(material, "passage"), _text(material, "expected")
    sources = read_sources(tuple(passages), (expected,))
    said = [token for sentence in sources.sentences for token in sentence.tokens]
    said += [token for record in sources.records for _, value in record.fields for token in value]
    said += [token for record in sources.records for name in record.identity for token in name]
    words = {word for token in said for word in token.text.lower().split()}
    tokens = [token for text in split_statements(expected) for token in read(text, names_in([expected, *passages]))]
    entities = {token.key: token for token in tokens if token.value is not None or token.kind == "name"}
    return {"entities": [_entity_fields(token, said, words) for token in entities.values()]}


def _entity_fields(entity: Token, said: Sequence[Token], words: set[str]) -> Reply:
    found = any(matches(entity, token) for token in said)
    parts = [] if entity.value is not None else entity.text.lower().split()
    return {
        "text": entity.text,
        "found": _yes_or_no(found),
        "unclear": not found and any(map(words.__contains__, parts)),
    }


def sentence_labels(material: Material) -> Reply:
    """Label sentences by comparing them with all other material."""
    known = _texts(material, "question")
    grounds = [text for name in material if name not in ("sentence", "question") for text in _texts(material, name)]
    texts = _texts(material, "sentence")
    verdicts = []
    for number, (text, found) in enumerate(zip(texts, judge_claims(texts, grounds, known), strict=True), 1):
        label = {"supported": "supported", "contradicted": "contradictory"}.get(found.answer, "unsupported")
        label = label if makes_claim(text) else "not_applicable"
        unclear = found.answer == "cannot tell" and label != "not_applicable"
        verdicts.append({"number": number, "label": label, "reason": found.reason, "unclear": unclear, "text": text})
    return {"verdicts": verdicts}


def statement_comparison(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = compare_answers(question, reference, answer)
    same = found.verdict == "same"
    return {
        "shared": [reference] if same else [],
        "only_answer": [] if same else split_statements(answer),
        "only_reference": [] if same else [reference],
        "contradictions": [found.reason] if found.verdict == "contradicted" else [],
        "unclear": found.verdict == "cannot tell",
    }


def factuality(material: Material) -> Reply:
    question, reference, answer = (_text(material, name) for name in ("question", "reference", "answer"))
    found = compare_answers(question, reference, answer)
    beyond = [text for text in split_statements(answer) if makes_claim(text)]
    choice = "D" if found.verdict != "same" else "C" if len(beyond) <= max(1, len(split_statements(reference))) else "B"
    return {"choice": choice, "reason": found.reason, "unclear": found.verdict == "cannot tell"}


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
