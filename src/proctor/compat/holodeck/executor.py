"""HoloDeck's `TestExecutor` on Proctor's engine: one run request, with the executor's callbacks as its listener."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.resolve import resolve_agent
from proctor.agents.user_code import call_user_function
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, UsageError, one_line
from proctor.base.json_data import canonical
from proctor.cases.files.file_reader import file_title
from proctor.cases.files.file_text import FileText, UnreadableFile
from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, FileSettings, Suite
from proctor.compat.holodeck.backends import BackendAgent, close_backend
from proctor.compat.holodeck.config import ConfigLoader
from proctor.compat.holodeck.evaluators import BaseEvaluator, build_evaluator, scoring_function
from proctor.compat.holodeck.files import FileProcessor, file_input, file_key, file_text, to_processed
from proctor.compat.holodeck.models import Agent, ExecutionConfig, TestCaseModel
from proctor.compat.holodeck.reader import agent_suite
from proctor.compat.holodeck.result_builder import TurnRecords, build_report, to_test_result
from proctor.compat.holodeck.settings import DEFAULTS, agent_env_files, file_settings
from proctor.compat.holodeck.test_results import TestReport, TestResult
from proctor.results.run import Run
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, raise_if_stopped, run_suites_async
from proctor.running.settings import RunOptions

DEFAULT_FILE_SECONDS = 30.0
"""HoloDeck's default time limit for a file."""


