"""DeepEval's documented names: write `proctor.compat.deepeval` for `deepeval`, here and in its modules.

`proctor.compat.deepeval.metrics`, `.test_case` and `.dataset` have what DeepEval's modules of these names have; all
of it can be imported from here as well. Everything is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names
from proctor.compat.deepeval.metrics import HOMES as _METRICS

if TYPE_CHECKING:
    from proctor.compat.deepeval.conversation_metrics import (
        BinaryJudgementNode,
        ConversationalBinaryJudgementNode,
        ConversationalNonBinaryJudgementNode,
        ConversationalTaskNode,
        ConversationalVerdictNode,
        DeepAcyclicGraph,
        NonBinaryJudgementNode,
        TaskNode,
        VerdictNode,
    )
    from proctor.compat.deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
    from proctor.compat.deepeval.evaluate_results import (
        AsyncConfig,
        CacheConfig,
        DisplayConfig,
        ErrorConfig,
        EvaluationResult,
        MetricData,
        TestResult,
    )
    from proctor.compat.deepeval.evaluating import a_assert_test, a_evaluate, assert_test, evaluate
    from proctor.compat.deepeval.metric_base import DeepEvalError, MissingTestCaseParamsError
    from proctor.compat.deepeval.metric_classes import Rubric
    from proctor.compat.deepeval.metrics import (
        AnswerRelevancyMetric,
        ArgumentCorrectnessMetric,
        BaseConversationalMetric,
        BaseMetric,
        BiasMetric,
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        ContextualRelevancyMetric,
        ConversationalDAGMetric,
        ConversationalGEval,
        ConversationCompletenessMetric,
        DAGMetric,
        ExactMatchMetric,
        FaithfulnessMetric,
        GEval,
        GoalAccuracyMetric,
        HallucinationMetric,
        JsonCorrectnessMetric,
        KeywordsMetric,
        KnowledgeRetentionMetric,
        PatternMatchMetric,
        PIILeakageMetric,
        PromptAlignmentMetric,
        RoleAdherenceMetric,
        StepEfficiencyMetric,
        SummarizationMetric,
        TaskCompletionMetric,
        ToolConsistencyMetric,
        ToolCorrectnessMetric,
        ToxicityMetric,
        TurnRelevancyMetric,
    )
    from proctor.compat.deepeval.models import DeepEvalBaseLLM
    from proctor.compat.deepeval.test_case import (
        ConversationalTestCase,
        LLMTestCase,
        LLMTestCaseParams,
        MultiTurnParams,
        SingleTurnParams,
        ToolCall,
        ToolCallParams,
        ToolCallType,
        Turn,
        TurnParams,
    )
    from proctor.compat.deepeval.tracing import observe

_HOMES = _METRICS | {
    "metric_base": f"{_METRICS['metric_base']} DeepEvalError MissingTestCaseParamsError",
    "conversation_metrics": f"{_METRICS['conversation_metrics']} BinaryJudgementNode DeepAcyclicGraph "
    "NonBinaryJudgementNode TaskNode VerdictNode ConversationalBinaryJudgementNode "
    "ConversationalNonBinaryJudgementNode ConversationalTaskNode ConversationalVerdictNode",
    "metric_classes": f"{_METRICS['metric_classes']} Rubric",
    "dataset": "ConversationalGolden EvaluationDataset Golden",
    "evaluate_results": "AsyncConfig CacheConfig DisplayConfig ErrorConfig EvaluationResult MetricData TestResult",
    "evaluating": "a_assert_test a_evaluate assert_test evaluate",
    "models": "DeepEvalBaseLLM",
    "tracing": "observe",
    "test_case": "ConversationalTestCase LLMTestCase LLMTestCaseParams MultiTurnParams SingleTurnParams ToolCall "
    "ToolCallParams ToolCallType Turn TurnParams",
}

__all__ = [
    "AnswerRelevancyMetric",
    "ArgumentCorrectnessMetric",
    "AsyncConfig",
    "BaseConversationalMetric",
    "BaseMetric",
    "BiasMetric",
    "BinaryJudgementNode",
    "CacheConfig",
    "ContextualPrecisionMetric",
    "ContextualRecallMetric",
    "ContextualRelevancyMetric",
    "ConversationCompletenessMetric",
    "ConversationalBinaryJudgementNode",
    "ConversationalDAGMetric",
    "ConversationalGEval",
    "ConversationalGolden",
    "ConversationalNonBinaryJudgementNode",
    "ConversationalTaskNode",
    "ConversationalTestCase",
    "ConversationalVerdictNode",
    "DAGMetric",
    "DeepAcyclicGraph",
    "DeepEvalBaseLLM",
    "DeepEvalError",
    "DisplayConfig",
    "ErrorConfig",
    "EvaluationDataset",
    "EvaluationResult",
    "ExactMatchMetric",
    "FaithfulnessMetric",
    "GEval",
    "GoalAccuracyMetric",
    "Golden",
    "HallucinationMetric",
    "JsonCorrectnessMetric",
    "KeywordsMetric",
    "KnowledgeRetentionMetric",
    "LLMTestCase",
    "LLMTestCaseParams",
    "MetricData",
    "MissingTestCaseParamsError",
    "MultiTurnParams",
    "NonBinaryJudgementNode",
    "PIILeakageMetric",
    "PatternMatchMetric",
    "PromptAlignmentMetric",
    "RoleAdherenceMetric",
    "Rubric",
    "SingleTurnParams",
    "StepEfficiencyMetric",
    "SummarizationMetric",
    "TaskCompletionMetric",
    "TaskNode",
    "TestResult",
    "ToolCall",
    "ToolCallParams",
    "ToolCallType",
    "ToolConsistencyMetric",
    "ToolCorrectnessMetric",
    "ToxicityMetric",
    "Turn",
    "TurnParams",
    "TurnRelevancyMetric",
    "VerdictNode",
    "a_assert_test",
    "a_evaluate",
    "assert_test",
    "evaluate",
    "observe",
]

__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor.compat.deepeval", page="docs/deepeval.md")
