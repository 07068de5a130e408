"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

# ruff: noqa: I001

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.evaluators.text.lexical import BLEU as BLEU
    from proctor.evaluators.text.lexical import ROUGE as ROUGE
    from proctor.evaluators.text.lexical import METEOR as METEOR
    from proctor.evaluators.text.matching import ExactMatch as ExactMatch
    from proctor.evaluators.text.matching import Equality as Equality
    from proctor.evaluators.text.matching import LevenshteinMatch as LevenshteinMatch
    from proctor.evaluators.text.matching import Contains as Contains
    from proctor.evaluators.text.matching import Regex as Regex
    from proctor.evaluators.text.matching import StartsWith as StartsWith
    from proctor.evaluators.text.matching import EndsWith as EndsWith
    from proctor.evaluators.data import NumericDiff as NumericDiff
    from proctor.evaluators.data import Numeric as Numeric
    from proctor.evaluators.data import JSONDiff as JSONDiff
    from proctor.evaluators.data import ValidJSON as ValidJSON
    from proctor.evaluators.data import ListContains as ListContains
    from proctor.evaluators.tools.correctness import ToolCorrectness as ToolCorrectness
    from proctor.evaluators.tools.correctness import ToolConsistency as ToolConsistency
    from proctor.evaluators.tools.tool_checks import ToolTrajectory as ToolTrajectory
    from proctor.evaluators.tools.tool_checks import ExpectedTools as ExpectedTools
    from proctor.evaluators.tools.tool_checks import ToolCount as ToolCount
    from proctor.evaluators.tools.tool_checks import ForbiddenTools as ForbiddenTools
    from proctor.evaluators.tools.tool_checks import FinalState as FinalState
    from proctor.evaluators.tools.trajectory import Trajectory as Trajectory
    from proctor.evaluators.resource_use import MaxLatency as MaxLatency
    from proctor.evaluators.resource_use import MaxTokens as MaxTokens
    from proctor.evaluators.resource_use import MaxCost as MaxCost
    from proctor.evaluators.resource_use import MaxSteps as MaxSteps
    from proctor.evaluators.resource_use import Measured as Measured
    from proctor.evaluators.adk.hallucinations import Hallucinations as Hallucinations
    from proctor.evaluators.rag import AnswerRelevancy as AnswerRelevancy
    from proctor.evaluators.rag import Faithfulness as Faithfulness
    from proctor.evaluators.rag import Hallucination as Hallucination
    from proctor.evaluators.rag import ContextualPrecision as ContextualPrecision
    from proctor.evaluators.rag import ContextualRecall as ContextualRecall
    from proctor.evaluators.rag import ContextualRelevancy as ContextualRelevancy
    from proctor.evaluators.rag import ContextRelevancy as ContextRelevancy
    from proctor.evaluators.rag import ContextEntityRecall as ContextEntityRecall
    from proctor.evaluators.rubric.marks import Groundedness as Groundedness
    from proctor.evaluators.adk.judged_metrics import FinalResponseMatch as FinalResponseMatch
    from proctor.evaluators.choice import Factuality as Factuality
    from proctor.evaluators.choice import Sql as Sql
    from proctor.evaluators.choice import Translation as Translation
    from proctor.evaluators.choice import Battle as Battle
    from proctor.evaluators.choice import Summary as Summary
    from proctor.evaluators.rag import AnswerCorrectness as AnswerCorrectness
    from proctor.evaluators.semantic import EmbeddingSimilarity as EmbeddingSimilarity
    from proctor.evaluators.semantic import AnswerSimilarity as AnswerSimilarity
    from proctor.evaluators.adk.judged_metrics import ResponseEvaluation as ResponseEvaluation
    from proctor.evaluators.adk.judged_metrics import FinalResponseQuality as FinalResponseQuality
    from proctor.evaluators.choice import ClosedQA as ClosedQA
    from proctor.evaluators.choice import Humor as Humor
    from proctor.evaluators.choice import Possible as Possible
    from proctor.evaluators.choice import LLMClassifier as LLMClassifier
    from proctor.evaluators.rubric.dag import JudgementDAG as JudgementDAG
    from proctor.evaluators.rubric.marks import GEval as GEval
    from proctor.evaluators.rubric.marks import Relevance as Relevance
    from proctor.evaluators.rubric.marks import Coherence as Coherence
    from proctor.evaluators.rubric.marks import Fluency as Fluency
    from proctor.evaluators.rubric.rubrics import LLMJudge as LLMJudge
    from proctor.evaluators.rubric.rubrics import Expectations as Expectations
    from proctor.evaluators.adk.judged_metrics import ToolUseQuality as ToolUseQuality
    from proctor.evaluators.adk.judged_metrics import TrajectoryQuality as TrajectoryQuality
    from proctor.evaluators.adk.judged_metrics import UserSimulatorQuality as UserSimulatorQuality
    from proctor.evaluators.agent.conversation import RoleAdherence as RoleAdherence
    from proctor.evaluators.agent.conversation import KnowledgeRetention as KnowledgeRetention
    from proctor.evaluators.agent.conversation import ConversationCompleteness as ConversationCompleteness
    from proctor.evaluators.agent.conversation import TurnRelevancy as TurnRelevancy
    from proctor.evaluators.agent.tasks import TaskCompletion as TaskCompletion
    from proctor.evaluators.agent.tasks import GoalAccuracy as GoalAccuracy
    from proctor.evaluators.agent.tasks import ArgumentCorrectness as ArgumentCorrectness
    from proctor.evaluators.agent.tasks import ToolSelection as ToolSelection
    from proctor.evaluators.agent.tasks import StepEfficiency as StepEfficiency
    from proctor.evaluators.adk.judged_metrics import Safety as Safety
    from proctor.evaluators.choice import Security as Security
    from proctor.evaluators.safety import Toxicity as Toxicity
    from proctor.evaluators.safety import Bias as Bias
    from proctor.evaluators.safety import Moderation as Moderation
    from proctor.evaluators.safety import PIILeakage as PIILeakage
    from proctor.evaluators.safety import PromptInjection as PromptInjection
    from proctor.evaluators.adk.custom_metrics import AdkMetric as AdkMetric
    from proctor.evaluators.foreign import CodeGrader as CodeGrader

