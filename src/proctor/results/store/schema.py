"""Brings databases of earlier versions to the present one, and reads cases as those versions kept them.

Version 1 had runs, cases and trials; version 2 traces as well. Both kept a case in the native file format of their
time, which is frozen here. Version 3 keeps cases in an encoding of its own and gives a run a name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping

from proctor.results.store.version_2_cases import encode_version_2_case

BATCH = 1000
"""Cases in memory at once."""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a database from `version` to the present one, inside the transaction of the caller.

    New tables are made by the caller, which makes all that are not there.
    """
    for newer, step in _STEPS.items():
        if version < newer:
            step(connection)


def _to_version_3(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE TEMP TABLE new_keys (case_no INTEGER PRIMARY KEY, key TEXT NOT NULL)")
    for no, content in _cases(connection):
        try:
            encoded, key, planned = encode_version_2_case(content)
        except Exception:  # noqa: S112  one damaged case must not keep the others from being read
            continue
        connection.execute("UPDATE cases SET key = ?, content = ? WHERE no = ?", (key, encoded, no))
        connection.execute("INSERT INTO new_keys VALUES (?, ?)", (no, planned))
    connection.execute(
        "UPDATE trials SET case_key = (SELECT key FROM new_keys WHERE new_keys.case_no = trials.case_no)"
        " WHERE case_no IN (SELECT case_no FROM new_keys)"
    )
    connection.execute("DROP TABLE new_keys")


_STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {3: _to_version_3}
"""By version: what leads to it from the one before."""


def _cases(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    last = 0
    while rows := connection.execute(
        "SELECT no, content FROM cases WHERE no > ? ORDER BY no LIMIT ?", (last, BATCH)
    ).fetchall():
        yield from rows
        last, _ = rows[-1]
