"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.evaluators.text.matching import ExactMatch as ExactMatch
    from proctor.evaluators.text.matching import LevenshteinMatch as LevenshteinMatch
    from proctor.evaluators.text.matching import Contains as Contains
    from proctor.evaluators.text.matching import Regex as Regex
    from proctor.evaluators.text.matching import StartsWith as StartsWith
    from proctor.evaluators.text.matching import EndsWith as EndsWith
    from proctor.evaluators.text.overlap import BLEU as BLEU
    from proctor.evaluators.text.overlap import ROUGE as ROUGE
    from proctor.evaluators.text.overlap import METEOR as METEOR
    from proctor.evaluators.data import NumericDiff as NumericDiff
    from proctor.evaluators.data import Numeric as Numeric
    from proctor.evaluators.data import JSONDiff as JSONDiff
    from proctor.evaluators.data import ValidJSON as ValidJSON
    from proctor.evaluators.data import ListContains as ListContains
    from proctor.evaluators.tools.checks import ToolTrajectory as ToolTrajectory
    from proctor.evaluators.tools.checks import ExpectedTools as ExpectedTools
    from proctor.evaluators.tools.checks import ToolCount as ToolCount
    from proctor.evaluators.tools.checks import ForbiddenTools as ForbiddenTools
    from proctor.evaluators.tools.checks import FinalState as FinalState
    from proctor.evaluators.tools.checks import TurnState as TurnState
    from proctor.evaluators.tools.consistency import ToolConsistency as ToolConsistency
    from proctor.evaluators.tools.trajectory import Trajectory as Trajectory
    from proctor.evaluators.limits import Limits as Limits
    from proctor.evaluators.limits import MaxLatency as MaxLatency
    from proctor.evaluators.limits import MaxTokens as MaxTokens
    from proctor.evaluators.limits import MaxCost as MaxCost
    from proctor.evaluators.limits import MaxSteps as MaxSteps
    from proctor.evaluators.retrieval import AnswerRelevancy as AnswerRelevancy
    from proctor.evaluators.retrieval import Faithfulness as Faithfulness
    from proctor.evaluators.retrieval import ContextualPrecision as ContextualPrecision
    from proctor.evaluators.retrieval import ContextualRecall as ContextualRecall
    from proctor.evaluators.retrieval import ContextualRelevancy as ContextualRelevancy
    from proctor.evaluators.retrieval import ContextRelevancy as ContextRelevancy
    from proctor.evaluators.retrieval import ContextEntityRecall as ContextEntityRecall
    from proctor.evaluators.reference import Factuality as Factuality
    from proctor.evaluators.reference import AnswerCorrectness as AnswerCorrectness
    from proctor.evaluators.reference import EmbeddingSimilarity as EmbeddingSimilarity
    from proctor.evaluators.choice import LLMClassifier as LLMClassifier
    from proctor.evaluators.geval import GEval as GEval
    from proctor.evaluators.rubric import LLMJudge as LLMJudge
    from proctor.evaluators.rubric import Expectations as Expectations
    from proctor.evaluators.agent import TaskCompletion as TaskCompletion
    from proctor.evaluators.agent import ArgumentCorrectness as ArgumentCorrectness
    from proctor.evaluators.agent import ToolSelection as ToolSelection
    from proctor.evaluators.agent import StepEfficiency as StepEfficiency
    from proctor.evaluators.conversation import RoleAdherence as RoleAdherence
    from proctor.evaluators.conversation import KnowledgeRetention as KnowledgeRetention
    from proctor.evaluators.conversation import ConversationCompleteness as ConversationCompleteness
    from proctor.evaluators.conversation import TurnRelevancy as TurnRelevancy
    from proctor.evaluators.safety import Toxicity as Toxicity
    from proctor.evaluators.safety import Bias as Bias
    from proctor.evaluators.safety import Moderation as Moderation
    from proctor.evaluators.safety import PIILeakage as PIILeakage
    from proctor.evaluators.safety import PromptInjection as PromptInjection

    AnswerSimilarity = EmbeddingSimilarity

