"""The arguments of HoloDeck's evaluators (answer, question, reference, passages), and how their results are read."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from proctor.evaluators.evaluation import UNREADABLE, Evaluation, InvalidScore, is_real_number

OLD_SCORE_KEY = "own_score"
"""In stores of early versions: the detail with the score of an evaluator whose own `passed` decided."""


class EvalParam(enum.StrEnum):
    """The names of arguments: the standard ones, DeepEval's, and those that both use."""

    RESPONSE = "response"
    QUERY = "query"
    GROUND_TRUTH = "ground_truth"
    ACTUAL_OUTPUT = "actual_output"
    INPUT = "input"
    EXPECTED_OUTPUT = "expected_output"
    CONTEXT = "context"
    RETRIEVAL_CONTEXT = "retrieval_context"


DEEPEVAL_PARAMS = frozenset({EvalParam.INPUT, EvalParam.ACTUAL_OUTPUT, EvalParam.EXPECTED_OUTPUT})


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """The arguments that an evaluator requires, and those it also takes."""

    required: frozenset[EvalParam]
    optional: frozenset[EvalParam] = frozenset()
    uses_context: bool = False
    uses_retrieval_context: bool = False

    def uses_deepeval_params(self) -> bool:
        return not DEEPEVAL_PARAMS.isdisjoint(self.required | self.optional)

    def takes(self, *names: EvalParam) -> bool:
        return not (self.required | self.optional).isdisjoint(names)


class HasParamSpec(Protocol):
    """Any evaluator that declares its arguments."""

    def get_param_spec(self) -> ParamSpec: ...


class EvalKwargsBuilder:
    """Collects what is known about one answer and selects each evaluator's arguments from it."""

    def __init__(
        self,
        agent_response: str,
        input_query: str | None = None,
        ground_truth: str | None = None,
        file_content: str | None = None,
        retrieval_context: list[str] | None = None,
    ) -> None:
        self._response = agent_response
        self._query = input_query
        self._truth = ground_truth
        self._files = file_content
        self._passages = retrieval_context

    def build_for(self, evaluator: HasParamSpec) -> dict[str, Any]:
        """The arguments of `evaluator.evaluate`: always the answer, the rest if it is known and the evaluator takes it.

        With DeepEval's names, the text of files is a list with one item, because those evaluators expect a list.
        """
        spec = evaluator.get_param_spec()
        deepeval = spec.uses_deepeval_params()
        kwargs: dict[str, Any] = {"actual_output" if deepeval else "response": self._response}
        if self._query and spec.takes(EvalParam.QUERY, EvalParam.INPUT):
            kwargs["input" if deepeval else "query"] = self._query
        if self._truth and spec.takes(EvalParam.GROUND_TRUTH, EvalParam.EXPECTED_OUTPUT):
            kwargs["expected_output" if deepeval else "ground_truth"] = self._truth
        if self._files and (spec.uses_context or spec.takes(EvalParam.CONTEXT)):
            kwargs["context"] = [self._files] if deepeval else self._files
        if self._passages and (spec.uses_retrieval_context or spec.takes(EvalParam.RETRIEVAL_CONTEXT)):
            kwargs["retrieval_context"] = self._passages
        return kwargs


def build_retrieval_context_from_tools(
    tool_results: Iterable[Mapping[str, Any]], retrieval_tool_names: Iterable[str]
) -> list[str] | None:
    """The results of retrieval tools as passages, or None if there are none.

    A string is one passage and a list has one per item; an object or a number is not a passage.
    """
    names, passages = frozenset(retrieval_tool_names), []
    for result in tool_results:
        content = result.get("result", "")
        if str(result.get("name", "")) not in names:
            continue
        if isinstance(content, str):
            passages.append(content)
        elif isinstance(content, list):
            passages += [str(item) for item in content if item is not None]
    return [passage for passage in passages if passage] or None


def tool_name_matches(expected: str, actual: str) -> bool:
    """Whether the expected name is part of the name of the called tool."""
    return expected in actual


def extract_tool_names(tool_calls: Iterable[Any]) -> list[str]:
    """The names of tool calls; what is not a call with a name is left out."""
    names = (call.get("name") for call in tool_calls if isinstance(call, Mapping))
    return [name for name in names if isinstance(name, str) and name]


def validate_tool_calls(actual: Sequence[str], expected: Sequence[str] | None) -> bool | None:
    """Whether each expected name is part of the name of some call; None if nothing is expected."""
    if expected is None:
        return None
    return all(any(tool_name_matches(name, called) for called in actual) for name in expected)


ROUNDING_TOLERANCE = 1e-6
"""How far a mean may exceed the scale through rounding."""


def read_result(result: Any, metric: str, *, decides: bool) -> Evaluation:
    """The score in an evaluator's result: `score` (0 to 1), or else the value under the metric's name.

    If `decides`, the evaluator's own `passed` takes precedence over the score.
    """
    if not isinstance(result, Mapping):
        raise InvalidScore(f"returned {type(result).__name__} instead of a dictionary with a score")
    is_unreadable = bool((result.get("details") or {}).get(UNREADABLE))  # the answer is wrong, not the evaluator
    if result.get("error") and not is_unreadable:
        raise InvalidScore(str(result["error"]))
    value = result.get("score", result.get(metric))
    if not is_real_number(value):
        raise InvalidScore(f"returned no score under 'score' or {metric!r}")
    if not -ROUNDING_TOLERANCE <= float(value) <= 1 + ROUNDING_TOLERANCE:
        raise InvalidScore(f"returned {value!r}; a score must be a number between 0 and 1, even if marks go up to 5")
    reasoning = str(result.get("reasoning") or result.get("reason") or "")
    passed = result.get("passed")
    details = {UNREADABLE: True} if is_unreadable else {}
    return Evaluation(value, reasoning, details, passed=passed if decides and isinstance(passed, bool) else None)
