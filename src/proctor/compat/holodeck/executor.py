"""HoloDeck's `TestExecutor` on Proctor's engine: one request, with the executor's callbacks as its listener."""

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
from proctor.compat.holodeck.backends import BackendAgent, close
from proctor.compat.holodeck.config import ConfigLoader
from proctor.compat.holodeck.evaluators import BaseEvaluator, evaluator_of, scoring_function
from proctor.compat.holodeck.files import FileProcessor, as_processed, file_input, file_key, file_text
from proctor.compat.holodeck.models import Agent, ExecutionConfig, TestCaseModel
from proctor.compat.holodeck.reader import suite_of
from proctor.compat.holodeck.result_builder import TurnRecords, report_of, result_of
from proctor.compat.holodeck.settings import file_settings
from proctor.compat.holodeck.test_results import TestReport, TestResult
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, run_suites_async
from proctor.running.settings import RunOptions

FILE_SECONDS = 30.0
"""As HoloDeck allows for a file, where nothing says otherwise."""


class TestExecutor:
    """Runs the tests of an agent.yaml and reports on them.

    `backend` replaces the agent of the file, `file_processor` (an object with `process_file`) reads the files of
    tests, and `evaluators` scores the metrics it names; metrics it does not name are scored as usual. A callback that
    raises is a warning of the report and ends nothing. `force_ingest` discards what was embedded of source files.
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
        _refuse_misfits(
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
        self.config: ExecutionConfig = resolved_execution_config or ConfigLoader().resolve_execution_config(
            self.agent_config, execution_config
        )
        suite = self._suite()
        self._own_processor = FileProcessor(
            self.config.cache_dir,
            round(1000 * (self.config.download_timeout or FILE_SECONDS)),
            processing_timeout_ms=round(1000 * (self.config.file_timeout or FILE_SECONDS)),
            base_dir=suite.base,
            cache_enabled=self.config.cache_enabled is not False,
        )
        self.file_processor = file_processor or self._own_processor
        self._evaluators = _check_evaluators(evaluators)
        self.evaluators = dict(self._evaluators) or _usual_evaluators(suite)
        self._force_ingest = force_ingest
        self._backend = backend
        self._agent: _KeptAgent | None = None
        self._records = TurnRecords()
        self._warnings: list[str] = []
        self._one_at_a_time = asyncio.Lock()

    async def execute_tests(self) -> TestReport:
        """Run every test, as many at once as `parallel_test_cases` says, and report on them in their order."""
        async with self._one_at_a_time:
            suite, self._warnings = self._suite(), []
            with environment_from(suite.env_files):
                agent = await self._agent_for(suite)
                self._records = TurnRecords(tokens=agent.tokens if agent is not None else {})
                options = RunOptions(read_file=self._file_reader(agent), evaluators=self._scoring_functions(suite))
                if options.read_file is not None and self.file_processor is not self._own_processor:
                    suite = replace(suite, file_settings=FileSettings(math.inf, math.inf))
                tests = dict(zip((case.id for case in suite.cases), self.agent_config.test_cases or (), strict=True))
                request = RunRequest([suite], options, agent=agent)
                run, verdict = await run_suites_async(request, _Listener(self, tests))
            warnings = [*(str(problem) for problem in suite.warnings), *self._warnings]
            report = report_of(run, verdict, suite.name, warnings=warnings, records=self._records)
            report.agent_config_path = self.agent_config_path
            report.environment["execution_config"] = canonical(self.config.model_dump())
            return report

    async def shutdown(self) -> None:
        """Close the agent; what goes wrong on the way is logged."""
        try:
            if self._agent is not None:
                await self._agent.close()
            elif self._backend is not None:
                await close(self._backend)
        except Exception as error:
            logging.getLogger(__name__).error("the agent could not be closed: %s", one_line(error))
        self._agent = None

    def _suite(self) -> Suite:
        """The suite of the agent's present tests, with the executor's settings in force."""
        suite = suite_of(self.agent_config, self.agent_config_path)
        settings = replace(suite.settings, timeout=self.config.llm_timeout, parallel=self.config.parallel_test_cases)
        files = file_settings(self.config, suite.base) if suite.base is not None else suite.file_settings
        return replace(suite, settings=settings, file_settings=files)

    async def _agent_for(self, suite: Suite) -> _KeptAgent | None:
        """The agent, which stays up until `shutdown`; `None` leaves it to the plan to say that there is none."""
        if self._agent is not None and self._force_ingest and self._backend is None:
            await self.shutdown()
        if self._agent is None and self._backend is not None:
            self._agent = _KeptAgent(BackendAgent(self._backend, suite.name))
        elif self._agent is None and suite.agent is not None:
            with suppress(InvalidSuite, UsageError):  # the plan reports it, with everything else that is wrong
                self._agent = _KeptAgent(resolve_agent(suite.agent, suite.base))
        return self._agent

    def _file_reader(self, agent: _KeptAgent | None) -> Callable[[AttachedFile], Any] | None:
        """Reads the files of turns; `None` if the agent takes files itself and nobody passed a processor."""
        processor = self.file_processor
        if processor is self._own_processor and agent is not None and agent.reads_files:
            return None
        if isinstance(processor, FileProcessor) and getattr(processor, "base_dir", "") is None:
            processor.base_dir = self._own_processor.base_dir
        return self._read_file

    async def _read_file(self, item: AttachedFile) -> FileText:
        clock = time.perf_counter()
        try:
            result = await call_user_function(self.file_processor.process_file, file_input(item))
        except Exception as error:
            raise UnreadableFile(f"the file {file_title(item)} could not be read: {one_line(error)}") from error
        processed = as_processed(result, item, (time.perf_counter() - clock) * 1000)
        self._records.files[file_key(item)] = processed
        return file_text(processed)

    def _scoring_functions(self, suite: Suite) -> dict[str, Callable[..., Any]]:
        thresholds = {spec.title: spec.threshold for spec in _specs(suite)}
        return {
            title: scoring_function(evaluator, title, thresholds.get(title))
            for title, evaluator in self._evaluators.items()
        }

    def notify(self, callback: Callable[[Any], Any] | None, argument: Any, name: str) -> None:
        """Call a callback of the user's; whatever it raises is a warning of the report."""
        if callback is None:
            return
        try:
            result = callback(argument)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a callback only looks on: whatever it raises is its own
            self._warnings.append(f"{name} raised {one_line(error)}")
            return
        if inspect.iscoroutine(result):
            result.close()
            self._warnings.append(f"{name} is async, which nobody waits for; give a plain function")

    def result_of(self, trial: TrialResult) -> TestResult:
        return result_of(trial, self._records)


