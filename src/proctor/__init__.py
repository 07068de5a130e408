"""Proctor examines AI agents: it runs suites of cases, scores what the agent did, and gives a verdict.

Every public name is loaded when it is first used, so that importing Proctor costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.agents.model import Agent, Reply, Session, ToolCall, Usage
    from proctor.agents.runnable import Runnable
    from proctor.api import load, run, run_async
    from proctor.cases.model import (
        UNSET,
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
    from proctor.errors import AgentFailed, InvalidSuite, JudgeFailed, ProctorError, StoreError, UsageError
    from proctor.evaluators.adk_custom import AdkMetric
    from proctor.evaluators.adk_efficiency import Measured
    from proctor.evaluators.adk_hallucinations import Hallucinations
    from proctor.evaluators.adk_judged import FinalResponseMatch, ResponseEvaluation, Safety
    from proctor.evaluators.adk_rubrics import FinalResponseQuality, ToolUseQuality, TrajectoryQuality
    from proctor.evaluators.adk_simulator import UserSimulatorQuality
    from proctor.evaluators.agent_steps import ArgumentCorrectness, StepEfficiency, ToolSelection
    from proctor.evaluators.agent_tasks import GoalAccuracy, TaskCompletion
    from proctor.evaluators.autoevals import AutoevalsAdapter
    from proctor.evaluators.battles import Battle, Summary
    from proctor.evaluators.calling import evaluate
    from proctor.evaluators.ceilings import MaxCost, MaxLatency, MaxSteps, MaxTokens
    from proctor.evaluators.classifiers import ClosedQA, Factuality, Humor, Possible, Security, Sql, Translation
    from proctor.evaluators.consistency import ToolConsistency
    from proctor.evaluators.conversation import (
        ConversationCompleteness,
        KnowledgeRetention,
        RoleAdherence,
        TurnRelevancy,
    )
    from proctor.evaluators.correctness import AnswerCorrectness
    from proctor.evaluators.dag import JudgementDAG
    from proctor.evaluators.dag_nodes import BinaryJudgement, NonBinaryJudgement, TaskNode, Verdict
    from proctor.evaluators.data import JSONDiff, ListContains, Numeric, NumericDiff, ValidJSON
    from proctor.evaluators.dataset_files import Dataset
    from proctor.evaluators.datasets import DatasetStore
    from proctor.evaluators.expectations import Expectations
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.geval import GEval
    from proctor.evaluators.injection import PromptInjection
    from proctor.evaluators.lexical import BLEU, METEOR, ROUGE
    from proctor.evaluators.llm_classifier import LLMClassifier
    from proctor.evaluators.llm_prompt import create_llm_evaluator
    from proctor.evaluators.model import (
        Evaluable,
        Evaluation,
        EvaluationPending,
        Evaluator,
        Exchange,
        NothingToCompare,
    )
    from proctor.evaluators.moderation import Moderation
    from proctor.evaluators.pending import AgentEvaluationPending, create_agent_evaluator
    from proctor.evaluators.pii import PIILeakage
    from proctor.evaluators.quality import Coherence, Fluency, Groundedness, Relevance
    from proctor.evaluators.rag import AnswerRelevancy, Faithfulness, Hallucination
    from proctor.evaluators.retrieval import (
        ContextEntityRecall,
        ContextRelevancy,
        ContextualPrecision,
        ContextualRecall,
        ContextualRelevancy,
    )
    from proctor.evaluators.rubrics import LLMJudge
    from proctor.evaluators.safety import Bias, Toxicity
    from proctor.evaluators.semantic import AnswerSimilarity, EmbeddingSimilarity
    from proctor.evaluators.steps import Step
    from proctor.evaluators.text import (
        Contains,
        EndsWith,
        Equality,
        ExactMatch,
        LevenshteinMatch,
        Regex,
        StartsWith,
    )
    from proctor.evaluators.tool_correctness import ToolCorrectness
    from proctor.evaluators.trajectory import ExpectedTools, FinalState, ForbiddenTools, ToolCount, ToolTrajectory
    from proctor.evaluators.trajectory_steps import Trajectory
    from proctor.reporting.scorecard import (
        DatasetEntryResult,
        DatasetScorecard,
        generate_dataset_scorecard_html,
        save_dataset_scorecard,
        scorecards_of,
    )
    from proctor.results.model import Outcome, Run, Score, TrialResult
    from proctor.results.thresholds import ScoreThreshold
    from proctor.results.verdict import RunVerdict, judge
    from proctor.running.agent_runner import AgentRunner
    from proctor.running.agent_runs import AgentRun
    from proctor.running.asserting import (
        assert_dataset_pass,
        assert_dataset_pass_sync,
        assert_pass,
        assert_pass_sync,
        evaluate_sync,
        run_and_evaluate,
        run_and_evaluate_sync,
    )
    from proctor.running.matrix import EvalAssertionError
    from proctor.tracing.capture import MemoryTraceHandler, add_handler, capture_traces, flush, remove_handler
    from proctor.tracing.observing import observe, start_observation
    from proctor.tracing.recording import tool
    from proctor.tracing.spans import LLMSpan, ObservationNode, ObserveSpan
    from proctor.tracing.wrapping import wrap

_HOMES = {
    "agents.model": "Agent Reply Session ToolCall Usage",
    "agents.runnable": "Runnable",
    "api": "load run run_async",
    "cases.model": "UNSET Case Criteria EvaluatorSpec Expected ExpectedCall Keywords NamedData Settings Suite Turn",
    "compat.adk": "AgentEvaluator",
    "errors": "AgentFailed InvalidSuite JudgeFailed ProctorError StoreError UsageError",
    "evaluators.calling": "evaluate",
    "evaluators.adk_custom": "AdkMetric",
    "evaluators.adk_efficiency": "Measured",
    "evaluators.adk_hallucinations": "Hallucinations",
    "evaluators.adk_judged": "FinalResponseMatch ResponseEvaluation Safety",
    "evaluators.adk_rubrics": "FinalResponseQuality ToolUseQuality TrajectoryQuality",
    "evaluators.adk_simulator": "UserSimulatorQuality",
    "evaluators.dag": "JudgementDAG",
    "evaluators.dag_nodes": "BinaryJudgement NonBinaryJudgement TaskNode Verdict",
    "evaluators.expectations": "Expectations",
    "evaluators.geval": "GEval",
    "evaluators.quality": "Coherence Fluency Groundedness Relevance",
    "evaluators.rubrics": "LLMJudge",
    "evaluators.rag": "AnswerRelevancy Faithfulness Hallucination",
    "evaluators.correctness": "AnswerCorrectness",
    "evaluators.retrieval": "ContextEntityRecall ContextRelevancy ContextualPrecision ContextualRecall "
    "ContextualRelevancy",
    "evaluators.classifiers": "ClosedQA Factuality Humor Possible Security Sql Translation",
    "evaluators.battles": "Battle Summary",
    "evaluators.llm_classifier": "LLMClassifier",
    "evaluators.moderation": "Moderation",
    "evaluators.semantic": "AnswerSimilarity EmbeddingSimilarity",
    "evaluators.agent_tasks": "GoalAccuracy TaskCompletion",
    "evaluators.agent_steps": "ArgumentCorrectness StepEfficiency ToolSelection",
    "evaluators.conversation": "ConversationCompleteness KnowledgeRetention RoleAdherence TurnRelevancy",
    "evaluators.safety": "Bias Toxicity",
    "evaluators.pii": "PIILeakage",
    "evaluators.injection": "PromptInjection",
    "evaluators.llm_prompt": "create_llm_evaluator",
    "evaluators.autoevals": "AutoevalsAdapter",
    "evaluators.pending": "AgentEvaluationPending create_agent_evaluator",
    "reporting.scorecard": "DatasetEntryResult DatasetScorecard generate_dataset_scorecard_html save_dataset_scorecard "
    "scorecards_of",
    "evaluators.ceilings": "MaxCost MaxLatency MaxSteps MaxTokens",
    "evaluators.dataset_files": "Dataset",
    "evaluators.datasets": "DatasetStore",
    "evaluators.data": "JSONDiff ListContains Numeric NumericDiff ValidJSON",
    "evaluators.from_trace": "as_evaluable by_name last_llm_call root",
    "evaluators.lexical": "BLEU METEOR ROUGE",
    "evaluators.model": "Evaluable Evaluation EvaluationPending Evaluator Exchange NothingToCompare",
    "evaluators.steps": "Step",
    "evaluators.text": "Contains EndsWith Equality ExactMatch LevenshteinMatch Regex StartsWith",
    "evaluators.tool_correctness": "ToolCorrectness",
    "evaluators.consistency": "ToolConsistency",
    "evaluators.trajectory": "ExpectedTools FinalState ForbiddenTools ToolCount ToolTrajectory",
    "evaluators.trajectory_steps": "Trajectory",
    "results.model": "Outcome Run Score TrialResult",
    "results.thresholds": "ScoreThreshold",
    "results.verdict": "RunVerdict judge",
    "running.agent_runner": "AgentRunner",
    "running.agent_runs": "AgentRun",
    "running.asserting": "assert_dataset_pass assert_dataset_pass_sync assert_pass assert_pass_sync evaluate_sync "
    "run_and_evaluate run_and_evaluate_sync",
    "running.matrix": "EvalAssertionError",
    "tracing.capture": "MemoryTraceHandler add_handler capture_traces flush remove_handler",
    "tracing.observing": "observe start_observation",
    "tracing.recording": "tool",
    "tracing.spans": "LLMSpan ObservationNode ObserveSpan",
    "tracing.wrapping": "wrap",
}
_HOME_OF = {name: f"proctor.{module}" for module, names in _HOMES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'proctor' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
