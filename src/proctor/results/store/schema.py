"""The tables of the store, and the migrations from every earlier version.

`PRAGMA user_version` has the version of a database. A migration never changes once a store of its version exists:
it reads and writes rows, and uses no current classes. To add a column to `trials` or `scores`: give `Trial` or
`Score` a field of the same name, add the column here, and write a migration that adds it to older stores.

1. runs, cases and trials; 2. traces as well. Both stored a case in the native file format.
3. Cases have their own encoding, and runs have a name.
4. `scores` is a table instead of a view of JSON, a case is stored once, trials have an arm, labels have their table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proctor.results.store.text_columns import encode_text
from proctor.results.store.version_2_cases import encode_version_2_case

VERSION = 4

# All indexes except that of cases grow at their end: random keys would rewrite pages all over the file.
TRIALS = {
    "no": "INTEGER PRIMARY KEY",
    "run": "INTEGER NOT NULL REFERENCES runs",
    "position": "INTEGER NOT NULL",
    "suite": "TEXT NOT NULL",
    "case_id": "TEXT NOT NULL",
    "number": "INTEGER NOT NULL",
    "arm": "TEXT NOT NULL DEFAULT ''",
    "case_no": "INTEGER NOT NULL REFERENCES cases",
    "case_key": "TEXT NOT NULL",
    "agent": "TEXT NOT NULL",
    "outcome": "TEXT NOT NULL",
    "started_at": "REAL NOT NULL",
    "duration_ms": "REAL NOT NULL",
    "tokens": "INTEGER",
    "cost_usd": "REAL",
    "estimated": "INTEGER NOT NULL DEFAULT 0",
    "content": "TEXT NOT NULL",
}
"""By column: its declaration. `content` holds every field of a trial that has no column, as JSON."""

SCORES = {
    "trial": "INTEGER NOT NULL REFERENCES trials",
    "place": "INTEGER NOT NULL",
    "evaluator": "TEXT NOT NULL",
    "outcome": "TEXT NOT NULL",
    "value": "REAL",
    "threshold": "REAL",
    "gates": "INTEGER NOT NULL",
    "turn": "INTEGER",
    "fingerprint": "TEXT NOT NULL",
    "reasoning": "TEXT NOT NULL",
    "details": "TEXT NOT NULL",
    "duration_ms": "REAL NOT NULL",
}
"""`place` is the score's index in its trial; `details` is JSON."""