class _Listener:
    """Passes what happens in a run on to the callbacks of an executor."""

    def __init__(self, executor: TestExecutor, tests: Mapping[str, TestCaseModel]) -> None:
        self._executor = executor
        self._tests = tests

    def started(self, run: Run, planned: int, kept: int) -> None:
        return None

    def trial_started(self, case: Case, number: int) -> None:
        if number == 1:
            self._executor.notify(self._executor.on_test_start, self._tests[case.id], "on_test_start")

    def trial_done(self, trial: TrialResult) -> None:
        if self._executor.progress_callback is not None:
            result = self._executor.result_of(trial)
            self._executor.notify(self._executor.progress_callback, result, "progress_callback")

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return None


class _KeptAgent(BaseAgent):
    """An agent that stays up from one run to the next, until it is closed."""

    def __init__(self, agent: BaseAgent) -> None:
        self.agent = agent
        self.name = agent.name
        self.fingerprint = agent.fingerprint
        self.start_timeout = agent.start_timeout
        self.reports_all_tool_calls = agent.reports_all_tool_calls
        self.reads_files = agent.reads_files
        self.tokens = agent.tokens if isinstance(agent, BackendAgent) else {}
        self._started = False

    async def start(self) -> None:
        self.tokens.clear()
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


def _refuse_misfits(**given: tuple[Any, str]) -> None:
    """What cannot do what it is given for is refused before anything is run."""
    for name, (value, method) in given.items():
        if value is not None and not callable(getattr(value, method, None)):
            wanted = "a function" if method == "__call__" else f"an object with {method}()"
            raise UsageError(f"{name} must be {wanted}, not {value!r:.80}")


def _check_evaluators(evaluators: Any) -> dict[str, Any]:
    if not isinstance(evaluators, Mapping | None):
        raise UsageError(f"evaluators must be a dictionary of evaluators by metric, not {evaluators!r:.80}")
    for name, evaluator in (evaluators or {}).items():
        if not callable(evaluator) and not (hasattr(evaluator, "evaluate") and hasattr(evaluator, "get_param_spec")):
            wanted = "a function, or an object with evaluate() and get_param_spec()"
            raise UsageError(f"the evaluator of {name!r} must be {wanted}, not {evaluator!r:.80}")
    return dict(evaluators or {})


def _usual_evaluators(suite: Suite) -> dict[str, BaseEvaluator]:
    """Each metric's evaluator by its name; one that cannot be made is a problem when tests are run."""
    found: dict[str, BaseEvaluator] = {}
    for spec in _specs(suite):
        with suppress(UsageError):
            made = None if spec.title in found else evaluator_of(spec)
            if made is not None:
                found[spec.title] = made
    return found


def _specs(suite: Suite) -> list[EvaluatorSpec]:
    """Every metric of a suite."""
    of_turns = [turn.evaluators or () for case in suite.cases for turn in case.turns]
    return [*suite.evaluators, *(spec for case in suite.cases for spec in case.evaluators or ()), *chain(*of_turns)]
