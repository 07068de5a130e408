"""Starts and ends the process of each arm, and sends it turns.

An `ArmProcess` checks out the version of its arm, builds its environment if requested, and starts `host.main` with it.
To the rest it is a pool with one worker, so sessions, timeouts, lost time and a process that ends or hangs are handled
by `Workers`, as with `--workers`: a new process is started, and the engine decides which trials are repeated.

Arms that are compared all run in processes, also the one in the working folder. Otherwise its answers would not take
the way through another process, and the time of the others would look longer than it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import proctor
from proctor.agents.agent import BaseAgent
from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed, UsageError, one_line
from proctor.base.git import GitProblem, without_git_variables
from proctor.base.masking import mask
from proctor.base.process_tree import MARK_VARIABLE, kill_tree, new_mark
from proctor.cases.suite import Suite
from proctor.running.arms.environments import build_environment
from proctor.running.arms.host import ANSWER, ARM_VARIABLE, LENGTH, Call, HostSetup, VersionFinder
from proctor.running.arms.versions import OwnProcess
from proctor.running.arms.worktrees import checked_out, environment_beside, has_submodules
from proctor.running.cluster.agent_host import HostOrder, PackedOrder, SuiteOrder
from proctor.running.cluster.workers import ClusterAgent, RemoteHost, Workers, suites_message_limit
from proctor.running.failures import ConversationInvalid
from proctor.running.messages import AgentStarted, AgentTraits, HostInfo
from proctor.running.plan import Plan, PlannedSuite
from proctor.running.remote_agent import HostedTrial, pack
from proctor.running.settings import Listener, WorkerListener
from proctor.version import __version__

START_SECONDS = 300.0
BUILD_SECONDS = 1800.0
"""How long building a virtual environment may take."""
END_SECONDS = 2.0
"""How long a process may take to end by itself."""

_BOOTSTRAP = """
import importlib.util, site, sys
root, *folders = sys.argv[1:]
sys.argv = ["proctor"]
for folder in folders:
    site.addsitedir(folder)
