from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, cases, echo, outcomes, run, suite, trials_of

from proctor.base.errors import StoreError
from proctor.results.score import Outcome
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.trial import Trial


class Looks:
    """A listener that looks into the database itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told = 0

    def started(self, of: Any, planned: int, kept: int) -> None:
        return None

    def trial_done(self, trial: Trial) -> None:
        self.told += 1
        database = sqlite3.connect(self.path)
        (found,) = database.execute(
            "SELECT count(*) FROM trials t JOIN scores s ON s.trial = t.no WHERE t.case_id = ?", (trial.case.id,)
        ).fetchone()
        database.close()
        assert found == 1

    def finished(self, of: Any, verdict: Any) -> None:
        database = sqlite3.connect(self.path)
        assert database.execute("SELECT count(*) FROM trials").fetchone() == (self.told,)
        database.close()


def test_every_trial_is_stored_before_it_is_reported(tmp_path: Path) -> None:
    looks = Looks(tmp_path / DATABASE_FILE)
    run(suite(cases(100), parallel=10), agent=echo, store=tmp_path, listener=looks)

    assert looks.told == 100


def test_a_store_that_cannot_be_made_is_a_store_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")

    with pytest.raises(StoreError):
        run(suite(cases(3)), agent=lambda question: pytest.fail("was asked"), store=tmp_path / "store")


class Full(Store):
    """A store on a disk that is nearly full."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        (pages,) = self._database._connection.execute("PRAGMA page_count").fetchone()
        self._database._connection.execute(f"PRAGMA max_page_count = {pages + 3}")


def test_a_full_disk_stops_the_run_and_loses_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.running.run.Store", Full)
    answered: list[str] = []

    async def agent(question: str) -> str:
        answered.append(question)
        return question

    talkative = [case(f"case-{number}", description="x" * 500) for number in range(200)]
    found = run(suite(talkative, parallel=1), agent=agent, store=tmp_path)

    assert "full" in found[0].note
    assert found[1].exit_code == 4
    assert 3 < len(answered) < 200
    assert list(outcomes(found)) in (answered, answered[:-1]), "but for one that may have been under way"
    assert set(outcomes(found).values()) == {Outcome.PASSED}
    assert [summary.case_id for summary in found[0].summaries] == list(outcomes(found))

    monkeypatch.undo()
    resumed = run(suite(talkative, parallel=1), agent=agent, store=tmp_path, resume=True)
    assert resumed[0].id == found[0].id
    assert resumed[1].exit_code == 0
    assert len(trials_of(resumed)) == 200


def test_results_are_in_order_although_only_some_could_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to be kept is the last of the plan."""
    import asyncio

    monkeypatch.setattr("proctor.running.run.Store", Full)
    turns = [asyncio.Event() for _ in range(21)]
    turns[20].set()

    async def backwards(question: str) -> str:
        number = int(question.removeprefix("case-"))
        await turns[number + 1].wait()
        turns[number].set()
        return question

    talkative = [case(f"case-{number}", description="x" * 2000) for number in range(20)]
    found = run(suite(talkative, parallel=20), agent=backwards, store=tmp_path)

    ids = list(outcomes(found))
    assert ids == sorted(ids, key=lambda name: int(name.removeprefix("case-")))
    assert 3 < len(ids) < 20


def test_a_run_in_memory_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(suite(cases(3)), agent=echo)

    assert os.listdir(tmp_path) == []