class TestExecutor:
    """Runs the tests of an agent.yaml and returns a report.

    `backend` replaces the agent of the file. `file_processor` (an object with `process_file`) reads the files of tests.
    `evaluators` replaces the evaluators of the metrics it names. A callback that raises adds a warning to the report
    and does not stop the run. `force_ingest` discards stored embeddings of source files.
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
        agent_config: Agent | None = None,
        resolved_execution_config: ExecutionConfig | None = None,
        backend: Any = None,
    ) -> None:
        _check_arguments(
            config_loader=(config_loader, "load_agent_yaml"),
            file_processor=(file_processor, "process_file"),
            progress_callback=(progress_callback, "__call__"),
            on_test_start=(on_test_start, "__call__"),
            backend=(backend, "invoke_once"),
        )
        for name, config in (
            ("execution_config", execution_config),
            ("resolved_execution_config", resolved_execution_config),
        ):
            if config is not None and not isinstance(config, ExecutionConfig):
                raise UsageError(f"{name} must be an ExecutionConfig, not {config!r:.80}")
        self.agent_config_path = str(agent_config_path)
        self.cli_config = execution_config
        self.config_loader = config_loader or ConfigLoader()
        self.progress_callback = progress_callback
        self.on_test_start = on_test_start
        self.agent_config: Agent = agent_config or self.config_loader.load_agent_yaml(agent_config_path)
        self.config: ExecutionConfig = resolved_execution_config or self._resolve_config()
        self._default_processor = None if file_processor else self._build_file_processor()
        self.file_processor: Any = file_processor or self._default_processor
        self._evaluators = _check_evaluators(evaluators)
        self.evaluators = dict(self._evaluators) or self._default_evaluators()
        self._force_ingest = force_ingest
        self._backend = backend
        self._agent: _PersistentAgent | None = None
        self._records = TurnRecords()
        self._warnings: list[str] = []
        self._run_lock = asyncio.Lock()

    async def execute_tests(self) -> TestReport:
        """Run every test, up to `parallel_test_cases` in parallel, and report them in their order."""
        async with self._run_lock:
            suite, self._warnings = self._suite(), []
            with environment_from(suite.env_files, self.agent_config.written_keys):
                agent = await self._agent_for(suite)
                self._records = TurnRecords()
                if agent is not None:
                    self._records = TurnRecords(tokens=agent.tokens, agent_errors=agent.errors)
                options = RunOptions(read_file=self._file_reader(agent), evaluators=self._scoring_functions(suite))
                if options.read_file is not None and self.file_processor is not self._default_processor:
                    suite = replace(suite, file_settings=FileSettings(math.inf, math.inf))
                tests = dict(zip((case.id for case in suite.cases), self.agent_config.test_cases or (), strict=True))
                request = RunRequest([suite], options, agent=agent)
                run, verdict = await run_suites_async(request, _CallbackListener(self, tests))
            raise_if_stopped(run)
            warnings = [*(str(problem) for problem in suite.warnings), *self._warnings]
            report = build_report(run, verdict, suite.name, warnings=warnings, records=self._records)
            report.agent_config_path = self.agent_config_path
            report.environment["execution_config"] = canonical(self.config.model_dump())
            return report

    async def shutdown(self) -> None:
        """Close the agent; errors are logged."""
        try:
            if self._agent is not None:
                await self._agent.close()
            elif self._backend is not None:
                await close_backend(self._backend)
        except Exception as error:
            logging.getLogger(__name__).error("the agent could not be closed: %s", one_line(error))
        self._agent = None

    def _resolve_config(self) -> ExecutionConfig:
        """The settings, resolved by the loader, which may be the program's own."""
        loader = self.config_loader if hasattr(self.config_loader, "resolve_execution_config") else ConfigLoader()
        folder = Path(self.agent_config_path).parent
        with environment_from(agent_env_files(folder)):
            configs = [
                loader.load_project_config(str(folder)) if hasattr(loader, "load_project_config") else None,
                loader.load_global_config() if hasattr(loader, "load_global_config") else None,
            ]
            project, user = (None if config is None else config.execution for config in configs)
            config: ExecutionConfig = loader.resolve_execution_config(
                cli_config=self.cli_config,
                yaml_config=self.agent_config.execution,
                project_config=project,
                user_config=user,
                defaults=DEFAULTS,
            )
        return config

    def _build_file_processor(self) -> FileProcessor:
        return FileProcessor(
            self.config.cache_dir,
            round(1000 * (self.config.download_timeout or DEFAULT_FILE_SECONDS)),
            processing_timeout_ms=round(1000 * (self.config.file_timeout or DEFAULT_FILE_SECONDS)),
            base_dir=self._suite().base,
            cache_enabled=self.config.cache_enabled is not False,
        )

    def _default_evaluators(self) -> dict[str, BaseEvaluator]:
        """Each metric's evaluator by name; one that cannot be created is reported when tests run."""
        evaluators: dict[str, BaseEvaluator] = {}
        if not issubclass(type(self.agent_config), Agent):  # a mock, whose metrics nobody can know
            return evaluators
        with environment_from((), self.agent_config.written_keys):
            for spec in _specs(self._suite()):
                with suppress(UsageError):
                    evaluator = None if spec.title in evaluators else build_evaluator(spec)
                    if evaluator is not None:
                        evaluators[spec.title] = evaluator
        return evaluators

    def _suite(self) -> Suite:
        """The suite of the agent's current tests, with the executor's settings."""
        suite = agent_suite(self.agent_config, self.agent_config_path)
        settings = replace(suite.settings, timeout=self.config.llm_timeout, parallel=self.config.parallel_test_cases)
        files = file_settings(self.config, suite.base) if suite.base is not None else suite.file_settings
        return replace(suite, settings=settings, file_settings=files)

    async def _agent_for(self, suite: Suite) -> _PersistentAgent | None:
        """The agent, which runs until `shutdown`; None if there is none, which the plan reports."""
        if self._agent is not None and self._force_ingest and self._backend is None:
            await self.shutdown()
        if self._agent is None and self._backend is not None:
            backend_agent = BackendAgent(self._backend, suite.name, self.config.llm_timeout)
            self._agent = _PersistentAgent(backend_agent)
        elif self._agent is None and suite.agent is not None:
            with suppress(InvalidSuite, UsageError):  # the plan reports it, with everything else that is wrong
                self._agent = _PersistentAgent(resolve_agent(suite.agent, suite.base))
        return self._agent

    def _file_reader(self, agent: _PersistentAgent | None) -> Callable[[AttachedFile], Any] | None:
        """The function that reads the files of turns; None if the agent reads files itself."""
        processor = self.file_processor
        if processor is self._default_processor and agent is not None and agent.reads_files:
            return None
        if isinstance(processor, FileProcessor) and getattr(processor, "base_dir", "") is None:
            processor.base_dir = self._suite().base
        return self._read_file

    async def _read_file(self, item: AttachedFile) -> FileText:
        clock = time.perf_counter()
        try:
            result = await call_user_function(self.file_processor.process_file, file_input(item))
        except Exception as error:
            self._records.file_errors[file_key(item)] = f"File processing error: {error}"
            raise UnreadableFile(f"the file {file_title(item)} could not be read: {one_line(error)}") from error
        processed = to_processed(result, item, (time.perf_counter() - clock) * 1000)
        self._records.files[file_key(item)] = processed
        if processed.error:
            self._records.file_errors[file_key(item)] = f"File error: {processed.error}"
        return file_text(processed)

    def _scoring_functions(self, suite: Suite) -> dict[str, Callable[..., Any]]:
        thresholds = {spec.title: spec.threshold for spec in _specs(suite)}
        return {
            title: scoring_function(evaluator, title, thresholds.get(title))
            for title, evaluator in self._evaluators.items()
        }

    def notify(self, callback: Callable[[Any], Any] | None, argument: Any, name: str) -> None:
        """Call a user's callback; whatever it raises becomes a warning of the report."""
        if callback is None:
            return
        try:
            result = callback(argument)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a callback must not stop the run
            self._warnings.append(f"{name} raised {one_line(error)}")
            return
        if inspect.iscoroutine(result):
            result.close()
            self._warnings.append(f"{name} is async and was not awaited; use a plain function")

    def result_of(self, trial: Trial) -> TestResult:
        return to_test_result(trial, self._records)


