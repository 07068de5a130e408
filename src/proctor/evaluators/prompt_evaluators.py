"""Evaluators created from a text: a prompt for a judge, or criteria for a person or agent that grades later."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import BaseModel, Field

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, fingerprint
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, EvaluationPending, NothingToCompare
from proctor.evaluators.judged_evaluator import JudgedEvaluator
from proctor.evaluators.material import answer_text, question_text
from proctor.evaluators.templates import names_in, point_to_material
from proctor.evaluators.values import as_text
from proctor.judging.choosing import judge_record
from proctor.judging.client import model_of_client
from proctor.judging.judge import Judge, Question, is_rule_based

PIXIE_DEFAULT_MODEL = "gpt-4o-mini"
"""The model that pixie uses if it gets a client and no model."""
TEMPLATE_NAMES = ("eval_input", "eval_output", "expectation", "expected_output")
"""The names that a template may have in braces. The last two mean the same."""

SCORE_PROMPT = (
    "Where these instructions say that something is given below, use the material of that name. Give a score from 0 "
    "to 1, where 1 is the best possible by these instructions, and your reasoning."
)


class Scored(BaseModel):
    reasoning: str = Field(description="arguments for and against, in a few sentences")
    score: float = Field(ge=0, le=1, description="from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class PromptEvaluator(JudgedEvaluator):
    """Asks the judge what the template asks, and takes the score it gives."""

    name: str
    prompt_template: str

    def __post_init__(self) -> None:
        for label, text in (("name", self.name), ("prompt_template", self.prompt_template)):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"create_llm_evaluator: {label} must be a non-empty string, not {text!r}")
        _require_names(self.name, self.prompt_template)

    @property
    def version(self) -> str:
        """Changes with the prompt and the judge; never with a key."""
        return fingerprint(self.prompt_template, judge_record(self.model))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        reply = await judge.ask(self._question(evaluable))
        return Evaluation(reply.score, reply.reasoning)

    def _question(self, evaluable: Evaluable) -> Question[Any]:
        instructions = point_to_material(self.prompt_template, lambda name: f"(the {name} given below)", TEMPLATE_NAMES)
        return Question(
            kind="prompt",
            version=1,
            instructions=f"{instructions.strip()}\n\n{SCORE_PROMPT}",
            material={name: _value(name, evaluable) for name in names_in(self.prompt_template, TEMPLATE_NAMES)},
            reply=Scored,
        )


def create_llm_evaluator(name: str, prompt_template: str, *, model: Any = None, client: Any = None) -> PromptEvaluator:
    """An evaluator that puts `prompt_template` to a judge, with what `{eval_input}` and the like in it stand for.

    `model` names the judge as `provider:model`; a name without a provider is OpenAI's. Without `model` the judge of the
    suite is asked. Of an `openai.OpenAI` as `client`, the address and the key are used; any other client is called.
    """
    if client is not None:
        model = model or PIXIE_DEFAULT_MODEL
        try:
            model_of_client(client, model)
        except UsageError as error:  # refused where it is given, as a wrong argument
            raise ValueError(str(error)) from None
    elif isinstance(model, str) and model.strip():
        model = _with_provider(model.strip())
    return PromptEvaluator(name=name, prompt_template=prompt_template, model=model, client=client)


def _with_provider(model: str) -> str:
    """pixie's names are OpenAI's, fine-tuned models included (`ft:gpt-4o-mini:…`)."""
    is_named = is_rule_based(model) or (":" in model and not model.startswith("ft:"))
    return model if is_named else f"openai:{model}"


def _value(name: str, evaluable: Evaluable) -> str:
    if name == "eval_input":
        return question_text(evaluable)
    if name == "eval_output":
        return answer_text(evaluable)
    if evaluable.expectation is UNSET:
        raise NothingToCompare(f"the prompt has {{{name}}}, and the case has no expected output")
    return as_text(evaluable.expectation)


def _require_names(name: str, template: str) -> None:
    inside = re.search(r"\{\s{0,8}(" + "|".join(TEMPLATE_NAMES) + r")\s{0,8}[\[.!:][^{}]{0,60}\}?", template)
    if inside:
        raise ValueError(
            f"{name}: {inside[0]} reaches into a value, which a template cannot; write {{{inside[1]}}}, the judge is "
            "given all of it"
        )
    if not names_in(template, TEMPLATE_NAMES):
        shown = ", ".join(f"{{{known}}}" for known in TEMPLATE_NAMES[:3])
        raise ValueError(f"{name}: the template has none of {shown}, so that the judge would see nothing of the answer")


class AgentEvaluationPending(EvaluationPending):
    """No grade was given yet; carries the criteria for the grader."""

    def __init__(self, evaluator_name: str, criteria: str) -> None:
        self.evaluator_name = evaluator_name
        super().__init__(f"{evaluator_name} needs grading: {criteria}", criteria=criteria)


@dataclass(frozen=True, slots=True)
class PendingEvaluator:
    """Leaves every answer to a grader; the outcome is `pending` until there is a grade."""

    name: str
    criteria: str

    @property
    def version(self) -> str:
        """Changes with what graders are asked."""
        return fingerprint(self.name, self.criteria)

    def __call__(self, evaluable: Evaluable) -> NoReturn:
        raise AgentEvaluationPending(self.name, self.criteria)


def create_agent_evaluator(name: str, criteria: str) -> PendingEvaluator:
    """An evaluator for what no formula can score: `criteria` tells the grader, a person or an agent, what is good."""
    for label, text in (("name", name), ("criteria", criteria)):
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"create_agent_evaluator: {label} must be a non-empty string, not {text!r}")
    return PendingEvaluator(name.strip(), criteria.strip())
