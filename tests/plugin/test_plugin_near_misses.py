"""A file with the name of a suite and a misspelled key is an error of the collection, not a file without tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.plugin.startup import is_suite


@pytest.mark.needs("holodeck", "adk")
@pytest.mark.parametrize(
    ("name", "text", "is_collected"),
    [
        ("agent.yaml", "name: a\nmodel: {}\ntest_casess: []\n", True),
        ("agent.yaml", "name: shop\nCases: []\n", True),
        ("set.evalset.json", '{"evalSetID": "set", "evalCase": []}', True),
        ("agent.yaml", "logging: {level: debug}\n", False),
        ("notes.yaml", "casess: []\n", False),  # pytest looks only at names that suites have
    ],
)
def test_pytest_collects_a_misspelled_suite_so_that_it_is_reported(
    tmp_path: Path, name: str, text: str, is_collected: bool
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert is_suite(path, tmp_path, (), named=False) is is_collected
