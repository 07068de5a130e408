"""`AgentRunner`: puts questions to any agent from a test or a script, and brings back what it did."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from proctor.agents.reexecution import Reexecution, reexecute
from proctor.agents.resolving import resolve_agent
from proctor.agents.toolbox import toolbox
from proctor.cases.contents import Contents
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed
from proctor.plain import fingerprint, plain, show
from proctor.references import describe
from proctor.results.keys import question_key
from proctor.results.model import Outcome, TrialResult
from proctor.running.agent_runs import AgentRun, run_of
from proctor.running.answers import turn_key
from proctor.running.asking import Answer, ask
from proctor.running.loop import run_sync
from proctor.running.options import DEFAULTS, Limits
from proctor.running.reexecuting import answering_for_tools
from proctor.running.users import WrittenUser
from proctor.running.watchdog import Watchdog
from proctor.tracing.capture import untraced
from proctor.tracing.threads import carry_context_into_threads

BACKOFF_SECONDS = 0.5
LONGEST_NAME = 60
"""Characters of a question that nobody gave a name."""


class Memory(Protocol):
    """Answers that are there already."""

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """Held while a question is asked, so that nobody asks it meanwhile."""
        ...

    def find(self, question: str, agent: Any, number: int) -> TrialResult | None: ...

    def keep(self, question: str, trial: TrialResult) -> None: ...


class Audience(Protocol):
    """Who wants to follow: a terminal, or a test that is going to fail."""

    def case_begins(self, case: Case) -> None: ...

    def case_done(self, run: AgentRun) -> None: ...


class AgentRunner:
    """Runs an agent of any kind: a function, an object of a framework, `file.py:name`, an address, a command.

    With `tools`, `retrieval_context` is what the tools give when they are called again with the agent's own arguments,
    and `reexecuted` tells of each; without, it is what they gave the agent. `True` means those marked `@proctor.tool`.
    """

    __test__ = False

    def __init__(
        self,
        agent: Any,
        *,
        base: Path | None = None,
        tools: Any = None,
        timeout: float | None = None,
        parallel: int | None = None,
        memory: Memory | None = None,
        audience: Audience | None = None,
    ) -> None:
        self.agent = resolve_agent(agent, base)
        self.fingerprint = str(getattr(self.agent, "fingerprint", None) or fingerprint(self.agent.name))
        self._tools = tools
        self._base = base
        if tools is not None:
            toolbox(tools, base, self.agent)  # what is no tool is refused before anything is asked
        self._limits = _limits(timeout, parallel)
        self._memory = memory
        self._audience = audience

    def run_test_case(self, test_input: Any, *, id: str | None = None) -> AgentRun:  # noqa: A002  as cases call it
        """Ask once and come back with the answer, its tool calls and what they gave; raises `AgentFailed`."""
        __tracebackhide__ = True
        return _answered(*self.run_cases([_case(test_input, id)]))

    async def run_test_case_async(self, test_input: Any, *, id: str | None = None) -> AgentRun:  # noqa: A002
        """The same, for code that has an event loop."""
        return _answered(*await self.run_cases_async([_case(test_input, id)]))

    def run_cases(self, cases: Iterable[Case]) -> list[AgentRun]:
        """All of them, several at once, in their order; one whose agent breaks down has an `error` and no answer."""
        return run_sync(self.run_cases_async(cases))

    async def run_cases_async(self, cases: Iterable[Case]) -> list[AgentRun]:
        """The same, for code that has an event loop."""
        gate = asyncio.Semaphore(self._limits.parallel)
        with Watchdog() as watchdog, carry_context_into_threads():
            async with _Life(self.agent, self._limits.timeout) as life:
                return list(await asyncio.gather(*(self._run(case, life, gate, watchdog) for case in cases)))

    def sharing(self, memory: Memory, audience: Audience) -> AgentRunner:
        """The same runner; one that remembers nothing itself takes its answers from `memory`."""
        if self._memory is not None:
            return self
        shared = copy.copy(self)
        shared._memory, shared._audience = memory, audience
        return shared

    async def _run(self, case: Case, life: _Life, gate: asyncio.Semaphore, watchdog: Watchdog) -> AgentRun:
        async with gate:
            if self._audience is not None:
                self._audience.case_begins(case)
            trial = await self._trial(case, life, watchdog)
            again = await self._called_again(trial) if self._tools is not None and trial.replies else None
        run = run_of(trial, again)
        if self._audience is not None:
            self._audience.case_done(run)
        return run

    async def _trial(self, case: Case, life: _Life, watchdog: Watchdog) -> TrialResult:
        if self._memory is None:
            return await self._asked(case, life, watchdog)
        question = question_key(Contents(self._base).of(case))
        async with self._memory.turn(turn_key(question, self.fingerprint)):
            past = self._memory.find(question, self.agent, 1)
            if past is not None:
                return _retold(past, case)
            trial = await self._asked(case, life, watchdog)
            self._memory.keep(question, trial)
        return trial

    async def _asked(self, case: Case, life: _Life, watchdog: Watchdog) -> TrialResult:
        await life.begin()
        answer = await ask(self.agent, case, self._limits, BACKOFF_SECONDS, watchdog, lambda: WrittenUser(case))
        return _trial_of(case, answer, self.agent.name, self.fingerprint)

    async def _called_again(self, trial: TrialResult) -> list[Reexecution]:
        calls = [call for reply in trial.replies for call in reply.tool_calls]
        with answering_for_tools(trial.case), untraced():
            return await reexecute(calls, toolbox(self._tools, self._base, self.agent))


class _Life:
    """Starts an agent that has to be started when it is first asked, and stops it in the end."""

    def __init__(self, agent: Any, timeout: float) -> None:
        self._agent = agent
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._begun = False

    async def begin(self) -> None:
        async with self._lock:
            if not self._begun:
                await self._step("start")
                self._begun = True

    async def __aenter__(self) -> _Life:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._begun:
            await self._step("stop")

    async def _step(self, name: str) -> None:
        step = getattr(self._agent, name, None)
        if step is None:
            return
        try:
            async with asyncio.timeout(self._timeout):
                done = step()
                if inspect.isawaitable(done):
                    await done
        except Exception as error:
            raise AgentFailed(f"the agent {self._agent.name} could not {name}: {describe(error)}") from error


def _case(test_input: Any, name: str | None) -> Case:
    value = plain(test_input)
    return Case(name or show(value, LONGEST_NAME), (Turn(value),))


def _answered(run: AgentRun) -> AgentRun:
    __tracebackhide__ = True
    if run["error"] is not None:
        raise AgentFailed(run["error"])
    return run


def _limits(timeout: float | None, parallel: int | None) -> Limits:
    known: Sequence[Any] = (DEFAULTS.parallel, DEFAULTS.timeout, DEFAULTS.evaluator_timeout, DEFAULTS.retries)
    return Limits(1, parallel or known[0], timeout or known[1], known[2], known[3])


def _retold(past: TrialResult, case: Case) -> TrialResult:
    """What is known already, told of the case as it is now; what others scored it is not the test's score."""
    if len(past.replies) < len(case.turns):
        return replace(past, case=case)
    return replace(past, case=case, outcome=Outcome.SKIPPED, reason="", scores=(), reused=True)


def _trial_of(case: Case, answer: Answer, suite: str, mark: str) -> TrialResult:
    """The answer as it is kept: not scored, which is up to the test that asked."""
    return TrialResult(
        suite=suite,
        case=case,
        number=1,
        position=0,
        outcome=answer.outcome or Outcome.SKIPPED,
        reason=answer.reason,
        replies=answer.replies,
        started_at=answer.started_at,
        duration_ms=answer.duration_ms,
        attempts=answer.attempts,
        agent=mark,
        warnings=answer.warnings,
        spans=answer.spans,
    )
