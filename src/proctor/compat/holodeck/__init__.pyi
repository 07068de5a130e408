"""HoloDeck's names and the module that defines each; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.compat.holodeck.backends import (
    AgentBackend as AgentBackend,
    AgentSession as AgentSession,
    BackendError as BackendError,
    BackendInitError as BackendInitError,
    BackendSelector as BackendSelector,
    BackendSessionError as BackendSessionError,
    BackendTimeoutError as BackendTimeoutError,
    ExecutionResult as ExecutionResult,
    TokenUsage as TokenUsage,
)
from proctor.compat.holodeck.config import (
    AgentConfig as AgentConfig,
    ConfigError as ConfigError,
    ConfigLoader as ConfigLoader,
    ExecutionConfig as ExecutionConfig,
    TestCaseModel as TestCaseModel,
)
from proctor.compat.holodeck.driven_agent import (
    FileProcessor as FileProcessor,
)
from proctor.compat.holodeck.eval_kwargs import (
    EvalKwargsBuilder as EvalKwargsBuilder,
    EvalParam as EvalParam,
    ParamSpec as ParamSpec,
    build_retrieval_context_from_tools as build_retrieval_context_from_tools,
    tool_name_matches as tool_name_matches,
    validate_tool_calls as validate_tool_calls,
)
from proctor.compat.holodeck.evaluators import (
    RAG_EVALUATOR_MAP as RAG_EVALUATOR_MAP,
    AnswerRelevancyEvaluator as AnswerRelevancyEvaluator,
    BaseEvaluator as BaseEvaluator,
    BLEUEvaluator as BLEUEvaluator,
    CoherenceEvaluator as CoherenceEvaluator,
    ContextualPrecisionEvaluator as ContextualPrecisionEvaluator,
    ContextualRecallEvaluator as ContextualRecallEvaluator,
    ContextualRelevancyEvaluator as ContextualRelevancyEvaluator,
    EqualityEvaluator as EqualityEvaluator,
    EvaluationError as EvaluationError,
    FaithfulnessEvaluator as FaithfulnessEvaluator,
    FluencyEvaluator as FluencyEvaluator,
    GEvalEvaluator as GEvalEvaluator,
    GroundednessEvaluator as GroundednessEvaluator,
    METEOREvaluator as METEOREvaluator,
    NumericEvaluator as NumericEvaluator,
    RAGEvaluatorConstructor as RAGEvaluatorConstructor,
    RAGMetricType as RAGMetricType,
    RelevanceEvaluator as RelevanceEvaluator,
    RetryConfig as RetryConfig,
    ROUGEEvaluator as ROUGEEvaluator,
)
from proctor.compat.holodeck.executor import (
    TestExecutor as TestExecutor,
)
from proctor.compat.holodeck.report import (
    ProgressIndicator as ProgressIndicator,
    generate_markdown_report as generate_markdown_report,
)
from proctor.compat.holodeck.test_results import (
    FileInput as FileInput,
    MetricResult as MetricResult,
    ProcessedFileInput as ProcessedFileInput,
    ReportSummary as ReportSummary,
    TestReport as TestReport,
    TestResult as TestResult,
    TurnResult as TurnResult,
)
from proctor.evaluators.foreign import (
    GraderContext as GraderContext,
    GraderResult as GraderResult,
    ToolInvocation as ToolInvocation,
)
