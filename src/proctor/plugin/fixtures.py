"""The implementation of the plugin's fixtures, imported when a test uses one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

import pytest

from proctor.base.errors import ProctorError, UsageError
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.reader import read_list
from proctor.cases.suite import Case, Suite
from proctor.plugin.session import ProctorSession, session_of
from proctor.plugin.settings import AGENT_HINT
from proctor.plugin.trial_output import answer_lines, case_line, print_lines, terminal_symbols, tool_lines
from proctor.results.run import Run
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import record_verdict
from proctor.running.assertions.agent_runner import AgentRun, AgentRunner, with_source

FIRST_FIXTURE_POSITION = 1_000_000
"""The position in the run of the first trial that a fixture runs, after those of collected suites."""


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Show an error in a suite, an agent or a setting as a message without a traceback."""
    try:
        yield
    except ProctorError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def agent_runner(config: pytest.Config) -> AgentRunner:
    """A runner of the configured agent; all tests share its answers."""
    with errors_as_messages():
        session = session_of(config)
        agent = session.settings.agent or session.settings.default_agent
        if agent is None:
            pytest.fail(f"agent_runner needs an agent: {AGENT_HINT}", pytrace=False)
        return _make_runner(session, agent)


def evaluation_cases(request: pytest.FixtureRequest) -> Any:
    """The cases of a module: from its marker, its list TEST_CASES, or the ini file."""
    marker = request.node.get_closest_marker("proctor")
    if marker is not None and "suites" in marker.kwargs:
        return marker.kwargs["suites"]
    for item in request.session.items:
        own = item.get_closest_marker("proctor")
        if own is not None and "suites" in own.kwargs and item.path == request.path:
            hint = "mark the whole module instead: pytestmark = pytest.mark.proctor(suites=...)"
            pytest.fail(
                f"{item.nodeid} has its own suites, but evaluation_dataset is per module; {hint}", pytrace=False
            )
    own = getattr(request.module, "TEST_CASES", None)
    if own is not None:
        return own
    names = request.config.getini("proctor_dataset")
    if names:
        return [request.config.rootpath / name if ":" not in name else name for name in names]
    pytest.fail(
        "evaluation_dataset has no cases: define TEST_CASES in the module, mark it with"
        ' pytest.mark.proctor(suites="faq.test.json"), or set proctor_dataset in the ini file',
        pytrace=False,
    )


def evaluation_dataset(request: pytest.FixtureRequest, source: Any) -> EvaluationDataset:
    """Every case of `source`, run once per session, with the suite's own agent if it has one."""
    with errors_as_messages():
        session = session_of(request.config)
        cases = [source] if isinstance(source, Case) else source
        if isinstance(cases, Sequence) and cases and all(isinstance(case, Case) for case in cases):
            runs = _with_shared_answers(request.getfixturevalue("agent_runner"), session).run_cases(cases)
        else:
            runs = [run for suite in read_suites(source, request.path) for run in _run_suite(request, session, suite)]
        return EvaluationDataset(runs, session.set_last_run)


def _run_suite(request: pytest.FixtureRequest, session: ProctorSession, suite: Any) -> list[AgentRun]:
    if suite.agent is None or session.settings.agent is not None:
        runner = request.getfixturevalue("agent_runner")
    else:
        runner = _make_runner(session, session.agent_of(suite))
    return _with_shared_answers(runner, session).run_cases(suite.cases)


def _make_runner(session: ProctorSession, agent: Any) -> AgentRunner:
    defaults = session.settings.options.defaults
    return _with_shared_answers(AgentRunner(agent, timeout=defaults.timeout, parallel=defaults.parallel), session)


def _with_shared_answers(runner: Any, session: ProctorSession) -> AgentRunner:
    """The runner, sharing its answers with the session; tests may define their own `agent_runner`."""
    if not isinstance(runner, AgentRunner):
        pytest.fail(f"agent_runner must return a proctor.AgentRunner, not {type(runner).__name__}", pytrace=False)
    return with_source(runner, SessionSource(session))


class SessionSource:
    """Takes answers from the session, prints which case runs, and remembers the run in case the test fails."""

    def __init__(self, session: ProctorSession) -> None:
        self._session = session

    async def answer(self, case: Case, runner: AgentRunner, ask: Callable[[], Awaitable[Trial]]) -> Trial:
        print_lines(case_line(case.id, 1, terminal_symbols()))
        return await self._session.runs.answers.answer(case, runner, ask)

    def finished(self, run: AgentRun) -> None:
        self._session.set_last_run(run)


