"""DeepEval's documented names: write `proctor.compat.deepeval` for `deepeval`, here and in its modules.

`proctor.compat.deepeval.metrics`, `.test_case` and `.dataset` have what DeepEval's modules of these names have; all
of it can be imported from here as well. Everything is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names
from proctor.compat.deepeval.metrics import HOMES as _METRICS

if TYPE_CHECKING:
    from proctor.compat.deepeval.dag import (
        BinaryJudgementNode,
        DeepAcyclicGraph,
        NonBinaryJudgementNode,
        TaskNode,
        VerdictNode,
    )
    from proctor.compat.deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
    from proctor.compat.deepeval.evaluate_results import (
        AsyncConfig,
        DisplayConfig,
        ErrorConfig,
        EvaluationResult,
        MetricData,
        TestResult,
    )
    from proctor.compat.deepeval.evaluating import a_assert_test, a_evaluate, assert_test, evaluate
    from proctor.compat.deepeval.metric_base import MissingTestCaseParamsError
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
        ConversationCompletenessMetric,
        DAGMetric,
        ExactMatchMetric,
        FaithfulnessMetric,
        GEval,
        HallucinationMetric,
        JsonCorrectnessMetric,
        KeywordsMetric,
        KnowledgeRetentionMetric,
        PatternMatchMetric,
        PIILeakageMetric,
        PromptAlignmentMetric,
        RoleAdherenceMetric,
        TaskCompletionMetric,
        ToolConsistencyMetric,
        ToolCorrectnessMetric,
        ToxicityMetric,
        TurnRelevancyMetric,
    )
    from proctor.compat.deepeval.test_case import (
        ConversationalTestCase,
        LLMTestCase,
        LLMTestCaseParams,
        SingleTurnParams,
        ToolCall,
        ToolCallParams,
        Turn,
    )

_HOMES = _METRICS | {
    "metric_base": f"{_METRICS['metric_base']} MissingTestCaseParamsError",
    "dag": f"{_METRICS['dag']} BinaryJudgementNode DeepAcyclicGraph NonBinaryJudgementNode TaskNode VerdictNode",
    "metric_classes": f"{_METRICS['metric_classes']} Rubric",
    "dataset": "ConversationalGolden EvaluationDataset Golden",
    "evaluate_results": "AsyncConfig DisplayConfig ErrorConfig EvaluationResult MetricData TestResult",
    "evaluating": "a_assert_test a_evaluate assert_test evaluate",
    "test_case": "ConversationalTestCase LLMTestCase LLMTestCaseParams SingleTurnParams ToolCall ToolCallParams Turn",
}

__all__ = [
    "AnswerRelevancyMetric",
    "ArgumentCorrectnessMetric",
    "AsyncConfig",
    "BaseConversationalMetric",
    "BaseMetric",
    "BiasMetric",
    "BinaryJudgementNode",
    "ContextualPrecisionMetric",
    "ContextualRecallMetric",
    "ContextualRelevancyMetric",
    "ConversationCompletenessMetric",
    "ConversationalGolden",
    "ConversationalTestCase",
    "DAGMetric",
    "DeepAcyclicGraph",
    "DisplayConfig",
    "ErrorConfig",
    "EvaluationDataset",
    "EvaluationResult",
    "ExactMatchMetric",
    "FaithfulnessMetric",
    "GEval",
    "Golden",
    "HallucinationMetric",
    "JsonCorrectnessMetric",
    "KeywordsMetric",
    "KnowledgeRetentionMetric",
    "LLMTestCase",
    "LLMTestCaseParams",
    "MetricData",
    "MissingTestCaseParamsError",
    "NonBinaryJudgementNode",
    "PIILeakageMetric",
    "PatternMatchMetric",
    "PromptAlignmentMetric",
    "RoleAdherenceMetric",
    "Rubric",
    "SingleTurnParams",
    "TaskCompletionMetric",
    "TaskNode",
    "TestResult",
    "ToolCall",
    "ToolCallParams",
    "ToolConsistencyMetric",
    "ToolCorrectnessMetric",
    "ToxicityMetric",
    "Turn",
    "TurnRelevancyMetric",
    "VerdictNode",
    "a_assert_test",
    "a_evaluate",
    "assert_test",
    "evaluate",
]

__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor.compat.deepeval")
