"""The first minute: `proctor init`, `proctor test`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

Command = Callable[..., Any]


def test_what_init_writes_passes_fits_its_schema_and_tells_what_to_run(shell: Command, here: Path) -> None:
    first = shell("init", "my suite")
    assert first.code == 0
    assert "now run: proctor test 'my suite/suite.yaml'" in first.out
    assert shell("test", "my suite").code == 0
    folder = here / "my suite"
    schema = (folder / "suite.schema.json").read_text(encoding="utf-8")
    data = yaml.safe_load((folder / "suite.yaml").read_text(encoding="utf-8"))
    assert jsonschema_rs.validator_for(yaml.safe_load(schema)).is_valid(data)


def test_init_never_overwrites(proctor: Command, here: Path) -> None:
    assert proctor("init").code == 0
    (here / "suite.yaml").write_text("mine")
    again = proctor("init")
    assert again.code == 2
    assert "exists already" in again.err
    assert (here / "suite.yaml").read_text() == "mine"


def test_init_where_nothing_can_be_written_is_said_plainly(proctor: Command, here: Path) -> None:
    (here / "taken").write_text("a file")
    assert proctor("init", "taken").code == 2
    assert proctor("init", "taken/inside").code == 4


def test_the_first_suite_asks_for_something(proctor: Command) -> None:
    proctor("init")
    assert proctor("test", "--agent", "oracle").code == 0
    assert proctor("test", "--agent", "nop").code == 1
