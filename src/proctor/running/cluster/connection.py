"""Starts workers on this machine or finds those of a Dask scheduler, and connects a run to them.

Only this package uses Dask, and only `scheduler` talks to it. Workers on this machine listen on the loopback interface
only. Dask's dashboard, profiling and log messages are switched off.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import math
import os
import platform
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.agents.trial_context import MAX_REPLY_BYTES
from proctor.base.errors import UsageError, one_line
from proctor.base.json_data import to_json
from proctor.base.masking import is_secret_variable_name, mask
from proctor.cases.suite import Suite
from proctor.running.cluster.agent_host import HostOrder, PackedOrder, SuiteOrder, call_host, start_host
from proctor.running.cluster.workers import ClusterAgent, RemoteHost, Workers, pack_with_code, suites_message_limit
from proctor.running.messages import HostInfo, InvalidMessage, WorkerDescription, decode_message, encode_message
from proctor.running.plan import Plan, PlannedSuite, make_plan
from proctor.running.remote_agent import pack
from proctor.running.settings import ClusterOptions, Listener, RunOptions, WorkerListener
from proctor.version import __version__

if TYPE_CHECKING:
    from proctor.running.cluster.scheduler import Scheduler

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
DESCRIBE_SECONDS = 60.0
RESTART_SECONDS = 60.0
MIN_PLANNED_WORKERS = 8
"""The engine starts enough sessions for at least this many workers, so that workers can join during a run."""
MAX_UPLOAD_BYTES = 50_000_000
_NOT_UPLOADED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".proctor", ".tox"})

_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.limit": "1h",
    "distributed.deploy.lost-worker-timeout": "1h",  # wait for a new process, which may start slowly
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:g}s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "2m",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.nanny.environ": {"MALLOC_TRIM_THRESHOLD_": 65536},
    "logging": {"distributed": "critical", "distributed.client": "critical", "tornado": "critical"},
}


@contextlib.asynccontextmanager
async def on_workers(plan: Plan, options: ClusterOptions, listener: Listener | None) -> AsyncIterator[Plan]:
    """The same plan with agents on workers; workers that this starts end with it."""
    display = listener if isinstance(listener, WorkerListener) else None
    order = order_of(plan, options)
    upload = zip_folder(Path.cwd()) if options.upload else b""
    async with connect(options, suites_message_limit(plan.suites)) as scheduler:
        parallel = {item: _sessions_per_worker(item, options) for item in plan.suites}
        workers = _workers(
            plan,
            list(parallel.values()),
            DaskPool(scheduler, plan, order, upload),
            lambda text: None if display is None else display.notice(mask(text)),
        )
        if display is not None:
            display.workers(workers.states)
        try:
            await workers.open(options.workers)
            count = max(len(workers.ready), options.workers or MIN_PLANNED_WORKERS)
            numbers = {item: number for number, item in enumerate(plan.suites)}
            yield plan.with_agents(
                lambda item: ClusterAgent(item.agent, workers, numbers[item], item.limits.timeout),
                lambda item: parallel[item] * count,
            )
        finally:
            await workers.close()


class DaskPool:
    """The workers of a Dask scheduler."""

    noun = "the worker"
    advice = "to see whether this case ends it, run it with --isolate and without workers"
    gone = "the scheduler no longer has it"

    def __init__(self, scheduler: Scheduler, plan: Plan, order: bytes, upload: bytes) -> None:
        self._scheduler = scheduler
        self._limit = suites_message_limit(plan.suites)
        self._order = order
        self._upload = upload

    async def names(self) -> dict[str, str]:
        return {address: worker.name for address, worker in (await self._scheduler.workers()).items()}

    async def start_host(self, address: str) -> tuple[DaskHost, HostInfo]:
        name = os.urandom(16).hex()
        await self._scheduler.run(address, start_host, name, self._order)
        host = DaskHost(self._scheduler, address, name, self._limit)
        return host, await host.call("prepare", self._upload)

    async def restart(self, address: str) -> None:
        await self._scheduler.restart(address, RESTART_SECONDS)


class DaskHost(RemoteHost):
    """The `AgentHost` in the process of a Dask worker."""

    def __init__(self, scheduler: Scheduler, address: str, name: str, limit: int) -> None:
        super().__init__(limit)
        self._scheduler = scheduler
        self._address = address
        self._name = name

    async def exchange(self, number: int, method: str, arguments: tuple[Any, ...]) -> object:
        return await self._scheduler.run(self._address, call_host, self._name, number, method, arguments)


def _sessions_per_worker(item: PlannedSuite, options: ClusterOptions) -> int:
    """How many trials of a suite a worker runs in parallel: what the user set, else its share of the default.

    Agents that start processes, and workers whose number is not known, get fewer.
    """
    if item.agent.starts_processes or not options.workers:
        return item.limits.fixed_parallel
    return max(item.limits.fixed_parallel, math.ceil(item.limits.parallel / options.workers))


def _workers(plan: Plan, parallel: Sequence[int], pool: DaskPool, notify: Callable[[str], None]) -> Workers:
    """The workers of a pool that have the agents of a plan, with so many sessions for each suite."""
    return Workers(pool, parallel, lambda info: _why_incompatible(info, plan), notify)


def _why_incompatible(info: HostInfo, plan: Plan) -> str:
    """Why a worker does not have the same agents; empty if it has."""
    if info.version != __version__:
        return f"has Proctor {info.version}, and this is {__version__}; install the same version"
    if len(info.agents) != len(plan.suites):
        return f"describes {len(info.agents)} agents, and this run has {len(plan.suites)}"
    for item, agent in zip(plan.suites, info.agents, strict=True):
        if agent.problem:
            return f"cannot load the agent {item.agent.name}: {agent.problem}"
        if agent.fingerprint != item.agent_fingerprint:
            return (
                f"has another version of the agent {item.agent.name} "
                f"(fingerprint {agent.fingerprint}, here {item.agent_fingerprint})"
            )
    return ""


def order_of(plan: Plan, options: ClusterOptions) -> bytes:
    """What a worker needs to know about a run, packed; raises `UsageError` if an agent cannot be sent."""
    order = HostOrder(
        tuple(_suite_order(item) for item in plan.suites),
        Path.cwd(),
        __version__,
        is_local=bool(options.workers),
        message_limit=suites_message_limit(plan.suites),
    )
    files = {item.suite.path for item in plan.suites if item.suite.path is not None and item.suite.path.suffix == ".py"}
    try:
        return pack(PackedOrder(tuple(sorted(files)), pack_with_code(order)))
    except Exception as error:
        raise UsageError(
            f"the agent cannot be sent to workers ({error}); pass it as file.py:name or package.module:name"
        ) from error


def _suite_order(item: PlannedSuite) -> SuiteOrder:
    suite = replace(item.suite, cases=(), evaluators=(), warnings=())
    return SuiteOrder(suite, item.agent_override, item.limits.timeout)


def zip_folder(folder: Path) -> bytes:
    """A zip archive of the files of a folder, without virtual environments, caches and stores.

    Dask's own `UploadDirectory` is not used: it reaches only workers with a nanny, leaves the files there after the
    run, keeps files that were deleted locally, and sends `.env` files.
    """
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for top, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not _is_excluded(Path(top, name)))
            for name in sorted(names):
                path = Path(top, name)
                if not path.is_file() or path.is_symlink() or name.startswith(".env"):
                    continue  # API keys belong in the environment of the workers
                total += path.stat().st_size
                if total > MAX_UPLOAD_BYTES:
                    raise UsageError(
                        f"--upload: {folder} has more than {MAX_UPLOAD_BYTES // 1_000_000} MB of files; run in a "
                        "smaller folder, or install the agent on the workers"
                    )
                archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def _is_excluded(folder: Path) -> bool:
    return folder.name in _NOT_UPLOADED or folder.is_symlink() or (folder / "pyvenv.cfg").is_file()


@contextlib.asynccontextmanager
async def connect(options: ClusterOptions, message_limit: int) -> AsyncIterator[Scheduler]:
    """The scheduler in the options, or a local one that is started for this context."""
    import dask.config
    import distributed  # before the settings below, which would replace its own

    from proctor.running.cluster.scheduler import RemoteError, connected

    with dask.config.set(_QUIET), _silence_dask_logs():
        async with contextlib.AsyncExitStack() as stack:
            address = options.address
            if options.workers:
                local: distributed.LocalCluster = await stack.enter_async_context(_local_cluster(options.workers))
                address = local.scheduler_address
            security = _security(options).get_connection_args("client")
            try:
                scheduler = await stack.enter_async_context(
                    connected(address, security, message_limit, CONNECT_SECONDS, is_direct=bool(options.workers))
                )
            except (OSError, InvalidMessage, RemoteError) as error:
                raise UsageError(f"cannot connect to the scheduler at {options.address}: {one_line(error)}") from error
            yield scheduler


def _local_cluster(workers: int) -> Any:
    import distributed

    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host=LOOPBACK,
        dashboard_address=f"{LOOPBACK}:0",
        scheduler_kwargs={"dashboard": False},
        asynchronous=True,
        silence_logs=logging.CRITICAL,
        memory_limit=0,
    )


def _security(options: ClusterOptions) -> Any:
    """The TLS settings of the project file, else those of Dask's own configuration."""
    import distributed

    if not (options.tls_ca or options.tls_cert or options.tls_key):
        return distributed.Security()
    return distributed.Security(
        tls_ca_file=options.tls_ca or None,
        tls_client_cert=options.tls_cert or None,
        tls_client_key=options.tls_key or None,
        require_encryption=True,
    )


