"""Who says how a run is made: the command line before the suite, the suite before the project, the project before the
environment, and all of them before the defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.config import read_configuration

Command = Callable[..., Any]

CASES = "agent: agents.py:echo\ncases: [{id: one, input: hi, expected: hi}]\n"


def _trials(proctor: Command, *options: str) -> int:
    return len(json.loads(proctor("test", "s.yaml", "--json", "-", *options).out)["trials"])


def test_each_source_of_settings_beats_the_next(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite("s.yaml", text=CASES)
    assert _trials(proctor) == 1
    monkeypatch.setenv("PROCTOR_REPEAT", "2")
    assert _trials(proctor) == 2
    (project / "proctor.toml").write_text("repeat = 3\n")
    assert _trials(proctor) == 3
    suite("s.yaml", text="settings: {repeat: 4}\n" + CASES)
    assert _trials(proctor) == 4
    suite("s.yaml", text="settings: {repeat: 4}\n" + CASES.replace("id: one", "repeat: 5"))
    assert _trials(proctor) == 5
    assert _trials(proctor, "--repeat", "6") == 6


def test_settings_are_taken_one_by_one_and_doctor_says_from_where(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_TIMEOUT", "7.5")
    monkeypatch.setenv("PROCTOR_RETRIES", "1")
    (project / "pyproject.toml").write_text("[tool.proctor]\nretries = 0\nstore = 'kept'\n")
    report = json.loads(proctor("doctor", "--json").out)
    assert report["settings"]["timeout"] == {"value": 7.5, "origin": "PROCTOR_TIMEOUT"}
    assert report["settings"]["retries"] == {"value": 0, "origin": str(project / "pyproject.toml")}
    assert report["settings"]["parallel"]["origin"] == "default"
    assert report["store"]["folder"] == str(project / "kept")
    text = proctor("doctor").out
    assert "7.5" in text
    assert "10 MB" in text


def test_a_folder_above_may_hold_the_project_file_and_the_nearest_one_counts(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text("[tool.proctor]\nrepeat = 9\n")
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    assert json.loads(proctor("doctor", "--json").out)["settings"]["repeat"]["value"] == 9
    (project / "inner" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert json.loads(proctor("doctor", "--json").out)["settings"]["repeat"]["value"] == 9
    (project / "inner" / "proctor.toml").write_text("repeat = 2\n")
    assert json.loads(proctor("doctor", "--json").out)["settings"]["repeat"]["value"] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repat = 2\nrepeet = 3\n", "'repat' is not a known setting; did you mean 'repeat'?"),
        ("repat = 2\nrepeet = 3\n", "'repeet' is not a known setting; did you mean 'repeat'?"),
        ("repeat = 2.7\n", "repeat must be a whole number, not 2.7"),
        ("repeat = '2'\n", "repeat must be a whole number, not '2'"),
        ("repeat = true\n", "repeat must be a whole number, not True"),
        ("repeat = 0\n", "repeat must be at least 1, not 0"),
        ("retries = -1\n", "retries must be at least 0, not -1"),
        ("retries = -1\n", "retries must be"),
        ("timeout = 0\n", "timeout must be more than 0"),
        ("timeout = nan\n", "timeout must be more than 0"),
        ("timeout = inf\n", "timeout must be"),
        ("timeout = [1]\n", "timeout must be a number of seconds"),
        ("store = 5\n", "store must be text, not 5"),
        ("store = ['a']\n", "store must be text"),
        ("repeat = \n", "is not valid TOML"),
        ("[proctor]\nrepeat = 1\n", "'proctor' is not a known setting"),
    ],
)
def test_a_mistake_in_the_project_file_is_named_and_nothing_runs(
    proctor: Command, suite: Command, project: Path, text: str, said: str
) -> None:
    suite()
    (project / "proctor.toml").write_text(text)
    ended = proctor("test")
    assert ended.code == 2
    assert said in ended.err
    assert "proctor.toml" in ended.err
    assert not (project / ".proctor").exists()


def test_a_project_file_that_is_not_utf_8_or_not_a_table_is_a_mistake_too(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    (project / "pyproject.toml").write_text("[[tool.proctor]]\nrepeat = 2\n")
    assert "tool.proctor must be a table" in proctor("test").err
    (project / "pyproject.toml").write_text("# tool.proctor\ntool = 3\n")
    assert proctor("test").code == 0
    (project / "proctor.toml").write_bytes(b"\xff\xfe")
    assert "is not valid TOML" in proctor("test").err


@pytest.mark.parametrize(
    ("variable", "value"),
    [("REPEAT", "two"), ("REPEAT", "2.5"), ("REPEAT", "0"), ("TIMEOUT", "nan"), ("TIMEOUT", "-1"), ("PARALLEL", "x")],
)
def test_a_mistake_in_the_environment_is_named(
    proctor: Command, suite: Command, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    suite()
    monkeypatch.setenv(f"PROCTOR_{variable}", value)
    ended = proctor("test")
    assert ended.code == 2
    assert f"PROCTOR_{variable}" in ended.err


def test_the_store_may_be_elsewhere(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite()
    assert proctor("test", "--store", "given/deep").code == 0
    assert (project / "given" / "deep" / "results.db").is_file()
    assert not (project / ".proctor").exists()
    assert proctor("runs", "--store", "given/deep").out.count("passed") >= 1
    monkeypatch.setenv("PROCTOR_STORE", "named")
    assert proctor("test").code == 0
    assert (project / "named" / "results.db").is_file()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("cluster = 1", "cluster must be a table of settings"),
        ("[cluster]\ntls_cert = 1", "cluster.tls_cert must be a file name, not 1"),
        ("[cluster]\nupload = 'yes'", "cluster.upload must be true or false, not 'yes'"),
        ("[cluster]\nuplod = true", "cluster.uplod is not a known setting; did you mean 'upload'?"),
    ],
)
def test_a_mistake_in_the_settings_of_a_cluster_is_said_with_its_name(
    proctor: Command, suite: Command, project: Path, table: str, message: str
) -> None:
    suite()
    (project / "proctor.toml").write_text(f"{table}\n")
    ended = proctor("test")
    assert ended.code == 2
    assert message in ended.err


def test_files_of_a_cluster_start_from_the_project_file_and_count_only_with_a_cluster(
    proctor: Command, suite: Command, project: Path
) -> None:
    (project / "pyproject.toml").write_text("[tool.proctor.cluster]\nupload = true\ntls_ca = 'keys/ca.pem'\n")
    (project / "keys").mkdir()
    (project / "keys" / "ca.pem").write_text("")
    inner = project / "inner"
    inner.mkdir()
    found = read_configuration(inner).cluster
    assert found == {"upload": True, "tls_ca": str(project / "keys" / "ca.pem")}
    suite()
    assert proctor("test").code == 0
