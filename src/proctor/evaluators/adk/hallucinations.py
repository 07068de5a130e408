"""ADK's `hallucinations_v1`: which sentences of an answer rest on what the agent was told and its tools returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from proctor.evaluators.adk.options import AdkJudged
from proctor.evaluators.adk.votes import Tally
from proctor.evaluators.agent.view import earlier, instructions_of, said_on_the_way, steps_of, tools_offered
from proctor.evaluators.comparands import require_flags
from proctor.evaluators.judged import answer_text, question_text
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.judging.model import Judge, Texts


@dataclass(frozen=True, kw_only=True)
class Hallucinations(AdkJudged):
    """The share of sentences that claim nothing the agent's instructions, tools and passages do not bear out."""

    evaluate_intermediate_nl_responses: bool = False
    """Whether what the agent said before its final answer is held against them too, where the trace shows it."""

    usual_samples: ClassVar[int] = 1

    def __post_init__(self) -> None:
        AdkJudged.__post_init__(self)
        require_flags(evaluate_intermediate_nl_responses=self.evaluate_intermediate_nl_responses)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.adk.sentence_labels import by_sentence, sentence_labels

        grounds = grounds_of(evaluable)
        sentences = self._sentences(evaluable)
        if not sentences:
            return Evaluation(1.0, "nothing is said that could be made up")
        tallies = await self.vote(judge, sentence_labels(sentences, grounds), by_sentence)
        return accuracy(sentences, tallies)

    def _sentences(self, evaluable: Evaluable) -> list[str]:
        """What is said, cut where it ends; cut here and not by the judge, so that nothing can be left out."""
        from proctor.judging.embedded.statements import statements

        answer = answer_text(evaluable)
        before = said_on_the_way(evaluable) if self.evaluate_intermediate_nl_responses else []
        texts = [*(text for text in before if text != answer), answer]
        return [sentence for text in texts for sentence in statements(text)]


def grounds_of(evaluable: Evaluable) -> dict[str, Texts]:
    """What the agent could know; with nothing but the user's words there is nothing to compare with."""
    passages = [*(evaluable.retrieval_context or ()), *(evaluable.context or ())]
    told = instructions_of(evaluable)
    grounds: dict[str, Any] = {
        "agent-instructions": told,
        "agent-tool": tools_offered(evaluable),
        "earlier": earlier(evaluable),
        "step": steps_of(evaluable.tool_calls) if evaluable.tool_calls else [],
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
