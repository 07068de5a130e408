"""`evaluate` and `assert_test`: run every metric on every test case, whatever any of them raises."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import functools
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.errors import one_line
from proctor.base.json_data import Json, to_json, to_text
from proctor.base.open_checks import OpenCheck, record_open_check
from proctor.base.threads import run_in_thread
from proctor.compat.deepeval.evaluate_results import (
    AsyncConfig,
    CacheConfig,
    DisplayConfig,
    ErrorConfig,
    EvaluationResult,
    MetricData,
    TestResult,
    case_success,
    details,
    open_check,
)
from proctor.compat.deepeval.goldens import Golden
from proctor.compat.deepeval.metric_base import (
    BaseMetric,
    MissingTestCaseParamsError,
    PendingScore,
    SkippedScore,
    collect_pending_metrics,
    evaluator_name,
    run_from_sync,
    skipped_test,
)
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase
from proctor.compat.deepeval.tracing import case_from_trace, collect_reports
from proctor.judging.judge import JudgeCallStore
from proctor.judging.judges import Judges
from proctor.judging.session import current_session, judge_session
from proctor.reporting.terminal.screen import escape_control, escape_unencodable
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.store import STORE_FOLDER, Store
from proctor.tracing.capture import capture_traces

DEFAULT_ASYNC, DEFAULT_DISPLAY, DEFAULT_ERRORS = AsyncConfig(), DisplayConfig(), ErrorConfig()


async def a_evaluate(
    test_cases: Any,
    metrics: Sequence[BaseMetric],
    *,
    async_config: AsyncConfig = DEFAULT_ASYNC,
    display_config: DisplayConfig = DEFAULT_DISPLAY,
    error_config: ErrorConfig = DEFAULT_ERRORS,
    cache_config: CacheConfig | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    identifier: str | None = None,
) -> EvaluationResult:
    """Evaluate test cases, or those of a dataset, with every metric. Results are in the order of the cases.

    `identifier` and `hyperparameters` describe the run. They are printed and part of the result.
    """
    cases = list(getattr(test_cases, "test_cases", test_cases))
    _check(cases, metrics)
    semaphore = asyncio.Semaphore(async_config.max_concurrent if async_config.run_async else 1)
    serial_lock = asyncio.Lock()

    async def evaluate_case(index: int, case: Any) -> TestResult:
        await asyncio.sleep(index * async_config.throttle_value)
        async with semaphore:
            case_metrics = [_copy_metric(metric, display_config) for metric in metrics]
            metrics_data = await _measure_all(case, case_metrics, serial_lock, error_config)
        # The running test is pending whatever it asserts: `success is False`, say, holds for no pending result.
        if (check := open_check(metrics_data, case)) is not None:
            record_open_check(check)
        return _result(index, case, metrics_data, error_config)

    with judge_reply_cache(cache_config):
        results = await asyncio.gather(*(evaluate_case(index, case) for index, case in enumerate(cases)))
    parameters = None if hyperparameters is None else dict(hyperparameters)
    if display_config.print_results:
        _print(results, display_config, identifier, parameters)
    return EvaluationResult(list(results), identifier, parameters)


def _copy_metric(metric: BaseMetric, display: DisplayConfig) -> BaseMetric:
    """A copy of the metric for one test case, because metrics store their results in themselves."""
    metric_copy = copy.copy(metric)
    metric_copy.verbose_mode = metric.verbose_mode if display.verbose_mode is None else display.verbose_mode
    return metric_copy


def evaluate_goldens(dataset: Any, metrics: Sequence[BaseMetric], **options: Any) -> Iterator[Any]:
    """Yield each golden, record what the application does with it, and evaluate everything at the end."""
    cases, components = [], []
    for golden in list(dataset.goldens):
        if not isinstance(golden, Golden):
            raise TypeError("evals_iterator is for single-turn goldens; run conversations first, then evaluate them")
        with capture_traces() as traces, collect_reports(golden) as reports:
            yield golden
        cases.append(case_from_trace(golden, traces, reports))
        components += reports.components
    if not metrics and not components:
        raise ValueError("evals_iterator needs metrics=[...], or steps with @observe(metrics=[...])")
    for case in cases:
        dataset.add_test_case(case)
    results = [evaluate(cases, metrics, **options)] if metrics else []
    # Each step has its own metrics, so the steps are evaluated one after the other.
    results += [evaluate([case], own_metrics, **options) for case, own_metrics in components]
    tests = [test for result in results for test in result.test_results]
    dataset.evaluation_result = dataclasses.replace(results[0], test_results=tests)


async def a_assert_test(
    test_case: Any,
    metrics: Sequence[BaseMetric],
    run_async: bool = True,
    *,
    error_config: ErrorConfig = DEFAULT_ERRORS,
) -> None:
    """Raise `AssertionError` if a metric fails or breaks; the message separates failures from errors.

    If a metric is pending and none failed, a test of pytest goes on and is pending at its end. Elsewhere it raises.
    """
    _raise_unless_passed(test_case, await _measure_case(test_case, metrics, run_async, error_config))


def assert_test(
    test_case: Any,
    metrics: Sequence[BaseMetric],
    run_async: bool = True,
    *,
    error_config: ErrorConfig = DEFAULT_ERRORS,
) -> None:
    """`a_assert_test` for synchronous code, also inside an async test."""
    __tracebackhide__ = True
    _raise_unless_passed(test_case, run_from_sync(lambda: _measure_case(test_case, metrics, run_async, error_config)))


@dataclasses.dataclass(frozen=True, slots=True)
class _CaseResult:
    """Whether a test case passed, the message if it did not, and the open check if it has no result."""

    passed: bool | None
    message: str = ""
    check: OpenCheck | None = None

    @property
    def reason_to_skip(self) -> str:
        return self.check.summary if self.check is not None and self.check.is_skipped else ""


def _raise_unless_passed(test_case: Any, result: _CaseResult) -> None:
    """Raise for a failure. A check without a result is recorded for the running test, or else raised."""
    __tracebackhide__ = True
    if result.passed or (result.message and _warn_if_flaky(test_case, result.message)):
        return
    if result.check is None or not record_open_check(result.check):
        raise skipped_test(result.reason_to_skip) if result.reason_to_skip else AssertionError(result.message)


def _warn_if_flaky(case: Any, message: str) -> bool:
    """Whether the test case is marked flaky; then it warns instead of failing."""
    if case.flaky:
        warnings.warn(
            f"this test case did not pass, and is only reported because it is marked flaky: {message}", stacklevel=3
        )
    return bool(case.flaky)


@functools.wraps(a_evaluate)
def evaluate(*args: Any, **kwargs: Any) -> EvaluationResult:
    __tracebackhide__ = True
    return run_from_sync(lambda: a_evaluate(*args, **kwargs))


evaluate.__name__ = evaluate.__qualname__ = "evaluate"
evaluate.__doc__ = "`a_evaluate` for synchronous code, also inside an async test."


@contextlib.contextmanager
def judge_reply_cache(config: CacheConfig | None) -> Iterator[None]:
    """While active, judge replies are written to the store and read from it, as `config` says."""
    if config is None or not (config.use_cache or config.write_cache):
        yield
        return
    store = Store(Path(STORE_FOLDER))
    calls = StoredJudgeCalls(store.path)
    try:
        judges = Judges(_ReplyCache(calls, config))
        with judge_session(dataclasses.replace(current_session(), judges=judges)):
            yield
    finally:
        calls.close()
        store.close()


class _ReplyCache:
    """A store of judge calls that is only read or only written if `config` says so."""

    def __init__(self, calls: JudgeCallStore, config: CacheConfig) -> None:
        self._calls = calls
        self._config = config

    def get(self, key: str) -> Mapping[str, Json] | None:
        return self._calls.get(key) if self._config.use_cache else None

    def put(self, key: str, entry: Mapping[str, Json]) -> None:
        if self._config.write_cache:
            self._calls.put(key, entry)


async def _measure_case(case: Any, metrics: Sequence[BaseMetric], run_async: bool, errors: ErrorConfig) -> _CaseResult:
    """Whether a test case passes, and what to say if it does not."""
    _check([case], metrics)
    serial_lock = None if run_async else asyncio.Lock()
    metrics_data = await _measure_all(case, metrics, serial_lock, errors, in_turn=not run_async)
    passed = case_success(metrics_data, errors)
    if passed:
        return _CaseResult(True)
    skipped_without_model = [metric for metric in metrics if getattr(metric, "skipped_without_model", False)]
    if skipped_without_model and all(data.error is None and data.success is None for data in metrics_data):
        return _CaseResult(None, check=OpenCheck(summary=str(skipped_without_model[0].reason), is_skipped=True))
    check = open_check(metrics_data, case) if passed is None else None
    return _CaseResult(passed, details(metrics_data, case), check)


def _check(cases: Sequence[Any], metrics: Sequence[Any]) -> None:
    """Check the test cases and metrics before anything runs."""
    if not cases:
        raise ValueError("pass at least one test case")
    for case in cases:
        if not isinstance(case, (LLMTestCase, ConversationalTestCase)):
            raise TypeError(
                f"a test case must be an LLMTestCase or a ConversationalTestCase, not {type(case).__name__}"
            )
    if not metrics:
        raise ValueError("pass at least one metric")
    for metric in metrics:
        if not isinstance(metric, BaseMetric):
            raise TypeError(f"{metric!r:.80} is not a metric; derive it from BaseMetric")
    if all(metric.threshold is None or metric.flaky for metric in metrics):
        raise ValueError("nothing can fail: pass at least one metric that has a threshold and is not flaky")


async def _measure_all(
    case: Any,
    metrics: Sequence[BaseMetric],
    serial_lock: asyncio.Lock | None,
    errors: ErrorConfig,
    *,
    in_turn: bool = False,
) -> list[MetricData]:
    """Run all metrics in parallel, except those without `async_mode`, which run one at a time."""
    lock = serial_lock or asyncio.Lock()

    async def one(metric: BaseMetric) -> MetricData:
        if metric.async_mode and not in_turn:
            return await _measure_safely(metric, case, errors)
        async with lock:
            return await _measure_safely(metric, case, errors)

    return list(await asyncio.gather(*(one(metric) for metric in metrics)))


async def _measure_safely(metric: BaseMetric, case: Any, errors: ErrorConfig) -> MetricData:
    """Run one metric and turn whatever it raises into an error or a skip."""
    error: str | None = None
    skipped = ""
    try:
        with collect_pending_metrics() as inside:
            await _measure(metric, case)
        if metric not in inside and inside:
            _pass_on_pending(metric, inside)
    except MissingTestCaseParamsError as missing:
        skipped, error = (str(missing), None) if errors.skip_on_missing_params else ("", str(missing))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the caller gave up, as opposed to a metric that cancels itself
            raise
        error = "it cancelled its own task"
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # also GeneratorExit and the like: the metric broke, not the run
        skipped, error = (
            (str(raised), None) if getattr(metric, "skipped_without_model", False) else ("", one_line(raised))
        )
    return _metric_data(metric, error if error is not None or skipped else metric.error, skipped)


async def _measure(metric: BaseMetric, case: Any) -> None:
    """Call the metric's own `a_measure`, else `measure` in a thread. It may return its score instead of setting it."""
    if type(metric).a_measure is not BaseMetric.a_measure:
        returned = await metric.a_measure(case)
    else:
        returned = await run_in_thread(metric.measure, case)
    if metric.score is None and isinstance(returned, (int, float)):
        metric.score = float(returned)


