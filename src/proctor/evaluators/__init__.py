"""How good the answer was: the evaluators, what they see and what they say.

Every name is loaded when it is first used: a suite with two evaluators loads two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names

if TYPE_CHECKING:
    from proctor.evaluators.adk.custom_metrics import AdkMetric
    from proctor.evaluators.adk.hallucinations import Hallucinations
    from proctor.evaluators.adk.judged_metrics import (
        FinalResponseMatch,
        FinalResponseQuality,
        ResponseEvaluation,
        Safety,
        ToolUseQuality,
        TrajectoryQuality,
        UserSimulatorQuality,
    )
    from proctor.evaluators.agent.conversation import (
        ConversationCompleteness,
        KnowledgeRetention,
        RoleAdherence,
        TurnRelevancy,
    )
    from proctor.evaluators.agent.tasks import (
        ArgumentCorrectness,
        GoalAccuracy,
        StepEfficiency,
        TaskCompletion,
        ToolSelection,
    )
    from proctor.evaluators.choice import (
        Battle,
        ClosedQA,
        Factuality,
        Humor,
        LLMClassifier,
        Possible,
        Security,
        Sql,
        Summary,
        Translation,
    )
    from proctor.evaluators.data import JSONDiff, ListContains, Numeric, NumericDiff, ValidJSON
    from proctor.evaluators.datasets import Dataset, DatasetStore
    from proctor.evaluators.evaluation import (
        Evaluable,
        Evaluation,
        EvaluationPending,
        Evaluator,
        Exchange,
        NothingToCompare,
        evaluate,
    )
    from proctor.evaluators.foreign import AutoevalsAdapter, CodeGrader
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.judged_evaluator import Judged, NoVerdict
    from proctor.evaluators.judged_texts import answer_text, expected_text, passages, question_text
    from proctor.evaluators.prompt_evaluators import (
        AgentEvaluationPending,
        create_agent_evaluator,
        create_llm_evaluator,
    )
    from proctor.evaluators.rag import (
        AnswerCorrectness,
        AnswerRelevancy,
        ContextEntityRecall,
        ContextRelevancy,
        ContextualPrecision,
        ContextualRecall,
        ContextualRelevancy,
        Faithfulness,
        Hallucination,
    )
    from proctor.evaluators.resource_use import MaxCost, MaxLatency, MaxSteps, MaxTokens, Measured
    from proctor.evaluators.rubric.dag import BinaryJudgement, JudgementDAG, NonBinaryJudgement, TaskNode, Verdict
    from proctor.evaluators.rubric.marks import Coherence, Fluency, GEval, Groundedness, Relevance
    from proctor.evaluators.rubric.rubrics import Expectations, LLMJudge
    from proctor.evaluators.safety import Bias, Moderation, PIILeakage, PromptInjection, Toxicity
    from proctor.evaluators.semantic import AnswerSimilarity, EmbeddingSimilarity
    from proctor.evaluators.text.lexical import BLEU, METEOR, ROUGE
    from proctor.evaluators.text.matching import (
        Contains,
        EndsWith,
        Equality,
        ExactMatch,
        LevenshteinMatch,
        Regex,
        StartsWith,
    )
    from proctor.evaluators.tools.correctness import ToolConsistency, ToolCorrectness
    from proctor.evaluators.tools.tool_checks import (
        ExpectedTools,
        FinalState,
        ForbiddenTools,
        ToolCount,
        ToolTrajectory,
    )
    from proctor.evaluators.tools.trajectory import Trajectory
    from proctor.evaluators.tools.trajectory_steps import Step

EVALUATORS = {
    "text.matching": "ExactMatch LevenshteinMatch Contains Regex StartsWith EndsWith Equality",
    "data": "NumericDiff Numeric JSONDiff ValidJSON ListContains",
    "text.lexical": "BLEU ROUGE METEOR",
    "tools.tool_checks": "ToolTrajectory ExpectedTools ToolCount ForbiddenTools FinalState",
    "tools.trajectory": "Trajectory",
    "tools.correctness": "ToolCorrectness ToolConsistency",
    "resource_use": "MaxLatency MaxTokens MaxCost MaxSteps Measured",
    "foreign": "CodeGrader",
    "rag": "AnswerRelevancy Faithfulness Hallucination AnswerCorrectness ContextualPrecision ContextualRecall "
    "ContextualRelevancy ContextRelevancy ContextEntityRecall",
    "choice": "Factuality ClosedQA Humor Security Sql Possible Translation Battle Summary LLMClassifier",
    "semantic": "EmbeddingSimilarity AnswerSimilarity",
    "rubric.marks": "GEval Groundedness Relevance Coherence Fluency",
    "rubric.rubrics": "LLMJudge Expectations",
    "rubric.dag": "JudgementDAG",
    "agent.tasks": "TaskCompletion GoalAccuracy ArgumentCorrectness ToolSelection StepEfficiency",
    "agent.conversation": "RoleAdherence KnowledgeRetention ConversationCompleteness TurnRelevancy",
    "safety": "Moderation Toxicity Bias PIILeakage PromptInjection",
    "adk.judged_metrics": "ResponseEvaluation Safety FinalResponseMatch FinalResponseQuality ToolUseQuality "
    "TrajectoryQuality UserSimulatorQuality",
    "adk.hallucinations": "Hallucinations",
    "adk.custom_metrics": "AdkMetric",
}
"""Per module, the evaluators in it that a file may name; the registry finds them here."""

_OTHER_NAMES = {
    "datasets": "Dataset DatasetStore",
    "evaluation": "Evaluable Evaluation EvaluationPending Evaluator Exchange NothingToCompare evaluate",
    "foreign": "AutoevalsAdapter",
    "from_trace": "as_evaluable by_name last_llm_call root",
    "judged_evaluator": "Judged NoVerdict",
    "judged_texts": "answer_text expected_text passages question_text",
    "prompt_evaluators": "AgentEvaluationPending create_agent_evaluator create_llm_evaluator",
    "rubric.dag": "BinaryJudgement NonBinaryJudgement TaskNode Verdict",
    "tools.trajectory_steps": "Step",
}

__all__ = [
    "BLEU",
    "METEOR",
    "ROUGE",
    "AdkMetric",
    "AgentEvaluationPending",
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "ArgumentCorrectness",
    "AutoevalsAdapter",
    "Battle",
    "Bias",
    "BinaryJudgement",
    "ClosedQA",
    "CodeGrader",
    "Coherence",
    "Contains",
    "ContextEntityRecall",
    "ContextRelevancy",
    "ContextualPrecision",
    "ContextualRecall",
    "ContextualRelevancy",
    "ConversationCompleteness",
    "Dataset",
    "DatasetStore",
    "EmbeddingSimilarity",
    "EndsWith",
    "Equality",
    "Evaluable",
    "Evaluation",
    "EvaluationPending",
    "Evaluator",
    "ExactMatch",
    "Exchange",
    "Expectations",
    "ExpectedTools",
    "Factuality",
    "Faithfulness",
    "FinalResponseMatch",
    "FinalResponseQuality",
    "FinalState",
    "Fluency",
    "ForbiddenTools",
    "GEval",
    "GoalAccuracy",
    "Groundedness",
    "Hallucination",
    "Hallucinations",
    "Humor",
    "JSONDiff",
    "Judged",
    "JudgementDAG",
    "KnowledgeRetention",
    "LLMClassifier",
    "LLMJudge",
    "LevenshteinMatch",
    "ListContains",
    "MaxCost",
    "MaxLatency",
    "MaxSteps",
    "MaxTokens",
    "Measured",
    "Moderation",
    "NoVerdict",
    "NonBinaryJudgement",
    "NothingToCompare",
    "Numeric",
    "NumericDiff",
    "PIILeakage",
    "Possible",
    "PromptInjection",
    "Regex",
    "Relevance",
    "ResponseEvaluation",
    "RoleAdherence",
    "Safety",
    "Security",
    "Sql",
    "StartsWith",
    "Step",
    "StepEfficiency",
    "Summary",
    "TaskCompletion",
    "TaskNode",
    "ToolConsistency",
    "ToolCorrectness",
    "ToolCount",
    "ToolSelection",
    "ToolTrajectory",
    "ToolUseQuality",
    "Toxicity",
    "Trajectory",
    "TrajectoryQuality",
    "Translation",
    "TurnRelevancy",
    "UserSimulatorQuality",
    "ValidJSON",
    "Verdict",
    "answer_text",
    "as_evaluable",
    "by_name",
    "create_agent_evaluator",
    "create_llm_evaluator",
    "evaluate",
    "expected_text",
    "last_llm_call",
    "passages",
    "question_text",
    "root",
]

__getattr__, __dir__ = late_names(
    globals(),
    {home: f"{EVALUATORS.get(home, '')} {_OTHER_NAMES.get(home, '')}" for home in EVALUATORS | _OTHER_NAMES},
    within="proctor.evaluators",
)
