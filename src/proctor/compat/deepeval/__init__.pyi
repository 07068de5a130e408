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
    observe as observe,
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
    ToxicityMetric as ToxicityMetric,
    TurnRelevancyMetric as TurnRelevancyMetric,
)
from proctor.version import (
    __version__ as __version__,
)
