"""What HoloDeck's evaluators are given (answer, question, reference, passages), and how what they return is read."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from proctor.evaluators.evaluation import Evaluation, InvalidScore

OWN_SCORE = "own_score"
"""In stores of early versions: the detail with the score of an evaluator whose own `passed` decided."""


class EvalParam(enum.StrEnum):
    """The names under which evaluators take things: the standard ones, DeepEval's, and those both share."""

    RESPONSE = "response"
    QUERY = "query"
    GROUND_TRUTH = "ground_truth"
    ACTUAL_OUTPUT = "actual_output"
    INPUT = "input"
    EXPECTED_OUTPUT = "expected_output"
    CONTEXT = "context"
    RETRIEVAL_CONTEXT = "retrieval_context"


_DEEPEVAL = frozenset({EvalParam.INPUT, EvalParam.ACTUAL_OUTPUT, EvalParam.EXPECTED_OUTPUT})


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """What an evaluator needs, and what it also takes."""

    required: frozenset[EvalParam]
    optional: frozenset[EvalParam] = frozenset()
    uses_context: bool = False
    uses_retrieval_context: bool = False

    def uses_deepeval_params(self) -> bool:
        return not _DEEPEVAL.isdisjoint(self.required | self.optional)

    def takes(self, *names: EvalParam) -> bool:
        return not (self.required | self.optional).isdisjoint(names)


class HasParamSpec(Protocol):
    """Any evaluator that says what it takes."""

    def get_param_spec(self) -> ParamSpec: ...


class EvalKwargsBuilder:
    """Gathers what is known of one answer, and hands each evaluator its part of it."""

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
        """The arguments of `evaluator.evaluate`: the answer always, the rest where it is taken and known.

        The text of files is a list of one where DeepEval's names are used, since a list is what those evaluators take.
        """
        spec = evaluator.get_param_spec()
        deepeval = spec.uses_deepeval_params()
        given: dict[str, Any] = {"actual_output" if deepeval else "response": self._response}
        if self._query and spec.takes(EvalParam.QUERY, EvalParam.INPUT):
            given["input" if deepeval else "query"] = self._query
        if self._truth and spec.takes(EvalParam.GROUND_TRUTH, EvalParam.EXPECTED_OUTPUT):
            given["expected_output" if deepeval else "ground_truth"] = self._truth
        if self._files and (spec.uses_context or spec.takes(EvalParam.CONTEXT)):
            given["context"] = [self._files] if deepeval else self._files
        if self._passages and (spec.uses_retrieval_context or spec.takes(EvalParam.RETRIEVAL_CONTEXT)):
            given["retrieval_context"] = self._passages
        return given


def build_retrieval_context_from_tools(
    tool_results: Iterable[Mapping[str, Any]], retrieval_tool_names: Iterable[str]
) -> list[str] | None:
    """What the retrieving ones among the tools gave back, as passages; `None` where that is nothing.

    A text is one passage, a list has one in each item; an object or a number is no passage.
    """
    names, found = frozenset(retrieval_tool_names), []
    for told in tool_results:
        content = told.get("result", "")
        if str(told.get("name", "")) not in names:
            continue
        if isinstance(content, str):
            found.append(content)
        elif isinstance(content, list):
            found += [str(item) for item in content if item is not None]
    return [passage for passage in found if passage] or None


def tool_name_matches(expected: str, actual: str) -> bool:
    """Whether the name of a tool that was called contains the expected one."""
    return expected in actual


def validate_tool_calls(actual: Sequence[str], expected: Sequence[str] | None) -> bool | None:
    """Whether each expected name is found in that of some call; `None` where nothing is expected."""
    if expected is None:
        return None
    return all(any(tool_name_matches(name, called) for called in actual) for name in expected)


ROUNDING = 1e-6
"""By how much a mean may miss the end of the scale."""


def read_result(found: Any, metric: str, *, decides: bool) -> Evaluation:
    """The score among what an evaluator returns: `score` first, which is of 1 where the metric's own is of 5.

    Its own `passed`, if it `decides`, is the verdict, whatever the score.
    """
    if not isinstance(found, Mapping):
        raise InvalidScore(f"returned {type(found).__name__} instead of a dictionary with a score")
    if found.get("error"):
        raise InvalidScore(str(found["error"]))
    value = found.get("score", found.get(metric))
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise InvalidScore(f"returned no score, neither under 'score' nor under {metric!r}")
    if not -ROUNDING <= float(value) <= 1 + ROUNDING:
        raise InvalidScore(f"returned {value!r}; a score is a number between 0 and 1, also where marks go to 5")
    reasoning = str(found.get("reasoning") or found.get("reason") or "")
    passed = found.get("passed")
    return Evaluation(value, reasoning, passed=passed if decides and isinstance(passed, bool) else None)