class CaseDisplay:
    """The fixture `show_case`: prints the tool calls and the answer of a case."""

    def __call__(self, run: AgentRun | Trial) -> None:
        """Print the tool calls, with arguments and results, and the answer."""
        trial = run.trial if isinstance(run, AgentRun) else run
        symbols = terminal_symbols()
        print_lines(*tool_lines(trial, symbols), *answer_lines(trial, symbols))

    def ok(self, text: str) -> None:
        """Print a line with a check mark."""
        print_lines(f"{terminal_symbols()['ok']} {text}")


def proctor_run(config: pytest.Config, module: Path, source: Any, case: str | None, agent: Any) -> Run:
    """Run a suite, or one case of it, unless it ran before in this session."""
    with errors_as_messages():
        session = session_of(config)
        trials: list[Trial] = []
        infos: list[SuiteInfo] = []
        for suite in read_suites(source, module):
            plan = session.plan(suite, agent if agent is not None else session.settings.agent_for(suite.agent))
            in_case = {(trial.case.id, trial.number) for trial in plan.trials if case is None or trial.case.id == case}
            if not in_case:
                pytest.fail(f"{suite.name} has no case {case!r}", pytrace=False)
            plan = plan.with_suites(partial(session.add_suite, trials=in_case))
            start = FIRST_FIXTURE_POSITION + len(trials)
            selected = [
                replace(trial, position=start + trial.position)
                for trial in plan.trials
                if (trial.case.id, trial.number) in in_case
            ]
            done = session.runs.run_trials(selected)
            trials += [done[trial.address] for trial in selected if trial.address in done]
            infos += [replace(item.info, planned=len(selected)) for item in plan.suites]
        is_complete = len(trials) == sum(info.planned for info in infos)
        run = Run(
            id=session.runs.session.run_id,
            started_at=0.0,
            suites=tuple(infos),
            summaries=[TrialSummary.of(trial) for trial in trials],
            trials=trials,
            note="" if is_complete else "; ".join(session.runs.summary().notes),
        )
        record_verdict(run, run.verdict)
        return run


class EvaluationDataset(Sequence[AgentRun]):
    """The runs in the order of their cases, by index or by the id of a case: `dataset["loan_calculation_basic"]`."""

    __test__ = False

    def __init__(self, runs: Iterable[AgentRun], on_use: Callable[[AgentRun], None]) -> None:
        self._runs = list(runs)
        self._on_use = on_use

    @property
    def test_cases(self) -> list[AgentRun]:
        return self._runs

    @property
    def ids(self) -> list[str]:
        return [run["id"] for run in self._runs]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[AgentRun]:
        return map(self._mark_used, self._runs)

    @overload
    def __getitem__(self, index: int | str) -> AgentRun: ...

    @overload
    def __getitem__(self, index: slice) -> list[AgentRun]: ...

    def __getitem__(self, index: int | str | slice) -> AgentRun | list[AgentRun]:
        __tracebackhide__ = True
        if isinstance(index, slice):
            return self._runs[index]
        if isinstance(index, int):
            return self._mark_used(self._runs[index])
        for run in self._runs:
            if run["id"] == index:
                return self._mark_used(run)
        raise KeyError(f"no case {index!r}; there are {', '.join(self.ids)}")

    def _mark_used(self, run: AgentRun) -> AgentRun:
        self._on_use(run)
        return run


def read_suites(source: Any, module: Path) -> list[Suite]:
    """The suites in `source`: a list of cases as dicts, suites, or files of suites; raises `InvalidSuite`.

    Files are relative to the folder of the test `module`, or else to the working folder.
    """
    items = [source] if isinstance(source, (str, Path, Suite)) else list(source)
    if items and all(isinstance(item, dict) for item in items):
        return [read_list("TEST_CASES", items, module)]
    suites: list[Suite] = []
    for item in items:
        if isinstance(item, Suite):
            suites.append(item)
        elif isinstance(item, (str, Path)):
            path = module.parent / item
            suites += load([path if path.exists() else item])
        else:
            raise UsageError(f"{item!r} is not a suite; use a list of cases, a Suite, or the file of a suite")
    if not suites:
        raise UsageError("there are no cases: the list is empty")
    return suites
