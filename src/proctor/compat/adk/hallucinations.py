"""ADK's `hallucinations_v1`: which sentences of an answer are supported by what the agent could know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from proctor.compat.adk.judge_samples import AdkJudgedEvaluator, VoteCount
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.material import (
    answer_text,
    instructions_of,
    intermediate_texts,
    question_text,
    tool_results,
    tools_offered,
)
from proctor.evaluators.values import as_text, require_bool
from proctor.judging.judge import Judge, Question, Texts
from proctor.judging.questions import BARE, EachOnce
from proctor.judging.rule_judge.claims import split_statements


@evaluator(family="passages", needs="grounds", judge="rules or model", variant_of="Faithfulness")
@dataclass(frozen=True, kw_only=True)
class Hallucinations(AdkJudgedEvaluator):
    """The share of sentences that the agent's instructions, tools and passages support.

    The share of sentences that follow from what the agent could know (its instructions and tools, their results,
    earlier turns, passages), or that make no claim. Each is labelled supported, unsupported, contradictory, disputed or
    not_applicable. Skipped if the answer makes no claim.
    """

    evaluate_intermediate_nl_responses: bool = False
    """Whether texts before the final answer are checked too, if the trace has them."""

    default_samples: ClassVar[int] = 1

    def __post_init__(self) -> None:
        AdkJudgedEvaluator.__post_init__(self)
        require_bool(evaluate_intermediate_nl_responses=self.evaluate_intermediate_nl_responses)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        grounds = grounding_material(evaluable)
        sentences = self._sentences(evaluable)
        if not sentences:
            raise NothingToCompare("the answer is empty")
        votes = await self.vote(judge, sentence_labels(sentences, grounds), sentence_votes)
        if all(vote.reason.startswith("not_applicable") for vote in votes):
            raise NothingToCompare("the answer makes no claim")
        return grounded_share(sentences, votes)

    def _sentences(self, evaluable: Evaluable) -> list[str]:
        """The sentences of the answer. They are split here, not by the judge, so that none is left out."""
        answer = answer_text(evaluable)
        before = intermediate_texts(evaluable) if self.evaluate_intermediate_nl_responses else []
        texts = [*(text for text in before if text != answer), answer]
        return [sentence for text in texts for sentence in split_statements(text)]


def grounding_material(evaluable: Evaluable) -> dict[str, Texts]:
    """What the agent could know; raises `NothingToCompare` if that is only the user's words."""
    passages = [*(evaluable.retrieval_context or ()), *(evaluable.context or ())]
    instructions = instructions_of(evaluable)
    grounds: dict[str, Any] = {
        "agent-instructions": instructions,
        "agent-tool": tools_offered(evaluable),
        "earlier": _evidence_of_earlier_turns(evaluable),
        "step": tool_results(evaluable.tool_calls),
        "passage": passages,
    }
    available = {name: texts for name, texts in grounds.items() if texts}
    if not available:
        raise NothingToCompare("needs what the agent could know: tool calls, passages or a trace")
    return {"question": question_text(evaluable), **available}


def _evidence_of_earlier_turns(evaluable: Evaluable) -> list[str]:
    """What the user said and the tools returned before this turn. What the agent said itself proves nothing."""
    lines: list[str] = []
    for exchange in evaluable.turns[:-1]:
        lines += [as_text(exchange.turn.input), *tool_results(exchange.reply.tool_calls)]
    return [text for text in lines if text.strip()]


def grounded_share(sentences: Sequence[str], votes: Sequence[VoteCount]) -> Evaluation:
    """The share of sentences that are supported or make no claim, and the reasons for the others."""
    labels = []
    for sentence, vote in zip(sentences, votes, strict=True):
        label, _, reason = vote.reason.partition(": ")
        labels.append({"sentence": sentence, "label": label, "reason": reason, "grounded": vote.has_majority})
    ungrounded = [
        f"{entry['label']}: {entry['sentence']} ({entry['reason']})" for entry in labels if not entry["grounded"]
    ]
    reasoning = "; ".join(ungrounded) or "every sentence is supported or makes no claim"
    return Evaluation((len(labels) - len(ungrounded)) / len(labels), reasoning, {"sentences": labels})


LABEL_PROMPT = (
    "The numbered sentences are an agent's answer. Everything else in the material is what the agent could know: the "
    "user's words, its instructions and tools, the results of the tools, passages. Label each sentence by comparing it "
    "with that. 'supported': all of it follows from the material. 'unsupported': it claims something that is not in "
    "the material, even if it is true elsewhere. 'contradictory': the material says otherwise. 'disputed': some of the "
    "material supports it and some says otherwise. 'not_applicable': it makes no claim that could be right or wrong, "
    "such as a greeting, a question, an offer, an opinion or a disclaimer. Use only the material, not your own "
    "knowledge."
)

GROUNDED_LABELS = ("supported", "not_applicable")


class SentenceLabel(BaseModel):
    """The judge's label for one sentence."""

    number: int
    reason: str = Field(description="what in the material decides it, or what is missing")
    label: Annotated[Literal["supported", "unsupported", "contradictory", "disputed", "not_applicable"], BARE]


class SentenceLabels(BaseModel):
    """The judge's labels for all sentences."""

    verdicts: list[SentenceLabel]


def sentence_labels(sentences: Sequence[str], grounds: Mapping[str, Texts]) -> Question[SentenceLabels]:
    """The question that asks for a label for each sentence, all in one call."""
    material = {**grounds, "sentence": list(sentences)}
    return Question("sentence-labels", 3, LABEL_PROMPT, material, SentenceLabels, EachOnce(len(sentences), "sentences"))


def sentence_votes(reply: SentenceLabels) -> list[tuple[bool, str]]:
    """Whether each sentence is grounded, with `label: reason`, in the order of the sentences."""
    ordered = sorted(reply.verdicts, key=lambda item: item.number)
    return [(item.label in GROUNDED_LABELS, f"{item.label}: {item.reason}") for item in ordered]
