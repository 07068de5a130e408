"""What the engine is compared with: a plain loop that does the same calls and none of the engine's other work.

For every case it calls the same agent, builds the same Evaluable, calls the same two evaluators of Proctor, and keeps
the same trial through the same store, one transaction for as many cases as the engine runs at once. With `record` as
the last argument it writes one JSON record a case to a table of its own instead, as a script for one afternoon would.

A synchronous agent is called in a thread of a `ThreadPoolExecutor` with as many threads as the engine runs at once, a
batch at a time; an asynchronous one is simply awaited, one after the other.

It has no plan, sessions, time limits, retries, isolation of failures, recording of tool calls, listeners, statistics or
verdict: what these cost is what the ratio shows.

Arguments: FILE (JSON Lines), FOLDER, `sync` or `async`, PARALLEL, `store` or `record`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from proctor.agents.agent import Reply
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.text.matching import ExactMatch, LevenshteinMatch
from proctor.results.run import Outcome, Score, TrialResult
from proctor.results.store import Store

EVALUATORS: tuple[Callable[[Evaluable], Evaluation], ...] = (ExactMatch(), LevenshteinMatch())
Keep = Callable[[list[tuple[int, Case]], list[str]], None]


def main(path: str, folder: str, kind: str, parallel: str, kept: str) -> None:
    sys.path.insert(0, str(Path.cwd()))
    import agents

    [suite] = load([path])
    batches = list(_batches(list(enumerate(suite.cases)), int(parallel)))
    keep = _through_store(Path(folder)) if kept == "store" else _as_records(Path(folder))
    if kind == "sync":
        _run_in_threads(keep, batches, agents.echo, int(parallel))
    else:
        asyncio.run(_run_awaiting(keep, batches, agents.echo_async))
    print(json.dumps({"cases": len(suite.cases)}))


def _run_in_threads(keep: Keep, batches: list[Any], agent: Callable[[str], str], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            keep(batch, list(pool.map(agent, [case.turns[0].input for _, case in batch])))


async def _run_awaiting(keep: Keep, batches: list[Any], agent: Callable[[str], Any]) -> None:
    for batch in batches:
        keep(batch, [await agent(case.turns[0].input) for _, case in batch])


def _evaluate(case: Case, answer: str) -> list[Evaluation]:
    evaluable = Evaluable(
        eval_input=(NamedData("input", case.turns[0].input),),
        eval_output=(NamedData("output", answer),),
        expectation=case.turns[0].expected.output,
    )
    return [evaluator(evaluable) for evaluator in EVALUATORS]


def _through_store(folder: Path) -> Keep:
    store = Store(folder)
    run = store.add_run(f"bare-{time.time_ns()}", "")

    def keep(batch: list[tuple[int, Case]], answers: list[str]) -> None:
        trials = []
        for (position, case), answer in zip(batch, answers, strict=True):
            found = [(type(e).__name__, result) for e, result in zip(EVALUATORS, _evaluate(case, answer), strict=True)]
            scores = tuple(
                Score(name, Outcome.PASSED, r.score, 0.5, r.reasoning, details=r.details) for name, r in found
            )
            trials.append(
                TrialResult("bare", case, 1, position, Outcome.PASSED, replies=(Reply(answer),), scores=scores)
            )
        store.add_trials(run, trials)

    return keep


def _as_records(folder: Path) -> Keep:
    folder.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(folder / "records.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("DROP TABLE IF EXISTS records")
    db.execute("CREATE TABLE records (no INTEGER PRIMARY KEY, content TEXT NOT NULL)")

    def keep(batch: list[tuple[int, Case]], answers: list[str]) -> None:
        records = []
        for (_, case), answer in zip(batch, answers, strict=True):
            said = [[r.score, r.reasoning, r.details] for r in _evaluate(case, answer)]
            records.append(
                (json.dumps({"id": case.id, "input": case.turns[0].input, "output": answer, "scores": said}),)
            )
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO records (content) VALUES (?)", records)
        db.execute("COMMIT")

    return keep


def _batches(cases: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(cases), size):
        yield cases[start : start + size]


if __name__ == "__main__":
    main(*sys.argv[1:])
