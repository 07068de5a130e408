"""pixie's documented names: change `from pixie import ...` to `from proctor.compat.pixie import ...`, and nothing else.

All of them are Proctor's own, and loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.late_names import late_names
from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.agents.runnable import Runnable
    from proctor.cases.model import UNSET, NamedData
    from proctor.evaluators.calling import evaluate
    from proctor.evaluators.choice.battles import Battle, Summary
    from proctor.evaluators.choice.classifiers import ClosedQA, Factuality, Humor, Possible, Security, Sql, Translation
    from proctor.evaluators.data.values import JSONDiff, ListContains, NumericDiff, ValidJSON
    from proctor.evaluators.datasets.by_name import DatasetStore
    from proctor.evaluators.datasets.files import Dataset
    from proctor.evaluators.foreign.autoevals import AutoevalsAdapter
    from proctor.evaluators.foreign.llm_prompt import create_llm_evaluator
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.model import Evaluable, Evaluation, Evaluator
    from proctor.evaluators.pending import create_agent_evaluator
    from proctor.evaluators.rag.answers import AnswerRelevancy, Faithfulness
    from proctor.evaluators.rag.correctness import AnswerCorrectness
    from proctor.evaluators.rag.retrieval import ContextRelevancy
    from proctor.evaluators.safety.moderation import Moderation
    from proctor.evaluators.semantic import EmbeddingSimilarity
    from proctor.evaluators.text.matching import ExactMatch, LevenshteinMatch
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
    "evaluators.foreign.autoevals": "AutoevalsAdapter",
    "evaluators.choice.battles": "Battle Summary",
    "evaluators.calling": "evaluate",
    "evaluators.choice.classifiers": "ClosedQA Factuality Humor Possible Security Sql Translation",
    "evaluators.rag.correctness": "AnswerCorrectness",
    "evaluators.data.values": "JSONDiff ListContains NumericDiff ValidJSON",
    "evaluators.datasets.files": "Dataset",
    "evaluators.datasets.by_name": "DatasetStore",
    "evaluators.from_trace": "as_evaluable by_name last_llm_call root",
    "evaluators.foreign.llm_prompt": "create_llm_evaluator",
    # What pixie calls a test case is an Evaluable that nothing came out of yet.
    "evaluators.model": "Evaluable Evaluation Evaluator TestCase=Evaluable",
    "evaluators.safety.moderation": "Moderation",
    "evaluators.pending": "create_agent_evaluator",
    "evaluators.rag.answers": "AnswerRelevancy Faithfulness",
    "evaluators.rag.retrieval": "ContextRelevancy",
    "evaluators.semantic": "EmbeddingSimilarity",
    "evaluators.text.matching": "ExactMatch LevenshteinMatch",
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


__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor")
