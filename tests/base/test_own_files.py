"""Which files Proctor wrote itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.base.own_files import SCORE_COLUMNS, is_own_output


@pytest.mark.parametrize(
    ("name", "text", "own"),
    [
        ("a.json", '{\n  "schema": "proctor.report/1",\n  "run": {}}', True),
        ("a.json", '[\n  {\n    "schema": "proctor.run-row/1"}]', True),
        ("a.jsonl", '{"proctor_run":1,"id":"x"}\n', True),
        ("a.csv", ",".join(SCORE_COLUMNS) + "\n", True),
        ("a.csv", "\ufeff" + ",".join(SCORE_COLUMNS) + "\r\n1,2\r\n", True),
        ("a.csv", "id,input,expected\n", False),
        ("a.json", '{"cases": [{"input": "\\"schema\\": \\"proctor.report/1\\""}]}', False),
        ("a.json", '{"schema": "proctorial"}', False),
        ("a.yaml", "schema: proctor.report/1\n", False),
        ("a.json", "", False),
    ],
)
def test_a_file_is_known_by_how_it_begins(tmp_path: Path, name: str, text: str, own: bool) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert is_own_output(path) is own


def test_a_file_that_is_not_there_is_nobodys(tmp_path: Path) -> None:
    assert not is_own_output(tmp_path / "gone.json")
