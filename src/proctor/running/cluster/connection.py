"""Starts workers on this machine or finds those of a Dask scheduler, and connects a run to them.

Only this package uses Dask. Workers on this machine listen on the loopback interface only. Dask's dashboard, profiling
and log messages are switched off.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import platform
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError, one_line
from proctor.base.masking import is_secret_variable_name, mask
from proctor.cases.suite import Suite
from proctor.running.cluster.agent_host import AgentHost, HostInfo, HostOrder, PackedOrder, SuiteOrder
from proctor.running.cluster.workers import ClusterAgent, Workers, pack_with_code
from proctor.running.plan import Plan, PlannedSuite, make_plan
from proctor.running.remote_agent import pack
from proctor.running.settings import ClusterOptions, Listener, RunOptions, WorkerListener
from proctor.version import __version__

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
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
    async with connect(options) as client:
        workers = _workers(
            plan, DaskPool(client, order, upload), lambda text: None if display is None else display.notice(mask(text))
        )
        if display is not None:
            display.workers(workers.states)
        try:
            await workers.open(options.workers)
            count = max(len(workers.ready), options.workers or MIN_PLANNED_WORKERS)
            numbers = {item: number for number, item in enumerate(plan.suites)}
            yield plan.with_agents(
                lambda item: ClusterAgent(item.agent, workers, numbers[item], item.limits.timeout),
                lambda item: item.limits.parallel * count,
            )
        finally:
            await workers.close()


class DaskPool:
    """The workers of a Dask scheduler."""

    noun = "the worker"
    advice = "to see whether this case ends it, run it with --isolate and without workers"
    gone = "the scheduler no longer has it"

    def __init__(self, client: Any, order: bytes, upload: bytes) -> None:
        self._client = client
        self._order = order
        self._upload = upload

    async def names(self) -> dict[str, str]:
        workers: dict[str, Any] = (await self._client.scheduler.identity())["workers"]
        return {address: str(worker.get("name", address)) for address, worker in workers.items()}

    async def start_host(self, address: str) -> tuple[Any, HostInfo]:
        actor = self._client.submit(
            AgentHost, self._order, actor=True, workers=[address], allow_other_workers=False, pure=False
        )
        with self._client.as_current():  # so that calls of the host use this client
            host = await actor
            return host, await host.prepare(self._upload)

    async def restart(self, address: str) -> None:
        try:
            await self._client.restart_workers([address], timeout=RESTART_SECONDS, raise_for_error=False)
        except ValueError:  # it has no nanny process that could start it again
            await self._client.retire_workers([address], close_workers=True)


def _workers(plan: Plan, pool: DaskPool, notify: Callable[[str], None]) -> Workers:
    """The workers of a pool that have the agents of a plan."""
    parallel = [item.limits.parallel for item in plan.suites]
    return Workers(pool, parallel, lambda info: _why_incompatible(info, plan), notify)


def _why_incompatible(info: HostInfo, plan: Plan) -> str:
    """Why a worker does not have the same agents; empty if it has."""
    if info.version != __version__:
        return f"has Proctor {info.version}, and this is {__version__}; install the same version"
    for item, (fingerprint, problem) in zip(plan.suites, info.agents, strict=True):
        if problem:
            return f"cannot load the agent {item.agent.name}: {problem}"
        if fingerprint != item.agent_fingerprint:
            return (
                f"has another version of the agent {item.agent.name} "
                f"(fingerprint {fingerprint}, here {item.agent_fingerprint})"
            )
    return ""


def order_of(plan: Plan, options: ClusterOptions) -> bytes:
    """What a worker needs to know about a run, packed; raises `UsageError` if an agent cannot be sent."""
    order = HostOrder(
        tuple(_suite_order(item) for item in plan.suites), Path.cwd(), __version__, is_local=bool(options.workers)
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
async def connect(options: ClusterOptions) -> AsyncIterator[Any]:
    """A client of the scheduler in the options, or of a local one that is started for this context."""
    import dask.config
    import distributed  # before the settings below, which would replace its own

    with dask.config.set(_QUIET), _silence_dask_logs():
        async with contextlib.AsyncExitStack() as stack:
            target: Any = options.address
            if options.workers:
                target = await stack.enter_async_context(_local_cluster(options.workers))
            try:
                client = distributed.Client(
                    target,
                    asynchronous=True,
                    set_as_default=False,
                    direct_to_workers=bool(options.workers),
                    security=_security(options),
                    timeout=CONNECT_SECONDS,
                )
                await stack.enter_async_context(client)
            except (OSError, TimeoutError) as error:
                raise UsageError(f"cannot connect to the scheduler at {options.address}: {one_line(error)}") from error
            yield client


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
    """The TLS settings of the command line; `None` to use Dask's own configuration."""
    if not (options.tls_ca or options.tls_cert or options.tls_key):
        return None
    import distributed

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
    async with connect(options) as client:
        workers = (await client.scheduler.identity())["workers"]
        infos = await client.run(describe_process, sorted(packages), on_error="return")
        problems = await _agent_problems(client, options, suites) if suites and workers else {}
        return [
            _worker_report(str(info.get("name", address)), address, infos.get(address), problems.get(address, ""))
            for address, info in workers.items()
        ]


def _worker_report(name: str, address: str, info: Any, problem: str) -> dict[str, Any]:
    if not isinstance(info, dict):
        problem = f"failed: {one_line(info)}" if isinstance(info, BaseException) else "did not respond"
        return {"name": name, "address": address, "ok": False, "says": mask(problem)}
    if not problem and info["proctor"] != __version__:
        problem = f"has Proctor {info['proctor']}, and this is {__version__}; install the same version"
    return {"name": name, "address": address, **info, "ok": not problem, "says": mask(problem) or "ready"}


async def _agent_problems(client: Any, options: ClusterOptions, suites: Sequence[Suite]) -> dict[str, str]:
    """By address: why a worker cannot run the agents of the suites."""
    plan = make_plan(suites, RunOptions())
    upload = zip_folder(Path.cwd()) if options.upload else b""
    workers = _workers(plan, DaskPool(client, order_of(plan, options), upload), lambda text: None)
    try:
        await workers.open(0)
    except UsageError:
        if not workers.refused:
            raise
    finally:
        await workers.close()
    return {address: reason for address, (_, reason) in workers.refused.items()}


def describe_process(packages: list[str]) -> dict[str, Any]:
    """Describes the process that calls this: versions, packages, and the names of its API keys."""
    return {
        "proctor": __version__,
        "python": platform.python_version(),
        "folder": str(Path.cwd()),
        "packages": [name for name in packages if find_spec(name) is not None],
        "keys": sorted(name for name in os.environ if is_secret_variable_name(name) and os.environ[name]),
    }
