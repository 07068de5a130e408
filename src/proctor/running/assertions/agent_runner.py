"""`AgentRunner` calls any agent from a test or a script; `AgentRun` is the result for one case.

The engine holds the conversations: timeouts, retries, starting, stopping and the input of evaluators are the same as in
`proctor test`. Only scoring is missing, which the test does itself.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from proctor.agents.reply import Reply, ToolCall
from proctor.agents.resolve import resolve_agent
from proctor.agents.tool_rerun import ToolRerun, rerun_tools
from proctor.agents.tool_rerun import results_as_context as reexecuted_passages
from proctor.agents.tools import find_tools
from proctor.base.documents import did_you_mean
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.event_loops import run_in_session_loop
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.formats import KEYWORDS_KEY
from proctor.cases.formats.native.reader import read_list
from proctor.cases.suite import Case, Settings, Suite, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.assertions.agent_runtime import AgentRuntime
from proctor.running.conversation import ConversationResult, ScriptedUser, converse
from proctor.running.evaluables import evaluable_of
from proctor.running.settings import RunOptions, TrialLimits, limits_for
from proctor.running.tool_rerun import mocked_tools
from proctor.tracing.capture import suppress_tracing
from proctor.tracing.instrumentation import instrument_clients


class AgentRun(dict[str, Any]):
    """A dict whose keys are attributes too, so that `run["actual_output"]` and `run.actual_output` are the same.

    If the agent failed, there is no answer, and reading one raises `AgentFailed` with the reason.
    """

    __slots__ = ("trial",)
    __test__ = False

    def __init__(self, trial: Trial, **keys: Any) -> None:
        super().__init__(keys)
        self.trial = trial

    def __missing__(self, key: str) -> Any:
        __tracebackhide__ = True
        if key in ANSWER_KEYS and self.trial.end_reason:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.end_reason}")
        raise KeyError(key)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"AgentRun has no {name!r}; it has {', '.join(self)}") from None

    @property
    def evaluable(self) -> Evaluable:
        """The run as the input of evaluators, for `assert_pass` and `evaluate`."""
        __tracebackhide__ = True
        replies = [reply for reply in self.trial.replies if reply.error is None]
        if not replies:
            raise AgentFailed(f"case {self.trial.case.id!r} has no answer: {self.trial.end_reason}")
        evaluable = evaluable_of(self.trial.case, replies, self.trial.spans)
        passages = tuple(self["retrieval_context"])
        return replace(evaluable, retrieval_context=passages) if passages else evaluable


ANSWER_KEYS = ("actual_output", "tools_called", "tool_calls_with_args", "tool_results", "retrieval_context")


def agent_run(trial: Trial, reexecuted: Sequence[ToolRerun] | None = None) -> AgentRun:
    """The `AgentRun` of a trial; results of re-run tools replace those that the agent got."""
    case = trial.case
    keys: dict[str, Any] = {"id": case.id, "input": case.turns[-1].input, **_expectations(case.turns[-1])}
    if not trial.is_answered:
        return AgentRun(trial, **keys, error=trial.end_reason or "the agent gave no answer")
    keys["error"] = None
    calls = _calls(trial.replies)
    context = passages_of(trial.replies) if reexecuted is None else reexecuted_passages(reexecuted)
    if reexecuted is not None:
        keys["reexecuted"] = [item.to_json() for item in reexecuted]
    return AgentRun(
        trial,
        **keys,
        actual_output=as_passage(trial.replies[-1].answer),
        tools_called=[call.name for call in calls],
        tool_calls_with_args=[_call(call) for call in calls],
        tool_results=[call.result if call.error is None else {"error": call.error} for call in calls],
        retrieval_context=context,
    )


def passages_of(replies: Sequence[Reply]) -> list[str]:
    """The retrieval context of an answer: the passages that the agent reports, else the results of its tools."""
    reported = [passage for reply in replies for passage in reply.retrieval_context or ()]
    return reported or [
        as_passage({"error": call.error} if call.error is not None else call.result)
        for call in _calls(replies)
        if call.error is not None or call.result is not None
    ]


def as_passage(result: Any) -> str:
    """A value as text: a string unchanged, everything else as JSON."""
    value: Json = to_json(result)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _expectations(turn: Turn) -> dict[str, Any]:
    words = turn.expected.contains
    return {} if words is None else {"expected_output_contains": [*words.any, *words.all]}


def _calls(replies: Sequence[Reply]) -> tuple[ToolCall, ...]:
    return tuple(call for reply in replies for call in reply.tool_calls)


def _call(call: ToolCall) -> dict[str, Any]:
    """A tool call as a dict; arguments that are not a JSON object stay as the model wrote them."""
    data: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments)}
    return data if call.raw_arguments is None else {**data, "raw_arguments": call.raw_arguments}


MAX_ID_CHARS = 60
"""The id of a case without one is this many characters of its input."""


class AnswerSource(Protocol):
    """Provides the trials of a runner, stored or new. The pytest plugin uses it to share answers between tests."""

    async def answer(self, case: Case, runner: AgentRunner, ask: Callable[[], Awaitable[Trial]]) -> Trial:
        """The trial of a case: a stored one, or the result of `ask`, which calls the agent."""
        ...

    def finished(self, run: AgentRun) -> None:
        """Called with each finished run."""
        ...


class AgentRunner:
    """Runs an agent of any kind: a function, an object of a framework, `file.py:name`, a URL, a command.

    With `tools`, the tools are re-run with the agent's own arguments: `retrieval_context` is what they return, and
    `reexecuted` lists these calls. Without `tools`, `retrieval_context` is what the tools returned to the agent. `True`
    means the tools marked `@proctor.tool`. `timeout` and `parallel` are those of a suite, with the same defaults.
    """

    __test__ = False
    _source: AnswerSource | None = None

    def __init__(
        self,
        agent: Any,
        *,
        base: Path | None = None,
        tools: Any = None,
        timeout: float | None = None,
        parallel: int | None = None,
    ) -> None:
        self.agent = resolve_agent(agent, base)
        self.fingerprint = self.agent.identity
        self.base = base
        """The folder that relative paths of files and tools refer to."""
        self._tools = tools
        if tools is not None:
            find_tools(tools, base, self.agent)  # report what is not a tool before anything runs
        self._options = RunOptions(overrides=Settings(timeout=timeout, parallel=parallel))
        self._limits = self._limits_for(None)

    def run_test_case(self, test_input: Any, *, id: str | None = None) -> AgentRun:  # noqa: A002  as cases call it
        """Call the agent once and return the answer, the tool calls and their results; raises `AgentFailed`."""
        __tracebackhide__ = True
        return _require_answer(*self.run_cases([_case(test_input, id)]))

    async def run_test_case_async(self, test_input: Any, *, id: str | None = None) -> AgentRun:  # noqa: A002
        """The same as `run_test_case`, for code that has an event loop."""
        return _require_answer(*await self.run_cases_async([_case(test_input, id)]))

    def run_cases(self, cases: Iterable[Case | Mapping[str, Any]]) -> list[AgentRun]:
        """Run cases in parallel and return their runs in order; if the agent fails, a run has an `error` and no answer.

        A case may be a dict of `id`, `input` and, if it has any, `expected_output_contains`.
        """
        with instrument_clients():  # here too, since loading an instrumentation would block the event loop
            return run_in_session_loop(self.run_cases_async(cases))

    async def run_cases_async(self, cases: Iterable[Case | Mapping[str, Any]]) -> list[AgentRun]:
        """The same as `run_cases`, for code that has an event loop."""
        chosen = [case if isinstance(case, Case) else _case_from_dict(case) for case in cases]
        slots = asyncio.Semaphore(self._limits.fixed_parallel)
        async with AgentRuntime(self.agent, self._limits.timeout) as runtime:
            return list(await asyncio.gather(*(self._run(case, runtime, slots) for case in chosen)))

    async def _run(self, case: Case, runtime: AgentRuntime, slots: asyncio.Semaphore) -> AgentRun:
        async with slots:
            if self._source is None:
                trial = await self._ask(case, runtime)
            else:
                trial = await self._source.answer(case, self, lambda: self._ask(case, runtime))
            reexecuted = await self._reexecute(trial) if self._tools is not None and trial.is_answered else None
        run = agent_run(trial, reexecuted)
        if self._source is not None:
            self._source.finished(run)
        return run

    async def _ask(self, case: Case, runtime: AgentRuntime) -> Trial:
        await runtime.start()
        limits = self._limits if case.timeout is None else self._limits_for(case)
        answer = await converse(
            self.agent, case, limits, self._options.backoff, runtime.watchdog, lambda: ScriptedUser(case)
        )
        return _unscored_trial(case, answer, self.agent.name, self.fingerprint)

    async def _reexecute(self, trial: Trial) -> list[ToolRerun]:
        calls = [call for reply in trial.replies for call in reply.tool_calls]
        with mocked_tools(trial.case), suppress_tracing():
            return await rerun_tools(calls, find_tools(self._tools, self.base, self.agent))

    def _limits_for(self, case: Case | None) -> TrialLimits:
        return limits_for(self._options, Suite(self.agent.name, ()), case)


def with_source(runner: AgentRunner, source: AnswerSource) -> AgentRunner:
    """A copy of the runner that gets its trials from `source`."""
    shared = copy.copy(runner)
    shared._source = source
    return shared


def _case(test_input: Any, name: str | None) -> Case:
    value = to_json(test_input)
    return Case(id=name or to_text(value, MAX_ID_CHARS), turns=(Turn(value),))


def _case_from_dict(data: Any) -> Case:
    """A case from a dict with `id`, `input` and keywords; raises `UsageError` or `InvalidSuite`."""
    if not isinstance(data, Mapping):
        raise UsageError(f"a case must be a Case or a dict with 'id' and 'input', not {type(data).__name__}")
    if KEYWORDS_KEY in data:
        return read_list("cases", [data], Path("cases")).cases[0]
    for key in data:
        if key not in ("id", "input"):
            raise UsageError(f"a case has no {key!r}{did_you_mean(str(key), ('id', 'input', KEYWORDS_KEY))}")
    if "input" not in data:
        raise UsageError(f"the case {dict(data)!r:.80} needs 'input'")
    return _case(data["input"], data.get("id"))


def _require_answer(run: AgentRun) -> AgentRun:
    __tracebackhide__ = True
    if run["error"] is not None:
        raise AgentFailed(run["error"])
    return run


def _unscored_trial(case: Case, answer: ConversationResult, suite: str, mark: str) -> Trial:
    """The trial of a conversation, without scores: the test does the scoring."""
    return Trial(
        suite=suite,
        case=case,
        number=1,
        position=0,
        outcome=answer.outcome or Outcome.SKIPPED,
        end_reason=answer.reason,
        replies=answer.replies,
        started_at=answer.started_at,
        duration_ms=answer.duration_ms,
        attempts=answer.attempts,
        agent=mark,
        warnings=answer.warnings,
        spans=answer.spans,
        ended_early=answer.outcome is not None,
    )
