"""Several agents of one run side by side: how each did on every case, and what the first one's lead amounts to."""

from __future__ import annotations

from proctor.base.errors import UsageError
from proctor.base.records import record
from proctor.results.compare_runs import compare_runs
from proctor.results.comparison import Comparison, Passes
from proctor.results.run import Outcome, Run


@record
class AgentTable:
    """One suite that several agents were asked."""

    suite: str
    agents: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Passes | None, ...]], ...]
    """Each case with the passes of each agent; `None` where it was not asked."""
    comparisons: tuple[Comparison, ...]
    """Each further agent against the first one; fewer where nothing can be compared."""


def agent_tables(run: Run) -> tuple[AgentTable, ...]:
    """A table for each suite that was put to several agents; none for an ordinary run."""
    sources = dict.fromkeys(info.source for info in run.suites if info.source)
    return tuple(_table(run, source) for source in sources)


def _table(run: Run, source: str) -> AgentTable:
    infos = [info for info in run.suites if info.source == source]
    places = {info.name: at for at, info in enumerate(infos)}
    counts: dict[str, list[list[int]]] = {}
    for summary in run.summaries:
        if summary.suite in places:
            row = counts.setdefault(summary.case_id, [[0, 0, 0] for _ in infos])[places[summary.suite]]
            settled = summary.outcome in (Outcome.PASSED, Outcome.FAILED)
            row[0] += summary.outcome is Outcome.PASSED
            row[1] += settled
            row[2] += not settled
    agents = tuple(info.agent for info in infos)
    rows = tuple(
        (case_id, tuple(Passes(*row) if any(row) else None for row in found)) for case_id, found in counts.items()
    )
    compared = (_compared(run, source, agents[0], other) for other in agents[1:])
    return AgentTable(source, agents, rows, tuple(found for found in compared if found is not None))


def _compared(run: Run, source: str, first: str, other: str) -> Comparison | None:
    try:
        return compare_runs(run, run, before_agent=first, after_agent=other, choose=lambda suite, _: suite == source)
    except UsageError:  # one of them was asked nothing, as in a run that was interrupted
        return None
