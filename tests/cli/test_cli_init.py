"""The first minute: `proctor init`, `proctor test`."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from command_line import PYTEST

from proctor.agents.frameworks import shipped_adapters
from proctor.cli.init import TEMPLATES

Command = Callable[..., Any]
PACKAGES = {adapter.name: adapter.packages for adapter in shipped_adapters() if adapter.name in TEMPLATES}


def test_what_init_writes_passes_fits_its_schema_and_tells_what_to_run(proctor_process: Command, project: Path) -> None:
    first = proctor_process("init", "my suite")
    assert first.code == 0
    assert "now run: proctor test 'my suite/suite.yaml'" in first.out
    assert proctor_process("test", "my suite").code == 0
    folder = project / "my suite"
    schema = (folder / "suite.schema.json").read_text(encoding="utf-8")
    data = yaml.safe_load((folder / "suite.yaml").read_text(encoding="utf-8"))
    assert jsonschema_rs.validator_for(yaml.safe_load(schema)).is_valid(data)


def test_init_never_overwrites(proctor: Command, project: Path) -> None:
    assert proctor("init").code == 0
    (project / "suite.yaml").write_text("mine")
    again = proctor("init")
    assert again.code == 2
    assert "already exists" in again.err
    assert (project / "suite.yaml").read_text() == "mine"


def test_init_where_nothing_can_be_written_is_said_plainly(proctor: Command, project: Path) -> None:
    (project / "taken").write_text("a file")
    assert proctor("init", "taken").code == 2
    assert proctor("init", "taken/inside").code == 4


def test_the_first_suite_asks_for_something(proctor: Command) -> None:
    proctor("init")
    assert proctor("test", "--agent", "oracle").code == 0
    assert proctor("test", "--agent", "nop").code == 1


def _require(name: str) -> None:
    for package in PACKAGES.get(name, ()):
        try:
            version(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed here; `make frameworks` runs this template with it")


def _next_command(told: str) -> list[str]:
    [line] = [line for line in told.splitlines() if line.startswith("now run: ")]
    return shlex.split(line.removeprefix("now run: "))


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_a_template_writes_can_be_read_and_overwrites_nothing(proctor: Command, project: Path, name: str) -> None:
    ended = proctor("init", "made", "--template", name)
    assert ended.code == 0, ended.err
    (project / "made" / "requirements.txt").unlink(missing_ok=True)
    files = [path for path in (project / "made").rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        path.write_text("mine")
    for path in files:
        for other in files:
            if other != path:
                other.unlink(missing_ok=True)
        path.write_text("mine")
        assert proctor("init", "made", "-t", name).code == 2
        assert [found for found in (project / "made").rglob("*") if found.is_file()] == [path]
        assert path.read_text() == "mine"


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name not in ("plain", "adk_ts")])
def test_what_a_template_writes_passes(proctor_process: Command, project: Path, name: str) -> None:
    _require(name)
    (project / "agents.py").unlink()  # of the same name as a package of a framework
    written = proctor_process("init", "made", "-t", name)
    assert written.code == 0, written.err
    assert "it needs" not in written.out
    program, *words = _next_command(written.out)
    if program == "proctor":
        ended = proctor_process(*words)
        assert ended.code == 0, ended.out + ended.err
        assert "2 of 2 cases passed" in ended.out
        if name in ("adk", "holodeck"):  # the others have the suite of the plain one
            assert proctor_process(*words[:2], "--agent", "nop").code == 1
        return
    command = [*PYTEST, "-q", *words[1:]]
    done = subprocess.run(command, cwd=project / "made", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_a_template_that_needs_a_package_says_so(proctor: Command) -> None:
    missing = [name for name in PACKAGES if not _is_installed(name)]
    for name in missing:
        assert f"it needs: pip install {' '.join(PACKAGES[name])}" in proctor("init", name, "-t", name).out


def _is_installed(name: str) -> bool:
    try:
        return bool([version(package) for package in PACKAGES[name]])
    except PackageNotFoundError:
        return False


def test_requirements_that_exist_are_kept_and_what_the_agent_needs_is_named(proctor: Command, project: Path) -> None:
    (project / "made").mkdir()
    (project / "made" / "requirements.txt").write_text("mine\n")
    ended = proctor("init", "made", "-t", "langchain")
    assert ended.code == 0
    assert "requirements.txt exists; add what the agent needs: langchain langgraph" in ended.err
    assert (project / "made" / "requirements.txt").read_text() == "mine\n"
    assert proctor("init", "new", "-t", "langchain").code == 0
    lines = (project / "new" / "requirements.txt").read_text().splitlines()
    assert lines[1:] == ["langchain", "langgraph"]
