"""Runs written straight into a store, with fixed times, for the tests of the viewer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reporting_samples import START, make_run, trial

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.cases.suite import Case, Expected, Turn
from proctor.results.run import RunStatus
from proctor.results.score import Outcome, Score
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.results.verdict import record_verdict, verdict

FIRST, SECOND = "20260101-000000-aaaaaa", "20260102-000000-bbbbbb"


def store_run(
    folder: Path,
    run_id: str,
    trials: Iterable[Trial],
    *,
    name: str = "",
    day: int = 0,
    status: str = "finished",
) -> None:
    """A run of these trials, with its verdict if it is finished."""
    made = [replace(item, position=at) for at, item in enumerate(trials)]
    start = START + day * 86_400
    run = make_run(made, id=run_id, name=name, started_at=start, finished_at=start + 12.5, planned=len(made))
    if status == "finished":
        record_verdict(run, verdict(run))
    run.status = RunStatus(status)
    store = Store(folder)
    store.add_whole_run(run)
    store.close()


def two_runs(folder: Path) -> None:
    """Yesterday all was well; today one case broke, one is flaky, one was mended and one waits for a person."""
    failed = Outcome.FAILED
    store_run(
        folder, FIRST, [trial("refund"), trial("opening"), trial("address", failed, "Nowhere."), trial("delivery")]
    )
    calls = (ToolCall("order_status", {"order": "A-17"}, result={"days": 5}, duration_ms=12.0),)
    answer = Reply("Four days.", tool_calls=calls, usage=Usage(120, 30, 0.002))
    waits = Score("Tone", Outcome.PENDING, None, 0.5, "a person has to look", details={"criteria": "Is it polite?"})
    store_run(
        folder,
        SECOND,
        [
            trial("refund", failed, replies=(answer,)),
            trial("opening"),
            trial("opening", failed, "Never.", number=2),
            trial("address"),
            trial(tagged("delivery", "slow", "post"), duration_ms=2_500.0),
            trial("tone", Outcome.PENDING, "Certainly.", waits),
        ],
        name="after the change",
        day=1,
    )


def tagged(case_id: str, *tags: str) -> Case:
    return Case(id=case_id, turns=(Turn("How long?", Expected(output="Five days.")),), tags=tags)
