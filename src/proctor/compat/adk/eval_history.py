"""Read the results that adk-python writes, `*.evalset_result.json`, as a run to show and to compare with.

The scores are those of adk-python, never computed again. Two things make such a run comparable with one of Proctor:

- The cases are the same if they ask and expect the same. A result has what a case expects, but not the session it
  started from. So if the EvalSet is where adk-python keeps it, two folders above the history, its cases are used.
- The metrics that need no judge give the same scores in both tools, so their scores get the fingerprint of Proctor's
  evaluator. All others are reported as scored in another way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.documents import Document, Fields
from proctor.base.errors import InvalidSuite, ProctorError
from proctor.base.json_data import Json
from proctor.base.source import Pointer, read_text
from proctor.cases.suite import Case, Criteria, Turn
from proctor.cases.threshold import passes
from proctor.compat.adk.conversations import read_content
from proctor.compat.adk.criteria import METRICS, REPORT_ONLY
from proctor.compat.adk.eval_set import read_document, read_turn
from proctor.compat.adk.keys import NAME
from proctor.compat.adk.test_config import read_criteria
from proctor.evaluators.registry import resolve_evaluator
from proctor.results.run import Run
from proctor.results.score import Outcome, Score, Scores
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import apply_mean_thresholds, record_verdict, trial_outcome, verdict

CRITERIA = Criteria(trials="mean")
PASSED_STATUS, INFORMATIONAL_STATUS = 1, 4
"""Numbers of adk-python's `EvalStatus`."""
SCORED_BY = "scored by adk-python"
NOT_EVALUATED = "adk-python did not evaluate it; its log says why"
NO_RESULTS = "adk-python recorded a failure without any score; its log says why"


