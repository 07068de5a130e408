"""JSON Lines: one case a line, what holds for all of them on a line of its own, every problem with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.running.run import RunRequest, run_suites

HEAD = {"suite": {"name": "many", "evaluators": [{"Contains": {"threshold": 0.5}}]}}
ROWS: list[Json] = [
    {"id": "plain", "input": "one", "expected": {"contains": ["one"]}},
    {"id": "own", "input": "two", "expected": "two", "evaluators": ["...", "ExactMatch"], "tags": ["picked"]},
    {"turns": [{"input": "three", "evaluators": ["ExactMatch"], "expected": "three"}], "repeat": 2},
    {"id": "a \\u escape", "input": 'not a "suite"', "expected": {"contains": "not"}},
]


def written(folder: Path, *rows: Json) -> Path:
    path = folder / "many.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows) + "\n")
    return path


def the_suite(path: Path) -> Suite:
    (suite,) = load([path])
    return suite


def outcomes(suite: Suite, store: Path | None = None, **asked: Any) -> dict[tuple[str, int], str]:
    result, _ = run_suites(RunRequest([suite], agent=lambda text: text, store=store, **asked))
    return {(trial.case.id, trial.number): trial.outcome.value for trial in result.trials}


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_file_has_the_same_cases_wherever_its_head_stands(tmp_path: Path, at: int) -> None:
    suite = the_suite(written(tmp_path, *ROWS[:at], HEAD, *ROWS[at:]))
    first = the_suite(written(tmp_path, HEAD, *ROWS))
    assert (suite.name, suite.evaluators, suite.cases) == (first.name, first.evaluators, first.cases)


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    twice = {"id": "plain", "input": "x", "expected": "x"}
    path = written(tmp_path, HEAD, *ROWS, {"id": "bad", "inputt": "x"}, twice)
    path.write_text(path.read_text() + '{"id": "broken", \n')

    with pytest.raises(InvalidSuite) as caught:
        load([path])

    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert (11, "needs 'input', 'turns' or 'scenario'") in told
    assert (13, "'plain' is also the id of cases[0]") in told
    assert [line for line, message in told if "not valid JSON" in message] == [14]


def test_bytes_that_are_not_utf_8_are_told_with_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, *ROWS)
    path.write_bytes(path.read_bytes() + b'{"id": "\xff", "input": "x"}\n')
    with pytest.raises(InvalidSuite, match=r"many\.jsonl:10: is not UTF-8"):
        load([path])


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match=r"many\.jsonl.*empty"):
        load([written(tmp_path, HEAD)])
    with pytest.raises(InvalidSuite, match="not a suite in any known format"):
        load([written(tmp_path, {"log": "line"}, {"log": "another"})])
    assert [suite.name for suite in load([written(tmp_path, HEAD, *ROWS).parent])] == ["many"]


def test_the_cases_run_with_their_own_evaluators_and_repeats(tmp_path: Path) -> None:
    suite = the_suite(written(tmp_path, HEAD, *ROWS))

    assert outcomes(suite) == dict.fromkeys(
        [("plain", 1), ("own", 1), ("three", 1), ("three", 2), ("a \\u escape", 1)], "passed"
    )
    assert outcomes(suite, select=lambda _, case: "picked" in case.tags) == {("own", 1): "passed"}


def test_a_quarantine_beside_the_file_counts(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, *ROWS)
    line = {"suite": "many", "case": "own", "reason": "flaky", "until": "2999-01-01"}
    path.with_name("many.quarantine.jsonl").write_text(json.dumps(line) + "\n")

    assert [case.quarantine is not None for case in the_suite(path).cases] == [False, True, False, False]
