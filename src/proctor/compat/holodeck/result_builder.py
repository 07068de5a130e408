"""Convert a run to HoloDeck's report; each trial is the result of a test.

Everything comes from the run, so the report of a stored run is the same. Only the executor knows the text of files and
the backend's own token counts, and adds them as `TurnRecords`.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.agents.reply import Reply, Usage
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.cases.matchers.value_matchers import Equals, Matcher
from proctor.cases.suite import Case, EvaluatorSpec, ExpectedCall, Turn
from proctor.compat.holodeck.eval_kwargs import OLD_SCORE_KEY
from proctor.compat.holodeck.files import file_key, unread_files
from proctor.compat.holodeck.grader import invocation
from proctor.compat.holodeck.metric_names import RAG
from proctor.compat.holodeck.reader import EXPECTED_TOOLS, is_conversation
from proctor.compat.holodeck.test_results import (
    UNMATCHED,
    MetricResult,
    ProcessedFileInput,
    ReportSummary,
    TestReport,
    TestResult,
    TokenUsage,
    TurnResult,
)
from proctor.evaluators.evaluation import UNREADABLE
from proctor.evaluators.tools.calls import mismatches
from proctor.reporting.call_pairs import CallFit, CallPair, has_plain_arguments, pair_calls
from proctor.reporting.explain import answer_text
from proctor.results.judge_usage import judge_name
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.scoring import RETRIES
from proctor.version import __version__

TOOLS = EXPECTED_TOOLS.title
NOT_SENT = "not sent: "
"""The start of the message about a turn that was not sent."""
_KINDS = {"GEval": "geval", "CodeGrader": "code"} | dict.fromkeys(RAG.values(), "rag")
"""HoloDeck's kind of a metric by evaluator; all others are `standard`."""


@dataclass(frozen=True, slots=True)
class TurnRecords:
    """Details of turns that a run does not store."""

    files: dict[str, ProcessedFileInput] = field(default_factory=dict)
    """By `file_key`."""
    tokens: dict[tuple[str, int], TokenUsage] = field(default_factory=dict)
    """By case id and turn index."""
    file_errors: dict[str, str] = field(default_factory=dict)
    """Why a file could not be read, in HoloDeck's words, by `file_key`."""
    agent_errors: dict[tuple[str, int], str] = field(default_factory=dict)
    """What a backend raised, in HoloDeck's words, by case id and turn index."""

    def errors(self, case: Case, index: int) -> list[str]:
        """What went wrong in a turn, in HoloDeck's words."""
        agent_error = self.agent_errors.get((case.id, index))
        keys = map(file_key, case.turns[index].files)
        return [self.file_errors[key] for key in keys if key in self.file_errors] + (
            [] if agent_error is None else [agent_error]
        )


NO_RECORDS = TurnRecords()


def to_test_result(trial: Trial, records: TurnRecords = NO_RECORDS) -> TestResult:
    """One trial as the result of a test."""
    case = trial.case
    turns = [_turn(trial, index, records) for index in range(len(case.turns))]
    single = None if is_conversation(case) else turns[0]
    responses = [turn.response for turn in turns if turn.response is not None]
    return TestResult.model_construct(
        test_name=case.description or case.id,
        test_input="\n---\n".join(turn.input for turn in turns),
        processed_files=[file for turn in turns for file in turn.processed_files],
        agent_response=responses[-1] if responses else None,
        tool_calls=[name for turn in turns for name in turn.tool_calls],
        tool_invocations=[call for turn in turns for call in turn.tool_invocations],
        expected_tools=_concatenate(turn.expected_tools for turn in turns),
        tools_matched=_all_known([turn.tools_matched for turn in turns]),
        arg_match_details=_concatenate(turn.arg_match_details for turn in turns),
        metric_results=single.metric_results if single else _metric_means(turns),
        ground_truth="\n---\n".join(turn.ground_truth for turn in turns if turn.ground_truth) or None,
        passed=trial.outcome is Outcome.PASSED,
        execution_time_ms=math.ceil(trial.duration_ms),
        errors=_errors(trial, turns, records),
        reason=trial.end_reason,
        timestamp=iso_timestamp(trial.started_at),
        token_usage=_sum_tokens(turn.token_usage for turn in turns),
        turns=None if single else turns,
        grader_details=single.grader_details if single else None,
        outcome=trial.outcome.value,
        warnings=[*trial.warnings, *_skips(trial)],
        attempts=trial.attempts,
    )


