"""What is left of a run: reports, and the run itself to look at again."""

from __future__ import annotations

import json
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

Command = Callable[..., Any]

TWO = "agent: agents.py:echo\ncases: [{id: right, input: a, expected: a}, {id: wrong, input: b, expected: c}]\n"


def test_reports_are_written_where_they_are_asked_for(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    ended = proctor("test", "--md", "out/r.md", "--json", "out/r.json", "--junit", "out/r.xml")
    assert ended.code == 1
    assert "report: out/r.md" in ended.out
    assert "wrong" in (project / "out" / "r.md").read_text(encoding="utf-8")
    assert json.loads((project / "out" / "r.json").read_text(encoding="utf-8"))["verdict"]["outcome"] == "failed"
    root = ET.parse(project / "out" / "r.xml").getroot()
    assert len(root.findall(".//testcase")) == 2
    assert len(root.findall(".//failure")) == 1


@pytest.mark.parametrize("agent", ["echo", "noisy"])
def test_json_on_standard_output_is_alone_there_whatever_the_agent_prints(
    proctor: Command, proctor_process: Command, suite: Command, agent: str
) -> None:
    suite(agent=agent)
    for run in (proctor, proctor_process):
        ended = run("test", "--json", "-")
        assert json.loads(ended.out)["verdict"]["exit_code"] == 0
        assert "1 of 1 cases passed" in ended.err


def test_a_report_that_cannot_be_written_is_said_and_the_others_are_written(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    (project / "taken").write_text("a file where a folder should be")
    ended = proctor("test", "--md", "taken/r.md", "--json", "r.json")
    assert ended.code == 4
    assert "md report could not be written to taken/r.md" in ended.err
    assert json.loads((project / "r.json").read_text(encoding="utf-8"))


def test_a_github_step_gets_its_summary_appended(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite()
    page = project / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    assert proctor("test").code == 0
    assert page.read_text(encoding="utf-8").startswith("before\n")
    assert "Proctor" in page.read_text(encoding="utf-8")


def test_runs_are_listed_the_latest_first(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test", "-k", "right")
    proctor("test", "-k", "wrong")
    lines = proctor("runs").out.splitlines()
    assert "failed" in lines[0]
    assert "passed" in lines[1]
    assert len(proctor("runs", "-n", "1").out.splitlines()) == 1
    rows = json.loads(proctor("runs", "--json").out)
    assert [row["verdict"]["outcome"] for row in rows] == ["failed", "passed"]
    assert lines[0].startswith(rows[0]["id"])


def test_a_run_is_shown_again_whole_or_in_part(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    proctor("test")
    run_id = json.loads(proctor("runs", "--json").out)[0]["id"]
    for name in ("last", run_id, run_id[:-2]):
        shown = proctor("show", name)
        assert shown.code == 0
        assert "right" in shown.out
    assert "PASS " not in proctor("show", "--failed").out
    assert "FAIL " not in proctor("show", "--case", "right").out
    assert json.loads(proctor("show", "--json", "-").out)["run"]["id"] == run_id
    assert proctor("show", "--md", "again.md").code == 0
    assert (project / "again.md").is_file()


def test_a_run_or_case_that_is_not_there_is_a_mistake(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test")
    assert "no run 'nowhere'" in proctor("show", "nowhere").err
    ended = proctor("show", "--case", "wrng")
    assert ended.code == 2
    assert "no case 'wrng'; did you mean 'wrong'?" in ended.err


def test_old_answers_are_scored_by_what_the_suite_says_now(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    assert proctor("test").code == 1
    (project / "agents.py").write_text("raise RuntimeError('must not be asked')\n")
    suite(text=TWO.replace("expected: c", "expected: b"))
    assert proctor("rescore", "last").code == 0
    assert json.loads(proctor("rescore", "--json", "-").out)["verdict"]["outcome"] == "passed"
    assert proctor("rescore", "-e", "checks.py:bad").code == 1
    assert "rescored" in proctor("runs").out


def test_quiet_leaves_the_verdict_and_verbose_shows_what_passed(proctor: Command, suite: Command) -> None:
    suite(agent="noisy")
    quiet, normal, verbose = (proctor("test", *options).out for options in (("-q",), (), ("-v",)))
    assert len(quiet.splitlines()) < len(normal.splitlines()) < len(verbose.splitlines())


def test_doctor_finds_what_is_wrong_with_a_suite_and_with_the_store(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    assert proctor("doctor", "suite.yaml").code == 0
    suite("bad.yaml", check="nowhere")
    ended = proctor("doctor", "bad.yaml", "--json")
    assert ended.code == 2
    assert "nowhere" in json.loads(ended.out)["suites"][0]["says"][0]
    (project / ".proctor").write_text("a file")
    ended = proctor("doctor", "--json")
    assert ended.code == 2
    assert json.loads(ended.out)["ok"] is False


def test_json_of_doctor_and_validate_is_alone_on_standard_output(
    proctor: Command, suite: Command, project: Path
) -> None:
    (project / "loud.py").write_text("print('loading')\ndef agent(q):\n    return q\n")
    suite(text="agent: loud.py:agent\ncases: [{input: a, expected: a}]\n")
    assert json.loads(proctor("doctor", "suite.yaml", "--json").out)["ok"] is True
    (project / "loud.py").rename(project / "louder.py")
    suite(text="agent: louder.py:agent\ncases: [{input: a, expected: a}]\n")
    assert json.loads(proctor("dataset", "validate", "--json").out) == {
        "schema": "proctor.validation/1",
        "problems": [],
        "warnings": [],
    }


def test_doctor_knows_every_extra_that_adds_an_ability_and_counts_in_good_english(
    proctor: Command, suite: Command
) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    providers = {"anthropic", "bedrock", "google", "groq", "mistral"}
    suite("suite.yaml")
    proctor("test", "suite.yaml")
    ended = proctor("doctor", "suite.yaml")
    assert {extra for extra in extras if f"(extra: {extra})" in ended.out} == set(extras) - providers - {"dev", "docs"}
    assert ".proctor: 1 run\n" in ended.out
    assert "native, 1 case\n" in ended.out


def test_under_github_actions_failures_are_annotated_and_standard_output_stays_a_document(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    suite("bad.yaml", check="bad")
    line = "::error file=bad.yaml,line=3,title=bad/one failed::bad 0.00 < 0.50"
    assert line in proctor("test", "bad.yaml").out.splitlines()
    ended = proctor("test", "bad.yaml", "--json", "-")
    assert json.loads(ended.out)["verdict"]["exit_code"] == 1
    assert line in ended.err.splitlines()
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert "::error" not in proctor("test", "bad.yaml").out


def test_a_code_quality_report_is_written_as_other_reports_are(proctor: Command, suite: Command, project: Path) -> None:
    suite("bad.yaml", check="bad")
    ended = proctor("test", "bad.yaml", "--code-quality", "out/quality.json")
    assert "report: out/quality.json" in ended.out
    written = json.loads((project / "out" / "quality.json").read_text(encoding="utf-8"))
    assert written[0]["location"] == {"path": "bad.yaml", "lines": {"begin": 3}}
    assert json.loads(proctor("show", "last", "--code-quality", "-").out) == written
    suite("good.yaml")
    assert json.loads(proctor("test", "good.yaml", "--code-quality", "-").out) == []
