"""smolagents: agents that work in steps and remember on the object itself, so that each trial gets its own copy."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import itertools
from collections.abc import Callable
from typing import Any

from proctor.agents.agent import BaseSession, Reply, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, described_tool, text_of
from proctor.agents.toolbox import answer, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import fingerprint, plain, show
from proctor.base.references import describe
from proctor.base.threads import call_in_thread
from proctor.cases.suite import Case, Turn

_WORKING: contextvars.ContextVar[AgentCopy | None] = contextvars.ContextVar("proctor_smolagents_copy", default=None)


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    """An agent that runs ToolCallingAgents, CodeAgents and other agents of several steps."""
    from smolagents import MultiStepAgent

    if not isinstance(target, MultiStepAgent):
        return None
    return SmolagentsAgent(target, name or target.name or type(target).__name__, _fingerprint(target))


class SmolagentsAgent(FrameworkAgent):
    """Runs a copy in each trial; models are shared, memories, states and interpreters are not."""

    def check(self, case: Case) -> str | None:
        remote = not _is_local(getattr(self.target, "python_executor", None)) and hasattr(self.target, "executor_type")
        return "tools in a remote interpreter cannot be doubled" if remote and case.doubles else None

    def session(self, case: Case) -> SmolagentsSession:
        return SmolagentsSession(self.target, case)


class SmolagentsSession(BaseSession):
    """One copy of the agent, whose memory lasts for the turns of one case; it works in a thread."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._target = target
        self._watch = Watch()
        self._fresh = True

    async def open(self) -> None:
        self._copy = await call_in_thread(AgentCopy, self._target, self._watch)

    async def close(self) -> None:
        self._copy.agent.interrupt()
        await call_in_thread(self._copy.clean_up)

    async def send(self, turn: Turn) -> Reply:
        copied = self._copy
        self._watch.log = log = CallLog()
        given = plain(self.case.state) if self._fresh and self.case.state else None
        try:
            output = await call_in_thread(copied.run, text_of(turn), reset=self._fresh, additional_args=given)
        except asyncio.CancelledError:
            copied.agent.interrupt()  # the thread goes on to the end of the step it is in, and no further
            raise
        except Exception as error:
            # what a model's service said, for instance that it is busy, is what matters, not that smolagents met it
            raise error.__cause__ or error from None
        self._fresh = False
        structured = None if output is None or isinstance(output, str) else plain(output)
        text = str(output or "") if structured is None else show(structured)
        return Reply(text, log.calls, log.usage, structured=structured, state=plain(copied.agent.state))


class Watch:
    """What all copies of one trial write into."""

    def __init__(self) -> None:
        self.log = CallLog()
        self._numbers = itertools.count(1)

    def call(self, name: str, arguments: Any, function: Callable[[], Any]) -> Any:
        """Make a call, or answer it in place of a tool that is doubled, and note it."""
        key = self.log.begin(f"{name}-{next(self._numbers)}", name, arguments)
        try:
            result = answer(name, arguments if isinstance(arguments, dict) else {}) if is_doubled(name) else function()
        except Exception as error:
            self.log.end(key, error=error.__cause__ or error)
            raise
        self.log.end(key, result)
        return result

    def count_tokens(self, step: Any) -> None:
        """smolagents counts the tokens of plans as zero where a model does not tell."""
        tokens = step.token_usage
        known = tokens is not None and bool(tokens.input_tokens or tokens.output_tokens)
        self.log.add_usage(
            Usage(tokens.input_tokens, tokens.output_tokens, model_calls=1) if known else Usage(model_calls=1)
        )


