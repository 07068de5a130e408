"""The questions that several evaluators share, so that they use one cached answer.

The rule-based judge has rules for these kinds, too. `choose` builds a question with a few choices. Items are numbered
from 1 in the prompt, and a reply must have each exactly once. A reason comes before its verdict, because a model
reasons while it writes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from proctor.judging.judge import Question, Texts
from proctor.judging.reply_sources import TakenFrom, max_statements


def bare_word(value: Any) -> Any:
    """The word of a verdict without the capitals, quotes and full stops that models add."""
    return value.strip(" \t\n.:()\"'").casefold() if isinstance(value, str) else value


BARE = BeforeValidator(bare_word)
YesNo = Annotated[Literal["yes", "no"], BARE]


class AbstainableReply(BaseModel):
    """A verdict that a judge may leave undecided."""

    unclear: SkipJsonSchema[bool] = False
    """Whether the judge could not decide; only the rule-based judge sets it, and the verdict then means nothing."""


@dataclass(frozen=True, slots=True)
class EachOnce:
    """A check that a reply has one verdict for each of `count` numbered items."""

    count: int
    items: str = "items"
    """What the items are, for the message."""
    field: str = "verdicts"

    def __call__(self, reply: Any) -> str | None:
        numbers = sorted(item.number for item in getattr(reply, self.field))
        if numbers == list(range(1, self.count + 1)):
            return None
        known = range(1, self.count + 1)
        faults = {
            "none for": [number for number in known if number not in numbers],
            "more than one for": [number for number, count in Counter(numbers).items() if count > 1],
            "there is no": [number for number in dict.fromkeys(numbers) if number not in known],
        }
        listed = "; ".join(f"{words} {', '.join(map(str, found[:20]))}" for words, found in faults.items() if found)
        verdicts = "1 verdict" if len(numbers) == 1 else f"{len(numbers)} verdicts"
        items = self.items.removesuffix("s") if self.count == 1 else self.items
        given = f"the judge gave {verdicts} for {self.count} {items} ({listed})"
        return f"{given}; {self.field} must have exactly one entry for each number from 1 to {self.count}"


def _not_empty(field: str, complaint: str) -> Any:
    """A check that a list is not empty."""
    return lambda reply: None if getattr(reply, field) else complaint


def _every_passage(count: int) -> Any:
    """A check that the reply has each passage, and no others."""

    def check(reply: PassageSentences) -> str | None:
        numbers = {sentence.passage for sentence in reply.sentences}
        if numbers == set(range(1, count + 1)):
            return None
        return f"sentences must have each passage from 1 to {count} and no other; they have {sorted(numbers)[:50]}"

    return check


@dataclass(frozen=True, slots=True)
class FromEachPassage:
    """A check that the sentences of a reply are from the passages they name."""

    passages: tuple[str, ...]

    def __call__(self, reply: PassageSentences) -> str | None:
        complaints = (
            TakenFrom("sentences", passage, name=f"passage {number}")(
                PassageSentences(sentences=[each for each in reply.sentences if each.passage == number])
            )
            for number, passage in enumerate(self.passages, 1)
            if passage.strip()
        )
        return next(filter(None, complaints), None)


class Statement(AbstainableReply):
    text: str = Field(description="the statement, understandable on its own")
    claim: YesNo = Field(description="whether it asserts something that could be right or wrong")
    reason: str = Field("", description="why it does not address the question; empty if it does")
    relevant: Annotated[Literal["yes", "partly", "no"], BARE] = Field(description="whether it addresses the question")


class Statements(BaseModel):
    statements: list[Statement]


def statements(question: str, answer: str) -> Question[Statements]:
    """The statements of the answer, and whether each addresses the question; for relevancy and faithfulness."""
    return Question(
        kind="statements",
        version=2,
        instructions=(
            "Break the answer into the separate statements it makes. Use its own words and language. Write each "
            "statement so that it can be understood without the rest: replace pronouns with what they refer to, and "
            "keep numbers, units, dates, names and negations exactly as they are. Leave nothing out and add nothing. "
            "An answer that says nothing has no statements.\n"
            "For each statement, say whether it is a claim: 'yes' if it asserts something that can be checked, 'no' "
            "for greetings, thanks, offers of help, questions back to the user, and admissions of not knowing or not "
            "being able to help.\n"
            "For each statement, say whether it addresses the question: 'yes' if it answers the question or supports "
            "an answer, 'partly' if it gives background or is a courtesy around the answer, 'no' if it is about "
            "something else or leaves the question unanswered."
        ),
        material={"question": question, "answer": answer},
        reply=Statements,
        check_sources=TakenFrom(
            "statements", answer, question, int(any(map(str.isalnum, answer))), max_statements(answer)
        ),
    )


class ClaimVerdict(AbstainableReply):
    number: int
    reason: str = Field(description="in one sentence, what in the passages decides this, or what is missing")
    verdict: Annotated[Literal["supported", "contradicted", "unmentioned"], BARE]


class ClaimVerdicts(AbstainableReply):
    verdicts: list[ClaimVerdict]


def claims(statements: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> Question[ClaimVerdicts]:
    """Which statements the passages support, which they contradict, and which they do not mention.

    `known` are the user's messages: a statement may repeat them.
    """
    known_texts = {"known": list(known)} if known else {}
    return Question(
        kind="claims",
        version=3,
        instructions=(
            "For each numbered statement, decide whether the passages support it. 'supported': every part of it "
            "follows from the passages alone. 'contradicted': the passages say something else, such as another "
            "number, date, name or unit, or the opposite. 'unmentioned': the passages neither state it nor rule it "
            "out, even if it is true. Use only the passages, not your own knowledge." + (_KNOWN if known else "")
        ),
        material={"passage": list(passages), **known_texts, "statement": list(statements)},
        reply=ClaimVerdicts,
        check=EachOnce(len(statements), "statements"),
    )


class PassageVerdict(AbstainableReply):
    number: int
    reason: str = Field(description="in one sentence, what decides this")
    verdict: YesNo


class PassageVerdicts(BaseModel):
    verdicts: list[PassageVerdict]


_KNOWN = " The known texts are what the user said; they count as if a passage said them."


def agreements(answer: str, passages: Sequence[str], known: Sequence[str] = ()) -> Question[PassageVerdicts]:
    """Which passages the answer agrees with; it may leave things out, and repeat `known`."""
    known_texts = {"known": list(known)} if known else {}
    return Question(
        kind="agreements",
        version=3,
        instructions=(
            "For each numbered passage, decide whether the answer agrees with it: 'no' only if the answer says "
            "something that the passage contradicts, 'yes' otherwise. Leaving something out is not a disagreement."
            + (_KNOWN if known else "")
        ),
        material={"passage": list(passages), **known_texts, "answer": answer},
        reply=PassageVerdicts,
        check=EachOnce(len(passages), "passages"),
    )


def useful_passages(question: str, expected: str, passages: Sequence[str]) -> Question[PassageVerdicts]:
    """Which retrieved passages help to reach the expected answer, in the order of retrieval."""
    return Question(
        kind="useful-passages",
        version=1,
        instructions=(
            "For each numbered passage, decide whether it helps to reach the expected answer to the question: 'yes' "
            "or 'no'."
        ),
        material={"question": question, "expected": expected, "passage": list(passages)},
        reply=PassageVerdicts,
        check=EachOnce(len(passages), "passages"),
    )


class Attribution(AbstainableReply):
    text: str = Field(description="a sentence of the expected answer")
    reason: str = Field(description="the number of the passage that supports it, or what is missing")
    attributable: YesNo


class Attributions(BaseModel):
    sentences: list[Attribution]


def attributions(expected: str, passages: Sequence[str]) -> Question[Attributions]:
    """Which sentences of the expected answer could have been written from the passages."""
    return Question(
        kind="attributions",
        version=1,
        instructions=(
            "Go through the expected answer sentence by sentence. For each sentence, decide whether it can be "
            "attributed to the numbered passages: 'yes' if the passages contain what it says, 'no' if they lack any "
            "part of it."
        ),
        material={"expected": expected, "passage": list(passages)},
        reply=Attributions,
        check=_not_empty("sentences", "the expected answer has at least one sentence"),
        check_sources=TakenFrom(
            "sentences", expected, least=1, most=max_statements(expected), name="the expected answer"
        ),
    )


class PassageSentence(AbstainableReply):
    passage: int = Field(description="the number of the passage")
    text: str
    reason: str = Field("", description="why it is not relevant; empty if it is")
    relevant: YesNo


class PassageSentences(BaseModel):
    sentences: list[PassageSentence]


def relevant_sentences(question: str, passages: Sequence[str]) -> Question[PassageSentences]:
    """Which sentences of the passages are about the question, all passages in one call."""
    return Question(
        kind="relevant-sentences",
        version=1,
        instructions=(
            "Break each numbered passage into its statements and keep their wording. For each statement, decide "
            "whether it is relevant to the question: 'yes' if it would help someone to answer the question, 'no' "
            "otherwise. Every passage has at least one statement."
        ),
        material={"question": question, "passage": list(passages)},
        reply=PassageSentences,
        check=_every_passage(len(passages)),
        check_sources=FromEachPassage(tuple(passages)),
    )


class Comparison(AbstainableReply):
    shared: list[str] = Field(description="statements made by both, in the words of the answer")
    only_answer: list[str] = Field(description="statements of the answer that the reference does not make")
    only_reference: list[str] = Field(description="statements of the reference that the answer lacks")
    contradictions: list[str] = Field(description="those of only_answer that the reference contradicts, and how")


def comparison(question: str, reference: str, answer: str) -> Question[Comparison]:
    """The statements that answer and reference share, and those that only one of them makes."""
    return Question(
        kind="comparison",
        version=1,
        instructions=(
            "Compare the answer with the reference, as answers to the question. Sort every statement of both: made "
            "by both (meaning counts, wording does not), made only by the answer, or made only by the reference. Of "
            "the statements made only by the answer, list the ones that the reference contradicts. Assume that the "
            "reference is right."
        ),
        material={"question": question, "reference": reference, "answer": answer},
        reply=Comparison,
        check=_has_statements,
        check_sources=FromEitherText(question, reference, answer),
    )


@dataclass(frozen=True, slots=True)
class FromEitherText:
    """A check that every statement is from the text that it is listed under."""

    question: str
    reference: str
    answer: str

    def __call__(self, reply: Comparison) -> str | None:
        answer, reference = max_statements(self.answer), max_statements(self.reference)
        both, name = f"{self.question} {self.reference}", "the reference"
        return (
            TakenFrom("shared", self.answer, both, most=max(answer, reference))(reply)
            or TakenFrom("only_answer", self.answer, self.question, most=answer)(reply)
            or TakenFrom("only_reference", self.reference, self.question, most=reference, name=name)(reply)
        )


def _has_statements(reply: Comparison) -> str | None:
    if reply.shared or reply.only_answer or reply.only_reference:
        return None
    return "every statement of both texts must be in one of shared, only_answer, only_reference; all three are empty"


class Entity(AbstainableReply):
    text: str = Field(description="the entity as the expected answer names it")
    found: YesNo = Field(description="whether the passages name it too, in whatever form")


class Entities(BaseModel):
    entities: list[Entity]


def entities(expected: str, passages: Sequence[str]) -> Question[Entities]:
    """Which people, places, things, numbers and dates of the expected answer the passages name."""
    return Question(
        kind="entities",
        version=1,
        instructions=(
            "List the entities that the expected answer names: people, organizations, places, products, works, "
            "events, dates, amounts. Name each once. For each, say whether the passages name it too. Another "
            "spelling, abbreviation or format of the same entity counts."
        ),
        material={"expected": expected, "passage": list(passages)},
        reply=Entities,
        check_sources=TakenFrom("entities", expected, most=max_statements(expected), name="the expected answer"),
    )


class Choice(AbstainableReply):
    """What was chosen, and why."""

    reason: str = Field(description="arguments for and against each choice, in a few sentences")
    choice: str


def choose(
    kind: str,
    instructions: str,
    choices: Mapping[str, str],
    material: Mapping[str, Texts],
    version: int = 1,
) -> Question[Choice]:
    """A question with one of `choices` as its answer.

    `choices` maps each name to its meaning, which may be empty if the instructions explain it.
    """
    listed = "\n".join(f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in choices.items())
    return Question(
        kind=kind,
        version=version,
        instructions=f"{instructions.strip()}\n\nChoose exactly one:\n{listed}",
        material=material,
        reply=_choice_reply(tuple(choices)),
    )


@functools.cache
def _choice_reply(names: tuple[str, ...]) -> type[Choice]:
    """The shape of a reply with one of `names`; models may write them in another case or with full stops."""
    by_plain_name = {bare_word(name): name for name in reversed(names)}

    def normalize(value: Any) -> Any:
        return value if value in names or not isinstance(value, str) else by_plain_name.get(bare_word(value), value)

    field: Any = (Annotated[Literal[names], BeforeValidator(normalize)], Field(description="the one choice made"))
    return create_model("Choice", __base__=Choice, choice=field)
