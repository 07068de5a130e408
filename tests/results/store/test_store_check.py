"""A run is reported as saved only if its file has the trials."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from engine_helpers import case, run, suite

from proctor.results.trial import Trial


class Emptying:
    """A listener that removes stored trials behind Proctor's back, as a truncated file does."""

    def __init__(self, store: Path) -> None:
        self._file = store / "results.db"

    def started(self, *_: object) -> None:
        return

    def trial_done(self, trial: Trial) -> None:
        with sqlite3.connect(self._file) as database:
            database.execute("DELETE FROM trials")
        database.close()

    def finished(self, *_: object) -> None:
        return


def test_a_run_whose_trials_are_gone_from_the_store_is_not_reported_as_saved(tmp_path: Path) -> None:
    found, verdict = run(
        suite([case("a")]), agent=lambda question: question, store=tmp_path, listener=Emptying(tmp_path)
    )

    assert "it has 0 of 1 trials" in found.note
    assert found.store is None
    assert verdict.exit_code != 0
