"""A case that takes more instructions than it did stops the build; counts are fed here, valgrind is not asked."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from repository import ROOT

USUAL = {
    "python -c pass": 40_000_000,
    "proctor test, one case, in all": 500_000_000,
    "plain Python, for calibration": 100_000,
    "proctor test, stored": 1_000_000,
    "bare loop, stored": 500_000,
}


@pytest.fixture
def instructions(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delenv("CI", raising=False)
    return importlib.import_module("instructions")


@pytest.fixture
def committed(instructions: ModuleType, tmp_path: Path) -> Path:
    file = tmp_path / "instructions.json"
    assert instructions.main(["--accept"], lambda: dict(USUAL), file) == 0
    return file


@pytest.mark.parametrize(("more", "code"), [(0.5, 0), (1.0, 0), (1.04, 0), (1.06, 1), (3.0, 1)])
def test_a_count_that_grew_by_more_than_five_percent_is_red(
    more: float, code: int, instructions: ModuleType, committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = USUAL | {"proctor test, stored": round(1_000_000 * more)}

    assert instructions.main(["--guard"], lambda: now, committed) == code
    grown = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if line.endswith("GREW")]
    assert grown == ["proctor test, stored"] * code


def test_without_the_guard_a_grown_count_is_only_shown(
    instructions: ModuleType, committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert instructions.main([], lambda: USUAL | {"proctor test, stored": 2_000_000}, committed) == 0
    printed = capsys.readouterr().out
    assert "+100.0 %  GREW" in printed
    assert "proctor test / bare loop with the same store: 4.00x" in printed
    assert "one case, start to end: 12.50x" in printed


def test_another_build_of_python_is_calibrated_first(
    instructions: ModuleType, committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = json.loads(committed.read_text())
    held[instructions.VERSION]["builds"]["python"] = "a build without optimisation"
    committed.write_text(json.dumps(held))
    slower = {title: 2 * count for title, count in USUAL.items()}

    assert instructions.main(["--guard"], lambda: slower, committed) == 0
    assert "another build of python" in capsys.readouterr().out
    assert instructions.main(["--guard"], lambda: slower | {"proctor test, stored": 2_500_000}, committed) == 1


def test_what_cannot_be_guarded_is_said_and_is_red_in_ci(
    instructions: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing_known = tmp_path / "instructions.json"

    assert instructions.main(["--guard"], lambda: USUAL, nothing_known) == 0
    assert "nothing is guarded" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert instructions.main(["--guard"], lambda: USUAL, nothing_known) == 1
    monkeypatch.setenv("PATH", str(tmp_path))
    assert instructions.main(["--guard"], None, nothing_known) == 1
    assert "valgrind is not installed (apt-get install valgrind)" in capsys.readouterr().out


def test_the_committed_counts_have_every_part_that_is_counted(instructions: ModuleType) -> None:
    held = json.loads(instructions.COMMITTED.read_text(encoding="utf-8"))
    parts = importlib.import_module("instruction_parts")
    titles = {title for title, _ in parts.parts()} | {instructions.NOTHING, instructions.ONE, instructions.HOLODECK}

    for version, kept in held.items():
        assert set(kept["counts"]) == titles, version


def test_a_bare_interpreter_that_takes_longer_to_start_is_not_ours(instructions: ModuleType, committed: Path) -> None:
    assert instructions.main(["--guard"], lambda: USUAL | {"python -c pass": 60_000_000}, committed) == 0
