"""ADK's `hallucinations_v1`: which sentences of an answer rest on what the agent was told and its tools returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.compat.adk.judge_samples import AdkJudged, Tally
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.material import (
    answer_text,
    instructions_of,
    intermediate_texts,
    previous_turns,
    question_text,
    tool_call_lines,
    tools_offered,
)
from proctor.evaluators.values import require_bool
from proctor.judging.judge import Judge, Question, Texts
from proctor.judging.questions import BARE, EachOnce
from proctor.judging.rule_judge.statements import split_statements


@evaluator(family="passages", needs="grounds", judge="rules or model", variant_of="Faithfulness")
@dataclass(frozen=True, kw_only=True)
class Hallucinations(AdkJudged):
    """The share of sentences that claim nothing the agent's instructions, tools and passages do not bear out.

    The share of sentences that are borne out by what the agent could know (its instructions and tools, what they
    returned, earlier turns, passages), or claim nothing. Each is labelled supported, unsupported, contradictory,
    disputed or not_applicable.
    """

    evaluate_intermediate_nl_responses: bool = False
    """Whether what the agent said before its final answer is held against them too, where the trace shows it."""

    usual_samples: ClassVar[int] = 1

    def __post_init__(self) -> None:
        AdkJudged.__post_init__(self)
        require_bool(evaluate_intermediate_nl_responses=self.evaluate_intermediate_nl_responses)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        grounds = grounds_of(evaluable)
        sentences = self._sentences(evaluable)
        if not sentences:
            return Evaluation(1.0, "nothing is said that could be made up")
        tallies = await self.vote(judge, sentence_labels(sentences, grounds), by_sentence)
        return accuracy(sentences, tallies)

    def _sentences(self, evaluable: Evaluable) -> list[str]:
        """What is said, cut where it ends; cut here and not by the judge, so that nothing can be left out."""
        answer = answer_text(evaluable)
        before = intermediate_texts(evaluable) if self.evaluate_intermediate_nl_responses else []
        texts = [*(text for text in before if text != answer), answer]
        return [sentence for text in texts for sentence in split_statements(text)]


def grounds_of(evaluable: Evaluable) -> dict[str, Texts]:
    """What the agent could know; with nothing but the user's words there is nothing to compare with."""
    passages = [*(evaluable.retrieval_context or ()), *(evaluable.context or ())]
    told = instructions_of(evaluable)
    grounds: dict[str, Any] = {
        "agent-instructions": told,
        "agent-tool": tools_offered(evaluable),
        "earlier": previous_turns(evaluable),
        "step": tool_call_lines(evaluable.tool_calls) if evaluable.tool_calls else [],
        "passage": passages,
    }
    known = {name: texts for name, texts in grounds.items() if texts}
    if not known:
        raise NothingToCompare(
            "needs what the agent could know (tool calls, passages or a trace), and there is nothing"
        )
    return {"question": question_text(evaluable), **known}


def accuracy(sentences: Sequence[str], tallies: Sequence[Tally]) -> Evaluation:
    """The share of sentences that are borne out or claim nothing, and what is said of the others."""
    found = []
    for sentence, tally in zip(sentences, tallies, strict=True):
        label, _, reason = tally.reason.partition(": ")
        found.append({"sentence": sentence, "label": label, "reason": reason, "grounded": tally.carried})
    loose = [f"{entry['label']}: {entry['sentence']} ({entry['reason']})" for entry in found if not entry["grounded"]]
    said = "; ".join(loose) or "every sentence is borne out or claims nothing"
    return Evaluation((len(found) - len(loose)) / len(found), said, {"sentences": found})


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
