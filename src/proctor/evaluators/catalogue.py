"""What each shipped evaluator is for, what it needs, and how it is written in a file: for people who look for one."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, plain
from proctor.cases.threshold import DEFAULT_THRESHOLD
from proctor.evaluators.registry import SHIPPED, shipped
from proctor.plugins import evaluator_alias

NEEDS = {
    "reference": "ExactMatch Equality LevenshteinMatch Numeric NumericDiff JSONDiff ListContains BLEU ROUGE METEOR "
    "FinalResponseMatch AnswerCorrectness ContextualPrecision ContextualRecall ContextEntityRecall Factuality Battle "
    "Summary Translation Sql EmbeddingSimilarity AnswerSimilarity",
    "keywords": "Contains",
    "tools": "ExpectedTools ToolTrajectory Trajectory ToolCorrectness ToolConsistency ToolCount ForbiddenTools "
    "ArgumentCorrectness ToolSelection StepEfficiency ToolUseQuality",
    "passages": "Groundedness Faithfulness Hallucination ContextualPrecision ContextualRecall ContextualRelevancy "
    "ContextRelevancy ContextEntityRecall",
    "rubrics": "FinalResponseQuality ToolUseQuality TrajectoryQuality",
    "final state": "FinalState",
    "scenario": "UserSimulatorQuality",
}
"""Per need, the evaluators that have nothing to say without it; who asks a judge is known from its class."""

FILLED_IN = frozenset({"base", "client", "pairwise_scorer"})
"""Parameters that Proctor gives a value itself, or that only Python can give."""

EXAMPLES: Mapping[str, dict[str, Json]] = {
    "Regex": {"pattern": "rain(s|ing)"},
    "Contains": {"all_of": ["sorry", "refund"]},
    "ROUGE": {"variant": "rouge1", "threshold": 0.6},
    "ToolCount": {"tool": "search", "at_most": 3},
    "ForbiddenTools": {"tools": ["delete_account"]},
    "Trajectory": {"steps": [{"name": "search"}, {"name": "refund", "optional": True}]},
    "MaxLatency": {"seconds": 5},
    "MaxTokens": {"total": 2000},
    "MaxCost": {"usd": 0.01},
    "MaxSteps": {"steps": 4},
    "CodeGrader": {"grader": "checks.py:grade"},
    "AdkMetric": {"function": "checks.brevity"},
    "LLMClassifier": {
        "prompt_template": "Is {{output}} an apology? Choose yes or no.",
        "choice_scores": {"yes": 1, "no": 0},
    },
    "GEval": {"criteria": "The answer names the deadline and the fee."},
    "LLMJudge": {"rubric": "The answer names the deadline."},
    "Expectations": {"must": ["name the price"], "must_not": ["promise a date of delivery"]},
    "JudgementDAG": {"nodes": {"polite": {"judge": "Is the answer polite?", "verdicts": {"yes": 10, "no": 0}}}},
}
"""Arguments that show what an evaluator is for; all others are shown without any."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an evaluator."""

    name: str
    required: bool
    default: Json = None


@dataclass(frozen=True, slots=True)
class Entry:
    """All that a person wants to know of an evaluator before using it."""

    name: str
    summary: str
    family: str
    needs: tuple[str, ...]
    threshold: float
    scope: str
    parameters: tuple[Parameter, ...]
    example: Json
    """As an entry of `evaluators` in a suite."""


def entries() -> list[Entry]:
    """Every shipped evaluator, family by family."""
    return [entry(name) for name in SHIPPED]


def entry(name: str) -> Entry:
    """What is known of one; raises `UsageError` with the nearest names for one that is not shipped."""
    own = _own_name(name)
    target = shipped(own)
    scope = getattr(target, "scope", "turn")
    return Entry(
        name=own,
        summary=(inspect.getdoc(target) or "").partition("\n")[0],
        family=SHIPPED[own].removeprefix("proctor.evaluators.").partition(".")[0],
        needs=needs_of(own, target),
        threshold=float(getattr(target, "default_threshold", DEFAULT_THRESHOLD)),
        scope=scope if isinstance(scope, str) else "turn or case",
        parameters=tuple(_parameters(target)),
        example={own: EXAMPLES[own]} if own in EXAMPLES else own,
    )


def needs_of(name: str, target: Any) -> tuple[str, ...]:
    """What it cannot do without; `judge` is a language model, or the rule-based judge where rules can answer."""
    found = [need for need, names in NEEDS.items() if name in names.split()]
    return (*found, "judge") if getattr(target, "needs_judge", False) else tuple(found)


def _own_name(name: str) -> str:
    if name in SHIPPED:
        return name
    bare = next((own for own in SHIPPED if own.lower() == name.lower().removesuffix("metric")), None)
    own = bare or evaluator_alias(name)
    if own is not None and own in SHIPPED:
        return own
    lower = {known.lower(): known for known in SHIPPED}
    close = [lower[found] for found in difflib.get_close_matches(name.lower(), lower, n=4, cutoff=0.5)]
    close += [known for known in SHIPPED if name and name.lower() in known.lower() and known not in close][:4]
    hint = f"; near to it: {', '.join(close)}" if close else "; `proctor evaluators` lists all"
    raise UsageError(f"no evaluator is called {name!r}{hint}")


def _parameters(target: Any) -> list[Parameter]:
    found = inspect.signature(target).parameters.values()
    return [
        Parameter(p.name, p.default is p.empty, None if p.default is p.empty else plain(p.default))
        for p in found
        if p.name not in FILLED_IN
    ]