def _pass_on_pending(metric: BaseMetric, inside: Sequence[BaseMetric]) -> None:
    """Make a user's metric pending that measured others which are, unless it failed with its own score."""
    if metric.score is None or math.isnan(metric.score) or metric.is_successful():
        metric.skipped, metric.pending, metric.success = True, True, None
        metric.reason = f"{evaluator_name(inside[0])} is pending: {inside[0].reason or 'the judge cannot tell'}"
        metric.score = PendingScore(metric=evaluator_name(metric), reason=metric.reason)


def _metric_data(metric: BaseMetric, error: str | None, skipped: str) -> MetricData:
    unscored = bool(skipped) or error is not None or isinstance(metric.score, SkippedScore)
    return MetricData(
        name=_name(metric),
        threshold=metric.threshold,
        success=False if error is not None else None if skipped or metric.skipped else _success(metric),
        score=None if unscored else metric.score,
        reason=skipped or (None if error is not None else metric.reason),
        strict_mode=metric.strict_mode,
        evaluation_model=metric.evaluation_model,
        error=error,
        evaluation_cost=metric.evaluation_cost,
        verbose_logs=metric.verbose_logs,
        skipped=bool(skipped) or metric.skipped,
        flaky=metric.flaky,
        pending=not unscored and metric.pending,
        evaluator=evaluator_name(metric),
    )


