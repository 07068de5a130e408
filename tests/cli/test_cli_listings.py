"""`proctor evaluators`, `formats` and `agents`: what there is, and examples that work as they are shown."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository import ROOT

from proctor.agents.resolve import resolve_agent
from proctor.cli.listings import AGENT_WAYS
from proctor.cli.options_and_output import parse_evaluators
from proctor.evaluators.catalogue import NEEDS, entries
from proctor.evaluators.registry import SHIPPED, build

Command = Callable[..., Any]

CHECKS = """
def grade(context):
    return True


def brevity(metric, actual, expected):
    return 1.0
"""


def _skipped() -> dict[str, str]:
    """When each evaluator is skipped, as docs/evaluators.md says."""
    found = {}
    for line in (ROOT / "docs" / "evaluators.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0].strip("`") in SHIPPED:
            found[cells[0].strip("`")] = cells[4]
    return found


def test_every_evaluator_is_listed_with_a_line_and_what_it_needs(proctor: Command) -> None:
    ended = proctor("evaluators")
    assert ended.code == 0
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line.strip()}
    assert set(SHIPPED) <= set(lines)
    assert lines["ContextualRecall"].endswith("[reference, passages, judge]")
    assert lines["ExpectedTools"].endswith("[tools]")
    rows = json.loads(proctor("evaluators", "--json").out)
    assert [row["name"] for row in rows] == list(SHIPPED)
    assert all(row["summary"] for row in rows)


def test_what_an_evaluator_needs_is_what_it_is_skipped_without() -> None:
    skipped = _skipped()
    for item in entries():
        if item.name == "AnswerSimilarity":  # "the same" as the row above it
            continue
        words = skipped[item.name]
        assert ("reference" in item.needs) == ("expected output" in words and item.name != "LLMJudge"), item.name
        assert ("passages" in item.needs) == ("passages" in words), item.name
        assert "tools" in item.needs or "tools" not in words, item.name
    assert {name for names in NEEDS.values() for name in names.split()} <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_examples_of_an_evaluator_work_as_they_are_shown(proctor: Command, project: Path, name: str) -> None:
    (project / "checks.py").write_text(CHECKS)
    told = proctor("evaluators", name).out.splitlines()
    in_suite = yaml.safe_load(told[told.index("    evaluators:") + 1].strip())[0]
    on_command_line = shlex.split(told[-1])
    assert on_command_line[:3] == ["proctor", "test", "-e"]
    [spec] = parse_evaluators((on_command_line[3],))
    assert build(spec, project).title == name
    assert spec.name == (in_suite if isinstance(in_suite, str) else next(iter(in_suite)))


def test_one_evaluator_is_shown_with_its_parameters(proctor: Command) -> None:
    told = proctor("evaluators", "Regex").out
    for line in ("pattern: required", "full: default false", "passes from 0.5", "needs       nothing but an answer"):
        assert line in told
    assert json.loads(proctor("evaluators", "--json", "faithfulness").out)["needs"] == ["passages", "judge"]
    assert proctor("evaluators", "FaithfulnessMetric").out.startswith("Faithfulness\n")


@pytest.mark.parametrize(
    ("name", "near"),
    [("Faithfulnes", "Faithfulness"), ("tool", "ToolCount"), ("exactmach", "ExactMatch"), ("xyzzy", "lists all")],
)
def test_an_unknown_name_says_the_nearest(proctor: Command, name: str, near: str) -> None:
    ended = proctor("evaluators", name)
    assert ended.code == 2
    assert near in ended.err


def test_formats_are_listed_with_their_files(proctor: Command) -> None:
    rows = {row["name"]: row for row in json.loads(proctor("formats", "--json").out)}
    assert set(rows) == {"native", "csv", "holodeck", "pixie", "adk"}
    assert {name for name, row in rows.items() if row["written_as"]} == {"native", "csv"}
    told = proctor("formats").out
    assert all(row["summary"] in told for row in rows.values())
    assert "proctor dataset convert SUITE TARGET --to csv" in told


def test_agents_are_listed_with_examples_that_can_be_resolved(proctor: Command, project: Path) -> None:
    (project / "app.py").write_text("def agent(question):\n    return question\n")
    (project / "package").mkdir()
    (project / "package" / "module.py").write_text("def agent(question):\n    return question\n")
    told = proctor("agents").out
    for example in AGENT_WAYS.values():
        assert example in told
        assert resolve_agent(example, project).name


def test_frameworks_are_listed_with_their_packages_and_versions(proctor: Command) -> None:
    rows = {row["name"]: row["packages"] for row in json.loads(proctor("agents", "--json").out)["frameworks"]}
    assert rows["pydantic_ai"]["pydantic-ai-slim"]
    missing = [name for name, packages in rows.items() if not any(packages.values())]
    told = proctor("agents").out
    for name in missing:
        assert f"not installed (pip install {' '.join(rows[name])})" in told


@pytest.mark.process
def test_listing_frameworks_imports_none_of_them() -> None:
    script = (
        "import sys\nsys.argv = ['proctor', 'agents']\nfrom proctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nassert 'pydantic_ai' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)
