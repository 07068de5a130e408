"""HoloDeck's `TestExecutor` on Proctor's engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from proctor.cases.model import NOTHING, Case, EvaluatorSpec, Suite
from proctor.compat.holodeck_config import AgentConfig, ConfigLoader, ExecutionConfig, TestCaseModel, settled
from proctor.compat.holodeck_driving import Driven, agent_for
from proctor.compat.holodeck_results import TestReport, TestResult
from proctor.compat.holodeck_telling import report_of, result_of
from proctor.errors import InvalidSuite, UsageError
from proctor.evaluators.registry import build
from proctor.plain import canonical, plain
from proctor.references import describe
from proctor.results.model import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.verbs import Request, run_suites_async

BROUGHT = "proctor.compat.holodeck_evaluators:brought_along"


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
        self.file_processor = file_processor
        self.evaluators = dict(evaluators) if evaluators else _usual_evaluators(self.agent_config.suite)
        self._brought: Mapping[str, Any] = dict(evaluators or {})
        self._force_ingest = force_ingest
        self._backend = backend
        self._driven: Driven | None = None
        self._mishaps: list[str] = []

    async def execute_tests(self) -> TestReport:
        """Run every test, as many at once as `parallel_test_cases` says, and report on them in their order."""
        suite = self._suite()
        self._mishaps = []
        request = Request([suite], agent=await self._agent(suite))
        run, verdict = await run_suites_async(request, self._listener(suite))
        report = report_of(run, verdict, suite, self.agent_config_path, self._mishaps)
        return replace(report, environment={**report.environment, **self._made_with(run)})

    def _made_with(self, run: Run) -> dict[str, str]:
        """What one has to know to compare two reports: the settings in force, the prompt, the agent."""
        known = {
            "execution_config": canonical(plain(self.config)),
            "prompt_version": getattr(self.agent_config, "prompt_version", None),
            "agent_fingerprint": run.suites[0].agent_fingerprint,
            "run": run.id,
        }
        return {name: value for name, value in known.items() if value}

    async def shutdown(self) -> None:
        """Close the agent; what goes wrong on the way is logged."""
        try:
            if self._driven is not None:
                await self._driven.close()
            elif self._backend is not None:
                await self._backend.teardown()
        except Exception as error:
            logging.getLogger(__name__).error("the agent could not be closed: %s", describe(error))
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
                    read_file = getattr(self.file_processor, "process_file", None)
                    self._driven = Driven(agent, suite, self._announce, read_file)
        return self._driven

    def _announce(self, case: Case) -> None:
        if self.on_test_start is not None:
            self._told(self.on_test_start, TestCaseModel(case), "on_test_start")

    def _told(self, callback: Callable[[Any], None], what: Any, name: str) -> None:
        try:
            callback(what)
        except Exception as error:
            self._mishaps.append(f"{name} raised {describe(error)}")

    def _listener(self, suite: Suite) -> _Listener:
        def tell(trial: TrialResult) -> None:
            if self.progress_callback is not None:
                self._told(self.progress_callback, result_of(trial, suite), "progress_callback")

        return _Listener(tell)


class _Listener:
    def __init__(self, tell: Callable[[TrialResult], None]) -> None:
        self.trial_done = tell

    def started(self, run: Run, planned: int, kept: int) -> None:
        return None

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return None


def _usual_evaluators(suite: Suite) -> dict[str, Any]:
    """Each metric's evaluator by its name; one that cannot be made is complained of when tests are run."""
    found: dict[str, Any] = {}
    for spec in suite.evaluators:
        with suppress(UsageError):
            found[spec.title] = build(spec, suite.base).call
    return found


def _scored_by(suite: Suite, brought: Mapping[str, Any]) -> Suite:
    def swapped(specs: tuple[EvaluatorSpec, ...] | None) -> tuple[EvaluatorSpec, ...] | None:
        return None if specs is None else tuple(swap(spec) for spec in specs)

    def swap(spec: EvaluatorSpec) -> EvaluatorSpec:
        if spec.title not in brought:
            return spec
        return replace(
            spec, name=BROUGHT, arguments={"evaluator": brought[spec.title], "metric": spec.title}, label=spec.title
        )

    cases = tuple(
        replace(
            case,
            evaluators=swapped(case.evaluators),
            turns=tuple(replace(turn, evaluators=swapped(turn.evaluators)) for turn in case.turns),
        )
        for case in suite.cases
    )
    return replace(suite, cases=cases, evaluators=swapped(suite.evaluators) or (), extra=suite.extra or NOTHING)