def _success(metric: BaseMetric) -> bool | None:
    """Whether the metric succeeded; None for a metric without a threshold, which is only reported."""
    success = metric.is_successful()
    return None if metric.threshold is None or success is None else bool(success)


def _name(metric: BaseMetric) -> str:
    name: object = getattr(metric, "__name__", None)
    return name if isinstance(name, str) else type(metric).__qualname__


def _result(index: int, case: Any, metrics_data: list[MetricData], errors: ErrorConfig) -> TestResult:
    name = case.name or f"test_case_{index}"
    success = case_success(metrics_data, errors)
    if isinstance(case, ConversationalTestCase):
        return TestResult(name, success, metrics_data, True, index, turns=case.turns, metadata=case.metadata)
    fields = "input actual_output expected_output context retrieval_context tools_called expected_tools metadata"
    return TestResult(
        name, success, metrics_data, False, index, **{field: getattr(case, field) for field in fields.split()}
    )


_LABELS = {True: "PASS", False: "FAIL", None: "PEND"}


def _print(
    results: Sequence[TestResult], display: DisplayConfig, identifier: str | None, parameters: Mapping[str, Any] | None
) -> None:
    header = [f"identifier: {identifier}"] if identifier else []
    header += [f"{name}: {to_text(to_json(value), 200)}" for name, value in (parameters or {}).items()]
    if header:
        print(escape_control("\n".join(header)))  # noqa: T201  requested by DisplayConfig
    for result in results:
        if display.display_option != "all" and bool(result.success) is not (display.display_option == "passing"):
            continue
        lines = [
            f"{_LABELS[result.success]}  {result.name}",
            *(f"  {data}" for data in result.metrics_data),
        ]
        print(escape_unencodable(escape_control("\n".join(lines)), sys.stdout.encoding))  # noqa: T201  requested by DisplayConfig
