"""Proctor examines AI agents: it runs suites of cases, scores what the agent did, and gives a verdict.

Every public name is loaded when it is first used, so that importing Proctor costs next to nothing.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.base.lazy_exports import late_names
from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.agents.agent import Agent, Reply, Session, ToolCall, Usage
    from proctor.agents.runnable import Runnable
    from proctor.api import load, run, run_async
    from proctor.base.errors import AgentFailed, InvalidSuite, JudgeFailed, ProctorError, StoreError, UsageError
    from proctor.base.json_data import UNSET
    from proctor.cases.suite import (
        Case,
        Criteria,
        EvaluatorSpec,
        Expected,
        ExpectedCall,
        Keywords,
        NamedData,
        Settings,
        Suite,
        Turn,
    )
    from proctor.compat.adk import AgentEvaluator
    from proctor.evaluators.adk.custom_metrics import AdkMetric
    from proctor.evaluators.adk.final_response import FinalResponseMatch, ResponseEvaluation, Safety
    from proctor.evaluators.adk.hallucinations import Hallucinations
    from proctor.evaluators.adk.rubric_metrics import FinalResponseQuality, ToolUseQuality, TrajectoryQuality
    from proctor.evaluators.adk.simulator import Measured, UserSimulatorQuality
    from proctor.evaluators.agent.conversation import (
        ConversationCompleteness,
        KnowledgeRetention,
        RoleAdherence,
        TurnRelevancy,
    )
    from proctor.evaluators.agent.steps import ArgumentCorrectness, StepEfficiency, ToolSelection
    from proctor.evaluators.agent.tasks import GoalAccuracy, TaskCompletion
    from proctor.evaluators.call_evaluator import evaluate
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
    )
    from proctor.evaluators.foreign.autoevals import AutoevalsAdapter
    from proctor.evaluators.foreign.llm_prompt import create_llm_evaluator
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.graded_later import AgentEvaluationPending, create_agent_evaluator
    from proctor.evaluators.rag.answer_quality import AnswerCorrectness, AnswerRelevancy, Faithfulness, Hallucination
    from proctor.evaluators.rag.retrieval import (
        ContextEntityRecall,
        ContextRelevancy,
        ContextualPrecision,
        ContextualRecall,
        ContextualRelevancy,
    )
    from proctor.evaluators.resource_limits import MaxCost, MaxLatency, MaxSteps, MaxTokens
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
    from proctor.reporting.html.scorecard import (
        DatasetEntryResult,
        DatasetScorecard,
        generate_dataset_scorecard_html,
        save_dataset_scorecard,
        scorecards_of,
    )
    from proctor.results.passing import ScoreThreshold
    from proctor.results.run import Outcome, Run, Score, TrialResult
    from proctor.results.verdict import RunVerdict, judge
    from proctor.running.python_api.agent_runner import AgentRun, AgentRunner
    from proctor.running.python_api.asserting import (
        assert_dataset_pass,
        assert_dataset_pass_sync,
        assert_pass,
        assert_pass_sync,
        evaluate_sync,
        run_and_evaluate,
        run_and_evaluate_sync,
    )
    from proctor.running.python_api.scorers import EvalAssertionError
    from proctor.tracing.capture import MemoryTraceHandler, add_handler, capture_traces, flush, remove_handler
    from proctor.tracing.observing import observe, start_observation
    from proctor.tracing.spans import LLMSpan, ObservationNode, ObserveSpan
    from proctor.tracing.trial_recording import tool
    from proctor.tracing.wrapping import wrap

_HOMES = {
    "agents.agent": "Agent Reply Session ToolCall Usage",
    "agents.runnable": "Runnable",
    "api": "load run run_async",
    "cases.suite": "Case Criteria EvaluatorSpec Expected ExpectedCall Keywords NamedData Settings Suite Turn",
    "base.json_data": "UNSET",
    "compat.adk": "AgentEvaluator",
    "base.errors": "AgentFailed InvalidSuite JudgeFailed ProctorError StoreError UsageError",
    "evaluators.call_evaluator": "evaluate",
    "evaluators.graded_later": "AgentEvaluationPending create_agent_evaluator",
    "evaluators.adk.custom_metrics": "AdkMetric",
    "evaluators.adk.simulator": "Measured UserSimulatorQuality",
    "evaluators.adk.hallucinations": "Hallucinations",
    "evaluators.adk.final_response": "FinalResponseMatch ResponseEvaluation Safety",
    "evaluators.adk.rubric_metrics": "FinalResponseQuality ToolUseQuality TrajectoryQuality",
    "evaluators.rubric.dag": "BinaryJudgement JudgementDAG NonBinaryJudgement TaskNode Verdict",
    "evaluators.rubric.rubrics": "Expectations LLMJudge",
    "evaluators.rubric.geval": "GEval",
    "evaluators.rubric.quality": "Coherence Fluency Groundedness Relevance",
    "evaluators.rag.answer_quality": "AnswerCorrectness AnswerRelevancy Faithfulness Hallucination",
    "evaluators.rag.retrieval": "ContextEntityRecall ContextRelevancy ContextualPrecision ContextualRecall "
    "ContextualRelevancy",
    "evaluators.choice.classifiers": "Battle ClosedQA Factuality Humor Possible Security Sql Summary Translation",
    "evaluators.choice.llm_classifier": "LLMClassifier",
    "evaluators.safety.moderation": "Moderation",
    "evaluators.semantic": "AnswerSimilarity EmbeddingSimilarity",
    "evaluators.agent.tasks": "GoalAccuracy TaskCompletion",
    "evaluators.agent.steps": "ArgumentCorrectness StepEfficiency ToolSelection",
    "evaluators.agent.conversation": "ConversationCompleteness KnowledgeRetention RoleAdherence TurnRelevancy",
    "evaluators.safety.harm": "Bias Toxicity",
    "evaluators.safety.pii": "PIILeakage",
    "evaluators.safety.injection": "PromptInjection",
    "evaluators.foreign.llm_prompt": "create_llm_evaluator",
    "evaluators.foreign.autoevals": "AutoevalsAdapter",
    "reporting.html.scorecard": "DatasetEntryResult DatasetScorecard generate_dataset_scorecard_html "
    "save_dataset_scorecard scorecards_of",
    "evaluators.resource_limits": "MaxCost MaxLatency MaxSteps MaxTokens",
    "evaluators.datasets.dataset_file": "Dataset",
    "evaluators.datasets.dataset_store": "DatasetStore",
    "evaluators.data.values": "JSONDiff ListContains Numeric NumericDiff ValidJSON",
    "evaluators.from_trace": "as_evaluable by_name last_llm_call root",
    "evaluators.text.lexical": "BLEU METEOR ROUGE",
    "evaluators.evaluation": "Evaluable Evaluation EvaluationPending Evaluator Exchange NothingToCompare",
    "evaluators.tools.trajectory_steps": "Step",
    "evaluators.text.matching": "Contains EndsWith Equality ExactMatch LevenshteinMatch Regex StartsWith",
    "evaluators.tools.consistency": "ToolConsistency",
    "evaluators.tools.correctness": "ToolCorrectness",
    "evaluators.tools.tool_checks": "ExpectedTools FinalState ForbiddenTools ToolCount ToolTrajectory",
    "evaluators.tools.trajectory": "Trajectory",
    "results.run": "Outcome Run Score TrialResult",
    "results.passing": "ScoreThreshold",
    "results.verdict": "RunVerdict judge",
    "running.python_api.agent_runner": "AgentRun AgentRunner",
    "running.python_api.asserting": "assert_dataset_pass assert_dataset_pass_sync assert_pass assert_pass_sync "
    "evaluate_sync run_and_evaluate run_and_evaluate_sync",
    "running.python_api.scorers": "EvalAssertionError",
    "tracing.capture": "MemoryTraceHandler add_handler capture_traces flush remove_handler",
    "tracing.observing": "observe start_observation",
    "tracing.trial_recording": "tool",
    "tracing.spans": "LLMSpan ObservationNode ObserveSpan",
    "tracing.wrapping": "wrap",
}

__all__ = [
    "BLEU",
    "METEOR",
    "ROUGE",
    "UNSET",
    "AdkMetric",
    "Agent",
    "AgentEvaluationPending",
    "AgentEvaluator",
    "AgentFailed",
    "AgentRun",
    "AgentRunner",
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "ArgumentCorrectness",
    "AutoevalsAdapter",
    "Battle",
    "Bias",
    "BinaryJudgement",
    "Case",
    "ClosedQA",
    "Coherence",
    "Contains",
    "ContextEntityRecall",
    "ContextRelevancy",
    "ContextualPrecision",
    "ContextualRecall",
    "ContextualRelevancy",
    "ConversationCompleteness",
    "Criteria",
    "Dataset",
    "DatasetEntryResult",
    "DatasetScorecard",
    "DatasetStore",
    "EmbeddingSimilarity",
    "EndsWith",
    "Equality",
    "EvalAssertionError",
    "Evaluable",
    "Evaluation",
    "EvaluationPending",
    "Evaluator",
    "EvaluatorSpec",
    "ExactMatch",
    "Exchange",
    "Expectations",
    "Expected",
    "ExpectedCall",
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
    "InvalidSuite",
    "JSONDiff",
    "JudgeFailed",
    "JudgementDAG",
    "Keywords",
    "KnowledgeRetention",
    "LLMClassifier",
    "LLMJudge",
    "LLMSpan",
    "LevenshteinMatch",
    "ListContains",
    "MaxCost",
    "MaxLatency",
    "MaxSteps",
    "MaxTokens",
    "Measured",
    "MemoryTraceHandler",
    "Moderation",
    "NamedData",
    "NonBinaryJudgement",
    "NothingToCompare",
    "Numeric",
    "NumericDiff",
    "ObservationNode",
    "ObserveSpan",
    "Outcome",
    "PIILeakage",
    "Possible",
    "ProctorError",
    "PromptInjection",
    "Regex",
    "Relevance",
    "Reply",
    "ResponseEvaluation",
    "RoleAdherence",
    "Run",
    "RunVerdict",
    "Runnable",
    "Safety",
    "Score",
    "ScoreThreshold",
    "Security",
    "Session",
    "Settings",
    "Sql",
    "StartsWith",
    "Step",
    "StepEfficiency",
    "StoreError",
    "Suite",
    "Summary",
    "TaskCompletion",
    "TaskNode",
    "ToolCall",
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
    "TrialResult",
    "Turn",
    "TurnRelevancy",
    "Usage",
    "UsageError",
    "UserSimulatorQuality",
    "ValidJSON",
    "Verdict",
    "__version__",
    "add_handler",
    "as_evaluable",
    "assert_dataset_pass",
    "assert_dataset_pass_sync",
    "assert_pass",
    "assert_pass_sync",
    "by_name",
    "capture_traces",
    "create_agent_evaluator",
    "create_llm_evaluator",
    "evaluate",
    "evaluate_sync",
    "flush",
    "generate_dataset_scorecard_html",
    "judge",
    "last_llm_call",
    "load",
    "observe",
    "remove_handler",
    "root",
    "run",
    "run_and_evaluate",
    "run_and_evaluate_sync",
    "run_async",
    "save_dataset_scorecard",
    "scorecards_of",
    "start_observation",
    "tool",
    "wrap",
]

__getattr__, __dir__ = late_names(globals(), _HOMES, within="proctor")
