"""How good the answer was: the evaluators, what they see and what they say.

Every name is loaded when it is first used: a suite with two evaluators loads two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names

if TYPE_CHECKING:
    from proctor.evaluators.adk.custom_metrics import AdkMetric
    from proctor.evaluators.adk.final_response import FinalResponseMatch, ResponseEvaluation, Safety
    from proctor.evaluators.adk.hallucinations import Hallucinations
    from proctor.evaluators.adk.rubric_metrics import FinalResponseQuality, ToolUseQuality, TrajectoryQuality
    from proctor.evaluators.adk.user_simulator import UserSimulatorQuality
    from proctor.evaluators.agent.conversation import (
        ConversationCompleteness,
        KnowledgeRetention,
        RoleAdherence,
        TurnRelevancy,
    )
    from proctor.evaluators.agent.steps import ArgumentCorrectness, StepEfficiency, ToolSelection
    from proctor.evaluators.agent.tasks import GoalAccuracy, TaskCompletion
    from proctor.evaluators.choice.classifiers import (
        Battle,
        ClosedQA,
        Factuality,
        Humor,
        Possible,
        Security,
        Sql,
        Summary,
        Translation,
    )
    from proctor.evaluators.choice.llm_classifier import LLMClassifier
    from proctor.evaluators.data.values import JSONDiff, ListContains, Numeric, NumericDiff, ValidJSON
    from proctor.evaluators.datasets.dataset_file import Dataset
    from proctor.evaluators.datasets.dataset_store import DatasetStore
    from proctor.evaluators.evaluation import (
        Evaluable,
        Evaluation,
        EvaluationPending,
        Evaluator,
        Exchange,
        NothingToCompare,
        evaluate,
    )
    from proctor.evaluators.foreign.autoevals import AutoevalsAdapter
    from proctor.evaluators.foreign.grader import CodeGrader
    from proctor.evaluators.foreign.llm_prompt import create_llm_evaluator
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.graded_later import AgentEvaluationPending, create_agent_evaluator
    from proctor.evaluators.judged_evaluator import (
        Judged,
        NoVerdict,
        answer_text,
        expected_text,
        passages,
        question_text,
    )
    from proctor.evaluators.rag.answer_quality import AnswerCorrectness, AnswerRelevancy, Faithfulness, Hallucination
    from proctor.evaluators.rag.retrieval import (
        ContextEntityRecall,
        ContextRelevancy,
        ContextualPrecision,
        ContextualRecall,
        ContextualRelevancy,
    )
    from proctor.evaluators.resource_use import MaxCost, MaxLatency, MaxSteps, MaxTokens, Measured
    from proctor.evaluators.rubric.dag import BinaryJudgement, JudgementDAG, NonBinaryJudgement, TaskNode, Verdict
    from proctor.evaluators.rubric.geval import GEval
    from proctor.evaluators.rubric.quality import Coherence, Fluency, Groundedness, Relevance
    from proctor.evaluators.rubric.rubrics import Expectations, LLMJudge
    from proctor.evaluators.safety.harm import Bias, Toxicity
    from proctor.evaluators.safety.injection import PromptInjection
    from proctor.evaluators.safety.moderation import Moderation
    from proctor.evaluators.safety.pii import PIILeakage
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
    from proctor.evaluators.tools.consistency import ToolConsistency
    from proctor.evaluators.tools.correctness import ToolCorrectness
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
    "data.values": "NumericDiff Numeric JSONDiff ValidJSON ListContains",
    "text.lexical": "BLEU ROUGE METEOR",
    "tools.tool_checks": "ToolTrajectory ExpectedTools ToolCount ForbiddenTools FinalState",
    "tools.trajectory": "Trajectory",
    "tools.correctness": "ToolCorrectness",
    "tools.consistency": "ToolConsistency",
    "resource_use": "MaxLatency MaxTokens MaxCost MaxSteps Measured",
    "foreign.grader": "CodeGrader",
    "rag.answer_quality": "AnswerRelevancy Faithfulness Hallucination AnswerCorrectness",
    "rag.retrieval": "ContextualPrecision ContextualRecall ContextualRelevancy ContextRelevancy ContextEntityRecall",
    "choice.classifiers": "Factuality ClosedQA Humor Security Sql Possible Translation Battle Summary",
    "choice.llm_classifier": "LLMClassifier",
    "safety.moderation": "Moderation",
    "semantic": "EmbeddingSimilarity AnswerSimilarity",
    "rubric.geval": "GEval",
    "rubric.rubrics": "LLMJudge Expectations",
    "rubric.dag": "JudgementDAG",
    "agent.tasks": "TaskCompletion GoalAccuracy",
    "agent.steps": "ArgumentCorrectness ToolSelection StepEfficiency",
    "agent.conversation": "RoleAdherence KnowledgeRetention ConversationCompleteness TurnRelevancy",
    "safety.harm": "Toxicity Bias",
    "safety.pii": "PIILeakage",
    "safety.injection": "PromptInjection",
    "rubric.quality": "Groundedness Relevance Coherence Fluency",
    "adk.final_response": "ResponseEvaluation Safety FinalResponseMatch",
    "adk.rubric_metrics": "FinalResponseQuality ToolUseQuality TrajectoryQuality",
    "adk.hallucinations": "Hallucinations",
    "adk.user_simulator": "UserSimulatorQuality",
    "adk.custom_metrics": "AdkMetric",
}
"""Per module, the evaluators in it that a file may name; the registry finds them here."""

_OTHER_NAMES = {
    "datasets.dataset_file": "Dataset",
    "datasets.dataset_store": "DatasetStore",
    "evaluation": "Evaluable Evaluation EvaluationPending Evaluator Exchange NothingToCompare evaluate",
    "foreign.autoevals": "AutoevalsAdapter",
    "foreign.llm_prompt": "create_llm_evaluator",
    "from_trace": "as_evaluable by_name last_llm_call root",
    "graded_later": "AgentEvaluationPending create_agent_evaluator",
    "judged_evaluator": "Judged NoVerdict answer_text expected_text passages question_text",
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
