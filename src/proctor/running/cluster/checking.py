"""Looks at each worker of a cluster for `proctor doctor --cluster`: what it has, and whether it can be used."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.references import describe
from proctor.base.secrets import is_secret_name, mask
from proctor.cases.suite import Suite
from proctor.running.cluster.connection import connected
from proctor.running.cluster.messages import order_of, zipped
from proctor.running.cluster.worker_pool import WorkerPool
from proctor.running.engine.plan import make_plan
from proctor.running.options import ClusterOptions, RunOptions
from proctor.version import __version__


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
