"""Answers of judges are on disk as soon as they arrive, and found by their content."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from proctor.base.errors import StoreError
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.store import Store

ENTRY = {"judge": "openai:m", "kind": "claims", "version": 2, "reply": "{}", "usage": {"cost_usd": 0.25}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Store(tmp_path / "s").path


def test_what_is_kept_is_found_by_another_connection_at_once(path: Path) -> None:
    StoredJudgeCalls(path).put("k", ENTRY)
    assert StoredJudgeCalls(path).get("k") == ENTRY
    assert StoredJudgeCalls(path).get("other") is None


def test_the_first_answer_to_a_question_stays(path: Path) -> None:
    calls = StoredJudgeCalls(path)
    calls.put("k", ENTRY)
    calls.put("k", {"reply": "later"})
    assert calls.get("k") == ENTRY


def test_words_that_no_encoding_holds_are_kept(path: Path) -> None:
    entry = {"judge": "half \ud800", "kind": "\ud800", "reply": "naïve \ud800 東京", "usage": None}
    calls = StoredJudgeCalls(path)
    calls.put("k", entry)
    assert calls.get("k") == entry


def test_what_it_cost_can_be_asked_in_sql(path: Path) -> None:
    import sqlite3

    StoredJudgeCalls(path).put("k", ENTRY)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT judge, kind, version, cost_usd FROM judge_calls").fetchall()
    assert rows == [("openai:m", "claims", 2, 0.25)]


def test_many_threads_can_keep_and_find(path: Path) -> None:
    calls, wrong = StoredJudgeCalls(path), []

    def work(number: int) -> None:
        for step in range(20):
            calls.put(f"{number}-{step}", {"reply": step})
            if calls.get(f"{number}-{step}") != {"reply": step}:
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_damaged_entry_is_a_store_error_and_an_odd_one_is_not_found(path: Path) -> None:
    import sqlite3

    calls = StoredJudgeCalls(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = "('broken', 0, '{'), ('odd', 0, '3')"
        connection.execute(f"INSERT INTO judge_calls (key, created_at, content) VALUES {rows}")
    assert calls.get("odd") is None
    with pytest.raises(StoreError):
        calls.get("broken")
