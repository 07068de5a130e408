"""Proctor from Python: load suites, run them, get the run back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from proctor.base.event_loop import run_sync
from proctor.cases.formats.loading import load as load_paths
from proctor.cases.suite import Settings, Suite
from proctor.results.run import Run
from proctor.running.engine.plan import Selection
from proctor.running.options import Listener, RunOptions
from proctor.running.verbs import Request, run_suites_async

Suites: TypeAlias = "Suite | str | Path | Iterable[Suite | str | Path]"
"""Suites, or the files that hold them."""


def load(*paths: str | Path) -> list[Suite]:
    """The suites in files, folders or `file.py:NAME` references; raises `InvalidSuite` with every problem found."""
    return load_paths(paths)


def run(suites: Suites, agent: Any = None, **options: Any) -> Run:
    """Run suites (or the files that hold them) and return the run; `proctor.judge(run)` gives the verdict.

    Options are those of `run_async`.
    """
    return run_sync(run_async(suites, agent, **options))


async def run_async(
    suites: Suites,
    agent: Any = None,
    *,
    settings: Settings | None = None,
    fast: bool = False,
    maxfail: int | None = None,
    judge: Any = None,
    budget_usd: float | None = None,
    keep_secrets: bool = False,
    select: Selection | None = None,
    store: str | Path | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run suites against `agent`, or the agents they name; without `store`, results are kept in memory only.

    `judge` is who judges (`openai:gpt-5-mini`), `budget_usd` what agent and judge may cost together.
    """
    given = settings or Settings()
    request = Request(
        suites=_suites(suites),
        options=RunOptions(
            given=given, fast=fast, maxfail=maxfail, judge=judge, budget_usd=budget_usd, keep_secrets=keep_secrets
        ),
        agent=agent,
        select=select,
        store=None if store is None else Path(store),
    )
    result, _ = await run_suites_async(request, listener)
    return result


def _suites(suites: Suites) -> list[Suite]:
    given = [suites] if isinstance(suites, (Suite, str, Path)) else list(suites)
    made = [item for item in given if isinstance(item, Suite)]
    return made + load_paths(item for item in given if not isinstance(item, Suite))