EVALUATORS: dict[str, str] = {
    "BLEU": "proctor.evaluators.text.lexical:BLEU",
    "ROUGE": "proctor.evaluators.text.lexical:ROUGE",
    "METEOR": "proctor.evaluators.text.lexical:METEOR",
    "ExactMatch": "proctor.evaluators.text.matching:ExactMatch",
    "Equality": "proctor.evaluators.text.matching:Equality",
    "LevenshteinMatch": "proctor.evaluators.text.matching:LevenshteinMatch",
    "Contains": "proctor.evaluators.text.matching:Contains",
    "Regex": "proctor.evaluators.text.matching:Regex",
    "StartsWith": "proctor.evaluators.text.matching:StartsWith",
    "EndsWith": "proctor.evaluators.text.matching:EndsWith",
    "NumericDiff": "proctor.evaluators.data:NumericDiff",
    "Numeric": "proctor.evaluators.data:Numeric",
    "JSONDiff": "proctor.evaluators.data:JSONDiff",
    "ValidJSON": "proctor.evaluators.data:ValidJSON",
    "ListContains": "proctor.evaluators.data:ListContains",
    "ToolCorrectness": "proctor.evaluators.tools.correctness:ToolCorrectness",
    "ToolConsistency": "proctor.evaluators.tools.correctness:ToolConsistency",
    "ToolTrajectory": "proctor.evaluators.tools.tool_checks:ToolTrajectory",
    "ExpectedTools": "proctor.evaluators.tools.tool_checks:ExpectedTools",
    "ToolCount": "proctor.evaluators.tools.tool_checks:ToolCount",
    "ForbiddenTools": "proctor.evaluators.tools.tool_checks:ForbiddenTools",
    "FinalState": "proctor.evaluators.tools.tool_checks:FinalState",
    "Trajectory": "proctor.evaluators.tools.trajectory:Trajectory",
    "MaxLatency": "proctor.evaluators.resource_use:MaxLatency",
    "MaxTokens": "proctor.evaluators.resource_use:MaxTokens",
    "MaxCost": "proctor.evaluators.resource_use:MaxCost",
    "MaxSteps": "proctor.evaluators.resource_use:MaxSteps",
    "Measured": "proctor.evaluators.resource_use:Measured",
    "Hallucinations": "proctor.evaluators.adk.hallucinations:Hallucinations",
    "AnswerRelevancy": "proctor.evaluators.rag:AnswerRelevancy",
    "Faithfulness": "proctor.evaluators.rag:Faithfulness",
    "Hallucination": "proctor.evaluators.rag:Hallucination",
    "ContextualPrecision": "proctor.evaluators.rag:ContextualPrecision",
    "ContextualRecall": "proctor.evaluators.rag:ContextualRecall",
    "ContextualRelevancy": "proctor.evaluators.rag:ContextualRelevancy",
    "ContextRelevancy": "proctor.evaluators.rag:ContextRelevancy",
    "ContextEntityRecall": "proctor.evaluators.rag:ContextEntityRecall",
    "Groundedness": "proctor.evaluators.rubric.marks:Groundedness",
    "FinalResponseMatch": "proctor.evaluators.adk.judged_metrics:FinalResponseMatch",
    "Factuality": "proctor.evaluators.choice:Factuality",
    "Sql": "proctor.evaluators.choice:Sql",
    "Translation": "proctor.evaluators.choice:Translation",
    "Battle": "proctor.evaluators.choice:Battle",
    "Summary": "proctor.evaluators.choice:Summary",
    "AnswerCorrectness": "proctor.evaluators.rag:AnswerCorrectness",
    "EmbeddingSimilarity": "proctor.evaluators.semantic:EmbeddingSimilarity",
    "AnswerSimilarity": "proctor.evaluators.semantic:AnswerSimilarity",
    "ResponseEvaluation": "proctor.evaluators.adk.judged_metrics:ResponseEvaluation",
    "FinalResponseQuality": "proctor.evaluators.adk.judged_metrics:FinalResponseQuality",
    "ClosedQA": "proctor.evaluators.choice:ClosedQA",
    "Humor": "proctor.evaluators.choice:Humor",
    "Possible": "proctor.evaluators.choice:Possible",
    "LLMClassifier": "proctor.evaluators.choice:LLMClassifier",
    "JudgementDAG": "proctor.evaluators.rubric.dag:JudgementDAG",
    "GEval": "proctor.evaluators.rubric.marks:GEval",
    "Relevance": "proctor.evaluators.rubric.marks:Relevance",
    "Coherence": "proctor.evaluators.rubric.marks:Coherence",
    "Fluency": "proctor.evaluators.rubric.marks:Fluency",
    "LLMJudge": "proctor.evaluators.rubric.rubrics:LLMJudge",
    "Expectations": "proctor.evaluators.rubric.rubrics:Expectations",
    "ToolUseQuality": "proctor.evaluators.adk.judged_metrics:ToolUseQuality",
    "TrajectoryQuality": "proctor.evaluators.adk.judged_metrics:TrajectoryQuality",
    "UserSimulatorQuality": "proctor.evaluators.adk.judged_metrics:UserSimulatorQuality",
    "RoleAdherence": "proctor.evaluators.agent.conversation:RoleAdherence",
    "KnowledgeRetention": "proctor.evaluators.agent.conversation:KnowledgeRetention",
    "ConversationCompleteness": "proctor.evaluators.agent.conversation:ConversationCompleteness",
    "TurnRelevancy": "proctor.evaluators.agent.conversation:TurnRelevancy",
    "TaskCompletion": "proctor.evaluators.agent.tasks:TaskCompletion",
    "GoalAccuracy": "proctor.evaluators.agent.tasks:GoalAccuracy",
    "ArgumentCorrectness": "proctor.evaluators.agent.tasks:ArgumentCorrectness",
    "ToolSelection": "proctor.evaluators.agent.tasks:ToolSelection",
    "StepEfficiency": "proctor.evaluators.agent.tasks:StepEfficiency",
    "Safety": "proctor.evaluators.adk.judged_metrics:Safety",
    "Security": "proctor.evaluators.choice:Security",
    "Toxicity": "proctor.evaluators.safety:Toxicity",
    "Bias": "proctor.evaluators.safety:Bias",
    "Moderation": "proctor.evaluators.safety:Moderation",
    "PIILeakage": "proctor.evaluators.safety:PIILeakage",
    "PromptInjection": "proctor.evaluators.safety:PromptInjection",
    "AdkMetric": "proctor.evaluators.adk.custom_metrics:AdkMetric",
    "CodeGrader": "proctor.evaluators.foreign:CodeGrader",
}
"""The module and class of each name that a suite may use."""
