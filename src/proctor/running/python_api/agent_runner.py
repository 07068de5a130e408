"""`AgentRunner` puts questions to any agent from a test or a script; `AgentRun` is what came of one."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from proctor.agents.agent import BaseAgent, Reply, ToolCall
from proctor.agents.resolving import resolve_agent
from proctor.agents.tool_reexecution import Reexecution, reexecute
from proctor.agents.tool_reexecution import passages_of as reexecuted_passages
from proctor.agents.toolbox import toolbox
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.event_loops import run_in_kept_loop
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain, show
from proctor.base.references import describe
from proctor.cases.files import Contents
from proctor.cases.formats.keywords import WORDS, from_python
from proctor.cases.suite import Case, NamedData, Turn
from proctor.evaluators.evaluation import Evaluable, Exchange, collapse
from proctor.results.case_encoding import question_key
from proctor.results.run import Outcome, TrialResult
from proctor.running.engine.ask import Answer, WrittenUser, ask
from proctor.running.engine.deadline import Watchdog
from proctor.running.engine.tool_reruns import answering_for_tools
from proctor.running.options import DEFAULTS, Limits
from proctor.running.session.answer_reuse import question_lock
from proctor.tracing.capture import untraced
from proctor.tracing.watching import carry_context_into_threads, instrumenting


class AgentRun(dict[str, Any]):
    """A dict whose keys are attributes as well, so that `run["actual_output"]` and `run.actual_output` are the same.

    Where the agent broke down there is no answer, and looking at one raises `AgentFailed` with the reason.
    """

    __slots__ = ("trial",)
    __test__ = False

    def __init__(self, trial: TrialResult, **keys: Any) -> None:
        super().__init__(keys)
        self.trial = trial

    def __missing__(self, key: str) -> Any:
        __tracebackhide__ = True
        if key in ANSWERED and self.trial.reason:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.reason}")
        raise KeyError(key)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a run of an agent has no {name!r}; it has {', '.join(self)}") from None

    @property
    def evaluable(self) -> Evaluable:
        """What evaluators see of it, for `assert_pass` and `evaluate`."""
        __tracebackhide__ = True
        replies = tuple(reply for reply in self.trial.replies if reply.error is None)
        if not replies:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.reason}")
        turn, reply = self.trial.case.turns[-1], replies[-1]
        return Evaluable(
            eval_input=(NamedData("input", turn.input),),
            eval_output=_outputs(reply),
            expectation=turn.expected.output,
            eval_metadata=self.trial.case.told or None,
            description=self.trial.case.description or None,
            tool_calls=_calls(replies),
            expected_tool_calls=turn.expected.tool_calls,
            keywords=turn.expected.keywords,
            context=turn.expected.context,
            retrieval_context=tuple(self["retrieval_context"]) or None,
            turns=tuple(map(Exchange, self.trial.case.turns, replies)),
            usage=self.trial.usage,
            duration_ms=self.trial.duration_ms,
        )


ANSWERED = ("actual_output", "tools_called", "tool_calls_with_args", "tool_results", "retrieval_context")


def run_of(trial: TrialResult, again: Sequence[Reexecution] | None = None) -> AgentRun:
    """The run that a trial tells of; what its tools gave when they were called `again` replaces what they gave then."""
    case = trial.case
    known: dict[str, Any] = {"id": case.id, "input": case.turns[-1].input, **_expectations(case.turns[-1])}
    broke = not trial.is_answered
    known["error"] = trial.reason or "the agent gave no answer" if broke else None
    if broke:
        return AgentRun(trial, **known)
    calls = _calls(trial.replies)
    context = passages_of(trial.replies) if again is None else reexecuted_passages(again)
    if again is not None:
        known["reexecuted"] = [plain(item) for item in again]
    return AgentRun(
        trial,
        **known,
        actual_output=_text(trial.replies[-1]),
        tools_called=[call.name for call in calls],
        tool_calls_with_args=[_call(call) for call in calls],
        tool_results=[call.result if call.error is None else {"error": call.error} for call in calls],
        retrieval_context=context,
    )


def passages_of(replies: Sequence[Reply]) -> list[str]:
    """What the answer may rest on: passages the agent reports, else what its tools gave back, in order."""
    given = [passage for reply in replies for passage in reply.retrieval_context or ()]
    return given or [
        as_passage({"error": call.error} if call.error is not None else call.result)
        for call in _calls(replies)
        if call.error is not None or call.result is not None
    ]


def as_passage(result: Any) -> str:
    """A tool's result as text: text as it is, everything else as JSON."""
    value: Json = plain(result)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _expectations(turn: Turn) -> dict[str, Any]:
    words = turn.expected.keywords
    return {} if words is None else {"expected_output_contains": [*words.any_of, *words.all_of]}