def build_report(
    run: Run, verdict: RunVerdict, suite: str, *, warnings: Sequence[str] = (), records: TurnRecords = NO_RECORDS
) -> TestReport:
    """The report on the suite of that name."""
    info = next(item for item in run.suites if item.name == suite)
    results = [to_test_result(trial, records) for trial in run.trials if trial.suite == suite]
    suite_verdict = next((item for item in verdict.suites if len(verdict.suites) > 1 and item.name == suite), verdict)
    environment = {"agent": info.agent, "agent_fingerprint": info.agent_fingerprint, "run": run.id}
    return TestReport.model_construct(
        agent_name=suite,
        agent_config_path="" if info.path is None else str(info.path),
        results=results,
        summary=_summary(run, results),
        timestamp=iso_timestamp(run.started_at if run.finished_at is None else run.finished_at),
        holodeck_version=f"proctor {__version__}",
        environment={**run.environment, **{name: value for name, value in environment.items() if value}},
        outcome=suite_verdict.word,
        reason=suite_verdict.reason,
        warnings=list(dict.fromkeys(warnings)),
    )


def _summary(run: Run, results: Sequence[TestResult]) -> ReportSummary:
    scores: dict[str, list[float]] = {}
    for result in results:
        for metric in result.metric_results:
            if metric.score is not None:
                scores.setdefault(metric.metric_name, []).append(metric.score)
    passed = sum(result.passed for result in results)
    finished_at = run.started_at if run.finished_at is None else run.finished_at
    return ReportSummary(
        total_tests=len(results),
        passed=passed,
        failed=len(results) - passed,
        pass_rate=100 * passed / len(results) if results else 0.0,
        total_duration_ms=math.ceil(max(0.0, finished_at - run.started_at) * 1000),
        metrics_evaluated={name: len(values) for name, values in scores.items()},
        average_scores={name: statistics.fmean(values) for name, values in scores.items()},
        unmeasured=sum(result.outcome not in ("passed", "failed") for result in results),
    )


def _turn(trial: Trial, index: int, records: TurnRecords) -> TurnResult:
    case, turn = trial.case, trial.case.turns[index]
    place = case.id, index
    reply = trial.replies[index] if index < len(trial.replies) else None
    scores = [score for score in trial.scores if score.turn in (index, None)]
    calls = () if reply is None else reply.tool_calls
    tools = next((score for score in scores if score.evaluator == TOOLS), None)
    errors = [_error_message(score) for score in scores if _is_error(score)]
    is_answered = reply is not None and reply.error is None
    reply_error = None if reply is None or reply.error is None else reply.error.partition("\n  at ")[0]
    specs = [(score, _spec(score, case, turn)) for score in scores if score is not tools]
    metrics = [_metric(score, spec) for score, spec in specs if not _is_skip(score, spec)]
    problems = records.errors(case, index)
    if not problems and not is_answered:
        problems = [_missing_reply_reason(trial, index) if reply_error is None else reply_error]
    return TurnResult.model_construct(
        turn_index=index,
        input=to_text(turn.input),
        response=None if reply is None or (reply_error is not None and not answer_text(reply)) else answer_text(reply),
        ground_truth=ground_truth(turn),
        expected_tools=expected_tools(turn),
        tool_calls=[call.name for call in calls],
        tool_invocations=[invocation(call) for call in calls],
        tools_matched=None if tools is None else tools.outcome is Outcome.PASSED,
        arg_match_details=_argument_details(turn, reply, None if tools is None else tools.details),
        metric_results=metrics,
        passed=is_answered
        and all(
            s.outcome is not Outcome.FAILED and s.outcome is not Outcome.ERROR for s in scores if not s.report_only
        ),
        execution_time_ms=math.ceil((reply.duration_ms or 0.0) if reply is not None else 0.0),
        token_usage=None if reply is None else records.tokens.get(place) or _tokens(reply.usage),
        errors=[*problems, *errors],
        skipped=_is_unsent(trial, index),
        grader_details=_grader_details(scores, metrics),
        processed_files=_files(turn, trial, records),
    )


def _files(turn: Turn, trial: Trial, records: TurnRecords) -> list[ProcessedFileInput]:
    processed = [records.files.get(file_key(item)) for item in turn.files]
    unread = unread_files(turn.files, [*trial.warnings, trial.end_reason])
    return [file or other for file, other in zip(processed, unread, strict=True)]


def _continued_after_failure(trial: Trial) -> bool:
    """Whether the conversation continued after a failed turn, so that each reply has its own error."""
    has_failed_turns = any(reply.error is not None for reply in trial.replies)
    return trial.end_reason == "" or (is_conversation(trial.case) and has_failed_turns and not trial.ended_early)


def _is_unsent(trial: Trial, index: int) -> bool:
    return index >= len(trial.replies) + (not _continued_after_failure(trial))


