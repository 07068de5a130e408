"""`proctor list evaluators|formats|agents`: what there is, and examples that work as they are shown."""

from __future__ import annotations

import asyncio
import inspect
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import EvaluatorSpec
from proctor.cli.list import AGENT_KINDS
from proctor.cli.options import parse_evaluators
from proctor.evaluators.evaluation import Evaluable, NothingToCompare
from proctor.evaluators.registry import resolve_evaluator, shipped_declarations

Command = Callable[..., Any]

CHECKS = """
def grade(context):
    return True


def brevity(metric, actual, expected):
    return 1.0
"""


def test_every_evaluator_is_listed_with_a_line_and_what_it_needs(proctor: Command) -> None:
    ended = proctor("evaluators", "--all")
    assert ended.code == 0
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line.strip()}
    assert {item.name for item in shipped_declarations()} <= set(lines)
    assert lines["ContextualRecall"].endswith("[reference, passages, judge]")
    assert lines["ExpectedTools"].endswith("[tools]")
    rows = json.loads(proctor("evaluators", "--json").out)
    assert [row["name"] for row in rows] == [item.name for item in shipped_declarations()]
    assert all(row["summary"] for row in rows)


def test_the_usual_list_has_one_name_for_each_idea_and_counts_the_others(proctor: Command) -> None:
    names = [line.split()[0] for line in proctor("evaluators").out.splitlines() if line.strip()]
    assert {"ExactMatch", "Faithfulness", "LLMJudge", "Moderation"} <= set(names)
    assert not {"Equality", "Hallucination", "Coherence", "Battle", "Safety"} & set(names)
    others = [item for item in shipped_declarations() if item.name not in names]
    assert f"{len(others)} more variants" in proctor("evaluators").out


def test_what_is_said_to_be_needed_is_what_an_evaluator_is_skipped_without() -> None:
    """An answer to a question and nothing else: of those that ask nobody, the ones with needs are skipped."""
    seen = Evaluable(eval_input="Where is it?", eval_output="Here.")
    for item in shipped_declarations():
        if item.judge != "none" or item.family in ("limits", "code"):
            continue
        call = resolve_evaluator(EvaluatorSpec(item.name, item.example if item.name != "Contains" else {})).call
        try:
            result = call(seen)
            skipped = (asyncio.run(result) if inspect.isawaitable(result) else result) is None
        except NothingToCompare:
            skipped = True
        assert skipped == bool(item.needs) or item.name in ("StartsWith", "EndsWith"), item.name


@pytest.mark.parametrize("name", [item.name for item in shipped_declarations()])
def test_the_examples_of_an_evaluator_work_as_they_are_shown(proctor: Command, project: Path, name: str) -> None:
    (project / "checks.py").write_text(CHECKS)
    told = proctor("evaluators", name).out.splitlines()
    in_suite = yaml.safe_load(told[told.index("    evaluators:") + 1].strip())[0]
    on_command_line = shlex.split(told[-1])
    assert on_command_line[:3] == ["proctor", "test", "-e"]
    [spec] = parse_evaluators((on_command_line[3],))
    assert resolve_evaluator(spec, project).title == name
    assert spec.name == (in_suite if isinstance(in_suite, str) else next(iter(in_suite)))


def test_one_evaluator_is_shown_with_its_parameters(proctor: Command) -> None:
    told = proctor("evaluators", "Regex").out
    for line in ("pattern: required", "full: default false", "threshold   0.5", "needs       only an answer"):
        assert line in told
    assert json.loads(proctor("evaluators", "--json", "faithfulness").out)["needs"] == ["passages", "judge"]
    assert proctor("evaluators", "FaithfulnessMetric").out.startswith("Faithfulness\n")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Faithfulnes", "Faithfulness"),
        ("tool", "ToolCount"),
        ("exactmach", "ExactMatch"),
        ("xyzzy", "proctor list evaluators"),
    ],
)
def test_an_unknown_name_says_the_nearest(proctor: Command, name: str, near: str) -> None:
    ended = proctor("evaluators", name)
    assert ended.code == 2
    assert near in ended.err


@pytest.mark.needs("adk", "holodeck", "pixie")
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
    for example in AGENT_KINDS.values():
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