EVALUATORS: dict[str, str] = {
    "ExactMatch": "proctor.evaluators.text.matching:ExactMatch",
    "LevenshteinMatch": "proctor.evaluators.text.matching:LevenshteinMatch",
    "Contains": "proctor.evaluators.text.matching:Contains",
    "Regex": "proctor.evaluators.text.matching:Regex",
    "StartsWith": "proctor.evaluators.text.matching:StartsWith",
    "EndsWith": "proctor.evaluators.text.matching:EndsWith",
    "BLEU": "proctor.evaluators.text.overlap:BLEU",
    "ROUGE": "proctor.evaluators.text.overlap:ROUGE",
    "METEOR": "proctor.evaluators.text.overlap:METEOR",
    "NumericDiff": "proctor.evaluators.data:NumericDiff",
    "Numeric": "proctor.evaluators.data:Numeric",
    "JSONDiff": "proctor.evaluators.data:JSONDiff",
    "ValidJSON": "proctor.evaluators.data:ValidJSON",
    "ListContains": "proctor.evaluators.data:ListContains",
    "ToolTrajectory": "proctor.evaluators.tools.checks:ToolTrajectory",
    "ExpectedTools": "proctor.evaluators.tools.checks:ExpectedTools",
    "ToolCount": "proctor.evaluators.tools.checks:ToolCount",
    "ForbiddenTools": "proctor.evaluators.tools.checks:ForbiddenTools",
    "FinalState": "proctor.evaluators.tools.checks:FinalState",
    "TurnState": "proctor.evaluators.tools.checks:TurnState",
    "ToolConsistency": "proctor.evaluators.tools.consistency:ToolConsistency",
    "Trajectory": "proctor.evaluators.tools.trajectory:Trajectory",
    "Limits": "proctor.evaluators.limits:Limits",
    "MaxLatency": "proctor.evaluators.limits:MaxLatency",
    "MaxTokens": "proctor.evaluators.limits:MaxTokens",
    "MaxCost": "proctor.evaluators.limits:MaxCost",
    "MaxSteps": "proctor.evaluators.limits:MaxSteps",
    "AnswerRelevancy": "proctor.evaluators.retrieval:AnswerRelevancy",
    "Faithfulness": "proctor.evaluators.retrieval:Faithfulness",
    "ContextualPrecision": "proctor.evaluators.retrieval:ContextualPrecision",
    "ContextualRecall": "proctor.evaluators.retrieval:ContextualRecall",
    "ContextualRelevancy": "proctor.evaluators.retrieval:ContextualRelevancy",
    "ContextRelevancy": "proctor.evaluators.retrieval:ContextRelevancy",
    "ContextEntityRecall": "proctor.evaluators.retrieval:ContextEntityRecall",
    "Factuality": "proctor.evaluators.reference:Factuality",
    "AnswerCorrectness": "proctor.evaluators.reference:AnswerCorrectness",
    "EmbeddingSimilarity": "proctor.evaluators.reference:EmbeddingSimilarity",
    "AnswerSimilarity": "proctor.evaluators.reference:EmbeddingSimilarity",
    "LLMClassifier": "proctor.evaluators.choice:LLMClassifier",
    "GEval": "proctor.evaluators.geval:GEval",
    "LLMJudge": "proctor.evaluators.rubric:LLMJudge",
    "Expectations": "proctor.evaluators.rubric:Expectations",
    "TaskCompletion": "proctor.evaluators.agent:TaskCompletion",
    "ArgumentCorrectness": "proctor.evaluators.agent:ArgumentCorrectness",
    "ToolSelection": "proctor.evaluators.agent:ToolSelection",
    "StepEfficiency": "proctor.evaluators.agent:StepEfficiency",
    "RoleAdherence": "proctor.evaluators.conversation:RoleAdherence",
    "KnowledgeRetention": "proctor.evaluators.conversation:KnowledgeRetention",
    "ConversationCompleteness": "proctor.evaluators.conversation:ConversationCompleteness",
    "TurnRelevancy": "proctor.evaluators.conversation:TurnRelevancy",
    "Toxicity": "proctor.evaluators.safety:Toxicity",
    "Bias": "proctor.evaluators.safety:Bias",
    "Moderation": "proctor.evaluators.safety:Moderation",
    "PIILeakage": "proctor.evaluators.safety:PIILeakage",
    "PromptInjection": "proctor.evaluators.safety:PromptInjection",
}
"""The module and class of each name that a suite may use."""