def read_eval_result(path: Path) -> Run:
    """The run of a result file; raises `InvalidSuite` with every problem found."""
    document = Document(path, read_text(path))
    if isinstance(document.data, str):  # earlier versions wrote the JSON as a string in JSON
        document = Document(path, document.data)
    fields = Fields(document, document.data, camel=True)
    suite = fields.text("eval_set_id", "", required=fields.valid, blank=False)
    result_id = fields.text("eval_set_result_id", "", required=fields.valid, blank=False)
    started_at = float(fields.number("creation_timestamp", 0.0))
    results = fields.each(
        "eval_case_results", lambda data, at: _read_result(document, data, at), required=fields.valid, least=1
    )
    document.finish()
    trials = list(_trials(suite, results, _stored_cases(path, suite), started_at))
    agent = result_id.removesuffix(f"_{result_id.rpartition('_')[2]}").removesuffix(f"_{suite}")
    cases = len({trial.case.id for trial in trials})
    run = Run(
        id=re.sub(r"[^A-Za-z0-9._-]", "_", result_id).lstrip(".-")[-100:] or NAME,
        started_at=started_at,
        finished_at=started_at,
        suites=(SuiteInfo(suite, None, NAME, agent, "", CRITERIA, cases, len(trials)),),
        summaries=tuple(TrialSummary.of(trial) for trial in trials),
        trials=trials,
        planned=len(trials),
    )
    record_verdict(run, verdict(run))
    return run


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One invocation of a result: what was expected, what happened, and the scores."""

    turn: Turn
    reply: Reply
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True)
class _CaseResult:
    """One run of one case."""

    eval_id: str
    exchanges: tuple[_Exchange, ...]
    overall: tuple[Score, ...]


def _read_result(document: Document, data: Json, pointer: Pointer) -> _CaseResult:
    fields = Fields(document, data, pointer, camel=True)
    return _CaseResult(
        fields.text("eval_id", "", required=fields.valid, blank=False),
        tuple(
            fields.each(
                "eval_metric_result_per_invocation",
                lambda item, place: _read_exchange(document, item, place),
            )
        ),
        tuple(fields.each("overall_eval_metric_results", lambda item, place: _read_score(document, item, place))),
    )


def _read_exchange(document: Document, data: Json, pointer: Pointer) -> _Exchange:
    fields = Fields(document, data, pointer, camel=True)
    turn = Turn(input="")
    if fields.take("expected_invocation") is not None:
        turn = read_turn(document, fields.take("expected_invocation"), fields.at("expected_invocation"))
    actual = fields.inside("actual_invocation")
    scores = fields.each("eval_metric_results", lambda item, place: _read_score(document, item, place))
    if actual is None:
        return _Exchange(turn, Reply(), tuple(scores))
    if not turn.input:  # a simulated user
        turn = Turn(input=_text(actual, "user_content", "user")[0])
    return _Exchange(turn, _read_reply(actual), tuple(scores))


def _read_reply(fields: Fields) -> Reply:
    text, thoughts = _text(fields, "final_response", "model")
    calls, usage = _read_steps(fields.inside("intermediate_data"))
    seconds = fields.number("duration")
    return Reply(text, calls, usage, duration_ms=None if seconds is None else seconds * 1000, thoughts=thoughts)


def _text(fields: Fields, name: str, role: str) -> tuple[str, str]:
    """The text and the thoughts of a content."""
    if fields.take(name) is None:
        return "", ""
    content = read_content(fields.document, fields.take(name), fields.at(name), role)
    return content.text or "", content.thoughts


def _read_steps(fields: Fields | None) -> tuple[tuple[ToolCall, ...], Usage | None]:
    """The tool calls with their results, and the tokens."""
    if fields is None:
        return (), None
    calls, responses = fields.items("tool_uses") or [], fields.items("tool_responses") or []
    usages: list[Usage] = []
    for event in map(_mapping, fields.items("invocation_events") or []):
        parts = map(_mapping, _get(_mapping(_get(event, "content")), "parts") or ())
        for part in parts:
            calls += [call] if (call := _get(part, "function_call")) else []
            responses += [response] if (response := _get(part, "function_response")) else []
        if usage := _mapping(_get(event, "usage_metadata")):
            tokens = _count(_get(usage, "prompt_token_count")), _count(_get(usage, "candidates_token_count"))
            usages.append(Usage(*tokens, model_calls=1))
    return tuple(_with_results(calls, responses)), sum(usages[1:], start=usages[0]) if usages else None


def _with_results(calls: Sequence[Json], responses: Sequence[Json]) -> Iterator[ToolCall]:
    """The calls, each with the response of the same id, or else the first of the same name."""
    left = [response for response in responses if isinstance(response, Mapping)]
    for call in map(_mapping, calls):
        name, call_id = str(_get(call, "name") or ""), _get(call, "id")
        key, wanted = ("id", call_id) if call_id else ("name", name)
        response = next((item for item in left if _get(item, key) == wanted), None)
        if response is not None:
            left.remove(response)
        result = None if response is None else _get(response, "response")
        identifier = call_id if isinstance(call_id, str) else None
        yield ToolCall(name, _mapping(_get(call, "args")), result, id=identifier)


def _read_score(document: Document, data: Json, pointer: Pointer) -> Score:
    fields = Fields(document, data, pointer, camel=True)
    name = fields.text("metric_name", "", required=fields.valid, blank=False)
    value, status = fields.number("score"), fields.integer("eval_status", 3)
    criterion = fields.inside("criterion")
    threshold = fields.number("threshold") if criterion is None else criterion.number("threshold")
    if status == INFORMATIONAL_STATUS:
        outcome = Outcome.SKIPPED if value is None else Outcome.PASSED
        details = {} if value is None else {"value": value}
        reason = NOT_EVALUATED if value is None else f"{value:g}"
        return Score(name, outcome, None if value is None else 1.0, 0.0, reason, report_only=True, details=details)
    metric = METRICS.get(name)
    value, threshold = (
        share if metric is None or share is None else (share - metric.minimum) / (metric.maximum - metric.minimum)
        for share in (value, threshold)
    )
    if value is None:
        # Any score was still possible, so the threshold must be one that a score can reach.
        return Score(name, Outcome.ERROR, None, None if threshold is None else min(threshold, 1.0), NOT_EVALUATED)
    passed = status == PASSED_STATUS
    if passes(value, threshold or 0.0) != passed:  # a metric of the user's own, for which less is better
        value, threshold = float(passed), 1.0
    return Score(
        name,
        Outcome.PASSED if passed else Outcome.FAILED,
        value,
        threshold,
        "; ".join(_rationales(fields)) or SCORED_BY,
        fingerprint=_fingerprint(name, threshold, fields.take("criterion")),
    )


def _rationales(fields: Fields) -> Iterator[str]:
    """Why each rubric is met or not, if the metric has rubrics."""
    details = fields.inside("details")
    for rubric in map(_mapping, [] if details is None else details.items("rubric_scores") or []):
        if rationale := _get(rubric, "rationale"):
            yield f"{_get(rubric, 'rubric_id') or 'rubric'}: {rationale}"


def _fingerprint(name: str, threshold: float | None, criterion: Json) -> str:
    """The fingerprint of Proctor's evaluator with the same options, if the metric needs no judge; else nothing."""
    if name not in METRICS:
        return ""
    document = Document(Path(name), "", {}, lambda pointer: None)
    specs = read_criteria(document, {name: criterion if isinstance(criterion, dict) else threshold}, ())
    try:
        resolved = [resolve_evaluator(spec) for spec in specs if not document.problems]
    except ProctorError:
        return ""
    return next((item.fingerprint for item in resolved if not item.needs_judge), "")