@contextlib.contextmanager
def _silence_dask_logs() -> Any:
    """Silence Dask's log messages about lost workers, since the run reports them itself."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


async def check_workers(
    options: ClusterOptions, packages: Iterable[str], suites: Sequence[Suite]
) -> list[dict[str, Any]]:
    """A report on each worker; with suites, also whether it can load their agents, which imports the user's code."""
    async with connect(options, MAX_REPLY_BYTES) as scheduler:
        workers = await scheduler.workers()
        described = await asyncio.gather(*(_describe(scheduler, address, sorted(packages)) for address in workers))
        problems = await _agent_problems(scheduler, options, suites) if suites and workers else {}
        return [
            _worker_report(entry.name, address, description, problems.get(address, ""))
            for (address, entry), description in zip(workers.items(), described, strict=True)
        ]


async def _describe(scheduler: Scheduler, address: str, packages: list[str]) -> WorkerDescription | Exception:
    """The process of a worker, or why it did not describe itself."""
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            data = await scheduler.run(address, describe_process, packages)
        return decode_message(data, WorkerDescription, limit=MAX_REPLY_BYTES)
    except Exception as error:
        return error


def _worker_report(name: str, address: str, description: WorkerDescription | Exception, problem: str) -> dict[str, Any]:
    if isinstance(description, Exception):
        return {"name": name, "address": address, "ok": False, "says": mask(f"failed: {one_line(description)}")}
    if not problem and description.proctor != __version__:
        problem = f"has Proctor {description.proctor}, and this is {__version__}; install the same version"
    return {
        "name": name,
        "address": address,
        **to_json(description),
        "ok": not problem,
        "says": mask(problem) or "ready",
    }


async def _agent_problems(scheduler: Scheduler, options: ClusterOptions, suites: Sequence[Suite]) -> dict[str, str]:
    """By address: why a worker cannot run the agents of the suites."""
    plan = make_plan(suites, RunOptions())
    upload = zip_folder(Path.cwd()) if options.upload else b""
    pool = DaskPool(scheduler, plan, order_of(plan, options), upload)
    workers = _workers(plan, [1] * len(plan.suites), pool, lambda text: None)
    try:
        await workers.open(0)
    except UsageError:
        if not workers.refused:
            raise
    finally:
        await workers.close()
    return {address: reason for address, (_, reason) in workers.refused.items()}


def describe_process(packages: list[str]) -> bytes:
    """A message that describes the process that calls this: versions, packages, and the names of its API keys."""
    description = WorkerDescription(
        __version__,
        platform.python_version(),
        str(Path.cwd()),
        tuple(name for name in packages if find_spec(name) is not None),
        tuple(sorted(name for name in os.environ if is_secret_variable_name(name) and os.environ[name])),
    )
    return encode_message(description)
