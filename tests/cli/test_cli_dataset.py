"""Suites as files: validated, listed, and turned into other formats with everything that is lost said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tool_marks import needing

from proctor.cases.formats.loading import load

Command = Callable[..., Any]

RICH = """
name: rich
description: of everything a little
agent: agents.py:echo
evaluators: [{ROUGE: {variant: rouge1, threshold: 0.2}}]
criteria: {pct: 0.9}
settings: {repeat: 2}
x-own: 1
cases:
  - id: talk
    tags: [a, b]
    metadata: {lang: de}
    state: {step: 1}
    turns:
      - {input: hello, expected: {output: hi, tools: [{name: find, args: {q: {$regex: "h.*"}}}]}}
      - {input: bye, expected: bye}
  - id: words
    input: capital?
    expected: {contains: {any: [Paris, paris], all: [capital]}}
  - id: none
    input: {question: "2+2", hint: think}
    expected: {output: "4", tools: []}
    skip: not yet
"""


def test_validate_reports_every_problem_of_every_file_and_what_is_fine(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite("fine.yaml")
    suite("a.yaml", text="cases: [{input: a, expected: a, tgas: 1}]\n")
    suite("b.json", text="{")
    ended = proctor("dataset", "validate", "a.yaml", "b.json", "fine.yaml")
    assert ended.code == 2
    assert "a.yaml:1: cases[0].tgas is not a known key" in ended.out
    assert "b.json:1: is not valid JSON" in ended.out
    assert "2 problems in 2 files" in ended.out
    problems = json.loads(proctor("dataset", "validate", "--json", "a.yaml", "b.json").out)["problems"]
    assert [(Path(p["path"]).name, p["line"]) for p in problems] == [("a.yaml", 1), ("b.json", 1)]
    assert "fine.yaml: ok (native, 1 case)" in proctor("dataset", "validate", "fine.yaml").out


def test_validate_finds_references_that_lead_nowhere(proctor: Command, suite: Command) -> None:
    suite("s.yaml", text="agent: agents.py:ecko\ncases:\n  - {input: a, evaluators: [checks.py:nope]}\n")
    ended = proctor("dataset", "validate", "s.yaml")
    assert ended.code == 2
    assert "did you mean 'echo'?" in ended.out
    assert "s.yaml:3" in ended.out


def test_list_tells_what_there_is(proctor: Command, suite: Command) -> None:
    suite("rich.yaml", text=RICH)
    said = proctor("dataset", "list", "--cases").out
    assert "3 cases, agent: agents.py:echo, evaluators: ROUGE" in said
    assert "talk  [a, b]" in said
    assert json.loads(proctor("dataset", "list", "--json").out)[0]["cases"] == ["talk", "words", "none"]


@pytest.mark.parametrize("name", ["copy.yaml", "copy.yml", "copy.json", "copy.jsonl", "copy.ndjson"])
def test_a_native_suite_survives_every_native_form_without_loss(
    proctor: Command, suite: Command, project: Path, name: str
) -> None:
    suite("rich.yaml", text=RICH)
    ended = proctor("dataset", "convert", "rich.yaml", name)
    assert ended.code == 0
    assert ended.err == ""
    [before], [after] = load(["rich.yaml"]), load([name])
    assert (after.cases, after.evaluators, after.agent, after.criteria, after.settings, after.extra) == (
        before.cases,
        before.evaluators,
        before.agent,
        before.criteria,
        before.settings,
        before.extra,
    )


@pytest.mark.parametrize(
    ("name", "form", "losses"),
    [
        ("r.csv", None, ["turn 2", "agent", "criteria", "settings", "skip", "expected tool calls", "evaluators"]),
    ],
)
def test_what_another_format_cannot_say_is_listed(
    proctor: Command, suite: Command, project: Path, name: str, form: str | None, losses: list[str]
) -> None:
    suite("rich.yaml", text=RICH)
    ended = proctor("dataset", "convert", "rich.yaml", f"out/{name}", *(("--to", form) if form else ()))
    assert ended.code == 0
    for loss in losses:
        assert any(loss in line for line in ended.err.splitlines() if line.startswith("not expressed: ")), loss
    assert f"; {ended.err.count('not expressed: ')} things could not be expressed" in ended.out


@pytest.mark.parametrize("to", ["native", "csv"])
def test_what_convert_writes_can_be_read_again_and_run(
    proctor: Command, suite: Command, project: Path, to: str
) -> None:
    text = "agent: agents.py:echo\nevaluators: [Contains]\ncases:\n"
    suite("s.yaml", text=f"{text}  - {{id: a, description: asks, input: one, expected: {{contains: [one]}}}}\n")
    name = {"csv": "t.csv", "native": "t.yaml"}[to]
    assert proctor("dataset", "convert", "s.yaml", f"out/{name}", "--to", to).code == 0
    [there] = load([f"out/{name}"])
    assert there.format == to
    assert proctor("dataset", "convert", f"out/{name}", "back.yaml").code == 0
    [back] = load(["back.yaml"])
    assert [case.turns for case in back.cases] == [case.turns for case in there.cases]
    assert [back.evaluators_of(case) for case in back.cases] == [there.evaluators_of(case) for case in there.cases]
    assert proctor("test", "back.yaml", "--agent", "oracle").code in (0, 4)


def test_convert_overwrites_only_when_told(proctor: Command, suite: Command, project: Path) -> None:
    suite("s.yaml", text="cases: [{id: a, input: a, expected: {tools: [x]}, evaluators: [ToolTrajectory]}]\n")
    (project / "t.json").write_text("mine")
    ended = proctor("dataset", "convert", "s.yaml", "t.json")
    assert ended.code == 2
    assert "add --force" in ended.err
    assert (project / "t.json").read_text() == "mine"
    assert proctor("dataset", "convert", "s.yaml", "t.json", "--force").code == 0
    assert load(["t.json"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("s.yaml", "t.txt"), "cannot tell the format from 't.txt'"),
        (("s.yaml", "t.json", "--to", "csv"), "'t.json': the format csv needs the ending"),
        (("s.yaml", "t.csv", "--to", "native"), "'t.csv': the format native needs the ending"),
        (("s.yaml", "t.json", "--to", "adk"), "Proctor writes suites as native or csv, not as 'adk'"),
        needing("adk", ("s.yaml", "t.test.json"), "'t.test.json' is a name of adk files, which Proctor only reads"),
        needing(
            "holodeck", ("s.yaml", "agent.yaml"), "'agent.yaml' is a name of holodeck files, which Proctor only reads"
        ),
        (("nowhere.yaml", "t.json"), "nowhere.yaml: does not exist"),
    ],
)
def test_a_conversion_that_makes_no_sense_writes_nothing(
    proctor: Command, suite: Command, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    suite("s.yaml", text="cases: [{id: a, input: a, expected: a}]\n")
    ended = proctor("dataset", "convert", *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert not (project / arguments[1]).exists()


def test_a_folder_becomes_one_suite_with_ids_made_distinct(proctor: Command, suite: Command, project: Path) -> None:
    (project / "many").mkdir()
    for name in ("a", "b"):
        suite(f"many/{name}.yaml", text=RICH)
    ended = proctor("dataset", "convert", "many", "one.yaml")
    assert ended.code == 0
    assert [case.id for case in load(["one.yaml"])[0].cases][3:] == ["talk-2", "words-2", "none-2"]
    assert "case 'talk' is renamed to 'talk-2'" in ended.err


def test_half_a_surrogate_pair_is_kept_by_json_and_reported_lost_by_yaml(proctor: Command, project: Path) -> None:
    (project / "s.json").write_text('{"cases": [{"id": "a", "input": "\\ud800", "expected": "a"}]}')
    assert proctor("dataset", "convert", "s.json", "t.jsonl").err == ""
    assert load(["t.jsonl"])[0].cases[0].turns[0].input == "\ud800"
    for name in ("t.yaml", "t.csv"):
        assert "surrogate" in proctor("dataset", "convert", "s.json", name).err
        assert load([name])[0].cases[0].turns[0].input == "\ufffd"
