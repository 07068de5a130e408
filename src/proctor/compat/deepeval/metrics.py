"""DeepEval's metrics by their names; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.late_names import late_names

if TYPE_CHECKING:
    from proctor.compat.deepeval.agent_metrics import (
        ArgumentCorrectnessMetric,
        TaskCompletionMetric,
        ToolConsistencyMetric,
        ToolCorrectnessMetric,
    )
    from proctor.compat.deepeval.base import BaseConversationalMetric, BaseMetric
    from proctor.compat.deepeval.dag import DAGMetric
    from proctor.compat.deepeval.other_metrics import (
        BiasMetric,
        ConversationCompletenessMetric,
        GEval,
        KnowledgeRetentionMetric,
        PIILeakageMetric,
        PromptAlignmentMetric,
        RoleAdherenceMetric,
        ToxicityMetric,
        TurnRelevancyMetric,
    )
    from proctor.compat.deepeval.rag_metrics import (
        AnswerRelevancyMetric,
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        ContextualRelevancyMetric,
        FaithfulnessMetric,
        HallucinationMetric,
    )
    from proctor.compat.deepeval.text_metrics import (
        ExactMatchMetric,
        JsonCorrectnessMetric,
        KeywordsMetric,
        PatternMatchMetric,
    )

HOMES = {
    "agent_metrics": "ArgumentCorrectnessMetric TaskCompletionMetric ToolConsistencyMetric ToolCorrectnessMetric",
    "base": "BaseConversationalMetric BaseMetric",
    "dag": "DAGMetric",
    "other_metrics": "BiasMetric ConversationCompletenessMetric GEval KnowledgeRetentionMetric PIILeakageMetric "
    "PromptAlignmentMetric RoleAdherenceMetric ToxicityMetric TurnRelevancyMetric",
    "rag_metrics": "AnswerRelevancyMetric ContextualPrecisionMetric ContextualRecallMetric ContextualRelevancyMetric "
    "FaithfulnessMetric HallucinationMetric",
    "text_metrics": "ExactMatchMetric JsonCorrectnessMetric KeywordsMetric PatternMatchMetric",
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
    "DAGMetric",
    "ExactMatchMetric",
    "FaithfulnessMetric",
    "GEval",
    "HallucinationMetric",
    "JsonCorrectnessMetric",
    "KeywordsMetric",
    "KnowledgeRetentionMetric",
    "PIILeakageMetric",
    "PatternMatchMetric",
    "PromptAlignmentMetric",
    "RoleAdherenceMetric",
    "TaskCompletionMetric",
    "ToolConsistencyMetric",
    "ToolCorrectnessMetric",
    "ToxicityMetric",
    "TurnRelevancyMetric",
]

__getattr__, __dir__ = late_names(globals(), HOMES, within="proctor.compat.deepeval")