class AgentCopy:
    """A copy of an agent with a memory, a state and an interpreter of its own, whose calls are watched.

    The interpreter of a CodeAgent runs code in a thread that knows nothing of the context it was started in. So the
    context in which the agent was asked is kept here, and calls that find themselves without it are made in that one.
    """

    def __init__(self, original: Any, watch: Watch) -> None:
        from smolagents import AgentLogger, AgentMemory, LogLevel, Monitor

        self._watch = watch
        self._context = contextvars.copy_context()
        self.agent = agent = copy.copy(original)
        agent.state = copy.deepcopy(original.state)
        agent.logger = AgentLogger(level=LogLevel.OFF)
        agent.monitor = Monitor(agent.model, agent.logger)
        agent.step_callbacks = self._callbacks(original)
        self._below = [AgentCopy(inner, watch) for inner in original.managed_agents.values()]
        agent.managed_agents = {copied.agent.name: copied.agent for copied in self._below}
        agent.memory = AgentMemory(agent.system_prompt)
        self._run, agent.run = agent.run, self.run
        if hasattr(agent, "execute_tool_call"):
            self._execute, agent.execute_tool_call = agent.execute_tool_call, self.execute_tool_call
        if hasattr(agent, "python_executor"):
            agent.python_executor = self._interpreter()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The agent's own `run`, also when another agent calls it."""
        working = _WORKING.set(self)
        self._context = contextvars.copy_context()
        try:
            return self._run(*args, **kwargs)
        finally:
            _WORKING.reset(working)

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        """What a ToolCallingAgent does with a call; tools that do not exist and wrong arguments come by here too."""
        from smolagents.utils import AgentError, AgentToolExecutionError

        if _is_final_answer(self.agent.tools.get(tool_name)):
            return self._execute(tool_name, arguments)
        try:
            return self._call(tool_name, arguments, lambda: self._execute(tool_name, arguments))
        except AgentError:
            raise
        except Exception as error:
            told = f"Error executing tool '{tool_name}' with arguments {arguments}: {describe(error)}"
            raise AgentToolExecutionError(told, self.agent.logger) from error

    def clean_up(self) -> None:
        for copied in self._below:
            copied.clean_up()
        if hasattr(self.agent, "cleanup"):
            self.agent.cleanup()

    def _call(self, name: str, arguments: Any, function: Callable[[], Any]) -> Any:
        if _WORKING.get() is self:
            return self._watch.call(name, arguments, function)
        return self._context.copy().run(self._watch.call, name, arguments, function)

    def _interpreter(self) -> Any:
        """An interpreter without variables of other trials; one that is not in this process does not show its calls."""
        current = self.agent.python_executor
        if not _is_local(current):
            return self._another(current)
        fresh = copy.copy(current)
        fresh.state, fresh.custom_tools = {"__name__": "__main__"}, {}
        send = fresh.send_tools
        fresh.send_tools = lambda tools: send({name: self._as_function(name, tool) for name, tool in tools.items()})
        return fresh

    def _another(self, current: Any) -> Any:
        if self.agent.executor_type != "local":
            return self.agent.create_python_executor()
        try:
            return copy.deepcopy(current)
        except Exception as error:
            raise AgentFailed(
                f"{type(current).__name__} cannot be copied, so trials would share its variables: {describe(error)}"
            ) from error

    def _as_function(self, name: str, tool: Any) -> Any:
        """A tool as the code of a CodeAgent calls it: by position or by name."""
        if _is_final_answer(tool):
            return tool

        @functools.wraps(tool, updated=())
        def function(*args: Any, **kwargs: Any) -> Any:
            named = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
            return self._call(name, named, lambda: tool(*args, **kwargs))

        return function

    def _callbacks(self, original: Any) -> Any:
        from smolagents import ActionStep, CallbackRegistry, PlanningStep

        registry = CallbackRegistry()
        for kind, callbacks in original.step_callbacks._callbacks.items():
            for callback in callbacks:
                own = callback == original.monitor.update_metrics
                registry.register(kind, self.agent.monitor.update_metrics if own else callback)
        for kind in (ActionStep, PlanningStep):
            registry.register(kind, self._watch.count_tokens)
        return registry


def _is_final_answer(tool: Any) -> bool:
    """The tool with which an agent ends: part of how it speaks, not something it does."""
    from smolagents import FinalAnswerTool

    return isinstance(tool, FinalAnswerTool)


def _is_local(executor: Any) -> bool:
    from smolagents import LocalPythonExecutor

    return isinstance(executor, LocalPythonExecutor)


def _fingerprint(agent: Any) -> str:
    """What makes two agents behave alike: prompts, models, tools, and the agents below."""
    below = [_fingerprint(inner) for inner in agent.managed_agents.values()]
    model = getattr(agent.model, "model_id", None) or type(agent.model).__name__
    told = [agent.description, agent.instructions, plain(agent.prompt_templates), agent.max_steps]
    tools = [[name, described_tool(tool)] for name, tool in agent.tools.items()]
    return fingerprint(type(agent).__name__, agent.name, model, told, tools, below)
