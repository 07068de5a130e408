"""pixie's names and the module that defines each; `__init__.py` reads it too.

Those that Proctor does not replace are in `unavailable.py`.
"""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.agents.runnable_agent import (
    Runnable as Runnable,
)
from proctor.cases.suite import (
    NamedData as NamedData,
)
from proctor.compat.pixie.autoevals import (
    AutoevalsAdapter as AutoevalsAdapter,
)
from proctor.evaluators import (
    AnswerCorrectness as AnswerCorrectness,
    AnswerRelevancy as AnswerRelevancy,
    Battle as Battle,
    ClosedQA as ClosedQA,
    ContextRelevancy as ContextRelevancy,
    EmbeddingSimilarity as EmbeddingSimilarity,
    ExactMatch as ExactMatch,
    Factuality as Factuality,
    Faithfulness as Faithfulness,
    Humor as Humor,
    JSONDiff as JSONDiff,
    LevenshteinMatch as LevenshteinMatch,
    ListContains as ListContains,
    Moderation as Moderation,
    NumericDiff as NumericDiff,
    Possible as Possible,
    Security as Security,
    Sql as Sql,
    Summary as Summary,
    Translation as Translation,
    ValidJSON as ValidJSON,
)
from proctor.compat.pixie.dataset_assertions import (
    assert_dataset_pass as assert_dataset_pass,
    assert_dataset_pass_sync as assert_dataset_pass_sync,
)
from proctor.compat.pixie.datasets import (
    Dataset as Dataset,
    DatasetStore as DatasetStore,
)
from proctor.evaluators.from_trace import (
    as_evaluable as as_evaluable,
    by_name as by_name,
    last_llm_call as last_llm_call,
    root as root,
)
from proctor.evaluators.prompt_evaluators import (
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
)
from proctor.compat.pixie.models import (
    Evaluable as Evaluable,
    Evaluation as Evaluation,
    TestCase as TestCase,
)
from proctor.evaluators.calling import evaluate as evaluate
from proctor.compat.pixie.further_names import (
    BUILTIN_EVALUATOR_NAMES as BUILTIN_EVALUATOR_NAMES,
    DEFAULT_RATE_LIMIT_RPM as DEFAULT_RATE_LIMIT_RPM,
    DEFAULT_RATE_LIMIT_RPS as DEFAULT_RATE_LIMIT_RPS,
    DEFAULT_RATE_LIMIT_TPM as DEFAULT_RATE_LIMIT_TPM,
    DEFAULT_RATE_LIMIT_TPS as DEFAULT_RATE_LIMIT_TPS,
    DEFAULT_ROOT as DEFAULT_ROOT,
    DEFAULT_RUNNABLE_CONCURRENCY as DEFAULT_RUNNABLE_CONCURRENCY,
    ENTRY_KWARGS_KEY as ENTRY_KWARGS_KEY,
    InstrumentationHandler as InstrumentationHandler,
    MessageContent as MessageContent,
    Purpose as Purpose,
    RateLimitConfig as RateLimitConfig,
    WrapRegistryMissError as WrapRegistryMissError,
    WrappedData as WrappedData,
    configure_rate_limits as configure_rate_limits,
    enable_storage as enable_storage,
    get_runnable_args_type as get_runnable_args_type,
    init as init,
    is_runnable_class as is_runnable_class,
    resolve_evaluator_name as resolve_evaluator_name,
    validate_dataset_file as validate_dataset_file,
    _Unset as _Unset,
    _reset_state as _reset_state,
    _slugify as _slugify,
)
from proctor.evaluators.evaluable import (
    collapse_named_data as collapse_named_data,
)
from proctor.evaluators.evaluation import (
    Evaluator as Evaluator,
)
from proctor.compat.pixie.scorecard import (
    DatasetEntryResult as DatasetEntryResult,
    DatasetScorecard as DatasetScorecard,
    generate_dataset_scorecard_html as generate_dataset_scorecard_html,
    save_dataset_scorecard as save_dataset_scorecard,
)
from proctor.results.run import ScoreThreshold as ScoreThreshold
from proctor.running.assertions.assert_pass import (
    assert_pass as assert_pass,
    assert_pass_sync as assert_pass_sync,
    evaluate_sync as evaluate_sync,
    run_and_evaluate as run_and_evaluate,
    run_and_evaluate_sync as run_and_evaluate_sync,
)
from proctor.running.assertions.score_matrix import (
    EvalAssertionError as EvalAssertionError,
)
from proctor.compat.pixie.span_handlers import (
    add_handler as add_handler,
    flush as flush,
    remove_handler as remove_handler,
)
from proctor.tracing.capture import (
    MemoryTraceHandler as MemoryTraceHandler,
    capture_traces as capture_traces,
)
from proctor.tracing.observe import (
    observe as observe,
    start_observation as start_observation,
)
from proctor.agents.reply import (
    ToolCall as ToolCall,
)
from proctor.tracing.spans import (
    AssistantMessage as AssistantMessage,
    ImageContent as ImageContent,
    LLMSpan as LLMSpan,
    Message as Message,
    ObserveSpan as ObserveSpan,
    SystemMessage as SystemMessage,
    TextContent as TextContent,
    ToolDefinition as ToolDefinition,
    ToolResultMessage as ToolResultMessage,
    UserMessage as UserMessage,
)
from proctor.compat.pixie.trees import (
    ObservationNode as ObservationNode,
    build_tree as build_tree,
)
from proctor.tracing.wrap import (
    wrap as wrap,
)
from proctor.base.json_data import (
    UNSET as UNSET,
)
from proctor.version import (
    __version__ as __version__,
)
from proctor.compat.pixie.llm_tracing import (
    enable_llm_tracing as enable_llm_tracing,
)