def _missing_reply_reason(trial: Trial, index: int) -> str:
    """Why a turn has no reply: the error that ended the conversation, or that it had ended before."""
    if not _is_unsent(trial, index):
        return trial.end_reason
    return NOT_SENT + (
        "the session was unrecoverable" if _continued_after_failure(trial) else "the conversation had ended"
    )


def _is_skip(score: Score, spec: EvaluatorSpec | None) -> bool:
    """Whether a metric had nothing to compare, so that HoloDeck leaves it out; one that crashed stays."""
    return score.outcome is Outcome.SKIPPED and not (spec is not None and spec.optional)


def _skips(trial: Trial) -> list[str]:
    """Why metrics were left out, once for each reason."""
    messages = []
    for score in trial.scores:
        spec = _spec(score, trial.case, trial.case.turns[score.turn or 0])
        if _is_skip(score, spec):
            messages.append(f"{score.evaluator} was skipped: {score.reasoning}")
    return list(dict.fromkeys(messages))


def _is_error(score: Score) -> bool:
    failed_tools = score.evaluator == TOOLS and score.outcome is Outcome.FAILED
    return failed_tools or score.outcome is Outcome.ERROR


def _error_message(score: Score) -> str:
    return f"{score.evaluator}: {score.reasoning}" if score.reasoning else f"{score.evaluator}: {score.outcome.value}"


def _spec(score: Score, case: Case, turn: Turn) -> EvaluatorSpec | None:
    """The metric of a score; a number in its title tells two metrics of one name apart."""
    title = score.evaluator.partition(" #")[0]
    specs = (case.evaluators or ()) if turn.evaluators is None else turn.evaluators
    return next((spec for spec in specs if spec.title in (title, score.evaluator)), None)


def _metric(score: Score, spec: EvaluatorSpec | None) -> MetricResult:
    is_scored = score.outcome in (Outcome.PASSED, Outcome.FAILED)
    return MetricResult.model_construct(
        metric_name=score.evaluator,
        kind="standard" if spec is None else _KINDS.get(spec.name, "standard"),
        score=score.details.get(OLD_SCORE_KEY, score.value),
        threshold=None if score.report_only else score.threshold,
        passed=score.outcome is Outcome.PASSED if is_scored and not score.report_only else None,
        error=_metric_error(score, spec, is_scored),
        retry_count=int(score.details.get(RETRIES, 0)) if score.details else 0,
        evaluation_time_ms=round(score.duration_ms),
        model_used=judge_name(score) or None,
        reasoning=(score.reasoning or None) if is_scored else None,
        outcome=score.outcome.value,
    )


def _metric_error(score: Score, spec: EvaluatorSpec | None, is_scored: bool) -> str | None:
    """Why there is no score, or why there was nothing in the answer to score."""
    if not is_scored:
        return score.reasoning or score.outcome.value
    if not (score.details or {}).get(UNREADABLE):
        return None
    path = None if spec is None else spec.output_path
    return score.reasoning if path is None else f"response_path={path!r}: {score.reasoning}"


def _metric_means(turns: Sequence[TurnResult]) -> list[MetricResult]:
    """One result per metric: the mean of its scores, passed if no turn failed."""
    by_name: dict[str, list[MetricResult]] = {}
    for turn in turns:
        for metric in turn.metric_results:
            by_name.setdefault(metric.metric_name, []).append(metric)
    return [_mean_result(group) for group in by_name.values()]


def _mean_result(group: Sequence[MetricResult]) -> MetricResult:
    scores = [metric.score for metric in group if metric.score is not None]
    problems = [metric.error for metric in group if metric.error]
    worst = max(group, key=lambda metric: _SEVERITY.index(metric.outcome))
    changes = {
        "score": statistics.fmean(scores) if scores else None,
        "passed": _all_known([metric.passed for metric in group]),
        "error": "; ".join(dict.fromkeys(problems)) or None,
        "retry_count": sum(metric.retry_count or 0 for metric in group),
        "evaluation_time_ms": sum(metric.evaluation_time_ms or 0 for metric in group),
        "reasoning": "\n".join([*_mean_note(len(scores)), *(m.reasoning for m in group if m.reasoning)]) or None,
    }
    return worst.model_copy(update=changes)


def _mean_note(scores: int) -> list[str]:
    return [f"mean over {scores} turns"] if scores > 1 else []


_SEVERITY = ("skipped", "passed", "pending", "error", "failed")
"""Outcomes from the least to the most severe."""


