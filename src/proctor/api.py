"""Proctor from Python: load suites, run them, get the run back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from proctor.base.event_loops import run_beside_loop
from proctor.cases.formats.loading import load as load_paths
from proctor.cases.suite import Settings, Suite
from proctor.results.run import Run
from proctor.running.engine.plan import Selection
from proctor.running.options import Listener, RunOptions
from proctor.running.run_suites import Request, run_suites_async

if TYPE_CHECKING:
    from proctor.results.comparison import Comparison

Suites: TypeAlias = "Suite | str | Path | Iterable[Suite | str | Path]"
"""Suites, or the files that hold them."""


def load(*paths: str | Path) -> list[Suite]:
    """Read the suites in files, folders or `file.py:NAME` references.

    - `paths` may be of any format that Proctor knows; a folder stands for the suites in it.

    Raises `InvalidSuite` with every problem found in all of them, each with its file and line.

    >>> [suite] = proctor.load("shop.yaml")
    >>> [case.id for case in suite.cases]
    ['shipped', 'lost']
    """
    return load_paths(paths)


def run(
    suites: Suites,
    agent: Any = None,
    *,
    agents: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    fast: bool = False,
    maxfail: int | None = None,
    judge: Any = None,
    budget_usd: float | None = None,
    keep_secrets: bool = False,
    select: Selection | None = None,
    store: str | Path | None = None,
    listener: Listener | None = None,
    progress: bool | None = None,
) -> Run:
    """Run suites, or the files that hold them, and return the run; `proctor.judge(run)` gives the verdict.

    It may be called where an event loop is running already, as in a notebook: that loop waits until the run is over.
    Code that has other things to do meanwhile awaits `run_async`, which takes the same parameters:

    - `agent` is asked instead of the agents that suites name: a function, an object of a framework, `file.py:name`,
      an address, a command.
    - `agents`, by name, are asked instead of it, each of them every case; `compare` then tells them apart.
    - `settings` beat those of the suites: `Settings(repeat=3, parallel=4, timeout=60)`.
    - `fast` leaves out evaluators that need a language model.
    - `maxfail` stops after so many trials that did not pass.
    - `judge` answers for evaluators that ask one: `"openai:gpt-5-mini"`, `"embedded"`, or a mapping with options.
    - `budget_usd` is what agents and judges may cost together; when it is spent, no further trial begins.
    - `keep_secrets` keeps secrets as they are in what is stored; else they are masked.
    - `select` is called with a suite and a case, and says whether the case runs.
    - `store` is the folder in which results are kept; without it they are kept in memory only.
    - `listener` is told when the run starts, of each trial, and when the run ends.
    - `progress` shows a bar in a notebook, and on a terminal what `proctor test` shows, on standard error; unless it is
      given, notebooks alone do, and only without a `listener`.

    >>> run = proctor.run("shop.yaml", settings=proctor.Settings(repeat=2))
    >>> verdict = proctor.judge(run)
    >>> verdict.outcome.value, verdict.exit_code, len(list(run.trials))
    ('failed', 1, 4)

    An agent can be any function:

    >>> only_lost = lambda suite, case: case.id == "lost"
    >>> run = proctor.run("shop.yaml", agent=lambda question: "It is shipped.", select=only_lost)
    >>> [trial.replies[0].text for trial in run.trials]
    ['It is shipped.']
    """
    return run_beside_loop(
        run_async(
            suites,
            agent,
            agents=agents,
            settings=settings,
            fast=fast,
            maxfail=maxfail,
            judge=judge,
            budget_usd=budget_usd,
            keep_secrets=keep_secrets,
            select=select,
            store=store,
            listener=listener,
            progress=progress,
        )
    )


async def run_async(
    suites: Suites,
    agent: Any = None,
    *,
    agents: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    fast: bool = False,
    maxfail: int | None = None,
    judge: Any = None,
    budget_usd: float | None = None,
    keep_secrets: bool = False,
    select: Selection | None = None,
    store: str | Path | None = None,
    listener: Listener | None = None,
    progress: bool | None = None,
) -> Run:
    """Run suites in the event loop that is running, and return the run; the parameters are those of `run`.

    >>> run = asyncio.run(proctor.run_async("shop.yaml", agent="oracle"))
    >>> proctor.judge(run).outcome.value
    'passed'
    """
    request = Request(
        suites=_suites(suites),
        options=RunOptions(
            given=settings or Settings(),
            fast=fast,
            maxfail=maxfail,
            judge=judge,
            budget_usd=budget_usd,
            keep_secrets=keep_secrets,
        ),
        agent=agent,
        agents=agents or {},
        select=select,
        store=None if store is None else Path(store),
    )
    result, _ = await run_suites_async(request, _listener(listener, progress))
    return result


def compare(
    before: Run | str | Path, after: Run | str | Path = "last", *, store: str | Path = ".proctor"
) -> Comparison:
    """What changed from one run to another, with a verdict.

    - `before` and `after` are runs, or what the command line calls them: an id or the beginning of one, a name, `last`,
      `last~1`, or the path of a file that `proctor export` wrote; `last@careful` is what one of its agents answered.
    - `store` is the folder in which runs that are not files are looked for.

    >>> before = proctor.run("shop.yaml", store=".proctor")
    >>> after = proctor.run("shop.yaml", agent="oracle", store=".proctor")
    >>> changed = proctor.compare(before, after)
    >>> changed.verdict, [case.case_id for case in changed.groups["fixed"]]
    ('no difference', ['lost'])
    >>> proctor.compare("last~1", "last").sentence == changed.sentence
    True
    """
    from proctor.results.compare_runs import compare_runs
    from proctor.results.run_files import read_run_of_agent

    (first, before_agent), (second, after_agent) = (
        (side, None) if isinstance(side, Run) else read_run_of_agent(Path(store), str(side)) for side in (before, after)
    )
    return compare_runs(first, second, before_agent=before_agent, after_agent=after_agent)


def _suites(suites: Suites) -> list[Suite]:
    given = [suites] if isinstance(suites, (Suite, str, Path)) else list(suites)
    made = [item for item in given if isinstance(item, Suite)]
    return made + load_paths(item for item in given if not isinstance(item, Suite))


def _listener(listener: Listener | None, progress: bool | None) -> Listener | None:
    """Who is told of the run: the user's listener, a bar in a notebook, a terminal."""
    if listener is not None or progress is False:
        return listener
    if "IPython" in sys.modules:
        from proctor.reporting.html.notebook import NotebookProgress, is_notebook

        if is_notebook():
            return NotebookProgress()
    if not progress:
        return None
    from proctor.reporting.terminal.progress import choose_terminal

    return choose_terminal(sys.stderr)
