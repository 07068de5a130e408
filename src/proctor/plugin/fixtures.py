"""What the plugin's fixtures do, once a test asks for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import pytest

from proctor.base.errors import ProctorError, UsageError
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.reader import read_list
from proctor.cases.suite import Case, Suite
from proctor.plugin.session import ProctorSession, session_of
from proctor.plugin.settings import AGENT_HINT
from proctor.plugin.trial_output import (
    answer_lines,
    case_line,
    print_lines,
    terminal_symbols,
    tool_lines,
    trial_details,
    trial_title,
)
from proctor.reporting.wording import counts_text
from proctor.results.run import Outcome, Run, SuiteInfo, TrialResult, TrialSummary
from proctor.results.verdict import RunVerdict, verdict
from proctor.running.assertions.agent_runner import AgentRun, AgentRunner, with_source

FIRST_FIXTURE_POSITION = 1_000_000
"""The position in the run of the first trial that a fixture runs: behind those of collected suites."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """Trials, in the order of their cases, and the verdict of their suites on them."""

    trials: tuple[TrialResult, ...]
    verdict: RunVerdict
    notes: Sequence[str] = ()

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def passed(self) -> bool:
        """Whether the trials meet the criteria of their suites."""
        return self.verdict.outcome is Outcome.PASSED

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(trial.outcome for trial in self.trials)

    @property
    def _bad(self) -> list[TrialResult]:
        return [trial for trial in self.trials if trial.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]

    def assert_passed(self) -> None:
        """Raise `AssertionError` with the whole story of every trial that did not pass."""
        __tracebackhide__ = True
        if self.passed:
            return
        stories = [f"{trial_title(trial)}\n{trial_details(trial, verbose=False)}" for trial in self._bad]
        raise AssertionError("\n\n".join([counts_text(self.counts), self.verdict.reason, *self.notes, *stories]))


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """What is wrong with a suite, an agent or a setting is one message, without a traceback."""
    try:
        yield
    except ProctorError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def agent_runner(config: pytest.Config) -> AgentRunner:
    """A runner of the configured agent, whose answers are shared by all tests."""
    with errors_as_messages():
        session = session_of(config)
        agent = session.settings.agent or session.settings.default_agent
        if agent is None:
            pytest.fail(f"agent_runner needs an agent: {AGENT_HINT}", pytrace=False)
        return _make_runner(session, agent)


def evaluation_cases(request: pytest.FixtureRequest) -> Any:
    """What a module is about: its marker, its own list of cases, or what the ini file names."""
    marker = request.node.get_closest_marker("proctor")
    if marker is not None and "suites" in marker.kwargs:
        return marker.kwargs["suites"]
    for item in request.session.items:
        own = item.get_closest_marker("proctor")
        if own is not None and "suites" in own.kwargs and item.path == request.path:
            told = (
                "what evaluation_dataset runs is one thing for the whole module: pytestmark = pytest.mark.proctor(...)"
            )
            pytest.fail(f"{item.nodeid} is marked with suites of its own; {told}", pytrace=False)
    own = getattr(request.module, "TEST_CASES", None)
    if own is not None:
        return own
    named = request.config.getini("proctor_dataset")
    if named:
        return [request.config.rootpath / name if ":" not in name else name for name in named]
    pytest.fail(
        "evaluation_dataset has no cases: define TEST_CASES in the module, mark it with"
        ' pytest.mark.proctor(suites="faq.test.json"), or set proctor_dataset in the ini file',
        pytrace=False,
    )


def evaluation_dataset(request: pytest.FixtureRequest, given: Any) -> EvaluationDataset:
    """Every case, run once per session; those of a suite with an agent of its own are put to that one."""
    with errors_as_messages():
        session = session_of(request.config)
        cases = [given] if isinstance(given, Case) else given
        if isinstance(cases, Sequence) and cases and all(isinstance(case, Case) for case in cases):
            runs = _with_shared_answers(request.getfixturevalue("agent_runner"), session).run_cases(cases)
        else:
            runs = [run for suite in read_suites(given, request.path) for run in _run_suite(request, session, suite)]
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
    """The runner, sharing its answers with the session: also one that tests made themselves."""
    if not isinstance(runner, AgentRunner):
        pytest.fail(f"agent_runner is a {type(runner).__name__}, and not proctor's AgentRunner", pytrace=False)
    return with_source(runner, SessionSource(session))


class SessionSource:
    """Takes answers from the session, prints which case runs, and remembers the run for a test that fails."""

    def __init__(self, session: ProctorSession) -> None:
        self._session = session

    async def answer(self, case: Case, runner: AgentRunner, ask: Callable[[], Awaitable[TrialResult]]) -> TrialResult:
        print_lines(case_line(case.id, 1, terminal_symbols()))
        return await self._session.runs.answers.answer(case, runner, ask)

    def finished(self, run: AgentRun) -> None:
        self._session.set_last_run(run)


class CaseDisplay:
    """`show_case`: prints what happened in a case, with signs the terminal can show."""

    def __call__(self, run: AgentRun | TrialResult) -> None:
        """The tool calls, with arguments and results, and the answer."""
        trial = run.trial if isinstance(run, AgentRun) else run
        signs = terminal_symbols()
        print_lines(*tool_lines(trial, signs), *answer_lines(trial, signs))

    def ok(self, text: str) -> None:
        """A line that says that something is as it should be."""
        print_lines(f"{terminal_symbols()['ok']} {text}")


def proctor_run(config: pytest.Config, module: Path, given: Any, case: str | None, agent: Any) -> SuiteRun:
    """Run a suite, or one case of it, unless this session did already."""
    with errors_as_messages():
        session = session_of(config)
        trials: list[TrialResult] = []
        infos: list[SuiteInfo] = []
        for suite in read_suites(given, module):
            chosen = agent if agent is not None else session.settings.agent_for(suite.agent)
            plan = session.plan(suite, chosen)
            plan = plan.with_suites(lambda item: session.add_suite(item, item.planned))
            start = FIRST_FIXTURE_POSITION + len(trials)
            selected = [
                replace(trial, position=start + trial.position)
                for trial in plan.trials
                if case is None or trial.case.id == case
            ]
            if not selected:
                pytest.fail(f"{suite.name} has no case {case!r}", pytrace=False)
            done = session.runs.run_trials(selected)
            trials += [done[trial.address] for trial in selected if trial.address in done]
            infos += [replace(item.info, planned=len(selected)) for item in plan.suites]
        run = Run(session.runs.session.run_id, 0.0, tuple(infos), [TrialSummary.of(trial) for trial in trials], trials)
        return SuiteRun(tuple(trials), verdict(run), session.runs.summary().notes)


class EvaluationDataset(Sequence[AgentRun]):
    """The runs in the order of their cases; also by the id of a case: `dataset["loan_calculation_basic"]`."""

    __test__ = False

    def __init__(self, runs: Iterable[AgentRun], on_look: Callable[[AgentRun], None]) -> None:
        self._runs = list(runs)
        self._on_look = on_look

    @property
    def test_cases(self) -> list[AgentRun]:
        return self._runs

    @property
    def ids(self) -> list[str]:
        return [run["id"] for run in self._runs]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[AgentRun]:
        return map(self._seen, self._runs)

    @overload
    def __getitem__(self, index: int | str) -> AgentRun: ...

    @overload
    def __getitem__(self, index: slice) -> list[AgentRun]: ...

    def __getitem__(self, index: int | str | slice) -> AgentRun | list[AgentRun]:
        __tracebackhide__ = True
        if isinstance(index, slice):
            return self._runs[index]
        if isinstance(index, int):
            return self._seen(self._runs[index])
        for run in self._runs:
            if run["id"] == index:
                return self._seen(run)
        raise KeyError(f"no case {index!r}; there are {', '.join(self.ids)}")

    def _seen(self, run: AgentRun) -> AgentRun:
        self._on_look(run)
        return run


def read_suites(given: Any, module: Path) -> list[Suite]:
    """The suites that a test asks for: a list of cases, suites, or the files that hold them; raises `InvalidSuite`.

    Files are looked for beside the test's `module`, then in the working folder.
    """
    items = [given] if isinstance(given, (str, Path, Suite)) else list(given)
    if items and all(isinstance(item, dict) for item in items):
        return [read_list("TEST_CASES", items, module)]
    suites: list[Suite] = []
    for item in items:
        if isinstance(item, Suite):
            suites.append(item)
        elif isinstance(item, (str, Path)):
            beside = module.parent / item
            suites += load([beside if beside.exists() else item])
        else:
            raise UsageError(f"{item!r} is no suite: give TEST_CASES, a Suite, or the file of one")
    if not suites:
        raise UsageError("there are no cases: the list is empty")
    return suites
