"""The question behind `Hallucinations`: how each sentence of an answer stands to what the agent could know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from proctor.judging.model import Question, Texts
from proctor.judging.questions import BARE, EachOnce

INSTRUCTIONS = (
    "The numbered sentences make up what an agent answered; everything else in the material is what it could know: "
    "the user's words, its instructions and tools, what the tools returned, passages. For each sentence say how it "
    "stands to that. 'supported': it follows from it, every part of it. 'unsupported': it claims something that is "
    "not there, however true it may be elsewhere. 'contradictory': what is there says otherwise. 'disputed': some of "
    "what is there bears it out and some says otherwise. 'not_applicable': it claims nothing that could be right or "
    "wrong, such as a greeting, a question, an offer, an opinion or a disclaimer. What a tool was asked is no "
    "evidence; what it returned is. Use no knowledge of your own."
)

GROUNDED = ("supported", "not_applicable")


class SentenceLabel(BaseModel):
    number: int
    reason: str = Field(description="what in the material decides it, or what is missing")
    label: Annotated[Literal["supported", "unsupported", "contradictory", "disputed", "not_applicable"], BARE]


class SentenceLabels(BaseModel):
    verdicts: list[SentenceLabel]


def sentence_labels(sentences: Sequence[str], grounds: Mapping[str, Texts]) -> Question[SentenceLabels]:
    """A label for each sentence, all in one call."""
    material = {**grounds, "sentence": list(sentences)}
    return Question("sentence-labels", 1, INSTRUCTIONS, material, SentenceLabels, EachOnce(len(sentences)))


def by_sentence(reply: SentenceLabels) -> list[tuple[bool, str]]:
    """Whether each sentence is grounded, with the label in front of the reason, in the order of the sentences."""
    ordered = sorted(reply.verdicts, key=lambda item: item.number)
    return [(item.label in GROUNDED, f"{item.label}: {item.reason}") for item in ordered]
