"""The judge that is a local model: asked for one word at a time, since a small model writes nothing to rely on.

Asked to list the statements of an answer, models of half a billion parameters list the question or the prompt. So the
texts are split by rule, and the model only says yes or no to each. `PLANS` has the kinds of question that this is done
for; all others are asked as they are.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from proctor.base.errors import JudgeFailed
from proctor.base.records import record
from proctor.judging.judge import Judge, Question, ReplyT, Texts, as_list
from proctor.judging.prompts import Example, WordQuestion
from proctor.judging.questions import BARE, Graded, YesNo
from proctor.judging.reply_sources import shared_words
from proctor.judging.rule_judge.relevance import makes_claim
from proctor.judging.rule_judge.statements import statements, without_courtesy

Material = Mapping[str, Texts]


class YesNoReply(Graded):
    word: YesNo


class YesNoUnclearReply(Graded):
    word: Annotated[Literal["yes", "no", "unclear"], BARE]


@record
class WordKind:
    """A kind of question that is answered by one word."""

    name: str
    instructions: str
    words: tuple[str, ...]
    shown: tuple[Example, ...]
    """Examples in every prompt."""
    known: tuple[Example, ...]
    """Asked once, to find out how likely the model makes a yes where it is right, and where it is wrong."""

    def about(self, material: Material, criteria: str = "") -> WordQuestion[Any]:
        return WordQuestion(
            kind=self.name,
            version=1,
            instructions=self.instructions,
            material=material,
            reply=YesNoReply if len(self.words) == 2 else YesNoUnclearReply,
            words=self.words,
            examples=self.shown,
            criteria=criteria,
        )


def _said(word: str, passage: str, statement: str) -> Example:
    return Example({"passage": passage, "statement": statement}, word)


_TICKETS = "Tickets cost 8 pounds. The lift is out of order until Friday."
_CHOIR = "Maria Lopez has led the choir since 2004."
_BOOKS = "The library lends books for 4 weeks. Late books cost 50 cents a day."
_BRIDGE = "The Alder bridge was closed in March for repairs. It carries 900 cars an hour."
_STORAGE = "Our plan includes 20 GB of storage. Support is by e-mail only."

SAID = WordKind(
    "said",
    "Say whether the passage says what the statement says: yes if it does, no if it says otherwise, unclear if it does "
    "not say.",
    ("yes", "no", "unclear"),
    (
        _said("yes", _TICKETS, "Tickets cost 8 pounds."),
        _said("no", _TICKETS, "Tickets cost 9 pounds."),
        _said("unclear", _CHOIR, "The choir sings in Spanish."),
        _said("yes", _CHOIR, "Since 2004 the choir's leader has been Maria Lopez."),
    ),
    (
        _said("yes", _BOOKS, "Books are lent for 4 weeks."),
        _said("yes", _BRIDGE, "In March the Alder bridge was closed."),
        _said("yes", _STORAGE, "The plan has 20 GB of storage."),
        _said("no", _BOOKS, "Books are lent for 6 weeks."),
        _said("no", _STORAGE, "Support is by telephone."),
        _said("unclear", _BRIDGE, "The Alder bridge is made of steel."),
    ),
)


def _helps(word: str, question: str, statement: str) -> Example:
    return Example({"question": question, "statement": statement}, word)


HELPS = WordKind(
    "helps",
    "Say whether the statement answers the question or helps to answer it: yes or no.",
    ("yes", "no"),
    (
        _helps("yes", "What do tickets cost?", "Tickets cost 8 pounds."),
        _helps("no", "What do tickets cost?", "The choir sings in Spanish."),
        _helps("no", "Who leads the choir?", "The lift is out of order."),
        _helps("yes", "Who leads the choir?", "Maria Lopez has led it since 2004."),
    ),
    (
        _helps("yes", "How long may I keep a book?", "Books are lent for 4 weeks."),
        _helps("yes", "Is the Alder bridge open?", "The bridge was closed in March for repairs."),
        _helps("yes", "How much storage do I get?", "The plan includes 20 GB."),
        _helps("no", "How long may I keep a book?", "Our support is by e-mail only."),
        _helps("no", "Is the Alder bridge open?", "Apples are sold by weight."),
        _helps("no", "How much storage do I get?", "The library is in King Street."),
    ),
)


def _meets(word: str, criteria: str, question: str, answer: str) -> Example:
    return Example({"question": question, "answer": answer}, word, criteria)


MEETS = WordKind(
    "meets",
    "Say whether the answer meets the criteria: yes or no.",
    ("yes", "no"),
    (
        _meets("yes", "The answer is friendly.", "Do you sell stamps?", "Yes, we do, and we are happy to help!"),
        _meets("no", "The answer is friendly.", "Do you sell stamps?", "Stop wasting my time."),
        _meets("no", "It says what tickets cost.", "What do tickets cost?", "Thank you for asking about the choir."),
        _meets("yes", "It says what tickets cost.", "What do tickets cost?", "A ticket is 8 pounds."),
    ),
    (
        _meets("yes", "It is about the question.", "How long may I keep a book?", "You may keep it for 4 weeks."),
        _meets("yes", "The answer is kind.", "Is the bridge open?", "Good morning! Yes, it is. Have a safe trip."),
        _meets("yes", "It says how much storage there is.", "How much storage do I get?", "You get 20 GB."),
        _meets("no", "It is about the question.", "How long may I keep a book?", "The sea is blue."),
        _meets("no", "The answer is kind.", "Is the bridge open?", "Use your eyes, you fool."),
        _meets("no", "It says how much storage there is.", "How much storage do I get?", "Please ask somebody else."),
    ),
)


@record
class Scale:
    """How a model's probability of a yes is read: against those where the right word is known.

    A small model says yes, or no, to nearly everything; what tells good from bad is how likely it makes the yes.
    """

    middle: float
    """The log-odds half-way between the known cases of either kind."""
    stretch: float

    def credit(self, probability: float) -> float:
        shifted = self.stretch * (_log_odds(probability) - self.middle)
        return 1 / (1 + math.exp(-min(50.0, max(-50.0, shifted))))


SURE = 2.2
"""The log-odds (0.9) that the average known case is read as, unless the model is surer of itself than that."""
LEAST_GAP = 0.1
"""Log-odds; a model that tells known cases apart by less than this cannot tell anything."""


def scale_of(probabilities: Sequence[float], words: Sequence[str]) -> Scale | None:
    """The scale by the probability of a yes in cases whose right word is known; `None` if it tells them not apart."""
    odds = [(_log_odds(probability), word) for probability, word in zip(probabilities, words, strict=True)]
    right, wrong = ([value for value, word in odds if (word == "yes") is wanted] for wanted in (True, False))
    high, low = math.fsum(right) / len(right), math.fsum(wrong) / len(wrong)
    if high - low < LEAST_GAP:
        return None
    return Scale((high + low) / 2, max(1.0, 2 * SURE / (high - low)))


def _log_odds(probability: float) -> float:
    bounded = min(1 - 1e-9, max(1e-9, probability))
    return math.log(bounded / (1 - bounded))


@record
class Heard:
    """The word for one item, and how far it is a yes."""

    word: str
    credit: float | None


Ask = Callable[[WordKind, Sequence[Material]], Awaitable[list[Heard]]]
"""Asks for a word about each material."""


class LocalJudge:
    """Answers whole questions by asking its model for single words, or as they are where there is no plan for them."""

    def __init__(self, model: Judge) -> None:
        self.name = model.name
        self._model = model
        self._scales: dict[tuple[str, int], Scale] = {}

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        if question.ready_reply is not None:
            return question.ready_reply
        plan = _by_criteria if question.criteria else PLANS.get(question.kind)
        if plan is None:
            return await self._model.ask(question, sample=sample)

        async def ask(kind: WordKind, items: Sequence[Material]) -> list[Heard]:
            return await self._words(kind, [kind.about(item, question.criteria) for item in items], sample)

        reply = question.reply.model_validate(await plan(question, ask))
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"{self.name}: what was asked item by item does not fit: {complaint}")
        return reply

    async def _words(self, kind: WordKind, asked: Sequence[WordQuestion[Any]], sample: int) -> list[Heard]:
        replies = await asyncio.gather(*(self._model.ask(each, sample=sample) for each in asked))
        if not any(reply.partial_credit is not None for reply in replies):
            return [Heard(reply.word, None) for reply in replies]
        scale = await self._scale(kind, sample)
        return [self._heard(kind, reply, scale) for reply in replies]

    def _heard(self, kind: WordKind, reply: Any, scale: Scale) -> Heard:
        if reply.partial_credit is None:
            return Heard(reply.word, None)
        credit = scale.credit(reply.partial_credit)
        other = kind.words[-1] if reply.word == "yes" else reply.word
        return Heard("yes" if credit >= 0.5 else other, credit)

    async def _scale(self, kind: WordKind, sample: int) -> Scale:
        known = self._scales.get((kind.name, sample))
        if known is None:
            questions = [kind.about(each.material, each.criteria) for each in kind.known]
            asked = [self._model.ask(each, sample=sample) for each in questions]
            sure = [reply.partial_credit or 0.0 for reply in await asyncio.gather(*asked)]
            found = scale_of(sure, [each.word for each in kind.known])
            if found is None:
                raise JudgeFailed(
                    f"{self.name} cannot judge this: to {len(kind.known)} questions whose answers are known it says "
                    "yes as readily where it is wrong as where it is right; name a larger model"
                )
            known = self._scales[kind.name, sample] = found
        return known


async def _by_criteria(question: Question[Any], ask: Ask) -> dict[str, Any]:
    """A mark on the scale of the question, or its yes or no."""
    (heard,) = await ask(MEETS, [question.material])
    reason = f"whether the criteria are met, the model answers {heard.word}"
    if "mark" not in question.reply.model_fields:
        return {"reason": reason, "verdict": heard.word}
    marks = [float(mark) for mark in question.reply.choice_scores]
    share = float(heard.word == "yes") if heard.credit is None else heard.credit
    mark = min(marks) + share * (max(marks) - min(marks))
    return {"reason": reason, "mark": mark, "partial_credit": heard.credit}


async def _statements(question: Question[Any], ask: Ask) -> dict[str, Any]:
    """The answer split by rule; relevance is asked only of what is more than courtesy."""
    asked, texts = _text(question, "question"), _split(_text(question, "answer"))
    saying = [] if "relevant" in question.unread else [text for text in texts if without_courtesy(text)]
    heard = await ask(HELPS, [{"question": asked, "statement": text} for text in saying])
    by_text = dict(zip(saying, heard, strict=True))
    return {"statements": [_statement(text, by_text.get(text), bool(question.unread)) for text in texts]}


def _statement(text: str, heard: Heard | None, unread: bool) -> dict[str, Any]:
    word, credit = (heard.word, heard.credit) if heard else ("partly", None)
    claim = "yes" if makes_claim(text) else "no"
    return {"text": text, "claim": claim, "relevant": word, "partial_credit": credit, "unclear": unread}


async def _claims(question: Question[Any], ask: Ask) -> dict[str, Any]:
    passages = [*_several(question, "passage"), *_several(question, "known")]
    heard = await _supported(_several(question, "statement"), passages, ask)
    return {
        "verdicts": [
            {"number": number, "reason": "", "verdict": VERDICTS[each.word], "partial_credit": each.credit}
            for number, each in enumerate(heard, 1)
        ]
    }


VERDICTS = {"yes": "supported", "no": "contradicted", "unclear": "unmentioned"}


async def _attributions(question: Question[Any], ask: Ask) -> dict[str, Any]:
    expected = _text(question, "expected")
    texts = _split(expected) or [expected]
    heard = await _supported(texts, _several(question, "passage"), ask)
    return {
        "sentences": [
            {"text": text, "reason": "", "attributable": _yes_no(each), "partial_credit": each.credit}
            for text, each in zip(texts, heard, strict=True)
        ]
    }


async def _relevant_sentences(question: Question[Any], ask: Ask) -> dict[str, Any]:
    asked = _text(question, "question")
    numbered = [
        (number, text)
        for number, passage in enumerate(_several(question, "passage"), 1)
        for text in _split(passage) or [passage]
    ]
    heard = await ask(HELPS, [{"question": asked, "statement": text} for _, text in numbered])
    return {
        "sentences": [
            {"passage": number, "text": text, "relevant": each.word, "partial_credit": each.credit}
            for (number, text), each in zip(numbered, heard, strict=True)
        ]
    }


async def _comparison(question: Question[Any], ask: Ask) -> dict[str, Any]:
    """Statements of each text that the other one makes too."""
    reference, answer = _text(question, "reference"), _text(question, "answer")
    said, expected = _split(answer), _split(reference)
    of_answer = await _supported(said, [reference], ask)
    of_reference = await _supported(expected, [answer], ask)
    only_answer = [(text, each.word) for text, each in zip(said, of_answer, strict=True) if each.word != "yes"]
    return {
        "shared": [text for text, each in zip(said, of_answer, strict=True) if each.word == "yes"],
        "only_answer": [text for text, _ in only_answer],
        "only_reference": [text for text, each in zip(expected, of_reference, strict=True) if each.word != "yes"],
        "contradictions": [text for text, word in only_answer if word == "no"],
    }


async def _supported(texts: Sequence[str], passages: Sequence[str], ask: Ask) -> list[Heard]:
    return await ask(SAID, [{"passage": evidence(text, passages), "statement": text} for text in texts])


MOST_SENTENCES = 3


def evidence(statement: str, passages: Sequence[str]) -> str:
    """The sentences of the passages that have most words in common with a statement, in their order.

    The longer the passages, the readier is a small model to find anything in them; so it is shown only these.
    """
    sentences = [text for passage in passages for text in statements(passage) or [passage]]
    shared = [shared_words(statement, text) for text in sentences]
    ranked = sorted(range(len(sentences)), key=lambda number: -shared[number])[:MOST_SENTENCES]
    telling = [number for number in sorted(ranked) if shared[number]]
    return "\n".join(sentences[number] for number in telling or sorted(ranked))


PLANS: Mapping[str, Callable[[Question[Any], Ask], Awaitable[dict[str, Any]]]] = {
    "statements": _statements,
    "claims": _claims,
    "attributions": _attributions,
    "relevant-sentences": _relevant_sentences,
    "comparison": _comparison,
}
"""How a whole question is answered by single words, by its kind."""


def _split(text: str) -> list[str]:
    """The statements of a text, each once."""
    return list({" ".join(each.casefold().split()): each for each in statements(text)}.values())


def _yes_no(heard: Heard) -> str:
    return "yes" if heard.word == "yes" else "no"


def _text(question: Question[Any], name: str) -> str:
    value = question.material.get(name, "")
    return value if isinstance(value, str) else "\n".join(value)


def _several(question: Question[Any], name: str) -> list[str]:
    return as_list(question.material.get(name, ()))