class _CallbackListener:
    """Passes the events of a run to the callbacks of an executor."""

    def __init__(self, executor: TestExecutor, tests: Mapping[str, TestCaseModel]) -> None:
        self._executor = executor
        self._tests = tests

    def started(self, run: Run, planned: int, stored: int) -> None:
        return None

    def trial_started(self, case: Case, number: int) -> None:
        if number == 1:
            self._executor.notify(self._executor.on_test_start, self._tests[case.id], "on_test_start")

    def trial_done(self, trial: Trial) -> None:
        if self._executor.progress_callback is not None:
            result = self._executor.result_of(trial)
            self._executor.notify(self._executor.progress_callback, result, "progress_callback")

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return None


class _PersistentAgent(BaseAgent):
    """An agent that stays started from one run to the next, until it is closed."""

    def __init__(self, agent: BaseAgent) -> None:
        self.agent = agent
        self.name = agent.name
        self.fingerprint = agent.fingerprint
        self.start_timeout = agent.start_timeout
        self.reports_all_tool_calls = agent.reports_all_tool_calls
        self.reads_files = agent.reads_files
        self.tokens = agent.tokens if isinstance(agent, BackendAgent) else {}
        self.errors = agent.errors if isinstance(agent, BackendAgent) else {}
        self._started = False

    async def start(self) -> None:
        self.tokens.clear()
        self.errors.clear()
        if not self._started:
            await self.agent.start()
        self._started = True

    async def close(self) -> None:
        if self._started:
            self._started = False
            await self.agent.stop()

    def check(self, case: Case) -> str | None:
        return self.agent.check(case)

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        return self.agent.session(case)


def _check_arguments(**arguments: tuple[Any, str]) -> None:
    """Raise if an argument lacks the method it needs, before anything runs."""
    for name, (value, method) in arguments.items():
        if value is not None and not callable(getattr(value, method, None)):
            expected = "a function" if method == "__call__" else f"an object with {method}()"
            raise UsageError(f"{name} must be {expected}, not {value!r:.80}")


def _check_evaluators(evaluators: Any) -> dict[str, Any]:
    if not isinstance(evaluators, Mapping | None):
        raise UsageError(f"evaluators must be a dictionary of evaluators by metric, not {evaluators!r:.80}")
    for name, evaluator in (evaluators or {}).items():
        if not callable(evaluator) and not (hasattr(evaluator, "evaluate") and hasattr(evaluator, "get_param_spec")):
            expected = "a function, or an object with evaluate() and get_param_spec()"
            raise UsageError(f"the evaluator of {name!r} must be {expected}, not {evaluator!r:.80}")
    return dict(evaluators or {})


def _specs(suite: Suite) -> list[EvaluatorSpec]:
    """Every metric of a suite."""
    turn_specs = [turn.evaluators or () for case in suite.cases for turn in case.turns]
    return [*suite.evaluators, *(spec for case in suite.cases for spec in case.evaluators or ()), *chain(*turn_specs)]
