"""Keeps every answer of a judge the moment it arrives, by its content: paid for once, found again in any later run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.plain import Json
from proctor.results.database import Database
from proctor.results.encoding import dumps, kept_text

TABLE = """
CREATE TABLE IF NOT EXISTS judge_calls (
    no INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, created_at REAL NOT NULL, judge TEXT, kind TEXT, version INTEGER,
    cost_usd REAL, content TEXT NOT NULL)
"""


class JudgeCalls:
    """The ledger of a store; has a connection of its own, so that a verdict stands whatever becomes of its trial."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)
        self._lock = threading.Lock()
        with self._database.writing():
            self._database.execute(TABLE)

    def close(self) -> None:
        self._database.close()

    def find(self, key: str) -> Mapping[str, Json] | None:
        with self._lock, self._database.guard("read"):
            rows = list(self._database.read("SELECT content FROM judge_calls WHERE key = ?", (key,)))
            found = json.loads(rows[0][0]) if rows else None
            return found if isinstance(found, dict) else None

    def keep(self, key: str, entry: Mapping[str, Json]) -> None:
        """On disk when this returns; of two that answer the same question at once, the first one stays."""
        usage = entry.get("usage")
        cost = usage.get("cost_usd") if isinstance(usage, Mapping) else None
        row = (key, time.time(), _text(entry.get("judge")), _text(entry.get("kind")), entry.get("version"), cost)
        with self._lock, self._database.writing():
            self._database.execute(
                "INSERT OR IGNORE INTO judge_calls (key, created_at, judge, kind, version, cost_usd, content)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row, dumps(entry)),
            )


def _text(value: Any) -> str | None:
    return None if value is None else kept_text(str(value))
