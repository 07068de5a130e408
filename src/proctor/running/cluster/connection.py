"""Starts workers on this machine or finds those of a Dask scheduler, and connects a run to them.

This and the actor on the workers are all that knows Dask. Nothing listens on any address but the loopback, and nothing
is told to anyone: the dashboard, profiling and Dask's own messages are switched off.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.references import describe
from proctor.base.secrets import is_secret_name, mask
from proctor.cases.suite import Suite
from proctor.running.cluster.messages import order_of, zipped
from proctor.running.cluster.worker_pool import WorkerPool
from proctor.running.engine.plan import Plan, make_plan
from proctor.running.options import ClusterOptions, Listener, RunOptions, WorkerListener
from proctor.version import __version__

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
MISSING = "--workers and --cluster need Dask's distributed: pip install 'proctor[cluster]'"
LEAST_ENGAGED = 8
"""The engine keeps as many trials ready as so many workers would take, so that workers may join a run."""

_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.limit": "1h",
    "distributed.deploy.lost-worker-timeout": "1h",  # a new process may take long to start, and is waited for
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:g}s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "2m",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.nanny.environ": {"MALLOC_TRIM_THRESHOLD_": 65536},
    "logging": {"distributed": "critical", "distributed.client": "critical", "tornado": "critical"},
}


def checked(options: ClusterOptions) -> ClusterOptions:
    """The options, if they can be used here; raises `UsageError`."""
    if find_spec("distributed") is None:
        raise UsageError(MISSING)
    if options.workers:
        if options.upload or options.tls_ca or options.tls_cert or options.tls_key:
            raise UsageError("--upload and --tls-... are for --cluster: --workers are processes of this machine")
        return options
    if not re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}", options.address):
        raise UsageError(
            f"--cluster {options.address!r} is no address of a scheduler; write tcp://host:8786 or tls://..."
        )
    files = {"--tls-ca": options.tls_ca, "--tls-cert": options.tls_cert, "--tls-key": options.tls_key}
    if any(files.values()) and not options.address.startswith("tls://"):
        raise UsageError("--tls-... are for a scheduler at tls://..., and this one is at tcp://...")
    for name, path in files.items():
        if path and not Path(path).is_file():
            raise UsageError(f"{name} {path}: there is no such file")
    return options


@contextlib.asynccontextmanager
async def workers_for(plan: Plan, options: ClusterOptions, listener: Listener | None) -> AsyncIterator[WorkerPool]:
    """The workers of a run, ready to be asked; local ones end with it."""
    told = listener if isinstance(listener, WorkerListener) else None
    order = order_of(plan, options)
    upload = zipped(Path.cwd()) if options.upload else b""
    async with connected(options) as client:
        pool = WorkerPool(
            client,
            plan,
            order,
            lambda text: None if told is None else told.notice(mask(text)),
            upload=upload,
            scores=options.score,
        )
        if told is not None:
            told.workers(pool.states)
        try:
            await pool.open(options.workers)
            engaged = 3 * max(len(pool.lanes), options.workers or LEAST_ENGAGED)
            for item in plan.suites:
                item.limits = replace(item.limits, parallel=item.limits.parallel * engaged)
            yield pool
        finally:
            await pool.close()


@contextlib.asynccontextmanager
async def connected(options: ClusterOptions) -> AsyncIterator[Any]:
    """A client of the scheduler that the options name, or of one that is started for as long as this lasts."""
    import dask.config

    distributed: Any = import_module("distributed")  # before the settings below, which would take its own with them
    with dask.config.set(_QUIET), _silenced():
        async with contextlib.AsyncExitStack() as stack:
            target = await stack.enter_async_context(_local(options.workers)) if options.workers else options.address
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
                raise UsageError(f"no scheduler answers at {options.address}: {describe(error)}") from error
            yield client


def _local(workers: int) -> Any:
    distributed: Any = import_module("distributed")
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
    """What the command line says of TLS; without that, Dask's own configuration counts."""
    if not (options.tls_ca or options.tls_cert or options.tls_key):
        return None
    distributed: Any = import_module("distributed")
    return distributed.Security(
        tls_ca_file=options.tls_ca or None,
        tls_client_cert=options.tls_cert or None,
        tls_client_key=options.tls_key or None,
        require_encryption=True,
    )


@contextlib.contextmanager
def _silenced() -> Any:
    """Dask tells of lost workers in its own way; the run tells of them in ours."""
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
    """What each worker has; with suites, also whether it can load their agents, which runs the files they name."""
    async with connected(options) as client:
        known = (await client.scheduler.identity())["workers"]
        told = await client.run(describe_this, sorted(packages), on_error="return")
        problems = await _agent_problems(client, options, suites) if suites and known else {}
        return [
            _checked(str(info.get("name", address)), address, told.get(address), problems.get(address, ""))
            for address, info in known.items()
        ]


def _checked(name: str, address: str, found: Any, problem: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        said = f"cannot be asked: {describe(found)}" if isinstance(found, BaseException) else "did not answer"
        return {"name": name, "address": address, "ok": False, "says": mask(said)}
    if not problem and found["proctor"] != __version__:
        problem = f"has Proctor {found['proctor']}, and this is {__version__}; install the same"
    return {"name": name, "address": address, **found, "ok": not problem, "says": mask(problem) or "ready"}


async def _agent_problems(client: Any, options: ClusterOptions, suites: Sequence[Suite]) -> dict[str, str]:
    """By address: why a worker cannot ask the agents of the suites."""
    plan = make_plan(suites, RunOptions())
    upload = zipped(Path.cwd()) if options.upload else b""
    pool = WorkerPool(client, plan, order_of(plan, options), lambda text: None, upload=upload)
    try:
        await pool.open(0)
    except UsageError:
        if not pool.refused:
            raise
    finally:
        await pool.close()
    return {address: reason for address, (_, reason) in pool.refused.items()}


def describe_this(packages: list[str]) -> dict[str, Any]:
    """What the process has that runs this; of keys only the names."""
    return {
        "proctor": __version__,
        "python": platform.python_version(),
        "folder": str(Path.cwd()),
        "packages": [name for name in packages if find_spec(name) is not None],
        "keys": sorted(name for name in os.environ if is_secret_name(name) and os.environ[name]),
    }