def _calls(replies: Sequence[Reply]) -> tuple[ToolCall, ...]:
    return tuple(call for reply in replies for call in reply.tool_calls)


def _call(call: ToolCall) -> dict[str, Any]:
    """Arguments that are no JSON object are kept as the model wrote them."""
    known: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments)}
    return known if call.raw_arguments is None else {**known, "raw_arguments": call.raw_arguments}


def _outputs(reply: Reply) -> tuple[NamedData, ...]:
    return reply.outputs or (NamedData("output", reply.text if reply.structured is None else reply.structured),)


def _text(reply: Reply) -> str:
    if reply.text or not reply.outputs:
        return reply.text
    return as_passage(collapse(reply.outputs))


BACKOFF_SECONDS = 0.5
LONGEST_NAME = 60
"""Characters of a question that serve as its name where none is given."""


class Memory(Protocol):
    """Answers that are there already."""

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """Held while a question is asked, so that no other process asks it meanwhile."""
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
        self.fingerprint = self.agent.identity
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

    def run_cases(self, cases: Iterable[Case | Mapping[str, Any]]) -> list[AgentRun]:
        """All of them, several at once, in their order; one whose agent breaks down has an `error` and no answer.

        A case may be a dict of `id`, `input` and, if it has any, `expected_output_contains`.
        """
        return run_in_kept_loop(self.run_cases_async(cases), keep_tasks=True)

    async def run_cases_async(self, cases: Iterable[Case | Mapping[str, Any]]) -> list[AgentRun]:
        """The same, for code that has an event loop."""
        chosen = [case if isinstance(case, Case) else _from_dict(case) for case in cases]
        gate = asyncio.Semaphore(self._limits.parallel)
        with Watchdog() as watchdog, instrumenting(), carry_context_into_threads():
            async with _Life(self.agent, self._limits.timeout) as life:
                return list(await asyncio.gather(*(self._run(case, life, gate, watchdog) for case in chosen)))

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
            again = await self._called_again(trial) if self._tools is not None and trial.is_answered else None
        run = run_of(trial, again)
        if self._audience is not None:
            self._audience.case_done(run)
        return run

    async def _trial(self, case: Case, life: _Life, watchdog: Watchdog) -> TrialResult:
        if self._memory is None:
            return await self._asked(case, life, watchdog)
        question = question_key(Contents(self._base).of(case))
        async with self._memory.turn(question_lock(question, self.fingerprint)):
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

    def __init__(self, agent: BaseAgent, timeout: float) -> None:
        self._agent = agent
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._begun = False

    async def begin(self) -> None:
        async with self._lock:
            if not self._begun:
                await self._step("start", self._agent.start)
                self._begun = True

    async def __aenter__(self) -> _Life:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._begun:
            await self._step("stop", self._agent.stop)

    async def _step(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await step()
        except Exception as error:
            raise AgentFailed(f"the agent {self._agent.name} could not {name}: {describe(error)}") from error


def _case(test_input: Any, name: str | None) -> Case:
    value = plain(test_input)
    return Case(name or show(value, LONGEST_NAME), (Turn(value),))


def _from_dict(given: Any) -> Case:
    """A case as test modules write it; raises `UsageError` or `InvalidSuite`."""
    if not isinstance(given, Mapping):
        raise UsageError(f"a case is a Case or a dict with id and input, not a {type(given).__name__}")
    if WORDS in given:
        return from_python("cases", [given], Path("cases")).cases[0]
    for key in given:
        if key not in ("id", "input"):
            raise UsageError(f"a case has no {key!r}{nearest(str(key), ('id', 'input', WORDS))}")
    if "input" not in given:
        raise UsageError(f"the case {dict(given)!r:.80} needs 'input'")
    return _case(given["input"], given.get("id"))


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
    if not past.is_answered or len(past.replies) < len(case.turns):
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
