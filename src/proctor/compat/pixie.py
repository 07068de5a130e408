"""pixie's documented names: change `from pixie import ...` to `from proctor.compat.pixie import ...`, and nothing else.

All of them are Proctor's own, and loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.agents.runnable import Runnable
    from proctor.cases.model import UNSET, NamedData
    from proctor.evaluators.autoevals import AutoevalsAdapter
    from proctor.evaluators.battles import Battle, Summary
    from proctor.evaluators.calling import evaluate
    from proctor.evaluators.classifiers import ClosedQA, Factuality, Humor, Possible, Security, Sql, Translation
    from proctor.evaluators.correctness import AnswerCorrectness
    from proctor.evaluators.data import JSONDiff, ListContains, NumericDiff, ValidJSON
    from proctor.evaluators.dataset_files import Dataset
    from proctor.evaluators.datasets import DatasetStore
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.llm_prompt import create_llm_evaluator
    from proctor.evaluators.model import Evaluable, Evaluation, Evaluator
    from proctor.evaluators.moderation import Moderation
    from proctor.evaluators.pending import create_agent_evaluator
    from proctor.evaluators.rag import AnswerRelevancy, Faithfulness
    from proctor.evaluators.retrieval import ContextRelevancy
    from proctor.evaluators.semantic import EmbeddingSimilarity
    from proctor.evaluators.text import ExactMatch, LevenshteinMatch
    from proctor.reporting.scorecard import (
        DatasetEntryResult,
        DatasetScorecard,
        generate_dataset_scorecard_html,
        save_dataset_scorecard,
    )
    from proctor.results.thresholds import ScoreThreshold
    from proctor.running.asserting import (
        assert_dataset_pass,
        assert_dataset_pass_sync,
        assert_pass,
        assert_pass_sync,
        evaluate_sync,
        run_and_evaluate,
        run_and_evaluate_sync,
    )
    from proctor.running.matrix import EvalAssertionError
    from proctor.tracing.capture import MemoryTraceHandler, add_handler, capture_traces, flush, remove_handler
    from proctor.tracing.observing import observe, start_observation
    from proctor.tracing.spans import LLMSpan, ObservationNode, ObserveSpan
    from proctor.tracing.wrapping import wrap

    TestCase = Evaluable

_HOMES = {
    "agents.runnable": "Runnable",
    "cases.model": "UNSET NamedData",
    "evaluators.autoevals": "AutoevalsAdapter",
    "evaluators.battles": "Battle Summary",
    "evaluators.calling": "evaluate",
    "evaluators.classifiers": "ClosedQA Factuality Humor Possible Security Sql Translation",
    "evaluators.correctness": "AnswerCorrectness",
    "evaluators.data": "JSONDiff ListContains NumericDiff ValidJSON",
    "evaluators.dataset_files": "Dataset",
    "evaluators.datasets": "DatasetStore",
    "evaluators.from_trace": "as_evaluable by_name last_llm_call root",
    "evaluators.llm_prompt": "create_llm_evaluator",
    "evaluators.model": "Evaluable Evaluation Evaluator",
    "evaluators.moderation": "Moderation",
    "evaluators.pending": "create_agent_evaluator",
    "evaluators.rag": "AnswerRelevancy Faithfulness",
    "evaluators.retrieval": "ContextRelevancy",
    "evaluators.semantic": "EmbeddingSimilarity",
    "evaluators.text": "ExactMatch LevenshteinMatch",
    "reporting.scorecard": (
        "DatasetEntryResult DatasetScorecard generate_dataset_scorecard_html save_dataset_scorecard"
    ),
    "results.thresholds": "ScoreThreshold",
    "running.asserting": (
        "assert_dataset_pass assert_dataset_pass_sync assert_pass assert_pass_sync evaluate_sync"
        " run_and_evaluate run_and_evaluate_sync"
    ),
    "running.matrix": "EvalAssertionError",
    "tracing.capture": "MemoryTraceHandler add_handler capture_traces flush remove_handler",
    "tracing.observing": "observe start_observation",
    "tracing.spans": "LLMSpan ObservationNode ObserveSpan",
    "tracing.wrapping": "wrap",
}
_HOME_OF = {name: (f"proctor.{module}", name) for module, names in _HOMES.items() for name in names.split()}
# What pixie calls a test case is an Evaluable that nothing came out of yet.
_HOME_OF["TestCase"] = ("proctor.evaluators.model", "Evaluable")

__all__ = [
    "UNSET",
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AutoevalsAdapter",
    "Battle",
    "ClosedQA",
    "ContextRelevancy",
    "Dataset",
    "DatasetEntryResult",
    "DatasetScorecard",
    "DatasetStore",
    "EmbeddingSimilarity",
    "EvalAssertionError",
    "Evaluable",
    "Evaluation",
    "Evaluator",
    "ExactMatch",
    "Factuality",
    "Faithfulness",
    "Humor",
    "JSONDiff",
    "LLMSpan",
    "LevenshteinMatch",
    "ListContains",
    "MemoryTraceHandler",
    "Moderation",
    "NamedData",
    "NumericDiff",
    "ObservationNode",
    "ObserveSpan",
    "Possible",
    "Runnable",
    "ScoreThreshold",
    "Security",
    "Sql",
    "Summary",
    "TestCase",
    "Translation",
    "ValidJSON",
    "__version__",
    "add_handler",
    "as_evaluable",
    "assert_dataset_pass",
    "assert_dataset_pass_sync",
    "assert_pass",
    "assert_pass_sync",
    "by_name",
    "capture_traces",
    "create_agent_evaluator",
    "create_llm_evaluator",
    "enable_llm_tracing",
    "evaluate",
    "evaluate_sync",
    "flush",
    "generate_dataset_scorecard_html",
    "last_llm_call",
    "observe",
    "remove_handler",
    "root",
    "run_and_evaluate",
    "run_and_evaluate_sync",
    "save_dataset_scorecard",
    "start_observation",
    "wrap",
]


def enable_llm_tracing() -> list[str]:
    """Switch on the installed instrumentations of model libraries; the names of those that are on."""
    try:
        from proctor.tracing import otel
    except ImportError as error:
        from proctor.errors import UsageError

        raise UsageError(
            f"model calls are seen through OpenTelemetry: pip install 'proctor[tracing]' ({error})"
        ) from None
    return otel.enable_llm_tracing()


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'proctor.compat.pixie' has no attribute {name!r}")
    module, own_name = _HOME_OF[name]
    value = getattr(importlib.import_module(module), own_name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
