"""An evaluator made of a prompt of the user's own, answered by one of its choices."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from proctor.base.errors import UsageError
from proctor.base.json_data import fingerprint, plain
from proctor.cases.suite import NOTHING
from proctor.evaluators.choice.classifiers import Option, evaluation_of
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import Judged, answer_text, as_text, expected_text, question_text
from proctor.judging.judge import Judge
from proctor.judging.questions import choose


@dataclass(frozen=True)
class LLMClassifier(Judged):
    """Asks what `prompt_template` asks.

    `{{input}}`, `{{output}}`, `{{expected}}` and `{{any key of the metadata}}` stand for texts that are given to the
    judge as material, so that nothing in them can pass for part of the prompt.
    """

    name: str = "LLMClassifier"
    """In a file, `name` is what reports call the evaluator."""
    prompt_template: str = ""
    choice_scores: Mapping[str, float] = NOTHING

    def __post_init__(self) -> None:
        if not isinstance(self.prompt_template, str) or not self.prompt_template.strip():
            raise UsageError(f"LLMClassifier {self.name!r}: prompt_template is empty")
        _check_variables(self.name, self.prompt_template)
        _check_scores(self.name, self.choice_scores)

    @property
    def version(self) -> str:
        """Changes with what is asked and what the choices are worth."""
        return fingerprint(self.name, self.prompt_template, plain(self.choice_scores))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        options = {name: Option(float(score)) for name, score in self.choice_scores.items()}
        material = {name: _value(name, evaluable) for name in variables(self.prompt_template)}
        prompt = _pointing(_variable().sub(lambda match: f"[{match[1]}]", self.prompt_template), material)
        scores = {name: option.score for name, option in options.items()}
        reply = await judge.ask(
            choose("classifier", prompt, dict.fromkeys(options, ""), material, choice_scores=scores)
        )
        return evaluation_of(reply, options)


def _pointing(prompt: str, material: Mapping[str, str]) -> str:
    """The prompt, told where the texts are that it mentions in brackets."""
    if not material:
        return prompt
    names = ", ".join(f"[{name}]" for name in material)
    return f"{prompt}\n\n{names}: the text of that name in the material."


def variables(template: str) -> list[str]:
    """The names a template mentions, each once, in order."""
    return list(dict.fromkeys(match[1] for match in _variable().finditer(template)))


def _value(name: str, evaluable: Evaluable) -> str:
    if name == "input":
        return question_text(evaluable)
    if name == "output":
        return answer_text(evaluable)
    metadata = evaluable.eval_metadata or {}
    if name == "expected" and name not in metadata:
        return expected_text(evaluable)
    if name not in metadata:
        raise NothingToCompare(f"the prompt mentions {{{{{name}}}}}, and the case's metadata has no {name!r}")
    return as_text(metadata[name])


@functools.cache
def _variable() -> re.Pattern[str]:
    return re.compile(r"\{\{\{?\s{0,20}&?\s{0,20}([A-Za-z_][\w-]{0,100})\s{0,20}\}?\}\}")


def _check_variables(name: str, template: str) -> None:
    left = re.search(r"\{\{.{0,40}", _variable().sub("", template), re.DOTALL)
    if left:
        raise UsageError(
            f"LLMClassifier {name!r}: {left[0]!r} is not understood; only {{{{input}}}}, {{{{output}}}}, "
            "{{expected}} and {{keys of the metadata}} can stand in a prompt_template"
        )


def _check_scores(name: str, scores: Mapping[str, float]) -> None:
    if not isinstance(scores, Mapping) or not scores:
        raise UsageError(f"LLMClassifier {name!r}: choice_scores is a mapping of choices to scores, such as Y: 1, N: 0")
    for choice, score in scores.items():
        if not isinstance(choice, str) or not choice.strip():
            raise UsageError(f"LLMClassifier {name!r}: the choice {choice!r} is no text; write it in quotes")
        number = score if isinstance(score, (int, float)) else math.nan
        if not 0 <= number <= 1:
            raise UsageError(f"LLMClassifier {name!r}: the score of {choice!r} is {score!r}; it lies between 0 and 1")
