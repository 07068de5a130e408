"""What the engine is compared with: a plain loop that does the same calls and none of the engine's other work.

For every case it calls the same agent, builds the same Evaluable, calls the same two evaluators of Proctor, and writes
one JSON record with the question, the answer, both scores and the reasons to SQLite, in the same mode as the store
(write-ahead log, synchronous NORMAL), one transaction for as many cases as the engine runs at once.

A synchronous agent is called in a thread of a `ThreadPoolExecutor` with as many threads as the engine runs at once, a
batch at a time; an asynchronous one is simply awaited, one after the other.

It has no sessions, time limits, retries, isolation of failures, recording of tool calls, fingerprints, keys, events,
statistics or verdict, and keeps no case apart from its record: what these cost is what the ratio shows.

Arguments: FILE (JSON Lines), DATABASE, `sync` or `async`, PARALLEL.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from proctor.cases.model import NamedData
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.evaluators.text import ExactMatch, LevenshteinMatch

EVALUATORS: tuple[Callable[[Evaluable], Evaluation], ...] = (ExactMatch(), LevenshteinMatch())


def main(path: str, database: str, kind: str, parallel: str) -> None:
    sys.path.insert(0, str(Path.cwd()))
    import agents

    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    batches = list(_batches([row for row in rows if "input" in row], int(parallel)))
    db = _open(database)
    if kind == "sync":
        _run_in_threads(db, batches, agents.echo, int(parallel))
    else:
        asyncio.run(_run_awaiting(db, batches, agents.echo_async))
    print(json.dumps({"cases": db.execute("SELECT count(*) FROM records").fetchone()[0]}))


def _run_in_threads(
    db: sqlite3.Connection, batches: list[list[Any]], agent: Callable[[str], str], threads: int
) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            answers = list(pool.map(agent, [case["input"] for case in batch]))
            _keep(db, [_record(case, answer) for case, answer in zip(batch, answers, strict=True)])


async def _run_awaiting(db: sqlite3.Connection, batches: list[list[Any]], agent: Callable[[str], Any]) -> None:
    for batch in batches:
        _keep(db, [_record(case, await agent(case["input"])) for case in batch])


def _record(case: dict[str, Any], answer: str) -> str:
    evaluable = Evaluable(
        eval_input=(NamedData("input", case["input"]),),
        eval_output=(NamedData("output", answer),),
        expectation=case["expected"],
    )
    scores = [evaluator(evaluable) for evaluator in EVALUATORS]
    said = [{"score": score.score, "reasoning": score.reasoning, "details": score.details} for score in scores]
    return json.dumps({**case, "output": answer, "scores": said})


def _keep(db: sqlite3.Connection, records: list[str]) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO records (content) VALUES (?)", [(record,) for record in records])
    db.execute("COMMIT")


def _open(database: str) -> sqlite3.Connection:
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("DROP TABLE IF EXISTS records")
    db.execute("CREATE TABLE records (no INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    return db


def _batches(cases: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(cases), size):
        yield cases[start : start + size]


if __name__ == "__main__":
    main(*sys.argv[1:])
