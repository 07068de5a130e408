"""The whole run as one JSON document, written trial by trial; `schemas/report.schema.json` describes it."""

from __future__ import annotations

import json
import math
from typing import TextIO

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import Json, to_json
from proctor.cases.formats.native.writer import write_case
from proctor.reporting.arms_report import agents_data, arms_data
from proctor.reporting.failing_cases import failures
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.rerun import rerun_errors_command
from proctor.results.gate_result import gate_to_json
from proctor.results.judge_calibration import review_calibrations, uncalibrated_judges
from proctor.results.judge_usage import summary_to_json
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.statistics import Estimate, EvaluatorSummary
from proctor.results.suite_info import SuiteInfo, quarantine_to_json
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict, SuiteVerdict

SCHEMA = "proctor.report/1"


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the report: run, verdict, suites and failures indented, then one line per trial."""
    suites = [suite_data(info, suite_verdict) for info, suite_verdict in zip(run.suites, verdict.suites, strict=True)]
    head: dict[str, Json] = {"schema": SCHEMA, "run": run_data(run), "verdict": verdict_data(verdict), "suites": suites}
    if verdict.outcome is not Outcome.PASSED or any(verdict.counts[bad] for bad in (Outcome.FAILED, Outcome.ERROR)):
        head["failures"] = failures(run, verdict)
    if command := rerun_errors_command(run, verdict):
        head["rerun_errors"] = command
    if (pending := pending_cases(run, verdict)) is not None:
        commands = [command for _, command in pending.commands]
        head["pending"] = {"cases": list(pending.names), "reasons": list(pending.reasons), "commands": commands}
    if run.gate is not None:
        head["gate"] = gate_to_json(run.gate)
    if run.compares_agents:
        head["arms"], head["agents"] = arms_data(run), agents_data(run)
    out.write(json.dumps(head, indent=2).removesuffix("\n}"))
    out.write(',\n  "trials": [')
    separator = "\n    "
    for trial in run.trials:
        out.write(separator)
        out.write(json.dumps(trial_data(trial), separators=(", ", ": ")))
        separator = ",\n    "
    out.write("\n  ]\n}\n")


def run_data(run: Run) -> dict[str, Json]:
    calibrations = review_calibrations(run)
    return {
        "id": run.id,
        "name": run.name,
        "started_at": run.started_at,
        "finished_at": _finite(run.finished_at),
        "interrupted": run.interrupted,
        "note": run.ended_because,
        "environment": to_json(run.environment),
        "options": to_json(run.options),
        "store": run.store,
        "git": to_json(run.git),
        "judges": [summary_to_json(judge) | {"cost_usd": _finite(judge.cost_usd)} for judge in run.judges],
        "uncounted": run.unpriced_note,
        **({"masked": run.masked_note} if run.masked_note else {}),
        **({"endpoints": [to_json(item) for item in run.endpoints]} if run.endpoints else {}),
        **({"hedging": run.hedging_note} if run.hedging_note else {}),
        "corrections": [to_json(item) for item in calibrations.corrections],
        "stale_calibrations": [to_json(item) for item in calibrations.stale],
        "skipped_files": [{"path": path, "reason": reason} for path, reason in run.skipped_files.items()],
        "uncalibrated": uncalibrated_judges(run, calibrations.corrections),
    }


def verdict_data(verdict: RunVerdict) -> dict[str, Json]:
    return {
        "outcome": verdict.word,
        "reason": verdict.reason,
        "exit_code": verdict.exit_code,
        "counts": {outcome.value: count for outcome, count in verdict.counts.items()},
        "tokens": verdict.tokens,
        "cost_usd": _finite(verdict.cost_usd),
        "estimated": verdict.estimated,
    }


def suite_data(info: SuiteInfo, verdict: SuiteVerdict) -> dict[str, Json]:
    return {
        "name": info.name,
        "path": info.path,
        "format": info.format,
        "agent": info.agent,
        "source": info.source,
        "version": info.version,
        "agent_fingerprint": info.agent_fingerprint,
        "criteria": to_json(info.criteria),
        "cases": info.cases,
        "planned": info.planned,
        "quarantined": [quarantine_to_json(item) for item in info.quarantined],
        "verdict": {
            "outcome": verdict.word,
            "reason": verdict.reason,
            "counts": {outcome.value: count for outcome, count in verdict.counts.items()},
            "pass_rate": _estimate(verdict.pass_rate),
            "repeats": verdict.repeats,
            "pass_hat_k": verdict.pass_hat_k,
            "pass_at_k": verdict.pass_at_k,
            "reliability": [to_json(item) for item in verdict.reliability],
            "evaluators": [_evaluator(item) for item in verdict.evaluators],
            "cases": [
                {
                    "id": case.case_id,
                    "outcome": case.outcome.value,
                    "trials": case.trials,
                    "passed": case.passed,
                    "failed": case.failed,
                    "flaky": case.is_flaky,
                    "quarantined": case.quarantined,
                }
                for case in verdict.cases
            ],
        },
    }


def trial_data(trial: Trial) -> dict[str, Json]:
    """Everything that is stored about a trial."""
    return {
        "suite": trial.suite,
        "case": to_json(write_case(trial.case)),
        "number": trial.number,
        **({"arm": trial.arm} if trial.arm else {}),
        "position": trial.position,
        "outcome": trial.outcome.value,
        "reason": trial.end_reason,
        "replies": [reply_data(reply) for reply in trial.replies],
        "scores": [score_data(score) for score in trial.scores],
        "usage": _usage(trial.usage),
        "started_at": _finite(trial.started_at),
        "duration_ms": _finite(trial.duration_ms),
        "attempts": trial.attempts,
        "agent": trial.agent,
        "warnings": list(trial.warnings),
        "reused": trial.reused,
        **({"masked": list(trial.masked)} if trial.masked else {}),
        **({"files_read": dict(trial.files_read)} if trial.files_read else {}),
        **({"captured": dict(trial.captured.sections())} if trial.captured else {}),
    }


def reply_data(reply: Reply) -> dict[str, Json]:
    context = reply.retrieval_context
    return {
        "text": reply.text,
        "tool_calls": [_call(call) for call in reply.tool_calls],
        "usage": _usage(reply.usage),
        "outputs": [{"name": item.name, "value": to_json(item.value)} for item in reply.outputs],
        "structured": to_json(reply.structured),
        "state": to_json(reply.state),
        "retrieval_context": None if context is None else list(context),
        "duration_ms": _finite(reply.duration_ms),
        "error": reply.error,
        **({"thoughts": reply.thoughts} if reply.thoughts else {}),
        **({"returned_none": True} if reply.returned_none else {}),
        **({"from_cache": True} if reply.from_cache else {}),
        **({"hidden_calls": to_json(reply.hidden_calls)} if reply.hidden_calls is not None else {}),
    }


def score_data(score: Score) -> dict[str, Json]:
    return {
        "evaluator": score.evaluator,
        "outcome": score.outcome.value,
        "value": _finite(score.value),
        "threshold": _finite(score.threshold),
        "reasoning": score.reasoning,
        "turn": score.turn,
        "report_only": score.report_only,
        "gates": not score.report_only,  # its earlier name
        "details": to_json(score.details),
        "fingerprint": score.fingerprint,
        "duration_ms": _finite(score.duration_ms),
    }


def _call(call: ToolCall) -> dict[str, Json]:
    return {
        "name": call.name,
        "arguments": to_json(call.arguments),
        "result": to_json(call.result),
        "error": call.error,
        "id": call.id,
        "started_at": _finite(call.started_at),
        "duration_ms": _finite(call.duration_ms),
        "raw_arguments": call.raw_arguments,
        "parent": call.parent,
        **({"handoff": True} if call.handoff else {}),
    }


def _usage(usage: Usage | None) -> Json:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": _finite(usage.cost_usd),
        "model_calls": usage.model_calls,
        "model": usage.model,
        "estimated": usage.estimated,
    }


def _evaluator(item: EvaluatorSummary) -> dict[str, Json]:
    return {
        "evaluator": item.evaluator,
        "scores": _estimate(item.scores),
        "threshold": _finite(item.threshold),
        "passed": item.passed,
        "failed": item.failed,
        "errors": item.errors,
        "skipped": item.skipped,
        "pending": item.pending,
    }


def _estimate(estimate: Estimate | None) -> Json:
    if estimate is None or not math.isfinite(estimate.mean):
        return None
    return {"mean": estimate.mean, "low": estimate.low, "high": estimate.high, "count": estimate.count}


def _finite(number: float | None) -> float | None:
    """The number, or None if it is infinite or not a number, which JSON cannot express."""
    return number if number is not None and math.isfinite(number) else None
