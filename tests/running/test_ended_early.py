"""A trial that ended before it was scored stays what it was; one that nothing scored can be scored later."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from engine_helpers import case, outcomes, run, suite

from proctor.cases.suite import EvaluatorSpec
from proctor.results.score import Outcome
from proctor.results.store.run_files import import_run
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.running.rescore import rescore
from proctor.running.settings import RunOptions

EARLIER = Path(__file__).with_name("earlier_version") / "run.jsonl"
"""A run that the version wrote which did not yet store whether a trial ended early."""
SAYS_HELLO = (EvaluatorSpec("Contains", {"any": ["hello"]}),)


def again(folder: Path) -> dict[str, Outcome]:
    return outcomes(rescore(folder, "last", options=RunOptions(backoff=0.0), evaluators=SAYS_HELLO))


@pytest.fixture
def earlier_store(tmp_path: Path) -> Path:
    """A store as the earlier version left it: nothing in it says whether a trial ended early."""
    import_run(Store(tmp_path), EARLIER.read_text().splitlines(), EARLIER.name)
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database, database:
        for number, content in database.execute("SELECT no, content FROM trials").fetchall():
            data = json.loads(content)
            data.pop("ended_early", None)
            database.execute("UPDATE trials SET content = ? WHERE no = ?", (json.dumps(data), number))
    return tmp_path


def test_trials_of_an_earlier_version_are_distinguished(earlier_store: Path) -> None:
    trials = {trial.case.id: trial for trial in Store(earlier_store).find_run("last").trials}
    assert {name: trial.ended_early for name, trial in trials.items()} == {
        "scored": False,
        "unscored": False,
        "broken": True,
        "skipped": True,
    }


def test_a_run_of_an_earlier_version_is_rescored_where_there_was_an_answer(earlier_store: Path) -> None:
    assert again(earlier_store) == {
        "scored": Outcome.PASSED,
        "unscored": Outcome.PASSED,
        "broken": Outcome.FAILED,
        "skipped": Outcome.SKIPPED,
    }


def test_what_decides_is_not_how_the_reason_is_worded(tmp_path: Path) -> None:
    def agent(question: str) -> str:
        if question == "nothing scores this case":
            raise ValueError
        return "hello"

    odd = case("nothing scores this case")
    run(suite([case("good", "hello"), odd]), agent=agent, store=tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database, database:
        for number, content in database.execute("SELECT no, content FROM trials WHERE outcome = 'failed'").fetchall():
            reworded = {**json.loads(content), "reason": "nothing scores this case"}
            database.execute("UPDATE trials SET content = ? WHERE no = ?", (json.dumps(reworded), number))

    assert again(tmp_path) == {"good": Outcome.PASSED, odd.id: Outcome.FAILED}


def test_an_answer_that_only_models_could_score_is_scored_once_they_may(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(
        "from proctor.base.errors import NeedsModel\ndef asks(evaluable):\n    raise NeedsModel('no model')\n"
    )
    here = suite([case("a", "hello")], evaluators=(EvaluatorSpec(f"{tmp_path / 'checks.py'}:asks"),))
    first = run(here, agent=lambda question: "hello", store=tmp_path, fast=True)
    assert outcomes(first) == {"a": Outcome.SKIPPED}
    assert again(tmp_path) == {"a": Outcome.PASSED}
