"""pixie's documented names: change `from pixie import ...` to `from proctor.compat.pixie import ...`, and nothing else.

All of them are Proctor's own, and loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names
from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.agents.runnable import Runnable
    from proctor.base.json_data import UNSET
    from proctor.cases.suite import NamedData
    from proctor.compat.pixie.evaluable import Evaluable
    from proctor.evaluators.choice import (
        Battle,
        ClosedQA,
        Factuality,
        Humor,
        Possible,
        Security,
        Sql,
        Summary,
        Translation,
    )
    from proctor.evaluators.data import JSONDiff, ListContains, NumericDiff, ValidJSON
    from proctor.evaluators.datasets import Dataset, DatasetStore
    from proctor.evaluators.evaluation import Evaluation, Evaluator, evaluate
    from proctor.evaluators.foreign import AutoevalsAdapter
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.prompt_evaluators import create_agent_evaluator, create_llm_evaluator
    from proctor.evaluators.rag import AnswerCorrectness, AnswerRelevancy, ContextRelevancy, Faithfulness
    from proctor.evaluators.safety import Moderation
    from proctor.evaluators.semantic import EmbeddingSimilarity
    from proctor.evaluators.text.matching import ExactMatch, LevenshteinMatch
    from proctor.reporting.html.scorecard import (
        DatasetEntryResult,
        DatasetScorecard,
        generate_dataset_scorecard_html,
        save_dataset_scorecard,
    )
    from proctor.results.run import ScoreThreshold
    from proctor.running.python_api.asserting import (
        assert_dataset_pass,
        assert_dataset_pass_sync,
        assert_pass,
        assert_pass_sync,
        evaluate_sync,
        run_and_evaluate,
        run_and_evaluate_sync,
    )
    from proctor.running.python_api.scorers import EvalAssertionError
    from proctor.tracing.capture import MemoryTraceHandler, add_handler, capture_traces, flush, remove_handler
    from proctor.tracing.observing import observe, start_observation
    from proctor.tracing.spans import LLMSpan, ObservationNode, ObserveSpan
    from proctor.tracing.trial_recording import wrap

    TestCase = Evaluable

_HOMES = {
    "agents.runnable": "Runnable",
    "cases.suite": "NamedData",
    "evaluators.foreign": "AutoevalsAdapter",
    "evaluators.choice": "Battle Summary ClosedQA Factuality Humor Possible Security Sql Translation",
    "evaluators.rag": "AnswerCorrectness AnswerRelevancy ContextRelevancy Faithfulness",
    "evaluators.data": "JSONDiff ListContains NumericDiff ValidJSON",
    "evaluators.datasets": "Dataset DatasetStore",
    "evaluators.from_trace": "as_evaluable by_name last_llm_call root",
    "evaluators.prompt_evaluators": "create_agent_evaluator create_llm_evaluator",
    "compat.pixie.evaluable": "Evaluable TestCase=Evaluable",
    "evaluators.evaluation": "Evaluation Evaluator evaluate",
    "evaluators.safety": "Moderation",
    "evaluators.semantic": "EmbeddingSimilarity",
    "evaluators.text.matching": "ExactMatch LevenshteinMatch",
    "reporting.html.scorecard": "DatasetEntryResult DatasetScorecard generate_dataset_scorecard_html "
    "save_dataset_scorecard",
    "results.run": "ScoreThreshold",
    "running.python_api.asserting": "assert_dataset_pass assert_dataset_pass_sync assert_pass assert_pass_sync "
    "evaluate_sync run_and_evaluate run_and_evaluate_sync",
    "running.python_api.scorers": "EvalAssertionError",
    "tracing.capture": "MemoryTraceHandler add_handler capture_traces flush remove_handler",
    "tracing.observing": "observe start_observation",
    "tracing.spans": "LLMSpan ObservationNode ObserveSpan",
    "tracing.trial_recording": "wrap",
    "base.json_data": "UNSET",
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
        from proctor.base.errors import UsageError

        raise UsageError(
            f"model calls are seen through OpenTelemetry: pip install 'proctor[tracing]' ({error})"
        ) from None
    return otel.enable_llm_tracing()


__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor")