def _stored_cases(path: Path, suite: str) -> Mapping[str, Case]:
    """The cases of the EvalSet in the folder of the application: `APP/.adk/eval_history/` holds the results."""
    file = path.resolve().parent.parent.parent / f"{suite}.evalset.json"
    if path.resolve().parent.name != "eval_history" or not file.is_file():
        return {}
    try:
        [found] = read_document(Document(file, read_text(file)))
    except InvalidSuite:
        return {}
    return {case.id: case for case in found.cases} if found.name == suite else {}


def _trials(
    suite: str, results: Sequence[_CaseResult], stored: Mapping[str, Case], started_at: float
) -> Iterator[Trial]:
    """The trials, case by case: results are in the order in which they were finished."""
    order = list(dict.fromkeys(result.eval_id for result in results))
    numbers: Counter[str] = Counter()
    for position, result in enumerate(sorted(results, key=lambda result: order.index(result.eval_id))):
        numbers[result.eval_id] += 1
        scores = apply_mean_thresholds(_all_scores(result))
        outcome, reason = trial_outcome(scores, CRITERIA) if scores else (Outcome.ERROR, NO_RESULTS)
        yield Trial(
            suite,
            _case(result, stored.get(result.eval_id)),
            numbers[result.eval_id],
            position,
            outcome,
            reason,
            replies=tuple(exchange.reply for exchange in result.exchanges),
            scores=Scores(scores),
            started_at=started_at,
            duration_ms=sum(exchange.reply.duration_ms or 0.0 for exchange in result.exchanges),
            ended_early=not scores,
        )


def _case(result: _CaseResult, stored: Case | None) -> Case:
    """The case of the EvalSet if it is still asked the same, else one from the invocations."""
    turns = tuple(exchange.turn for exchange in result.exchanges)
    if stored is not None and (not turns or [turn.input for turn in stored.turns] == [turn.input for turn in turns]):
        return stored
    return Case(id=result.eval_id, turns=turns or (Turn(input=""),))


def _all_scores(result: _CaseResult) -> list[Score]:
    """The scores of every turn, and of the whole conversation for metrics that score no turn.

    The efficiency metrics, which adk-python always adds, are left out: the replies have the calls, tokens and times.
    """
    turns = [
        replace(score, turn=index)
        for index, exchange in enumerate(result.exchanges)
        for score in exchange.scores
        if not _is_efficiency(score)
    ]
    overall = {score.evaluator: score for score in result.overall if not _is_efficiency(score)}
    measured = {score.evaluator for score in turns if score.value is not None}
    scores = []
    for score in turns:
        if score.evaluator in measured or overall.get(score.evaluator, score).value is None:
            # A metric of the whole conversation scores only the last turn.
            partial = score.value is None and score.evaluator in measured
            scores.append(replace(score, outcome=Outcome.SKIPPED) if partial else score)
    present = {score.evaluator for score in scores}
    return [*scores, *(score for name, score in overall.items() if name not in present)]


def _is_efficiency(score: Score) -> bool:
    return score.report_only and score.evaluator in REPORT_ONLY


def _get(data: Mapping[str, Any], name: str) -> Any:
    """The value of a key in either spelling."""
    camel = re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)
    return data.get(name, data.get(camel))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
