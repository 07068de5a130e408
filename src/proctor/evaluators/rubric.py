"""Evaluators by criteria in plain words: one rubric (LLMJudge) or a list of expectations (Expectations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judge_questions import mark_question, verdicts_in_order, yes_no_question, yes_no_questions
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.material import answer_text, expected_text, previous_turns, question_text, tool_call_lines
from proctor.evaluators.observation import require_observed
from proctor.evaluators.values import require_bool
from proctor.judging.judge import Judge, Texts

RUBRICS_KEY = "rubrics"
"""The metadata key of the rubrics of a case or turn."""

MARK_PROMPT = (
    "Judge the answer by the criterion below. Give a mark from 0 to 10: 10 if it fully meets the criterion, 0 if it "
    "does not meet it at all. Use only the criterion. Whatever it does not ask for does not count."
)
YES_NO_PROMPT = (
    "Judge the answer by the criterion below. Say whether it meets the criterion: 'yes' only if it fully does. Use "
    "only the criterion. Whatever it does not ask for does not count."
)


@dataclass(frozen=True, slots=True)
class Rubric:
    """One property that an answer, or the way to it, should have."""

    text: str
    id: str = ""
    type: str | None = None
    """The ADK metric that it is for (`FINAL_RESPONSE_QUALITY`); `None` means all."""


def read_rubrics(value: Any, place: str = RUBRICS_KEY) -> tuple[Rubric, ...]:
    """Rubrics from texts, from `{id, text}`, or as ADK writes them; raises `ValueError` for anything else."""
    if value is None:
        return ()
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ValueError(f"{place} must be a list of rubrics, not {value!r:.80}")
    return tuple(_read(item, f"{place}[{index}]") for index, item in enumerate(value))


def metadata_rubrics(metadata: Mapping[str, Json] | None, owner: str) -> tuple[Rubric, ...]:
    """The rubrics that the metadata of a case or turn lists."""
    try:
        return read_rubrics((metadata or {}).get(RUBRICS_KEY), f"{owner} metadata: {RUBRICS_KEY}")
    except ValueError as error:
        raise UsageError(str(error)) from None


def numbered_list(rubrics: Sequence[Rubric]) -> str:
    """The rubrics as a numbered list for the instructions."""
    return "\n".join(f"{number}. {rubric.text}" for number, rubric in enumerate(rubrics, 1))


def _read(item: Any, place: str) -> Rubric:
    if isinstance(item, Rubric):
        return item
    if isinstance(item, str) and item.strip():
        return Rubric(item)
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be a string, or an object with 'text', not {item!r:.80}")
    content = item.get("rubric_content", item.get("rubricContent", item))
    text = content.get("text_property", content.get("textProperty")) if isinstance(content, Mapping) else None
    text = item.get("text") if text is None else text
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{place} has no text; say what the answer should do")
    name = item.get("rubric_id", item.get("rubricId", item.get("id")))
    return Rubric(text, name if isinstance(name, str) else "", item.get("type") or None)


@evaluator(family="rubric", judge="model", example={"rubric": "The answer names the deadline."})
@dataclass(frozen=True)
class LLMJudge(JudgedEvaluator):
    """The answer meets a criterion that you write in plain words.

    1 if the answer meets the rubric, else 0. With `scored`, a mark from 0 to 10 divided by 10. Skipped if
    `include_expected_output` is set and the case has none.
    """

    rubric: str
    _: KW_ONLY
    scored: bool = False
    """Whether the judge gives a mark from 0 to 10 instead of yes or no."""
    include_input: bool = True
    include_expected_output: bool = False
    include_tool_calls: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rubric, str) or not self.rubric.strip():
            raise ValueError("rubric must be a non-empty string")
        require_bool(
            scored=self.scored,
            include_input=self.include_input,
            include_expected_output=self.include_expected_output,
            include_tool_calls=self.include_tool_calls,
        )

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        material = self._material(evaluable)
        criterion = f"\n\nThe criterion:\n{self.rubric}"
        if self.scored:
            mark = await judge.ask(mark_question("rubric-mark", MARK_PROMPT + criterion, material, 0, 10))
            return Evaluation(mark.share(0, 10), mark.reason, {"mark": mark.mark})
        reply = await judge.ask(yes_no_question("rubric", YES_NO_PROMPT + criterion, material))
        return Evaluation(float(reply.verdict == "yes"), reply.reason)

    def _material(self, evaluable: Evaluable) -> dict[str, Texts]:
        material: dict[str, Texts] = {}
        if self.include_input:
            if before := previous_turns(evaluable):
                material["earlier"] = before
            material["question"] = question_text(evaluable)
        if self.include_expected_output:
            material["reference"] = expected_text(evaluable)
        if self.include_tool_calls:
            require_observed(evaluable)
            material["step"] = tool_call_lines(evaluable.tool_calls)
        return {**material, "answer": answer_text(evaluable)}


EXPECTATIONS_PROMPT = (
    "The author of this test has numbered expectations of the answer, listed below. For each, say whether it is met: "
    "'yes' or 'no'. A 'MUST' is met if the answer, or the agent on the way to it, does what the sentence says. A 'MUST "
    "NOT' is met if neither does. Judge what the answer says, not how it says it. Something that the answer only hints "
    "at is not done."
)


@evaluator(
    family="rubric",
    judge="model",
    threshold=1.0,
    example={"must": ["name the price"], "must_not": ["promise a date of delivery"]},
)
@dataclass(frozen=True, kw_only=True)
class Expectations(JudgedEvaluator):
    """The answer does everything it must, and nothing it must not.

    The share of expectations that are met. Expectations under `must` and `must_not` in the metadata of the case and the
    turn are added. Skipped if there are none.
    """

    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "must", _sentences(self.must, "must"))
        object.__setattr__(self, "must_not", _sentences(self.must_not, "must_not"))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        items = self._items(evaluable)
        listed = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        question = yes_no_questions(
            "expectations", f"{EXPECTATIONS_PROMPT}\n\n{listed}", _material(evaluable), len(items)
        )
        verdicts = verdicts_in_order(await judge.ask(question))
        results = [
            {"expectation": item, "kept": met, "reason": reason}
            for item, (met, reason) in zip(items, verdicts, strict=True)
        ]
        broken = [f"{entry['expectation']} ({entry['reason']})" for entry in results if not entry["kept"]]
        reason = f"not met: {'; '.join(broken)}" if broken else "all expectations are met"
        return Evaluation((len(items) - len(broken)) / len(items), reason, {"expectations": results})

    def _items(self, evaluable: Evaluable) -> list[str]:
        """The evaluator's own, then those of the case, then those of the turn, each once."""
        items: dict[str, None] = {}
        for label, key, own in (("MUST", "must", self.must), ("MUST NOT", "must_not", self.must_not)):
            listed = [
                *own,
                *_metadata_sentences(evaluable.eval_metadata, key),
                *_metadata_sentences(evaluable.turn_metadata, key),
            ]
            items.update((f"{label}: {sentence}", None) for sentence in listed)
        if not items:
            raise NothingToCompare("needs `must` or `must_not`, in the evaluator or in the metadata of the case")
        return list(items)


def _material(evaluable: Evaluable) -> dict[str, Texts]:
    material: dict[str, Texts] = {}
    if before := previous_turns(evaluable):
        material["earlier"] = before
    material["question"] = question_text(evaluable)
    if evaluable.tool_calls:
        material["step"] = tool_call_lines(evaluable.tool_calls)
    return {**material, "answer": answer_text(evaluable)}


def _metadata_sentences(metadata: Mapping[str, Json] | None, key: str) -> tuple[str, ...]:
    try:
        return _sentences((metadata or {}).get(key) or (), f"metadata: {key}")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _sentences(value: Any, name: str) -> tuple[str, ...]:
    """One sentence or several."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(item, str) and item.strip() for item in listed):
        raise ValueError(f"{name} must be a sentence or a list of sentences, not {value!r:.80}")
    return tuple(listed)