def _errors(trial: Trial, turns: Sequence[TurnResult], records: TurnRecords) -> list[str]:
    """The errors of the test as a whole, unless those of its turns say the same, then of each turn."""
    turn_errors = [
        (turn.turn_index, error)
        for turn in turns
        for error in turn.errors
        if error != trial.end_reason and not error.startswith(NOT_SENT)
    ]
    messages = [f"[turn {index + 1}] {error}" if len(turns) > 1 else error for index, error in turn_errors]
    is_recorded = any(records.errors(trial.case, index) for index in range(len(turns)))
    return messages if is_recorded or _continued_after_failure(trial) else [trial.end_reason, *messages]


def _argument_details(
    turn: Turn, reply: Reply | None, score_details: Mapping[str, Json] | None
) -> list[dict[str, Json]] | None:
    """For each expected call with arguments: the index of the matching call, or why there is none."""
    expected_calls = turn.expected.tools or ()
    if reply is None or all(call.args is None for call in expected_calls):
        return None
    pairs = pair_calls(expected_calls, reply.tool_calls, score_details)
    details = []
    for expected_call, tool in zip(expected_calls, expected_tools(turn) or [], strict=True):
        if expected_call.args is None:
            continue
        index, reason = _matching_call(expected_call, pairs, reply)
        details.append(
            {
                "expected_tool": expected_call.name,
                "args_asserted": tool.get("args", {}),
                "matched_call_index": index,
                "unmatched_reason": reason,
            }
        )
    return details


def _matching_call(expected: ExpectedCall, pairs: Sequence[CallPair], reply: Reply) -> tuple[int, str | None]:
    """The index of the call with the expected arguments, or -1 and the reason."""
    candidates = [(index, call) for index, call in enumerate(reply.tool_calls) if expected.accepts_name(call.name)]
    if not candidates:
        return UNMATCHED, f"no call to {expected.name!r}"
    if has_plain_arguments(expected):
        reasons = [(index, list(mismatches(expected, call))) for index, call in candidates]
        match = next((index for index, why in reasons if not why), UNMATCHED)
        return match, None if match != UNMATCHED else "; ".join(reasons[0][1])
    for pair in pairs:
        if (
            pair.expected is expected
            and pair.call is not None
            and pair.fit in (CallFit.AS_EXPECTED, CallFit.OUT_OF_ORDER)
        ):
            return next(index for index, call in candidates if call is pair.call), None
    wrong = next((pair.wrong for pair in pairs if pair.expected is expected and pair.wrong), {})
    return UNMATCHED, "; ".join(f"{name}: {why}" for name, why in wrong.items()) or "not as expected, or not compared"


def _grader_details(scores: Sequence[Score], metrics: Sequence[MetricResult]) -> dict[str, Json] | None:
    graders = {metric.metric_name for metric in metrics if metric.kind == "code"}
    return {s.evaluator: to_json(s.details) for s in scores if s.evaluator in graders and s.details} or None


def _concatenate(lists: Iterable[list[Any] | None]) -> list[Any] | None:
    present = [items for items in lists if items is not None]
    return [item for items in present for item in items] if present else None


def _all_known(answers: Sequence[bool | None]) -> bool | None:
    known_answers = [answer for answer in answers if answer is not None]
    return all(known_answers) if known_answers else None


def _tokens(usage: Usage | None) -> TokenUsage | None:
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    prompt_tokens, completion_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    return TokenUsage(
        prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, total_tokens=prompt_tokens + completion_tokens
    )


def _sum_tokens(tokens: Iterable[TokenUsage | None]) -> TokenUsage | None:
    counts = [item for item in tokens if item is not None]
    return sum(counts[1:], counts[0]) if counts else None


def iso_timestamp(seconds: float) -> str:
    """A time in UTC in ISO format."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")


def ground_truth(turn: Turn) -> str | None:
    """The expected output as text."""
    truth = turn.expected.output
    return None if truth is UNSET or truth is None else to_text(truth)


def expected_tools(turn: Turn) -> list[Json] | None:
    """The expected calls as in a file: a name, or a name with arguments and a count."""
    calls = turn.expected.tools
    return None if calls is None else [_expected_tool(call) for call in calls]


def _expected_tool(call: ExpectedCall) -> Json:
    if call.args is None and call.count == 1:
        return call.name
    tool: dict[str, Json] = {"name": call.name}
    if call.args is not None:
        tool["args"] = {name: _holodeck_matcher(matcher) for name, matcher in call.args.items()}
    return tool if call.count == 1 else {**tool, "count": call.count}


def _holodeck_matcher(matcher: Matcher) -> Json:
    """A literal by itself; another matcher in HoloDeck's form, which is the native form without the `$`."""
    if isinstance(matcher, Equals):
        return to_json(matcher.value)
    form = to_json(matcher.to_json())
    return {key.removeprefix("$"): item for key, item in form.items()} if isinstance(form, dict) else form
