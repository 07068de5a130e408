"""Every public name of Proctor and the module that defines it; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.agents.agent import Agent as Agent, Session as Session
from proctor.agents.reply import Reply as Reply, ToolCall as ToolCall, Usage as Usage
from proctor.agents.runnable_agent import (
    Runnable as Runnable,
)
from proctor.api import (
    compare as compare,
    load as load,
    run as run,
    run_async as run_async,
)
from proctor.base.errors import (
    AgentFailed as AgentFailed,
    InvalidSuite as InvalidSuite,
    JudgeFailed as JudgeFailed,
    ProctorError as ProctorError,
    StoreError as StoreError,
    UsageError as UsageError,
)
from proctor.base.json_data import (
    UNSET as UNSET,
)
from proctor.cases.suite import (
    Case as Case,
    Criteria as Criteria,
    EvaluatorSpec as EvaluatorSpec,
    Expected as Expected,
    ExpectedCall as ExpectedCall,
    Keywords as Keywords,
    NamedData as NamedData,
    Settings as Settings,
    Suite as Suite,
    Turn as Turn,
)
from proctor.compat.adk.agent_evaluator import (
    AgentEvaluator as AgentEvaluator,
)
from proctor.evaluators import (
    BLEU as BLEU,
    METEOR as METEOR,
    ROUGE as ROUGE,
    AdkMetric as AdkMetric,
    AgentEvaluationPending as AgentEvaluationPending,
    AnswerCorrectness as AnswerCorrectness,
    AnswerRelevancy as AnswerRelevancy,
    AnswerSimilarity as AnswerSimilarity,
    ArgumentCorrectness as ArgumentCorrectness,
    AutoevalsAdapter as AutoevalsAdapter,
    Battle as Battle,
    Bias as Bias,
    BinaryJudgement as BinaryJudgement,
    ClosedQA as ClosedQA,
    Coherence as Coherence,
    Contains as Contains,
    ContextEntityRecall as ContextEntityRecall,
    ContextRelevancy as ContextRelevancy,
    ContextualPrecision as ContextualPrecision,
    ContextualRecall as ContextualRecall,
    ContextualRelevancy as ContextualRelevancy,
    ConversationCompleteness as ConversationCompleteness,
    Dataset as Dataset,
    DatasetStore as DatasetStore,
    EmbeddingSimilarity as EmbeddingSimilarity,
    EndsWith as EndsWith,
    Equality as Equality,
    Evaluable as Evaluable,
    Evaluation as Evaluation,
    EvaluationPending as EvaluationPending,
    Evaluator as Evaluator,
    ExactMatch as ExactMatch,
    Exchange as Exchange,
    Expectations as Expectations,
    ExpectedTools as ExpectedTools,
    Factuality as Factuality,
    Faithfulness as Faithfulness,
    FinalResponseMatch as FinalResponseMatch,
    FinalResponseQuality as FinalResponseQuality,
    FinalState as FinalState,
    Fluency as Fluency,
    ForbiddenTools as ForbiddenTools,
    GEval as GEval,
    GoalAccuracy as GoalAccuracy,
    Groundedness as Groundedness,
    Hallucination as Hallucination,
    Hallucinations as Hallucinations,
    Humor as Humor,
    JSONDiff as JSONDiff,
    Judged as Judged,
    JudgementDAG as JudgementDAG,
    KnowledgeRetention as KnowledgeRetention,
    LevenshteinMatch as LevenshteinMatch,
    ListContains as ListContains,
    LLMClassifier as LLMClassifier,
    LLMJudge as LLMJudge,
    MaxCost as MaxCost,
    MaxLatency as MaxLatency,
    MaxSteps as MaxSteps,
    MaxTokens as MaxTokens,
    Measured as Measured,
    Moderation as Moderation,
    NonBinaryJudgement as NonBinaryJudgement,
    NothingToCompare as NothingToCompare,
    Numeric as Numeric,
    NumericDiff as NumericDiff,
    PIILeakage as PIILeakage,
    Possible as Possible,
    PromptInjection as PromptInjection,
    Regex as Regex,
    Relevance as Relevance,
    ResponseEvaluation as ResponseEvaluation,
    RoleAdherence as RoleAdherence,
    Safety as Safety,
    Security as Security,
    Sql as Sql,
    StartsWith as StartsWith,
    Step as Step,
    StepEfficiency as StepEfficiency,
    Summary as Summary,
    TaskCompletion as TaskCompletion,
    TaskNode as TaskNode,
    ToolConsistency as ToolConsistency,
    ToolCorrectness as ToolCorrectness,
    ToolCount as ToolCount,
    ToolSelection as ToolSelection,
    ToolTrajectory as ToolTrajectory,
    ToolUseQuality as ToolUseQuality,
    Toxicity as Toxicity,
    Trajectory as Trajectory,
    TrajectoryQuality as TrajectoryQuality,
    Translation as Translation,
    TurnRelevancy as TurnRelevancy,
    UserSimulatorQuality as UserSimulatorQuality,
    ValidJSON as ValidJSON,
    Verdict as Verdict,
    as_evaluable as as_evaluable,
    by_name as by_name,
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
    evaluate as evaluate,
    last_llm_call as last_llm_call,
    root as root,
)
from proctor.judging.judge import (
    Judge as Judge,
    Question as Question,
)
from proctor.judging.panel import (
    Panel as Panel,
)
from proctor.reporting.html.scorecard import (
    DatasetEntryResult as DatasetEntryResult,
    DatasetScorecard as DatasetScorecard,
    generate_dataset_scorecard_html as generate_dataset_scorecard_html,
    save_dataset_scorecard as save_dataset_scorecard,
    scorecards_of as scorecards_of,
)
from proctor.results.comparison.comparison import (
    Comparison as Comparison,
)
from proctor.results.run import (
    Outcome as Outcome,
    Run as Run,
    Score as Score,
    ScoreThreshold as ScoreThreshold,
    TrialResult as TrialResult,
)
from proctor.results.verdict import (
    RunVerdict as RunVerdict,
    judge as judge,
)
from proctor.running.assertions.agent_runner import (
    AgentRun as AgentRun,
    AgentRunner as AgentRunner,
)
from proctor.running.assertions.assert_pass import (
    assert_dataset_pass as assert_dataset_pass,
    assert_dataset_pass_sync as assert_dataset_pass_sync,
    assert_pass as assert_pass,
    assert_pass_sync as assert_pass_sync,
    evaluate_sync as evaluate_sync,
    run_and_evaluate as run_and_evaluate,
    run_and_evaluate_sync as run_and_evaluate_sync,
)
from proctor.running.assertions.score_matrix import (
    EvalAssertionError as EvalAssertionError,
)
from proctor.compat.pixie.span_handlers import (
    add_handler as add_handler,
    flush as flush,
    remove_handler as remove_handler,
)
from proctor.tracing.capture import (
    MemoryTraceHandler as MemoryTraceHandler,
    capture_traces as capture_traces,
)
from proctor.tracing.observe import (
    observe as observe,
    start_observation as start_observation,
)
from proctor.tracing.spans import (
    LLMSpan as LLMSpan,
    ObservationNode as ObservationNode,
    ObserveSpan as ObserveSpan,
)
from proctor.tracing.tool import tool as tool
from proctor.tracing.wrap import wrap as wrap
from proctor.version import (
    __version__ as __version__,
)
