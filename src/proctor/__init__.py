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
    from proctor.errors import AgentFailed, InvalidSuite, JudgeFailed, ProctorError, StoreError, UsageError
    from proctor.evaluators.calling import evaluate
    from proctor.evaluators.ceilings import MaxCost, MaxLatency, MaxSteps, MaxTokens
    from proctor.evaluators.data import JSONDiff, ListContains, Numeric, NumericDiff, ValidJSON
    from proctor.evaluators.dataset_files import Dataset
    from proctor.evaluators.datasets import DatasetStore
    from proctor.evaluators.from_trace import as_evaluable, by_name, last_llm_call, root
    from proctor.evaluators.lexical import BLEU, METEOR, ROUGE
    from proctor.evaluators.model import (
        Evaluable,
        Evaluation,
        EvaluationPending,
        Evaluator,
        Exchange,
        NothingToCompare,
    )
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
    from proctor.results.model import Outcome, Run, Score, TrialResult
    from proctor.results.thresholds import ScoreThreshold
    from proctor.results.verdict import RunVerdict, judge
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
    "errors": "AgentFailed InvalidSuite JudgeFailed ProctorError StoreError UsageError",
    "evaluators.calling": "evaluate",
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
    "evaluators.trajectory": "ExpectedTools FinalState ForbiddenTools ToolCount ToolTrajectory",
    "evaluators.trajectory_steps": "Trajectory",
    "results.model": "Outcome Run Score TrialResult",
    "results.thresholds": "ScoreThreshold",
    "results.verdict": "RunVerdict judge",
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
    "Agent",
    "AgentFailed",
    "Case",
    "Contains",
    "Criteria",
    "Dataset",
    "DatasetStore",
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
    "Expected",
    "ExpectedCall",
    "ExpectedTools",
    "FinalState",
    "ForbiddenTools",
    "InvalidSuite",
    "JSONDiff",
    "JudgeFailed",
    "Keywords",
    "LLMSpan",
    "LevenshteinMatch",
    "ListContains",
    "MaxCost",
    "MaxLatency",
    "MaxSteps",
    "MaxTokens",
    "MemoryTraceHandler",
    "NamedData",
    "NothingToCompare",
    "Numeric",
    "NumericDiff",
    "ObservationNode",
    "ObserveSpan",
    "Outcome",
    "ProctorError",
    "Regex",
    "Reply",
    "Run",
    "RunVerdict",
    "Runnable",
    "Score",
    "ScoreThreshold",
    "Session",
    "Settings",
    "StartsWith",
    "Step",
    "StoreError",
    "Suite",
    "ToolCall",
    "ToolCorrectness",
    "ToolCount",
    "ToolTrajectory",
    "Trajectory",
    "TrialResult",
    "Turn",
    "Usage",
    "UsageError",
    "ValidJSON",
    "__version__",
    "add_handler",
    "as_evaluable",
    "assert_dataset_pass",
    "assert_dataset_pass_sync",
    "assert_pass",
    "assert_pass_sync",
    "by_name",
    "capture_traces",
    "evaluate",
    "evaluate_sync",
    "flush",
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
