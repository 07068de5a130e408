"""Judge answers in the store, so that each is paid for only once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.base.json_data import Json
from proctor.base.masking import mask_data
from proctor.cases.encoding import dumps
from proctor.results.store.database import Database
from proctor.results.store.text_columns import encode_text


class StoredJudgeCalls:
    """Stores each answer of a judge when it arrives, by a key of the question; later runs find it.

    It has its own database connection, so that an answer is stored even if its trial is not.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._database.close()

    def get(self, key: str) -> Mapping[str, Json] | None:
        """The stored answer with this key, or None."""
        if not key.isascii():  # not a key of Proctor; an imported run can contain anything
            return None
        with self._lock, self._database.store_errors("read"):
            rows = list(self._database.read("SELECT content FROM judge_calls WHERE key = ?", (key,)))
            answer = json.loads(rows[0][0]) if rows else None
            return answer if isinstance(answer, dict) else None

    def put(self, key: str, entry: Mapping[str, Json]) -> None:
        """Store an answer; it is on disk when this returns. An existing answer to the question is not replaced."""
        usage = entry.get("usage")
        cost = usage.get("cost_usd") if isinstance(usage, Mapping) else None
        row = (key, time.time(), _text(entry.get("judge")), _text(entry.get("kind")), entry.get("version"), cost)
        with self._lock, self._database.transaction():
            self._database.execute(
                "INSERT OR IGNORE INTO judge_calls (key, created_at, judge, kind, version, cost_usd, content)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row, dumps(mask_data(entry))),
            )


def _text(value: Any) -> str | None:
    return None if value is None else encode_text(str(value))
