"""HoloDeck's `TestExecutor` on Proctor's engine."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, UsageError, one_line
from proctor.base.json_data import plain
from proctor.cases.formats.holodeck.configuration import agent_env_files
from proctor.cases.suite import Case, EvaluatorSpec, Suite
from proctor.compat.holodeck.backends import close
from proctor.compat.holodeck.config import AgentConfig, ConfigLoader, ExecutionConfig, TestCaseModel, settled
from proctor.compat.holodeck.driven_agent import Driven, FileProcessor, Seen, agent_for
from proctor.compat.holodeck.evaluators import BaseEvaluator, evaluator_of
from proctor.compat.holodeck.result_builder import NOTHING_SEEN, report_of, result_of
from proctor.compat.holodeck.run_record import FOLDER, Recorder
from proctor.compat.holodeck.test_results import TestReport, TestResult
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.run import Request, run_suites_async

FILE_SECONDS = 30.0
"""As HoloDeck allows for a file, where nothing says otherwise."""
BROUGHT = "proctor.compat.holodeck.evaluators:brought_along"


class TestExecutor:
    """Runs the tests of an agent.yaml and reports on them.

    `backend` replaces the agent of the file, `file_processor` (an object with `process_file`) reads the files of
    tests, and `evaluators` scores the metrics it names; metrics it does not name are scored as usual. A callback that
    raises is told of in the report and ends nothing. `force_ingest` discards what was embedded of source files.
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        agent_config_path: str,
        execution_config: ExecutionConfig | None = None,
        file_processor: Any = None,
        evaluators: Mapping[str, Any] | None = None,
        config_loader: Any = None,
        progress_callback: Callable[[TestResult], None] | None = None,
        on_test_start: Callable[[TestCaseModel], None] | None = None,
        force_ingest: bool = False,
        agent_config: AgentConfig | None = None,
        resolved_execution_config: ExecutionConfig | None = None,
        backend: Any = None,
    ) -> None:
        _refuse_misfits(
            config_loader=(config_loader, "load_agent_yaml"),
            file_processor=(file_processor, "process_file"),
            progress_callback=(progress_callback, "__call__"),
            on_test_start=(on_test_start, "__call__"),
            backend=(backend, "invoke_once"),
        )
        for name, given in (
            ("execution_config", execution_config),
            ("resolved_execution_config", resolved_execution_config),
        ):
            if given is not None and not isinstance(given, ExecutionConfig):
                raise UsageError(f"{name} must be an ExecutionConfig, not {given!r:.80}")
        self.agent_config_path = str(agent_config_path)
        self.cli_config = execution_config
        self.config_loader = config_loader or ConfigLoader()
        self.progress_callback = progress_callback
        self.on_test_start = on_test_start
        self.agent_config: AgentConfig = agent_config or self.config_loader.load_agent_yaml(agent_config_path)
        if resolved_execution_config is not None:
            self.config: ExecutionConfig = resolved_execution_config
        else:
            self.config = ConfigLoader().resolve_execution_config(self.agent_config, execution_config)
        self._usual_processor = FileProcessor(
            self.config.cache_dir,
            round(1000 * (self.config.download_timeout or FILE_SECONDS)),
            processing_timeout_ms=round(1000 * (self.config.file_timeout or FILE_SECONDS)),
            base_dir=self.agent_config.suite.base,
            cache_enabled=self.config.cache_enabled is not False,
        )
        self.file_processor = file_processor or self._usual_processor
        self._brought = _evaluators_given(evaluators)
        self.evaluators = dict(self._brought) or _usual_evaluators(self.agent_config.suite)
        self._force_ingest = force_ingest
        self._backend = backend
        self._driven: Driven | None = None
        self._warnings: list[str] = []
        self._one_at_a_time = asyncio.Lock()
        self._latest: tuple[Recorder, Run, RunVerdict, Seen] | None = None

    async def execute_tests(self) -> TestReport:
        """Run every test, as many at once as `parallel_test_cases` says, and report on them in their order."""
        async with self._one_at_a_time:
            suite, self._warnings = self._suite(), []
            recorder = Recorder(suite, plain(self.config))
            with environment_from(agent_env_files(suite.base)):
                request = Request([suite], agent=await self._agent(suite))
                run, verdict = await run_suites_async(request, self._listener(suite))
            self._latest = recorder, run, verdict, self._seen
            report = report_of(run, verdict, suite, self.agent_config_path, self._warnings, self._seen)
            return recorder.described(report, run)

    def save_record(self, folder: str | Path = FOLDER) -> Path:
        """Write the record of the latest run to `FOLDER/AGENT/RUN.json`, with the configuration that was in force."""
        if self._latest is None:
            raise UsageError("there is no run to write a record of; execute_tests() comes first")
        recorder, run, verdict, seen = self._latest
        with environment_from(agent_env_files(self.agent_config.suite.base)):
            return recorder.keep(run, verdict, Path(folder), warnings=self._warnings, seen=seen)

    async def shutdown(self) -> None:
        """Close the agent; what goes wrong on the way is logged."""
        try:
            if self._driven is not None:
                await self._driven.close()
            elif self._backend is not None:
                await close(self._backend)
        except Exception as error:
            logging.getLogger(__name__).error("the agent could not be closed: %s", one_line(error))
        self._driven = None

    def _suite(self) -> Suite:
        suite = settled(self.agent_config.suite, self.config)
        return _scored_by(suite, self._brought) if self._brought else suite

    async def _agent(self, suite: Suite) -> Driven | None:
        """Made once, unless it is to read its sources anew; `None` leaves it to the plan to say that there is none."""
        if self._driven is not None and self._force_ingest and self._backend is None:
            await self.shutdown()
        if self._driven is None:
            with suppress(InvalidSuite, UsageError):
                agent = agent_for(suite, self._backend)
                if agent is not None:
                    self._driven = Driven(agent, suite, self._announce, self._file_reader(suite))
        return self._driven

    def _file_reader(self, suite: Suite) -> Callable[[Any], Any] | None:
        """What a processor that was brought along reads files with; `None` leaves them to the engine."""
        given = self.file_processor
        if given is self._usual_processor or given is None:
            return None
        if isinstance(given, FileProcessor) and getattr(given, "base_dir", "") is None:
            given.base_dir = suite.base
        reader: Callable[[Any], Any] = given.process_file
        return reader

    @property
    def _seen(self) -> Seen:
        return NOTHING_SEEN if self._driven is None else self._driven.seen

    def _announce(self, case: Case) -> None:
        if self.on_test_start is not None:
            self._told(self.on_test_start, TestCaseModel(case), "on_test_start")

    def _told(self, callback: Callable[[Any], Any], what: Any, name: str) -> None:
        try:
            came_back = callback(what)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a callback only looks on: whatever it raises is its own
            self._warnings.append(f"{name} raised {one_line(error)}")
            return
        if inspect.iscoroutine(came_back):
            came_back.close()
            self._warnings.append(f"{name} is async, which nobody waits for; give a plain function")

    def _listener(self, suite: Suite) -> _Listener:
        def tell(trial: TrialResult) -> None:
            if self.progress_callback is not None:
                self._told(self.progress_callback, result_of(trial, suite, self._seen), "progress_callback")

        return _Listener(tell)


