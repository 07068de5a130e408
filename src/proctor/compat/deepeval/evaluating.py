"""`evaluate` and `assert_test`: every metric of every test case, whatever any of them raises."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.errors import one_line
from proctor.base.event_loops import run_in_session_loop, sync_version
from proctor.base.json_data import Json, to_json, to_text
from proctor.base.threads import run_in_thread
from proctor.compat.deepeval.evaluate_results import (
    AsyncConfig,
    CacheConfig,
    DisplayConfig,
    ErrorConfig,
    EvaluationResult,
    MetricData,
    TestResult,
    case_summary,
    verdict,
)
from proctor.compat.deepeval.goldens import Golden
from proctor.compat.deepeval.metric_base import BaseMetric, MissingTestCaseParamsError, skipped_test
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase
from proctor.compat.deepeval.tracing import observed_case
from proctor.judging.judge import JudgeCallStore
from proctor.judging.judges import Judges
from proctor.judging.session import current_session, judge_session
from proctor.reporting.terminal.screen import escape_control
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.store import STORE_FOLDER, Store
from proctor.running.assertions.score_matrix import report_inconclusive
from proctor.tracing.capture import capture_traces

ALL_AT_ONCE, SHOWN, STRICT = AsyncConfig(), DisplayConfig(), ErrorConfig()


async def a_evaluate(
    test_cases: Any,
    metrics: Sequence[BaseMetric],
    *,
    async_config: AsyncConfig = ALL_AT_ONCE,
    display_config: DisplayConfig = SHOWN,
    error_config: ErrorConfig = STRICT,
    cache_config: CacheConfig | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    identifier: str | None = None,
) -> EvaluationResult:
    """Measure every test case, or those of a dataset, by every metric. Results come in the order of the cases.

    `identifier` and `hyperparameters` tell what was evaluated: they are printed, and stand in the result.
    """
    cases = list(getattr(test_cases, "test_cases", test_cases))
    _check(cases, metrics)
    gate = asyncio.Semaphore(async_config.max_concurrent if async_config.run_async else 1)
    alone = asyncio.Lock()

    async def one(index: int, case: Any) -> TestResult:
        await asyncio.sleep(index * async_config.throttle_value)
        async with gate:
            own = [_copied(metric, display_config) for metric in metrics]
            found = await _measure_all(case, own, alone, error_config)
        return _result(index, case, found, error_config)

    with kept_replies(cache_config):
        results = await asyncio.gather(*(one(index, case) for index, case in enumerate(cases)))
    told = None if hyperparameters is None else dict(hyperparameters)
    if display_config.print_results:
        _print(results, display_config, identifier, told)
    return EvaluationResult(list(results), identifier, told)


def _copied(metric: BaseMetric, display: DisplayConfig) -> BaseMetric:
    """Each test case has metrics of its own, which remember what they found."""
    own = copy.copy(metric)
    own.verbose_mode = metric.verbose_mode if display.verbose_mode is None else display.verbose_mode
    return own


def evaluate_observed(dataset: Any, metrics: Sequence[BaseMetric], **options: Any) -> Iterator[Any]:
    """Each golden in turn; what the application does with it until the next is observed, and measured in the end."""
    if not metrics:
        raise ValueError("evals_iterator needs metrics=[...] to measure by")
    cases = []
    for golden in list(dataset.goldens):
        if not isinstance(golden, Golden):
            raise TypeError("evals_iterator is for questions; hold conversations first, and evaluate them")
        with capture_traces() as seen:
            yield golden
        cases.append(observed_case(golden, seen))
    for case in cases:
        dataset.add_test_case(case)
    dataset.evaluation_result = evaluate(cases, metrics, **options)


async def a_assert_test(
    test_case: Any,
    metrics: Sequence[BaseMetric],
    run_async: bool = True,
    *,
    error_config: ErrorConfig = STRICT,
) -> None:
    """Raise `AssertionError` unless every metric is satisfied; what failed and what broke are told apart."""
    _raise(test_case, *await _complaint(test_case, metrics, run_async, error_config))


def assert_test(
    test_case: Any,
    metrics: Sequence[BaseMetric],
    run_async: bool = True,
    *,
    error_config: ErrorConfig = STRICT,
) -> None:
    """`a_assert_test`, for code without an event loop."""
    __tracebackhide__ = True
    _raise(test_case, *run_in_session_loop(_complaint(test_case, metrics, run_async, error_config)))


def _raise(test_case: Any, passed: bool | None, message: str) -> None:
    """A failure fails; what the judge cannot tell skips a test of pytest with the reason, elsewhere it is a warning."""
    __tracebackhide__ = True
    if passed is False and not _is_flaky(test_case, message):
        raise AssertionError(message)
    if passed is None:
        report_inconclusive(message)


def _is_flaky(case: Any, complaint: str) -> bool:
    """A test case that is called flaky warns instead of failing."""
    if case.flaky:
        warnings.warn(f"flaky, so that it does not fail: {complaint}", stacklevel=3)
    return bool(case.flaky)


evaluate = sync_version(a_evaluate, __name__)
evaluate.__name__ = evaluate.__qualname__ = "evaluate"


@contextlib.contextmanager
def kept_replies(config: CacheConfig | None) -> Iterator[None]:
    """While it lasts, replies of judges are kept in the store or taken from it, as `config` says."""
    if config is None or not (config.use_cache or config.write_cache):
        yield
        return
    store = Store(Path(STORE_FOLDER))
    calls = StoredJudgeCalls(store.path)
    try:
        judges = Judges(_Replies(calls, config))
        with judge_session(dataclasses.replace(current_session(), judges=judges)):
            yield
    finally:
        calls.close()
        store.close()


class _Replies:
    """What is kept of judges, as far as it may be read and written."""

    def __init__(self, calls: JudgeCallStore, config: CacheConfig) -> None:
        self._calls = calls
        self._config = config

    def get(self, key: str) -> Mapping[str, Json] | None:
        return self._calls.get(key) if self._config.use_cache else None

    def put(self, key: str, entry: Mapping[str, Json]) -> None:
        if self._config.write_cache:
            self._calls.put(key, entry)


async def _complaint(
    case: Any, metrics: Sequence[BaseMetric], run_async: bool, errors: ErrorConfig
) -> tuple[bool | None, str]:
    """Whether a test case passes, and what is wrong with it or open."""
    _check([case], metrics)
    alone = None if run_async else asyncio.Lock()
    found = await _measure_all(case, metrics, alone, errors, in_turn=not run_async)
    passed = verdict(found, errors)
    if passed:
        return True, ""
    left_out = [metric for metric in metrics if getattr(metric, "left_out", False)]
    if left_out and all(data.error is None and data.success is None for data in found):
        raise skipped_test(str(left_out[0].reason))
    return passed, f"{_message(found)}\n\n{case_summary(case)}"


def _check(cases: Sequence[Any], metrics: Sequence[Any]) -> None:
    if not cases:
        raise ValueError("there are no test cases to evaluate")
    for case in cases:
        if not isinstance(case, (LLMTestCase, ConversationalTestCase)):
            raise TypeError(f"a test case is an LLMTestCase or a ConversationalTestCase, not {type(case).__name__}")
    if not metrics:
        raise ValueError("there are no metrics to evaluate by")
    for metric in metrics:
        if not isinstance(metric, BaseMetric):
            raise TypeError(f"{metric!r:.80} is no metric: derive it from BaseMetric")
    if all(metric.threshold is None or metric.flaky for metric in metrics):
        raise ValueError("no metric has a threshold and is not flaky, so that nothing could fail; give at least one")


async def _measure_all(
    case: Any,
    metrics: Sequence[BaseMetric],
    alone: asyncio.Lock | None,
    errors: ErrorConfig,
    *,
    in_turn: bool = False,
) -> list[MetricData]:
    """All at the same time, but for those that are not `async_mode`: of these, one at a time."""
    lock = alone or asyncio.Lock()

    async def one(metric: BaseMetric) -> MetricData:
        if metric.async_mode and not in_turn:
            return await _measured(metric, case, errors)
        async with lock:
            return await _measured(metric, case, errors)

    return list(await asyncio.gather(*(one(metric) for metric in metrics)))


async def _measured(metric: BaseMetric, case: Any, errors: ErrorConfig) -> MetricData:
    error: str | None = None
    skipped = ""
    try:
        await _measure(metric, case)
    except MissingTestCaseParamsError as missing:
        skipped, error = (str(missing), None) if errors.skip_on_missing_params else ("", str(missing))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the caller gave up, as opposed to a metric that cancels itself
            raise
        error = "it cancelled its own task"
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # such as GeneratorExit: whatever a metric raises is its own
        skipped, error = (str(raised), None) if getattr(metric, "left_out", False) else ("", one_line(raised))
    return _data(metric, error if error is not None or skipped else metric.error, skipped)


async def _measure(metric: BaseMetric, case: Any) -> None:
    """By its own `a_measure`, else by `measure` in a thread; a metric may return its score instead of setting it."""
    if type(metric).a_measure is not BaseMetric.a_measure:
        returned = await metric.a_measure(case)
    else:
        returned = await run_in_thread(metric.measure, case)
    if metric.score is None and isinstance(returned, (int, float)):
        metric.score = float(returned)


def _data(metric: BaseMetric, error: str | None, skipped: str) -> MetricData:
    nothing = bool(skipped) or error is not None
    return MetricData(
        name=_name(metric),
        threshold=metric.threshold,
        success=False if error is not None else None if skipped or metric.skipped else _success(metric),
        score=None if nothing else metric.score,
        reason=skipped or (None if error is not None else metric.reason),
        strict_mode=metric.strict_mode,
        evaluation_model=metric.evaluation_model,
        error=error,
        evaluation_cost=metric.evaluation_cost,
        verbose_logs=metric.verbose_logs,
        skipped=bool(skipped) or metric.skipped,
        flaky=metric.flaky,
        pending=not nothing and metric.pending,
    )


def _success(metric: BaseMetric) -> bool | None:
    """A metric without a threshold reports and never decides."""
    found = metric.is_successful()
    return None if metric.threshold is None or found is None else bool(found)


def _name(metric: BaseMetric) -> str:
    name: object = getattr(metric, "__name__", None)
    return name if isinstance(name, str) else type(metric).__qualname__


def _result(index: int, case: Any, found: list[MetricData], errors: ErrorConfig) -> TestResult:
    name = case.name or f"test_case_{index}"
    success = verdict(found, errors)
    if isinstance(case, ConversationalTestCase):
        return TestResult(name, success, found, True, index, turns=case.turns, metadata=case.metadata)
    fields = "input actual_output expected_output context retrieval_context tools_called expected_tools metadata"
    return TestResult(name, success, found, False, index, **{field: getattr(case, field) for field in fields.split()})


def _message(found: Sequence[MetricData]) -> str:
    groups = {
        "failed": [data for data in found if data.error is None and data.success is False],
        "errors, which say nothing about the application": [data for data in found if data.error is not None],
        "pending": [data for data in found if data.pending],
        "skipped": [data for data in found if data.error is None and data.skipped and not data.pending],
    }
    lines = [f"{title}: {data}" for title, listed in groups.items() for data in listed]
    return "\n".join(lines) if lines else "nothing was measured that could pass or fail"


_SIGNS = {True: "PASS", False: "FAIL", None: "PEND"}


def _print(
    results: Sequence[TestResult], display: DisplayConfig, identifier: str | None, told: Mapping[str, Any] | None
) -> None:
    about = [f"identifier: {identifier}"] if identifier else []
    about += [f"{name}: {to_text(to_json(value), 200)}" for name, value in (told or {}).items()]
    if about:
        print(escape_control("\n".join(about)))  # noqa: T201  what DisplayConfig asks for
    for result in results:
        if display.display_option != "all" and result.success is not (display.display_option == "passing"):
            continue
        lines = [
            f"{_SIGNS[result.success]}  {result.name}",
            *(f"  {data}" for data in result.metrics_data),
        ]
        print(escape_control("\n".join(lines)))  # noqa: T201  what DisplayConfig asks for
