"""A large JSON Lines file means the same as a small one; its cases are read when they are needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.cases.formats.loading import load
from proctor.cases.formats.native import json_lines
from proctor.cases.formats.native.json_lines import LargeCases
from proctor.cases.suite import Case, Suite
from proctor.running.options import RunOptions, Settings
from proctor.running.run_suites import Request, run_suites

HEAD = {"suite": {"name": "many", "evaluators": [{"Contains": {"threshold": 0.5}}]}}
ROWS: list[Json] = [
    {"id": "plain", "input": "one", "expected": {"contains": ["one"]}},
    {"id": "own", "input": "two", "expected": "two", "evaluators": ["...", "ExactMatch"], "tags": ["picked"]},
    {"turns": [{"input": "three", "evaluators": ["ExactMatch"], "expected": "three"}], "repeat": 2},
    {"id": "a \\u escape", "input": 'not a "suite"', "expected": {"contains": "not"}},
]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(json_lines, "LARGE_BYTES", 1)
    yield


def written(folder: Path, *rows: Json) -> Path:
    path = folder / "many.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows) + "\n")
    return path


def the_suite(path: Path) -> Suite:
    (suite,) = load([path])
    return suite


def outcomes(suite: Suite, store: Path | None = None, **asked: Any) -> dict[tuple[str, int], str]:
    result, _ = run_suites(Request([suite], agent=lambda text: text, store=store, **asked))
    return {(trial.case.id, trial.number): trial.outcome.value for trial in result.trials}


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_large_file_has_the_cases_of_a_small_one_wherever_its_head_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    path = written(tmp_path, *ROWS[:at], HEAD, *ROWS[at:])
    small = the_suite(path)
    monkeypatch.setattr(json_lines, "LARGE_BYTES", 1)

    large = the_suite(path)

    assert isinstance(large.cases, LargeCases)
    assert tuple(large.cases) == small.cases
    assert (large.name, large.evaluators, large.cases[-1]) == (small.name, small.evaluators, small.cases[-1])
    assert large.cases[1:3] == small.cases[1:3]


@pytest.mark.usefixtures("large")
def test_every_problem_of_a_large_file_is_told_with_its_line(tmp_path: Path) -> None:
    twice = {"id": "plain", "input": "x", "expected": "x"}
    path = written(tmp_path, HEAD, *ROWS, {"id": "bad", "inputt": "x"}, twice)
    path.write_bytes(path.read_bytes() + b'{"id": "broken", \n{"id": "\xff", "input": "x"}\n')

    with pytest.raises(InvalidSuite) as caught:
        load([path])

    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert (11, "needs 'input', 'turns' or a 'scenario'") in told
    assert (13, "'plain' is also the id of cases[0]") in told
    assert [line for line, message in told if "not valid JSON" in message] == [14]
    assert [line for line, message in told if "not UTF-8" in message] == [15]


@pytest.mark.usefixtures("large")
def test_large_files_without_cases_are_what_they_are_in_small(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match=r"many\.jsonl.*empty"):
        load([written(tmp_path, HEAD)])
    with pytest.raises(InvalidSuite, match="in no known format"):
        load([written(tmp_path, {"log": "line"}, {"log": "another"})])
    assert [suite.name for suite in load([written(tmp_path, HEAD, *ROWS).parent])] == ["many"]


@pytest.mark.usefixtures("large")
def test_the_cases_of_a_large_file_run_with_their_own_evaluators_and_repeats(tmp_path: Path) -> None:
    suite = the_suite(written(tmp_path, HEAD, *ROWS))

    assert outcomes(suite) == dict.fromkeys(
        [("plain", 1), ("own", 1), ("case-3", 1), ("case-3", 2), ("a \\u escape", 1)], "passed"
    )
    assert outcomes(suite, select=lambda _, case: "picked" in case.tags) == {("own", 1): "passed"}


@pytest.mark.usefixtures("large")
def test_a_quarantine_beside_a_large_file_counts(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, *ROWS)
    line = {"suite": "many", "case": "own", "reason": "flaky", "until": "2999-01-01"}
    path.with_name("many.quarantine.jsonl").write_text(json.dumps(line) + "\n")

    assert [case.quarantine is not None for case in the_suite(path).cases] == [False, True, False, False]


def spoils_its_file(text: str, case: Case) -> str:
    with Path("asked.txt").open("a") as asked:
        asked.write(f"{case.id}\n")
    if not Path("changed").exists():
        Path("changed").touch()
        with Path("many.jsonl").open("a") as file:
            file.write("\n")
    return text


@pytest.mark.usefixtures("large")
def test_a_run_whose_large_file_is_changed_stops_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, options = written(tmp_path, HEAD, *ROWS), RunOptions(given=Settings(parallel=1))
    request = Request([the_suite(path)], options, spoils_its_file, store=tmp_path / "kept")

    run, verdict = run_suites(request)

    assert verdict.exit_code == 4
    assert "many.jsonl: was changed while it was read" in run.note

    again, verdict = run_suites(replace(request, suites=[the_suite(path)], resume=True))
    assert (again.id, verdict.exit_code) == (run.id, 0)
    assert Path("asked.txt").read_text().split("\n") == ["plain", "own", "case-3", "case-3", "a \\u escape", ""]