def _columns(declarations: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {declaration}" for name, declaration in declarations.items())


TABLES = f"""
CREATE TABLE IF NOT EXISTS runs (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, started_at REAL NOT NULL, finished_at REAL,
    status TEXT NOT NULL, plan TEXT NOT NULL, info TEXT NOT NULL, name TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS cases (no INTEGER PRIMARY KEY, key TEXT NOT NULL, content TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS cases_by_key ON cases (key);
CREATE TABLE IF NOT EXISTS trials ({_columns(TRIALS)});
CREATE INDEX IF NOT EXISTS trials_of_run ON trials (run, position);
CREATE TABLE IF NOT EXISTS scores ({_columns(SCORES)}, PRIMARY KEY (trial, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traces (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL, trace_id TEXT NOT NULL, run INTEGER REFERENCES runs,
    started_at REAL NOT NULL, duration_ms REAL NOT NULL, spans INTEGER NOT NULL, errors INTEGER NOT NULL,
    info TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS judge_calls (
    no INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, created_at REAL NOT NULL, judge TEXT, kind TEXT, version INTEGER,
    cost_usd REAL, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calibrations (
    no INTEGER PRIMARY KEY, created_at REAL NOT NULL, judge TEXT NOT NULL, evaluator TEXT NOT NULL,
    fingerprint TEXT NOT NULL, data TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS labels (
    no INTEGER PRIMARY KEY, run TEXT NOT NULL, suite TEXT NOT NULL, case_id TEXT NOT NULL, number INTEGER NOT NULL,
    turn INTEGER, evaluator TEXT NOT NULL, passed INTEGER NOT NULL, comment TEXT NOT NULL, who TEXT NOT NULL,
    at REAL NOT NULL);
"""

BATCH = 1000
"""Rows in memory at once."""


def create_or_migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate a database from `version` (0 if it is empty) to the current one, inside the caller's transaction."""
    if version > 0:
        for newer, step in _STEPS.items():
            if version < newer:
                step(connection)
    _create_tables(connection, TABLES)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _create_tables(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        connection.execute(statement)


def _to_version_3(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE TEMP TABLE new_keys (case_no INTEGER PRIMARY KEY, key TEXT NOT NULL)")
    for no, content in _rows(connection, "cases", "content"):
        try:
            encoded, key, planned = encode_version_2_case(content)
        except Exception:  # noqa: S112  one damaged case must not make the others unreadable
            continue
        connection.execute("UPDATE cases SET key = ?, content = ? WHERE no = ?", (key, encoded, no))
        connection.execute("INSERT INTO new_keys VALUES (?, ?)", (no, planned))
    connection.execute(
        "UPDATE trials SET case_key = (SELECT key FROM new_keys WHERE new_keys.case_no = trials.case_no)"
        " WHERE case_no IN (SELECT case_no FROM new_keys)"
    )
    connection.execute("DROP TABLE new_keys")


_TABLES_OF_VERSION_4 = """
DROP VIEW IF EXISTS scores;
DROP INDEX IF EXISTS trials_of_run;
CREATE TABLE new_trials (
    no INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs, position INTEGER NOT NULL, suite TEXT NOT NULL,
    case_id TEXT NOT NULL, number INTEGER NOT NULL, arm TEXT NOT NULL DEFAULT '',
    case_no INTEGER NOT NULL REFERENCES cases, case_key TEXT NOT NULL, agent TEXT NOT NULL, outcome TEXT NOT NULL,
    started_at REAL NOT NULL, duration_ms REAL NOT NULL, tokens INTEGER, cost_usd REAL,
    estimated INTEGER NOT NULL DEFAULT 0, content TEXT NOT NULL);
CREATE TABLE scores (
    trial INTEGER NOT NULL REFERENCES trials, place INTEGER NOT NULL, evaluator TEXT NOT NULL, outcome TEXT NOT NULL,
    value REAL, threshold REAL, gates INTEGER NOT NULL, turn INTEGER, fingerprint TEXT NOT NULL,
    reasoning TEXT NOT NULL, details TEXT NOT NULL, duration_ms REAL NOT NULL, PRIMARY KEY (trial, place)) WITHOUT ROWID
"""
_MOVE_TRIALS = """
INSERT INTO new_trials (no, run, position, suite, case_id, number, case_no, case_key, agent, outcome, started_at,
    duration_ms, tokens, cost_usd, estimated, content)
SELECT t.no, t.run, t.position, t.suite, t.case_id, t.number, coalesce(f.no, t.case_no), t.case_key, t.agent, t.outcome,
    t.started_at, t.duration_ms, t.tokens, t.cost_usd,
    CASE WHEN json_valid(t.content) THEN coalesce(json_extract(t.content, '$.estimated'), 0) ELSE 0 END, t.content
FROM trials t LEFT JOIN cases c ON c.no = t.case_no LEFT JOIN first_cases f ON f.key = c.key
"""


def _to_version_4(connection: sqlite3.Connection) -> None:
    """Move scores from JSON to rows, and let trials of equal cases share one case.

    Python decodes the JSON: a lone surrogate that SQLite decodes cannot be read back.
    """
    _create_tables(connection, _TABLES_OF_VERSION_4)
    for no, scores in _rows(connection, "trials", "scores"):
        connection.executemany(
            "INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _scores_of_version_3(no, scores)
        )
    connection.execute("CREATE TEMP TABLE first_cases (key TEXT PRIMARY KEY, no INTEGER NOT NULL)")
    connection.execute("INSERT INTO first_cases SELECT key, min(no) FROM cases GROUP BY key")
    connection.execute(_MOVE_TRIALS)
    connection.execute("DELETE FROM cases WHERE no NOT IN (SELECT no FROM first_cases)")
    connection.execute("DROP TABLE first_cases")
    connection.execute("DROP TABLE trials")
    connection.execute("ALTER TABLE new_trials RENAME TO trials")


def _scores_of_version_3(trial: int, content: str) -> list[tuple[Any, ...]]:
    """The rows of a trial's scores; empty if they are damaged, so that the other trials can still be read."""
    rows = []
    try:
        for place, score in enumerate(json.loads(content)):
            evaluator, outcome, value, threshold, gates, turn, fingerprint, reasoning, details, duration_ms = score[:10]
            known = (encode_text(evaluator), outcome, value, threshold, int(gates), turn, encode_text(fingerprint))
            rest = (encode_text(reasoning), json.dumps(details or {}, separators=(",", ":")), duration_ms or 0.0)
            rows.append((trial, place, *known, *rest))
    except (ValueError, TypeError, AttributeError):
        return []
    return rows


_STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {3: _to_version_3, 4: _to_version_4}
"""By version: the migration from the version before."""


def _rows(connection: sqlite3.Connection, table: str, column: str) -> Iterator[tuple[int, Any]]:
    """The numbers of all rows of a table with the values of one column, read in batches."""
    query = f"SELECT no, {column} FROM {table} WHERE no > ? ORDER BY no LIMIT ?"  # noqa: S608  made of constants
    last = 0
    while rows := connection.execute(query, (last, BATCH)).fetchall():
        yield from rows
        last = rows[-1][0]
