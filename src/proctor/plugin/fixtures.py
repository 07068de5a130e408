"""What the plugin's fixtures do, once a test asks for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import ProctorError
from proctor.base.records import record
from proctor.cases.suite import Case
from proctor.plugin.datasets import EvaluationDataset, suites_of
from proctor.plugin.failures import story_of, title_of
from proctor.plugin.session import WANTED, ProctorSession, session_of
from proctor.reporting.terminal.conversation_lines import answer_lines, case_line, present_signs, tell, tool_lines
from proctor.reporting.wording import counts_text
from proctor.results.run import Outcome, TrialResult
from proctor.running.python_api.agent_runner import AgentRun, AgentRunner
from proctor.running.session.shared_run import address_of


@record
class SuiteRun:
    """Trials, in the order of their cases."""

    trials: tuple[TrialResult, ...]
    notes: Sequence[str] = ()

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def passed(self) -> bool:
        """Whether something passed and nothing did not; what was skipped says nothing."""
        return self.counts[Outcome.PASSED] > 0 and not self._bad

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
        stories = [f"{title_of(trial)}\n{story_of(trial, verbose=False)}" for trial in self._bad]
        raise AssertionError("\n\n".join([counts_text(self.counts), *self.notes, *stories]))


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
        agent = session.settings.agent or session.settings.usual_agent
        if agent is None:
            pytest.fail(f"agent_runner needs an agent: {WANTED}", pytrace=False)
        return _runner(session, agent)


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
            runs = _shared(request.getfixturevalue("agent_runner"), session).run_cases(cases)
        else:
            runs = [run for suite in suites_of(given, request.path) for run in _runs_of(request, session, suite)]
        return EvaluationDataset(runs, session.look_at)


def _runs_of(request: pytest.FixtureRequest, session: ProctorSession, suite: Any) -> list[AgentRun]:
    if suite.agent is None or session.settings.agent is not None:
        runner = request.getfixturevalue("agent_runner")
    else:
        runner = _runner(session, session.agent_of(suite))
    return _shared(runner, session).run_cases(suite.cases)


def _runner(session: ProctorSession, agent: Any) -> AgentRunner:
    usual = session.settings.options.fallback
    return AgentRunner(
        agent, timeout=usual.timeout, parallel=usual.parallel, memory=session.runs.answers, audience=_Audience(session)
    )


def _shared(runner: Any, session: ProctorSession) -> AgentRunner:
    """A runner that tests made themselves shares its answers as well, as long as they come from here."""
    if not isinstance(runner, AgentRunner):
        pytest.fail(f"agent_runner is a {type(runner).__name__}, and not proctor's AgentRunner", pytrace=False)
    return runner.sharing(session.runs.answers, _Audience(session))


class _Audience:
    """Says which case is run, and remembers it for a test that fails."""

    def __init__(self, session: ProctorSession) -> None:
        self._session = session

    def case_begins(self, case: Case) -> None:
        tell(case_line(case.id, 1, present_signs()))

    def case_done(self, run: AgentRun) -> None:
        self._session.look_at(run)


class CaseDisplay:
    """`show_case`: prints what happened in a case, with signs the terminal can show."""

    def __call__(self, run: AgentRun | TrialResult) -> None:
        """The tool calls, with arguments and results, and the answer."""
        trial = run.trial if isinstance(run, AgentRun) else run
        signs = present_signs()
        tell(*tool_lines(trial, signs), *answer_lines(trial, signs))

    def ok(self, text: str) -> None:
        """A line that says that something is as it should be."""
        tell(f"{present_signs()['ok']} {text}")


def proctor_run(config: pytest.Config, module: Path, given: Any, case: str | None, agent: Any) -> SuiteRun:
    """Run a suite, or one case of it, unless this session did already."""
    with errors_as_messages():
        session = session_of(config)
        trials: list[TrialResult] = []
        for suite in suites_of(given, module):
            chosen = agent if agent is not None else session.settings.agent_for(suite.agent)
            plan = session.plan(suite, chosen)
            session.add_suite(plan.suites[0], len(plan.trials))
            name = plan.suites[0].suite.name
            start = 1_000_000 + len(trials)
            wanted = [
                replace(trial, position=start + trial.position)
                for trial in plan.trials
                if case is None or trial.case.id == case
            ]
            if not wanted:
                pytest.fail(f"{name} has no case {case!r}", pytrace=False)
            made = session.runs.make(wanted)
            trials += [made[address_of(trial)] for trial in wanted if address_of(trial) in made]
        return SuiteRun(tuple(trials), session.runs.summary().notes)
