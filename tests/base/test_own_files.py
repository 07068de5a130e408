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
def test_a_file_that_proctor_wrote_is_recognized_by_its_beginning(
    tmp_path: Path, name: str, text: str, own: bool
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert is_own_output(path) is own


def test_a_missing_file_is_not_one_that_proctor_wrote(tmp_path: Path) -> None:
    assert not is_own_output(tmp_path / "gone.json")
