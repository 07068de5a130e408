"""DeepEval's metrics by their names; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names

if TYPE_CHECKING:
    from proctor.compat.deepeval.conversation_metrics import (
        ConversationalDAGMetric,
        ConversationalGEval,
        DAGMetric,
        GoalAccuracyMetric,
        StepEfficiencyMetric,
        SummarizationMetric,
    )
    from proctor.compat.deepeval.metric_base import BaseConversationalMetric, BaseMetric
    from proctor.compat.deepeval.metric_classes import (
        AnswerRelevancyMetric,
        ArgumentCorrectnessMetric,
        BiasMetric,
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        ContextualRelevancyMetric,
        ConversationCompletenessMetric,
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

HOMES = {
    "metric_classes": "ArgumentCorrectnessMetric TaskCompletionMetric ToolConsistencyMetric "
    "ToolCorrectnessMetric BiasMetric ConversationCompletenessMetric GEval KnowledgeRetentionMetric "
    "PIILeakageMetric PromptAlignmentMetric RoleAdherenceMetric ToxicityMetric TurnRelevancyMetric "
    "AnswerRelevancyMetric ContextualPrecisionMetric ContextualRecallMetric ContextualRelevancyMetric "
    "FaithfulnessMetric HallucinationMetric ExactMatchMetric JsonCorrectnessMetric KeywordsMetric "
    "PatternMatchMetric",
    "metric_base": "BaseConversationalMetric BaseMetric",
    "conversation_metrics": "ConversationalGEval GoalAccuracyMetric StepEfficiencyMetric SummarizationMetric "
    "ConversationalDAGMetric DAGMetric",
}

__all__ = [
    "AnswerRelevancyMetric",
    "ArgumentCorrectnessMetric",
    "BaseConversationalMetric",
    "BaseMetric",
    "BiasMetric",
    "ContextualPrecisionMetric",
    "ContextualRecallMetric",
    "ContextualRelevancyMetric",
    "ConversationCompletenessMetric",
    "ConversationalDAGMetric",
    "ConversationalGEval",
    "DAGMetric",
    "ExactMatchMetric",
    "FaithfulnessMetric",
    "GEval",
    "GoalAccuracyMetric",
    "HallucinationMetric",
    "JsonCorrectnessMetric",
    "KeywordsMetric",
    "KnowledgeRetentionMetric",
    "PIILeakageMetric",
    "PatternMatchMetric",
    "PromptAlignmentMetric",
    "RoleAdherenceMetric",
    "StepEfficiencyMetric",
    "SummarizationMetric",
    "TaskCompletionMetric",
    "ToolConsistencyMetric",
    "ToolCorrectnessMetric",
    "ToxicityMetric",
    "TurnRelevancyMetric",
]

__getattr__, __dir__ = late_names(globals(), HOMES, within="proctor.compat.deepeval", page="docs/deepeval.md")