place = root + "/__init__.py"
spec = importlib.util.spec_from_file_location("proctor", place, submodule_search_locations=[root])
sys.modules["proctor"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["proctor"])
from proctor.running.arms.host import main
main()
"""
"""Loads the Proctor of the run, also in an environment that has another version of it."""


@contextlib.asynccontextmanager
async def in_processes(plan: Plan, store: Path, listener: Listener | None) -> AsyncIterator[Plan]:
    """The same plan, with the agents of arms that have their own process in it. Worktrees are made below `store`."""
    if arm := os.environ.get(ARM_VARIABLE):
        raise UsageError(
            f"this code already runs in the process of the arm {arm!r}; a script that runs arms and defines their "
            'agent must start the run below `if __name__ == "__main__":`'
        )
    display = listener if isinstance(listener, WorkerListener) else None
    groups: dict[OwnProcess, list[PlannedSuite]] = {}
    for item in plan.suites:
        if item.process is not None:
            groups.setdefault(item.process, []).append(item)
    processes = {
        order: ArmProcess(order, suites, store, None if display is None else display)
        for order, suites in groups.items()
    }

    def agent_for(item: PlannedSuite) -> BaseAgent:
        if item.process is None:
            return item.agent
        number = groups[item.process].index(item)
        return ArmAgent(item.agent, processes[item.process], number, item.limits.timeout)

    try:
        yield plan.with_agents(agent_for)
    finally:
        await asyncio.gather(*(process.close() for process in processes.values()))


class ArmAgent(ClusterAgent):
    """The agent of a suite in the process of its arm."""

    def __init__(self, agent: BaseAgent, process: ArmProcess, suite: int, timeout: float) -> None:
        super().__init__(agent, process.workers, suite, timeout)
        self.process = process
        self.start_timeout = max(agent.start_timeout, BUILD_SECONDS if process.order.venv else START_SECONDS)

    async def start(self) -> None:
        traits = await self.process.start_agent(self.suite)
        self.reads_files, self.reports_all_tool_calls = traits.reads_files, traits.reports_all_tool_calls
        self.reports_cost, self.endpoint = traits.reports_cost, traits.endpoint

    def pack_trial(self, trial: HostedTrial) -> bytes:
        """The trial without its evaluators, which stay here and may be functions."""
        turns = tuple(replace(turn, evaluators=None) for turn in trial.case.turns)
        try:
            return pack(replace(trial, case=replace(trial.case, turns=turns, evaluators=None)))
        except Exception as error:
            diagnosis = Diagnosis(FailureKind.INFRASTRUCTURE, "the case cannot be sent", lasting=True)
            raise ConversationInvalid(
                f"the case cannot be sent to the process of its arm: {one_line(error)}", diagnosis
            ) from None


class ArmProcess:
    """The process of one arm, as a pool with one worker."""

    noun = "the process of the arm"
    advice = "see what it printed above"
    gone = "it ended"
    """How the last process ended."""

    def __init__(
        self, order: OwnProcess, suites: list[PlannedSuite], store: Path, display: WorkerListener | None
    ) -> None:
        self.order = order
        self._suites = suites
        self._message_limit = suites_message_limit(suites)
        self._store = store
        self._mark = new_mark()
        self._resources = contextlib.ExitStack()
        self._python = Path(sys.executable)
        self._worktree: Path | None = None
        self._number = 1
        """How many processes were started, with the current one."""
        self._host: ProcessHost | None = None
        self._opening: asyncio.Task[HostInfo] | None = None
        self.workers = Workers(
            self,
            [item.limits.parallel for item in suites],
            lambda info: "" if info.version == __version__ else f"has Proctor {info.version}",
            lambda text: None if display is None or self._host is None else display.notice(mask(text)),
        )

    async def start_agent(self, suite: int) -> AgentTraits:
        """Start the process if it does not run, and the agent of a suite in it; returns the agent's traits.

        Raises `AgentFailed` with the reason.
        """
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        info = await asyncio.shield(self._opening)
        if problem := info.agents[suite].problem:
            raise self._failure(problem)
        [worker] = self.workers.ready.values()
        started: AgentStarted = await worker.host.call("start", suite)
        if started.problem is not None:
            raise self._failure(started.problem)
        worker.started.add(suite)
        traits: AgentTraits = await worker.host.call("traits", suite)
        return traits

    async def close(self) -> None:
        """End the process and remove its worktree."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        await self.workers.close()
        if self._host is not None:
            await self._host.end()
        await asyncio.to_thread(self._resources.close)

    # The pool

    async def names(self) -> Mapping[str, str]:
        if self._host is not None and self._host.has_ended:
            self.gone = self._host.end_text()
            self._host, self._number = None, self._number + 1
        return {str(self._number): self.order.arm}

    async def start_host(self, address: str) -> tuple[ProcessHost, HostInfo]:
        self._host = await self._start_process()
        return self._host, await self._host.prepare()

    async def restart(self, address: str) -> None:
        if self._host is not None and address == str(self._number):
            await self._host.end(0.0)

    # Starting

    async def _open(self) -> HostInfo:
        order = self.order
        if order.problem:
            raise self._failure(order.problem)
        if order.commit is not None:
            try:
                checkout = asyncio.create_task(
                    asyncio.to_thread(self._resources.enter_context, checked_out(order.commit, self._store))
                )
                try:
                    self._worktree = await asyncio.shield(checkout)
                except asyncio.CancelledError:
                    await asyncio.wait({checkout})  # what the thread has made is removed in `close`
                    raise
            except GitProblem as error:
                raise self._failure(f"it could not be checked out: {error}") from None
            if order.venv:
                try:
                    self._python = await build_environment(self._worktree, environment_beside(self._worktree))
                except AgentFailed as error:
                    raise self._failure(str(error)) from None
        try:
            await self.workers.open(1)
        except UsageError as error:
            raise self._failure(str(error)) from None
        assert self._host is not None, "a worker is ready"
        return self._host.info

    def _failure(self, problem: str) -> AgentFailed:
        version = f" at {self.order.version}" if self.order.version else ""
        hint = ""
        if self._worktree is not None and has_submodules(self._worktree):
            hint = " (its submodules are not checked out)"
        text = problem if self._worktree is None else problem.replace(f"{self._worktree}{os.sep}", "")
        return AgentFailed(f"arm {self.order.arm}{version}: {text}{hint}")

    async def _start_process(self) -> ProcessHost:
        folders = []
        if self.order.venv:  # what Proctor needs and the version does not require
            folders = [place for place in sys.path if {"site-packages", "dist-packages"} & set(Path(place).parts)]
        root = str(Path(proctor.__file__).resolve().parent)
        process = await asyncio.create_subprocess_exec(
            *(str(self._python), "-P", "-c", _BOOTSTRAP, root, *folders),
            cwd=self._moved(Path.cwd()),
            env=self._environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        host = ProcessHost(process, self._mark, self._message_limit)
        repository = "" if self.order.commit is None else str(self.order.commit.repository)
        setup = HostSetup(self._packed_order(), tuple(sys.path), repository, str(self._worktree or ""))
        host.write(pack(setup))
        return host

    def _packed_order(self) -> bytes:
        suites = tuple(
            SuiteOrder(
                Suite(
                    item.suite.name, (), agent=self._moved_agent(item.suite.agent), path=self._moved(item.suite.path)
                ),
                self._moved_agent(item.agent_override),
                item.limits.timeout,
            )
            for item in self._suites
        )
        order = HostOrder(
            suites, self._moved(Path.cwd()), __version__, is_local=True, message_limit=self._message_limit
        )
        return pack(PackedOrder((), pack(order)))

    def _environment(self) -> dict[str, str]:
        environment = {
            **without_git_variables(os.environ),
            MARK_VARIABLE: self._mark,
            ARM_VARIABLE: self.order.arm,
            "PYTHONUNBUFFERED": "1",
        }
        if paths := environment.get("PYTHONPATH"):
            moved = [str(self._moved(Path(path).absolute())) if path else path for path in paths.split(os.pathsep)]
            environment["PYTHONPATH"] = os.pathsep.join(moved)
        if self.order.venv:
            environment["VIRTUAL_ENV"] = str(self._python.parent.parent)
            environment["PATH"] = os.pathsep.join([str(self._python.parent), environment.get("PATH", "")])
        return environment | dict(self.order.env)

    def _moved(self, path: Any) -> Any:
        """The path in the worktree of a path in the working folder; another path as it is."""
        if path is None or self._worktree is None or self.order.commit is None:
            return path
        return Path(VersionFinder(self.order.commit.repository, self._worktree).moved(str(Path(path).absolute())))

    def _moved_agent(self, agent: Any) -> Any:
        """The description of the agent, with absolute paths in the working folder moved to the worktree."""
        if self._worktree is None or self.order.commit is None:
            return agent
        repository = str(self.order.commit.repository)
        if isinstance(agent, str):
            moved = str(self._worktree)
            return moved if agent == repository else agent.replace(repository + os.sep, moved + os.sep)
        if isinstance(agent, Mapping):
            return {key: self._moved_agent(value) for key, value in agent.items()}
        return [self._moved_agent(item) for item in agent] if isinstance(agent, list) else agent


class ProcessHost(RemoteHost):
    """The `AgentHost` in the process of an arm."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, limit: int) -> None:
        super().__init__(limit)
        self.info = HostInfo("")
        self._process = process
        self._mark = mark
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._reader = asyncio.create_task(self._read())

    @property
    def has_ended(self) -> bool:
        return self._reader.done()

    async def prepare(self) -> HostInfo:
        self.info = await self.call("prepare", b"")
        return self.info

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(LENGTH.pack(len(data)) + data)

    async def end(self, seconds: float = END_SECONDS) -> None:
        """End the process and everything that it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        kill_tree(self._process.pid, self._mark)
        await self._process.wait()
        await asyncio.wait({self._reader})

    async def exchange(self, number: int, method: str, arguments: tuple[Any, ...]) -> bytes:
        if self.has_ended:
            raise ConnectionError(self.end_text())
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self.write(pack(Call(number, method, arguments)))
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                number, length = ANSWER.unpack(await self._process.stdout.readexactly(ANSWER.size))
                if length > self.limit:
                    kill_tree(self._process.pid, self._mark)
                    break
                data = await self._process.stdout.readexactly(length)
                if (waiting := self._waiting.get(number)) is not None and not waiting.done():
                    waiting.set_result(data)
        await self._process.wait()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(self.end_text()))

    def end_text(self) -> str:
        code = self._process.returncode
        return f"it was ended by signal {-code}" if code is not None and code < 0 else f"it ended with exit code {code}"
