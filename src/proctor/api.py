"""Proctor from Python: load suites, run them, get the run back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.event_loops import run_blocking
from proctor.cases.formats.loading import load as load_paths
from proctor.cases.suite import Settings, Suite
from proctor.gate.settings import GateSettings
from proctor.reporting.html.notebook import NotebookProgress, is_notebook
from proctor.reporting.terminal.progress import choose_terminal
from proctor.results.comparison.compare import compare_runs
from proctor.results.comparison.comparison import Comparison
from proctor.results.run import Run
from proctor.results.store.run_files import open_run_reference
from proctor.running.plan import Selection
from proctor.running.run import RunRequest, raise_if_stopped, run_suites_async
from proctor.running.settings import Listener, RunOptions

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


class RunParameters(TypedDict, total=False):
    """The keyword parameters of `run` and `run_async`; `run` says what each of them does."""

    agents: Mapping[str, Any] | None
    settings: Settings | None
    fast: bool
    maxfail: int | None
    judge: Any
    budget_usd: float | None
    rate: float | None
    isolate: bool
    keep_secrets: bool
    select: Selection | None
    store: str | Path | None
    resume: bool
    reuse: bool
    gate: bool | GateSettings
    listener: Listener | None
    progress: bool | None


def run(suites: Suites, agent: Any = None, **parameters: Unpack[RunParameters]) -> Run:
    """Run suites, or the files that hold them, and return the run; `proctor.verdict(run)` gives the verdict.

    It can be called while an event loop is running, as in a notebook: that loop waits until the run is over. Code that
    should not wait can await `run_async`, which takes the same parameters:

    - `agent` is tested instead of the agents that suites name: a function, an object of a framework, `file.py:name`,
      an address, a command.
    - `agents`, by name, are tested instead of it, each with every case; `compare` compares them.
    - `settings` override those of the suites: `Settings(repeat=3, parallel=4, timeout=60, retries=0)`.
    - `fast` skips evaluators that need a language model.
    - `maxfail` stops the run after this many trials that did not pass.
    - `judge` is the judge of evaluators that need one: `"openai:gpt-5-mini"`, `"rules"`, or a mapping with options.
    - `budget_usd` limits the cost of agents and judges together; when it is spent, no more trials start.
    - `rate` limits the turns per second to each endpoint.
    - `isolate` runs every trial in its own process.
    - `keep_secrets` stores secrets unmasked.
    - `select` is called with a suite and a case, and returns whether the case runs.
    - `store` is the folder in which results are stored; without it they stay in memory.
    - `resume` continues the latest run of the same suites in the `store` that was interrupted.
    - `reuse` takes answers from the `store` if the agent and the input are unchanged.
    - `gate` compares the run with the baseline and re-runs only suspects: `True`, or a `GateSettings` with options. The
      result is `run.gate`.
    - `listener` is called when the run starts, with each trial, and when the run ends.
    - `progress` shows a bar in a notebook, and on a terminal what `proctor test` shows, on standard error; by default
      only notebooks show one, and only without a `listener`.

    >>> run = proctor.run("shop.yaml", settings=proctor.Settings(repeat=2))
    >>> verdict = proctor.verdict(run)
    >>> verdict.outcome.value, verdict.exit_code, len(list(run.trials))
    ('failed', 1, 4)

    An agent can be any function:

    >>> only_lost = lambda suite, case: case.id == "lost"
    >>> run = proctor.run("shop.yaml", agent=lambda question: "It is shipped.", select=only_lost)
    >>> [trial.replies[0].text for trial in run.trials]
    ['It is shipped.']
    """
    result = run_blocking(run_async(suites, agent, **parameters))
    raise_if_stopped(result)
    return result


async def run_async(suites: Suites, agent: Any = None, **parameters: Unpack[RunParameters]) -> Run:
    """Run suites in the event loop that is running, and return the run; the parameters are those of `run`.

    >>> run = asyncio.run(proctor.run_async("shop.yaml", agent="oracle"))
    >>> proctor.verdict(run).outcome.value
    'passed'
    """
    if unknown := next((name for name in parameters if name not in RunParameters.__annotations__), None):
        raise TypeError(f"run has no parameter {unknown!r}{did_you_mean(unknown, RunParameters.__annotations__)}")
    listener = _listener(parameters.get("listener"), parameters.get("progress"))
    result, _ = await run_suites_async(_request(suites, agent, parameters), listener)
    return result


def _request(suites: Suites, agent: Any, parameters: RunParameters) -> RunRequest:
    store, gate = parameters.get("store"), parameters.get("gate", False)
    if store is None and (parameters.get("resume") or parameters.get("reuse")):
        raise UsageError("resume and reuse need the store with the earlier runs; pass its folder as store=")
    return RunRequest(
        suites=_suites(suites),
        options=RunOptions(
            overrides=parameters.get("settings") or Settings(),
            fast=parameters.get("fast", False),
            maxfail=parameters.get("maxfail"),
            judge=parameters.get("judge"),
            budget_usd=parameters.get("budget_usd"),
            rate=parameters.get("rate"),
            isolate=parameters.get("isolate", False),
            keep_secrets=parameters.get("keep_secrets", False),
        ),
        agent=agent,
        agents=parameters.get("agents") or {},
        select=parameters.get("select"),
        store=None if store is None else Path(store),
        resume=parameters.get("resume", False),
        reuse=parameters.get("reuse", False),
        gate=gate if isinstance(gate, GateSettings) else GateSettings() if gate else None,
    )


def compare(
    before: Run | str | Path, after: Run | str | Path = "last", *, store: str | Path = ".proctor"
) -> Comparison:
    """What changed from one run to another, with a verdict.

    - `before` and `after` are runs, or what the command line calls them: an id or the beginning of one, a name, `last`,
      `last~1`, or the path of a file that `proctor runs export` wrote; `last@careful` is what one of its agents
      answered.
    - `store` is the folder in which runs that are not files are looked for.

    >>> before = proctor.run("shop.yaml", store=".proctor")
    >>> after = proctor.run("shop.yaml", agent="oracle", store=".proctor")
    >>> changed = proctor.compare(before, after)
    >>> changed.verdict, [case.case_id for case in changed.groups["fixed"]]
    ('no difference', ['lost'])
    >>> proctor.compare("last~1", "last").sentence == changed.sentence
    True
    """
    (first, before_agent), (second, after_agent) = (
        (side, None) if isinstance(side, Run) else open_run_reference(Path(store), str(side))
        for side in (before, after)
    )
    return compare_runs(first, second, before_agent=before_agent, after_agent=after_agent)


def _suites(suites: Suites) -> list[Suite]:
    items = [suites] if isinstance(suites, (Suite, str, Path)) else list(suites)
    in_memory = [item for item in items if isinstance(item, Suite)]
    return in_memory + load_paths(item for item in items if not isinstance(item, Suite))


def _listener(listener: Listener | None, progress: bool | None) -> Listener | None:
    """The listener of a run: the user's, a bar in a notebook, or the terminal."""
    if listener is not None or progress is False:
        return listener
    if "IPython" in sys.modules and is_notebook():
        return NotebookProgress()
    if not progress:
        return None
    return choose_terminal(sys.stderr)
