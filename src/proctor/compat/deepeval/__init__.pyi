"""DeepEval's names and the module that defines each; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.compat.deepeval.conversation_metrics import (
    BinaryJudgementNode as BinaryJudgementNode,
    ConversationalBinaryJudgementNode as ConversationalBinaryJudgementNode,
    ConversationalNonBinaryJudgementNode as ConversationalNonBinaryJudgementNode,
    ConversationalTaskNode as ConversationalTaskNode,
    ConversationalVerdictNode as ConversationalVerdictNode,
    DeepAcyclicGraph as DeepAcyclicGraph,
    NonBinaryJudgementNode as NonBinaryJudgementNode,
    TaskNode as TaskNode,
    VerdictNode as VerdictNode,
)
from proctor.compat.deepeval.dataset import (
    ConversationalGolden as ConversationalGolden,
    EvaluationDataset as EvaluationDataset,
    Golden as Golden,
)
from proctor.compat.deepeval.goldens import (
    BackgroundNoiseSettings as BackgroundNoiseSettings,
    InterruptionBehavior as InterruptionBehavior,
    Persona as Persona,
    convert_convo_goldens_to_convo_test_cases as convert_convo_goldens_to_convo_test_cases,
    convert_convo_test_cases_to_convo_goldens as convert_convo_test_cases_to_convo_goldens,
)
from proctor.compat.deepeval.evaluate_results import (
    AsyncConfig as AsyncConfig,
    CacheConfig as CacheConfig,
    DisplayConfig as DisplayConfig,
    ErrorConfig as ErrorConfig,
    EvaluationResult as EvaluationResult,
    MetricData as MetricData,
    TestResult as TestResult,
)
from proctor.compat.deepeval.evaluating import (
    a_assert_test as a_assert_test,
    a_evaluate as a_evaluate,
    assert_test as assert_test,
    evaluate as evaluate,
)
from proctor.compat.deepeval.metric_base import (
    DeepEvalError as DeepEvalError,
    MissingTestCaseParamsError as MissingTestCaseParamsError,
)
from proctor.compat.deepeval.metric_classes import (
    Rubric as Rubric,
)
from proctor.compat.deepeval.models import (
    DeepEvalBaseLLM as DeepEvalBaseLLM,
    DeepEvalBaseModel as DeepEvalBaseModel,
)
from proctor.compat.deepeval.test_case import (
    ConversationalTestCase as ConversationalTestCase,
    LLMTestCase as LLMTestCase,
    LLMTestCaseParams as LLMTestCaseParams,
    MultiTurnParams as MultiTurnParams,
    SingleTurnParams as SingleTurnParams,
    ToolCall as ToolCall,
    ToolCallParams as ToolCallParams,
    ToolCallType as ToolCallType,
    Turn as Turn,
    TurnParams as TurnParams,
)
from proctor.compat.deepeval.tracing import (
    get_current_golden as get_current_golden,
    observe as observe,
    update_agent_span as update_agent_span,
    update_current_span as update_current_span,
    update_current_trace as update_current_trace,
    update_llm_span as update_llm_span,
    update_retriever_span as update_retriever_span,
    update_tool_span as update_tool_span,
)
from proctor.compat.deepeval.further_names import (
    ArenaTestCase as ArenaTestCase,
    Contestant as Contestant,
    ContextWindowExceededError as ContextWindowExceededError,
    MCPPromptCall as MCPPromptCall,
    MCPResourceCall as MCPResourceCall,
    MCPServer as MCPServer,
    MCPToolCall as MCPToolCall,
    MLLMImage as MLLMImage,
    MismatchedTestCaseInputsError as MismatchedTestCaseInputsError,
    NoMetricsError as NoMetricsError,
    TestRunManager as TestRunManager,
    TestRunResultDisplay as TestRunResultDisplay,
    UserAppError as UserAppError,
    a_flush_traces as a_flush_traces,
    flush_traces as flush_traces,
    check_llm_test_case_params as check_llm_test_case_params,
    copy_metrics as copy_metrics,
    get_available_mcp_tool_names as get_available_mcp_tool_names,
    get_unit_interactions as get_unit_interactions,
    process_mcp_servers as process_mcp_servers,
    global_test_run_manager as global_test_run_manager,
    log_hyperparameters as log_hyperparameters,
    login as login,
    on_test_run_end as on_test_run_end,
)
from proctor.compat.deepeval.provider_models import (
    AmazonBedrockModel as AmazonBedrockModel,
    AnthropicModel as AnthropicModel,
    AzureOpenAIModel as AzureOpenAIModel,
    DeepSeekModel as DeepSeekModel,
    GPTModel as GPTModel,
    GeminiModel as GeminiModel,
    GrokModel as GrokModel,
    KimiModel as KimiModel,
    LiteLLMModel as LiteLLMModel,
    LocalModel as LocalModel,
    OllamaModel as OllamaModel,
    OpenAIModel as OpenAIModel,
    OpenRouterModel as OpenRouterModel,
)
from proctor.compat.deepeval.conversation_metrics import (
    ConversationalDAGMetric as ConversationalDAGMetric,
    ConversationalGEval as ConversationalGEval,
    DAGMetric as DAGMetric,
    GoalAccuracyMetric as GoalAccuracyMetric,
    StepEfficiencyMetric as StepEfficiencyMetric,
    SummarizationMetric as SummarizationMetric,
)
from proctor.compat.deepeval.metric_base import (
    BaseConversationalMetric as BaseConversationalMetric,
    BaseMetric as BaseMetric,
)
from proctor.compat.deepeval.metric_classes import (
    AnswerRelevancyMetric as AnswerRelevancyMetric,
    ArgumentCorrectnessMetric as ArgumentCorrectnessMetric,
    BiasMetric as BiasMetric,
    ContextualPrecisionMetric as ContextualPrecisionMetric,
    ContextualRecallMetric as ContextualRecallMetric,
    ContextualRelevancyMetric as ContextualRelevancyMetric,
    ConversationCompletenessMetric as ConversationCompletenessMetric,
    ExactMatchMetric as ExactMatchMetric,
    FaithfulnessMetric as FaithfulnessMetric,
    GEval as GEval,
    HallucinationMetric as HallucinationMetric,
    JsonCorrectnessMetric as JsonCorrectnessMetric,
    KeywordsMetric as KeywordsMetric,
    KnowledgeRetentionMetric as KnowledgeRetentionMetric,
    PatternMatchMetric as PatternMatchMetric,
    PIILeakageMetric as PIILeakageMetric,
    PromptAlignmentMetric as PromptAlignmentMetric,
    RoleAdherenceMetric as RoleAdherenceMetric,
    TaskCompletionMetric as TaskCompletionMetric,
    ToolConsistencyMetric as ToolConsistencyMetric,
    ToolCorrectnessMetric as ToolCorrectnessMetric,
    ToolPermissionMetric as ToolPermissionMetric,
    ToxicityMetric as ToxicityMetric,
    TurnRelevancyMetric as TurnRelevancyMetric,
)
from proctor.version import (
    __version__ as __version__,
)
