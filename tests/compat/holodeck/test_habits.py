"""What people type from habit: the options and subcommands of `holodeck test`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from proctor.base.errors import UsageError
from proctor.compat.holodeck.command_line import rewrite_options

Commanded = Callable[..., tuple[int, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("def agent(question):\n    return question\n")
    tests = [{"name": name, "input": name, "ground_truth": name} for name in ("one", "two", "three")]
    data = {
        "name": "echo",
        "agent": "app.py:agent",
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": tests,
    }
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(data))
    return tmp_path


def test_the_options_of_holodeck_test_work(project: Path, commanded: Commanded) -> None:
    options = ("--output", "r.json", "--format", "json", "--limit", "2", "--parallel-test-cases", "2", "--force-ingest")
    code, output = commanded("test", "agent.yaml", *options)
    assert code == 0, output
    assert "2 of 2 cases passed" in output
    report = json.loads((project / "r.json").read_text())
    assert [result["test_name"] for result in report["results"]] == ["one", "two"]
    assert "--force-ingest has no effect" in output


@pytest.mark.parametrize("options", ["--output r.md", "--output=r.txt --format=markdown", "--output R.MD"])
def test_the_name_or_the_format_makes_it_markdown(project: Path, commanded: Commanded, options: str) -> None:
    code, output = commanded("test", "agent.yaml", *options.split())
    assert code == 0, output
    [report] = [path for path in project.iterdir() if path.suffix in (".md", ".txt", ".MD")]
    assert report.read_text().startswith("# Test Report: echo")
    assert "**HoloDeck Version:**" in report.read_text()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(["run", "agent.yaml"], "proctor test agent.yaml"), (["view"], "proctor view"), (["optimize"], "--against")],
)
def test_a_subcommand_points_to_the_right_command(
    project: Path, commanded: Commanded, arguments: list[str], hint: str
) -> None:
    code, output = commanded("test", *arguments)
    assert code == 2
    assert f"`{arguments[0]}` is a command of holodeck test" in output
    assert hint in output


def test_a_file_of_that_name_is_still_a_file(project: Path, commanded: Commanded) -> None:
    (project / "run").mkdir()
    (project / "run" / "agent.yaml").write_text((project / "agent.yaml").read_text().replace("app.py", "../app.py"))
    code, output = commanded("test", "run")
    assert (code, "3 of 3 cases passed" in output) == (0, True), output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format", "json"], "--format needs --output"),
        (["--output", "x", "--format", "xml"], "json or markdown, not 'xml'"),
        (["--output"], "--output needs a value"),
    ],
)
def test_what_cannot_be_translated_is_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        rewrite_options(arguments)


def test_other_arguments_stay_as_they_are() -> None:
    assert rewrite_options(["agent.yaml", "-n", "3", "-k", "a b", "-j", "2"]) == (
        ["agent.yaml", "--limit", "3", "-k", "a b", "-j", "2"],
        ["-n 3 means --limit 3 here"],
    )
