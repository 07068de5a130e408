"""Every name of this package and the module that defines it; `__init__.py` reads it too.

The evaluators come first, in the order in which they are listed for users.
"""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.evaluators.text.matching import (
    ExactMatch as ExactMatch,
    LevenshteinMatch as LevenshteinMatch,
    Contains as Contains,
    Regex as Regex,
    StartsWith as StartsWith,
    EndsWith as EndsWith,
    Equality as Equality,
)
from proctor.evaluators.data import (
    NumericDiff as NumericDiff,
    Numeric as Numeric,
    JSONDiff as JSONDiff,
    ValidJSON as ValidJSON,
    ListContains as ListContains,
)
from proctor.evaluators.text.lexical import (
    BLEU as BLEU,
    ROUGE as ROUGE,
    METEOR as METEOR,
)
from proctor.evaluators.tools.tool_checks import (
    ToolTrajectory as ToolTrajectory,
    ExpectedTools as ExpectedTools,
    ToolCount as ToolCount,
    ForbiddenTools as ForbiddenTools,
    FinalState as FinalState,
)
from proctor.evaluators.tools.trajectory import (
    Trajectory as Trajectory,
)
from proctor.evaluators.tools.correctness import (
    ToolCorrectness as ToolCorrectness,
    ToolConsistency as ToolConsistency,
)
from proctor.evaluators.resource_use import (
    MaxLatency as MaxLatency,
    MaxTokens as MaxTokens,
    MaxCost as MaxCost,
    MaxSteps as MaxSteps,
    Measured as Measured,
)
from proctor.evaluators.foreign import (
    CodeGrader as CodeGrader,
)
from proctor.evaluators.rag import (
    AnswerRelevancy as AnswerRelevancy,
    Faithfulness as Faithfulness,
    Hallucination as Hallucination,
    AnswerCorrectness as AnswerCorrectness,
    ContextualPrecision as ContextualPrecision,
    ContextualRecall as ContextualRecall,
    ContextualRelevancy as ContextualRelevancy,
    ContextRelevancy as ContextRelevancy,
    ContextEntityRecall as ContextEntityRecall,
)
from proctor.evaluators.choice import (
    Factuality as Factuality,
    ClosedQA as ClosedQA,
    Humor as Humor,
    Security as Security,
    Sql as Sql,
    Possible as Possible,
    Translation as Translation,
    Battle as Battle,
    Summary as Summary,
    LLMClassifier as LLMClassifier,
)
from proctor.evaluators.semantic import (
    EmbeddingSimilarity as EmbeddingSimilarity,
    AnswerSimilarity as AnswerSimilarity,
)
from proctor.evaluators.rubric.marks import (
    GEval as GEval,
    Groundedness as Groundedness,
    Relevance as Relevance,
    Coherence as Coherence,
    Fluency as Fluency,
)
from proctor.evaluators.rubric.rubrics import (
    LLMJudge as LLMJudge,
    Expectations as Expectations,
)
from proctor.evaluators.rubric.dag import (
    JudgementDAG as JudgementDAG,
)
from proctor.evaluators.agent.tasks import (
    TaskCompletion as TaskCompletion,
    GoalAccuracy as GoalAccuracy,
    ArgumentCorrectness as ArgumentCorrectness,
    ToolSelection as ToolSelection,
    StepEfficiency as StepEfficiency,
)
from proctor.evaluators.agent.conversation import (
    RoleAdherence as RoleAdherence,
    KnowledgeRetention as KnowledgeRetention,
    ConversationCompleteness as ConversationCompleteness,
    TurnRelevancy as TurnRelevancy,
)
from proctor.evaluators.safety import (
    Moderation as Moderation,
    Toxicity as Toxicity,
    Bias as Bias,
    PIILeakage as PIILeakage,
    PromptInjection as PromptInjection,
)
from proctor.evaluators.adk.judged_metrics import (
    ResponseEvaluation as ResponseEvaluation,
    Safety as Safety,
    FinalResponseMatch as FinalResponseMatch,
    FinalResponseQuality as FinalResponseQuality,
    ToolUseQuality as ToolUseQuality,
    TrajectoryQuality as TrajectoryQuality,
    UserSimulatorQuality as UserSimulatorQuality,
)
from proctor.evaluators.adk.hallucinations import (
    Hallucinations as Hallucinations,
)
from proctor.evaluators.adk.custom_metrics import (
    AdkMetric as AdkMetric,
)
from proctor.evaluators.datasets import (
    Dataset as Dataset,
    DatasetStore as DatasetStore,
)
from proctor.evaluators.evaluation import (
    Evaluable as Evaluable,
    Evaluation as Evaluation,
    EvaluationPending as EvaluationPending,
    Evaluator as Evaluator,
    Exchange as Exchange,
    NothingToCompare as NothingToCompare,
    evaluate as evaluate,
)
from proctor.evaluators.foreign import (
    AutoevalsAdapter as AutoevalsAdapter,
)
from proctor.evaluators.from_trace import (
    as_evaluable as as_evaluable,
    by_name as by_name,
    last_llm_call as last_llm_call,
    root as root,
)
from proctor.evaluators.judged_evaluator import (
    Judged as Judged,
    NoVerdict as NoVerdict,
)
from proctor.evaluators.judged_texts import (
    answer_text as answer_text,
    expected_text as expected_text,
    passages as passages,
    question_text as question_text,
)
from proctor.evaluators.prompt_evaluators import (
    AgentEvaluationPending as AgentEvaluationPending,
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
)
from proctor.evaluators.rubric.dag import (
    BinaryJudgement as BinaryJudgement,
    NonBinaryJudgement as NonBinaryJudgement,
    TaskNode as TaskNode,
    Verdict as Verdict,
)
from proctor.evaluators.tools.trajectory_steps import (
    Step as Step,
)

EVALUATORS: dict[str, str]
