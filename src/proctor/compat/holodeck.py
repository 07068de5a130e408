"""HoloDeck's documented names: change where they are imported from to `proctor.compat.holodeck`, and nothing else.

All of them are Proctor's own, and loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.compat.holodeck_backends import (
        AgentBackend,
        AgentSession,
        BackendError,
        BackendInitError,
        BackendSelector,
        BackendSessionError,
        BackendTimeoutError,
        ExecutionResult,
        TokenUsage,
    )
    from proctor.compat.holodeck_config import AgentConfig, ConfigLoader, ExecutionConfig, TestCaseModel
    from proctor.compat.holodeck_evaluators import (
        RAG_EVALUATOR_MAP,
        AnswerRelevancyEvaluator,
        BaseEvaluator,
        BLEUEvaluator,
        CoherenceEvaluator,
        ContextualPrecisionEvaluator,
        ContextualRecallEvaluator,
        ContextualRelevancyEvaluator,
        EqualityEvaluator,
        EvaluationError,
        FaithfulnessEvaluator,
        FluencyEvaluator,
        GEvalEvaluator,
        GroundednessEvaluator,
        METEOREvaluator,
        NumericEvaluator,
        RAGEvaluatorConstructor,
        RAGMetricType,
        RelevanceEvaluator,
        RetryConfig,
        ROUGEEvaluator,
    )
    from proctor.compat.holodeck_executor import TestExecutor
    from proctor.compat.holodeck_params import (
        EvalKwargsBuilder,
        EvalParam,
        ParamSpec,
        build_retrieval_context_from_tools,
        tool_name_matches,
        validate_tool_calls,
    )
    from proctor.compat.holodeck_progress import ProgressIndicator
    from proctor.compat.holodeck_report import generate_markdown_report
    from proctor.compat.holodeck_results import MetricResult, ReportSummary, TestReport, TestResult, TurnResult
    from proctor.evaluators.grader import GraderContext, GraderResult, ToolInvocation

_HOMES = {
    "compat.holodeck_backends": (
        "AgentBackend AgentSession BackendError BackendInitError BackendSelector BackendSessionError"
        " BackendTimeoutError ExecutionResult TokenUsage"
    ),
    "compat.holodeck_config": "AgentConfig ConfigLoader ExecutionConfig TestCaseModel",
    "compat.holodeck_evaluators": (
        "RAG_EVALUATOR_MAP AnswerRelevancyEvaluator BLEUEvaluator BaseEvaluator CoherenceEvaluator"
        " ContextualPrecisionEvaluator ContextualRecallEvaluator ContextualRelevancyEvaluator EqualityEvaluator"
        " EvaluationError FaithfulnessEvaluator FluencyEvaluator GEvalEvaluator GroundednessEvaluator METEOREvaluator"
        " NumericEvaluator RAGEvaluatorConstructor RAGMetricType ROUGEEvaluator RelevanceEvaluator RetryConfig"
    ),
    "compat.holodeck_executor": "TestExecutor",
    "compat.holodeck_params": (
        "EvalKwargsBuilder EvalParam ParamSpec build_retrieval_context_from_tools tool_name_matches validate_tool_calls"
    ),
    "compat.holodeck_progress": "ProgressIndicator",
    "compat.holodeck_report": "generate_markdown_report",
    "compat.holodeck_results": "MetricResult ReportSummary TestReport TestResult TurnResult",
    "evaluators.grader": "GraderContext GraderResult ToolInvocation",
}
_HOME_OF = {name: f"proctor.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "RAG_EVALUATOR_MAP",
    "AgentBackend",
    "AgentConfig",
    "AgentSession",
    "AnswerRelevancyEvaluator",
    "BLEUEvaluator",
    "BackendError",
    "BackendInitError",
    "BackendSelector",
    "BackendSessionError",
    "BackendTimeoutError",
    "BaseEvaluator",
    "CoherenceEvaluator",
    "ConfigLoader",
    "ContextualPrecisionEvaluator",
    "ContextualRecallEvaluator",
    "ContextualRelevancyEvaluator",
    "EqualityEvaluator",
    "EvalKwargsBuilder",
    "EvalParam",
    "EvaluationError",
    "ExecutionConfig",
    "ExecutionResult",
    "FaithfulnessEvaluator",
    "FluencyEvaluator",
    "GEvalEvaluator",
    "GraderContext",
    "GraderResult",
    "GroundednessEvaluator",
    "METEOREvaluator",
    "MetricResult",
    "NumericEvaluator",
    "ParamSpec",
    "ProgressIndicator",
    "RAGEvaluatorConstructor",
    "RAGMetricType",
    "ROUGEEvaluator",
    "RelevanceEvaluator",
    "ReportSummary",
    "RetryConfig",
    "TestCaseModel",
    "TestExecutor",
    "TestReport",
    "TestResult",
    "TokenUsage",
    "ToolInvocation",
    "TurnResult",
    "build_retrieval_context_from_tools",
    "generate_markdown_report",
    "tool_name_matches",
    "validate_tool_calls",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'proctor.compat.holodeck' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
