"""HoloDeck's documented names: change where they are imported from to `proctor.compat.holodeck`, and nothing else.

All of them are Proctor's own, and loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names

if TYPE_CHECKING:
    from proctor.compat.holodeck.backends import (
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
    from proctor.compat.holodeck.config import AgentConfig, ConfigError, ConfigLoader, ExecutionConfig, TestCaseModel
    from proctor.compat.holodeck.driven_agent import FileProcessor
    from proctor.compat.holodeck.eval_kwargs import (
        EvalKwargsBuilder,
        EvalParam,
        ParamSpec,
        build_retrieval_context_from_tools,
        tool_name_matches,
        validate_tool_calls,
    )
    from proctor.compat.holodeck.evaluators import (
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
    from proctor.compat.holodeck.executor import TestExecutor
    from proctor.compat.holodeck.report import ProgressIndicator, generate_markdown_report
    from proctor.compat.holodeck.test_results import (
        FileInput,
        MetricResult,
        ProcessedFileInput,
        ReportSummary,
        TestReport,
        TestResult,
        TurnResult,
    )
    from proctor.evaluators.foreign import GraderContext, GraderResult, ToolInvocation

_HOMES = {
    "compat.holodeck.backends": (
        "AgentBackend AgentSession BackendError BackendInitError BackendSelector BackendSessionError"
        " BackendTimeoutError ExecutionResult TokenUsage"
    ),
    "compat.holodeck.config": "AgentConfig ConfigError ConfigLoader ExecutionConfig TestCaseModel",
    "compat.holodeck.evaluators": (
        "RAG_EVALUATOR_MAP AnswerRelevancyEvaluator BLEUEvaluator BaseEvaluator CoherenceEvaluator"
        " ContextualPrecisionEvaluator ContextualRecallEvaluator ContextualRelevancyEvaluator EqualityEvaluator"
        " EvaluationError FaithfulnessEvaluator FluencyEvaluator GEvalEvaluator GroundednessEvaluator METEOREvaluator"
        " NumericEvaluator RAGEvaluatorConstructor RAGMetricType ROUGEEvaluator RelevanceEvaluator RetryConfig"
    ),
    "compat.holodeck.executor": "TestExecutor",
    "compat.holodeck.eval_kwargs": (
        "EvalKwargsBuilder EvalParam ParamSpec build_retrieval_context_from_tools tool_name_matches validate_tool_calls"
    ),
    "compat.holodeck.driven_agent": "FileProcessor",
    "compat.holodeck.report": "ProgressIndicator generate_markdown_report",
    "compat.holodeck.test_results": (
        "FileInput MetricResult ProcessedFileInput ReportSummary TestReport TestResult TurnResult"
    ),
    "evaluators.foreign": "GraderContext GraderResult ToolInvocation",
}

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
    "ConfigError",
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
    "FileInput",
    "FileProcessor",
    "FluencyEvaluator",
    "GEvalEvaluator",
    "GraderContext",
    "GraderResult",
    "GroundednessEvaluator",
    "METEOREvaluator",
    "MetricResult",
    "NumericEvaluator",
    "ParamSpec",
    "ProcessedFileInput",
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

__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor")
