"""Criteria in plain words that a judge holds an answer against: one alone, or a list with a verdict for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.errors import UsageError
from proctor.evaluators.agent.view import earlier, steps_of
from proctor.evaluators.comparands import require_flags
from proctor.evaluators.judged import Judged, answer_text, expected_text, question_text
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.judging.model import Judge, Texts
from proctor.plain import Json
from proctor.records import record

KEY = "rubrics"
"""Where case and turn metadata keep rubrics of their own."""

MARKED = (
    "Hold the answer against the criterion below. Give a mark from 0 to 10: 10 if it meets the criterion in full, "
    "0 if it does not meet it at all. Judge by the criterion alone; what it does not ask for counts neither way."
)
RULED = (
    "Hold the answer against the criterion below, and say whether it meets it: 'yes' only if it does so in full. Judge "
    "by the criterion alone; what it does not ask for counts neither way."
)


@record
class Rubric:
    """One property that an answer, or the way to it, is to have."""

    text: str
    id: str = ""
    type: str | None = None
    """Which of ADK's metrics it is for (`FINAL_RESPONSE_QUALITY`); without one, it is for any."""


def read_rubrics(given: Any, place: str = KEY) -> tuple[Rubric, ...]:
    """Rubrics as texts, as `{id, text}`, or as ADK writes them; raises `ValueError` that names what is none."""
    if given is None:
        return ()
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise ValueError(f"{place} must be a list of rubrics, not {given!r:.80}")
    return tuple(_read(item, f"{place}[{index}]") for index, item in enumerate(given))


def own_rubrics(metadata: Mapping[str, Json] | None, owner: str) -> tuple[Rubric, ...]:
    """The rubrics that the metadata of a case or turn lists."""
    try:
        return read_rubrics((metadata or {}).get(KEY), f"{owner} metadata: {KEY}")
    except ValueError as error:
        raise UsageError(str(error)) from None


def numbered(rubrics: Sequence[Rubric]) -> str:
    """The list as it stands in the instructions."""
    return "\n".join(f"{number}. {rubric.text}" for number, rubric in enumerate(rubrics, 1))


def _read(item: Any, place: str) -> Rubric:
    if isinstance(item, Rubric):
        return item
    if isinstance(item, str) and item.strip():
        return Rubric(item)
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be a text, or an object with 'text', not {item!r:.80}")
    content = item.get("rubric_content", item.get("rubricContent", item))
    text = content.get("text_property", content.get("textProperty")) if isinstance(content, Mapping) else None
    text = item.get("text") if text is None else text
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{place} has no text; say what is asked of the answer")
    name = item.get("rubric_id", item.get("rubricId", item.get("id")))
    return Rubric(text, name if isinstance(name, str) else "", item.get("type") or None)


@dataclass(frozen=True, kw_only=True)
class LLMJudge(Judged):
    """The answer meets a criterion in plain words."""

    rubric: str
    scored: bool = False
    """Whether the judge gives a mark from 0 to 10 instead of yes or no."""
    include_input: bool = True
    include_expected_output: bool = False
    include_tool_calls: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rubric, str) or not self.rubric.strip():
            raise ValueError("rubric must say what is asked of the answer")
        require_flags(
            scored=self.scored,
            include_input=self.include_input,
            include_expected_output=self.include_expected_output,
            include_tool_calls=self.include_tool_calls,
        )

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators import opinions

        material = self._material(evaluable)
        criterion = f"\n\nThe criterion:\n{self.rubric}"
        if self.scored:
            given = await judge.ask(opinions.mark("rubric-mark", MARKED + criterion, material, 0, 10))
            return Evaluation(given.share(0, 10), given.reason, {"mark": given.mark})
        reply = await judge.ask(opinions.ruling("rubric", RULED + criterion, material))
        return Evaluation(float(reply.verdict == "yes"), reply.reason)

    def _material(self, evaluable: Evaluable) -> dict[str, Texts]:
        material: dict[str, Texts] = {}
        if self.include_input:
            if before := earlier(evaluable):
                material["earlier"] = before
            material["question"] = question_text(evaluable)
        if self.include_expected_output:
            material["reference"] = expected_text(evaluable)
        if self.include_tool_calls:
            material["step"] = steps_of(evaluable.tool_calls)
        return {**material, "answer": answer_text(evaluable)}