class _Listener:
    def __init__(self, tell: Callable[[TrialResult], None]) -> None:
        self.trial_done = tell

    def started(self, run: Run, planned: int, kept: int) -> None:
        return None

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return None


def _refuse_misfits(**given: tuple[Any, str]) -> None:
    """What cannot do what it is given for is refused before anything is run."""
    for name, (value, method) in given.items():
        if value is not None and not callable(getattr(value, method, None)):
            wanted = "a function" if method == "__call__" else f"an object with {method}()"
            raise UsageError(f"{name} must be {wanted}, not {value!r:.80}")


def _evaluators_given(evaluators: Any) -> dict[str, Any]:
    if not isinstance(evaluators, Mapping | None):
        raise UsageError(f"evaluators must be a dictionary of evaluators by metric, not {evaluators!r:.80}")
    for name, evaluator in (evaluators or {}).items():
        if not callable(evaluator) and not (hasattr(evaluator, "evaluate") and hasattr(evaluator, "get_param_spec")):
            wanted = "a function, or an object with evaluate() and get_param_spec()"
            raise UsageError(f"the evaluator of {name!r} must be {wanted}, not {evaluator!r:.80}")
    return dict(evaluators or {})


def _usual_evaluators(suite: Suite) -> dict[str, BaseEvaluator]:
    """Each metric's evaluator by its name; one that cannot be made is complained of when tests are run."""
    found: dict[str, BaseEvaluator] = {}
    own = [turn.evaluators or () for case in suite.cases for turn in case.turns]
    for spec in [*suite.evaluators, *(spec for case in suite.cases for spec in case.evaluators or ()), *chain(*own)]:
        with suppress(UsageError):
            made = None if spec.title in found else evaluator_of(spec)
            if made is not None:
                found[spec.title] = made
    return found


def _scored_by(suite: Suite, brought: Mapping[str, Any]) -> Suite:
    def swapped(specs: tuple[EvaluatorSpec, ...] | None) -> tuple[EvaluatorSpec, ...] | None:
        return None if specs is None else tuple(swap(spec) for spec in specs)

    def swap(spec: EvaluatorSpec) -> EvaluatorSpec:
        if spec.title not in brought:
            return spec
        return replace(
            spec,
            name=BROUGHT,
            arguments={"evaluator": brought[spec.title], "metric": spec.title, "threshold": spec.threshold},
            label=spec.title,
            gates=spec.gates or hasattr(brought[spec.title], "evaluate"),
        )

    cases = tuple(
        replace(
            case,
            evaluators=swapped(case.evaluators),
            turns=tuple(replace(turn, evaluators=swapped(turn.evaluators)) for turn in case.turns),
        )
        for case in suite.cases
    )
    return replace(suite, cases=cases, evaluators=swapped(suite.evaluators) or (), extra=suite.extra)
