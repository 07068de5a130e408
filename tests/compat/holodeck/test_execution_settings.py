from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.compat.holodeck.settings import DEFAULTS

OTHERS: dict[str, Any] = {
    "file_timeout": 7,
    "llm_timeout": 8.5,
    "download_timeout": 9,
    "cache_enabled": False,
    "cache_dir": "elsewhere",
    "verbose": True,
    "quiet": True,
    "parallel_test_cases": 5,
}


@pytest.fixture(autouse=True)
def nobody_says_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DEFAULTS:
        monkeypatch.delenv(f"HOLODECK_{name.upper()}", raising=False)
    (tmp_path / "home" / ".holodeck").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def suite(folder: Path, execution: dict[str, Any] | None = None) -> Suite:
    data: dict[str, Any] = {
        "name": "bot",
        "model": {"provider": "openai", "name": "m"},
        "instructions": {"inline": "x"},
        "test_cases": [{"input": "q", "expected_tools": ["t"]}],
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(data if execution is None else data | {"execution": execution}))
    [read] = load([path])
    return read


def config(folder: Path, **execution: Any) -> Path:
    path = folder / "config.yml"
    path.write_text(yaml.safe_dump({"execution": execution}))
    return path


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_first_who_says_something_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def resolved(execution: dict[str, Any] | None = None) -> tuple[Any, str]:
        found = suite(tmp_path, execution).resolved[f"execution.{name}"]
        return found.value, found.origin

    assert resolved() == (DEFAULTS[name], "default")
    variable = f"HOLODECK_{name.upper()}"
    monkeypatch.setenv(variable, str(OTHERS[name]))
    assert resolved() == (OTHERS[name], variable)
    user = config(tmp_path / "home" / ".holodeck", **{name: DEFAULTS[name]})
    assert resolved() == (DEFAULTS[name], str(user))
    project = config(tmp_path, **{name: OTHERS[name]})
    assert resolved() == (OTHERS[name], str(project))
    assert resolved({name: DEFAULTS[name]}) == (DEFAULTS[name], str(tmp_path / "agent.yaml"))


def test_what_is_resolved_is_what_the_suite_is_run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config(tmp_path, parallel_test_cases=3)
    monkeypatch.setenv("HOLODECK_LLM_TIMEOUT", "12")
    settings = suite(tmp_path).settings
    assert (settings.parallel, settings.timeout) == (3, 12)


def test_where_nobody_names_a_timeout_the_suite_has_none_of_its_own(tmp_path: Path) -> None:
    assert suite(tmp_path).settings.timeout is None


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("HOLODECK_LLM_TIMEOUT", "soon", "HOLODECK_LLM_TIMEOUT must be a positive number of seconds, not 'soon'"),
        ("HOLODECK_FILE_TIMEOUT", "-1", "must be a positive number of seconds"),
        ("HOLODECK_FILE_TIMEOUT", "nan", "must be a positive number of seconds"),
        ("HOLODECK_PARALLEL_TEST_CASES", "1.5", "must be a whole number, 1 or more"),
        ("HOLODECK_VERBOSE", "maybe", "must be true or false"),
    ],
)
def test_an_environment_that_cannot_be_understood_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, complaint: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(InvalidSuite, match=complaint):
        suite(tmp_path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("execution: {llm_timeout: 0}", "config.yml:1: execution.llm_timeout must be more than 0"),
        ("execution: {llm_timout: 5}", "did you mean 'llm_timeout'?"),
        ("execution: 3", "execution must be an object"),
        ("execution: [", "config.yml"),
    ],
)
def test_a_configuration_file_that_is_wrong_says_where(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "config.yml").write_text(content)
    with pytest.raises(InvalidSuite) as caught:
        suite(tmp_path)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("content", ["", "- 1", "database: {url: x}", "jobs: [build]"])
def test_a_configuration_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.yml").write_text(content)
    assert suite(tmp_path).settings.parallel == 1


@pytest.mark.parametrize("key", ["observability", "deployment"])
def test_what_is_about_running_it_elsewhere_is_kept_and_warned_about(tmp_path: Path, key: str) -> None:
    path = tmp_path / "agent.yaml"
    suite(tmp_path)
    path.write_text(path.read_text() + f"\n{key}: {{a: 1}}\n")
    [read] = load([path])
    assert [warning.where for warning in read.warnings] == [key]
