"""Where reports go: checked before anything runs, so that no report costs a suite or the money of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.plugins import Plugin, Reporter
from proctor.results.run import Run
from proctor.results.store.store import Store

Command = Callable[..., Any]

COUNTED = "def agent(question):\n    open('calls', 'a').write('x')\n    return question\n"
SUITE = "agent: counted.py:agent\ncases: [{id: one, input: hi, expected: hi}]\n"
ADK = {
    "eval_set_id": "faq",
    "eval_cases": [
        {
            "eval_id": "a",
            "conversation": [
                {"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "hi"}]}}
            ],
        }
    ],
}


@pytest.fixture
def counted(suite: Command, project: Path) -> Path:
    """A suite whose agent leaves a mark each time it is asked."""
    (project / "counted.py").write_text(COUNTED)
    return suite("good.yaml", text=SUITE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--json", "good.yaml"), "--json takes a file to write that ends in .json, not 'good.yaml'"),
        (("--html", "good.yaml"), "that ends in .html"),
        (("--junit", "report"), "that ends in .xml"),
        (("--report", "csv=good.yaml"), "--report csv= takes a file to write that ends in .csv"),
        (("--report", "notes.txt"), "unknown file ending; write KIND=FILE"),
        (("--report", "cvs=r.csv"), "unknown report 'cvs'; did you mean 'csv'?"),
        (("--report", "code-quality=good.yaml"), "would overwrite a file that this command reads"),
        (("--report", "code-quality=counted.py"), "would overwrite a file that this command reads"),
        (("--md", "x.md", "--report", "code-quality=x.md"), "would both go to x.md"),
        (("--json", "a.json", "--report", "b.json"), "the json report can be written to one file only"),
        (("--md", "-", "--json", "-"), "would both go to standard output"),
        (("--md", "folder.md"), "folder.md is a folder"),
    ],
)
def test_a_report_that_cannot_be_meant_is_refused_before_the_agent_is_asked(
    proctor: Command, counted: Path, project: Path, options: tuple[str, ...], message: str
) -> None:
    (project / "folder.md").mkdir()
    ended = proctor("test", *options)
    assert ended.code == 2
    assert message in ended.err
    assert counted.read_text() == SUITE
    assert (project / "counted.py").read_text() == COUNTED
    assert not (project / "calls").exists()


@pytest.mark.needs("adk")
@pytest.mark.parametrize("link", [False, True])
def test_a_suite_in_json_is_not_overwritten_either(proctor: Command, project: Path, link: bool) -> None:
    text = json.dumps(ADK)
    (project / "faq.evalset.json").write_text(text)
    target = "faq.evalset.json"
    if link:
        target = "linked.json"
        (project / ".hidden").mkdir()
        (project / ".hidden" / target).symlink_to(project / "faq.evalset.json")
        target = f".hidden/{target}"
    ended = proctor("test", "--agent", "agents.py:echo", "--json", target)
    assert ended.code == 2
    assert f"--json {target} would overwrite a file that this command reads" in ended.err
    assert (project / "faq.evalset.json").read_text() == text


@pytest.mark.needs("adk", "mutation")
def test_rescoring_and_mutating_a_run_leave_its_suite(proctor: Command, project: Path) -> None:
    text = json.dumps(ADK)
    (project / "faq.evalset.json").write_text(text)
    assert proctor("test", "--agent", "agents.py:echo").code == 0
    for command in ("rescore", "mutate"):
        ended = proctor(command, "last", "--json", "faq.evalset.json")
        assert ended.code == 2
        assert "would overwrite a file" in ended.err
    assert (project / "faq.evalset.json").read_text() == text


def test_a_comparison_and_a_shown_run_leave_the_file_they_read(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    proctor("test")
    assert proctor("runs", "export", "last", "-o", "run.json").code == 0
    before = (project / "run.json").read_text()
    for words in (("compare", "./run.json", "last"), ("show", "./run.json")):
        ended = proctor(*words, "--json", "run.json")
        assert ended.code == 2
        assert "would overwrite a file" in ended.err
    ended = proctor("compare", "last", "--json", "last")
    assert ended.code == 2
    assert not (project / "last").exists()
    assert (project / "run.json").read_text() == before


@pytest.mark.parametrize(
    "words",
    [
        ("show", "last", "--json", "good.json"),
        ("compare", "last", "last", "--json", "good.json"),
        ("runs", "export", "last", "-o", "good.json"),
        ("runs", "export", "last", "-o", "agents.py"),
        ("trace", "export", "last", "-o", "good.json"),
        ("trace", "export", "last", "-o", "agents.py"),
    ],
    ids=" ".join,
)
def test_no_command_overwrites_a_suite_or_an_agent_of_a_stored_run(
    proctor: Command, suite: Command, project: Path, words: tuple[str, ...]
) -> None:
    document = {"agent": "agents.py:echo", "cases": [{"id": "one", "input": "hi", "expected": "hi"}]}
    suite("good.json", text=json.dumps(document))
    assert proctor("test", "good.json").code == 0
    before = {path.name: path.read_bytes() for path in project.glob("*.*") if path.is_file()}
    ended = proctor(*words)
    assert ended.code == 2
    assert "would overwrite a file that" in ended.err
    assert {path.name: path.read_bytes() for path in project.glob("*.*") if path.is_file()} == before


def test_data_of_others_is_not_overwritten_and_a_report_of_before_is(
    proctor: Command, suite: Command, project: Path
) -> None:
    """Not every file that an agent reads is known: its data must survive a report, too."""
    suite()
    (project / "prices.json").write_text('{"tea": 3}')
    (project / "prices.csv").write_text("tea,3\n")
    (project / "empty.json").write_text("")
    for target in ("prices.json", "prices.csv"):
        ended = proctor("test", "--report", target)
        assert ended.code == 2
        assert f"{target} would overwrite a file that Proctor did not write" in ended.err
        assert "tea" in (project / target).read_text()
    for _ in range(2):
        assert proctor("test", "--json", "r.json", "--report", "scores.csv").code == 0
        assert proctor("runs", "export", "last", "-o", "run.jsonl").code == 0
        assert proctor("trace", "export", "last", "-o", "traces.json").code == 0
    assert proctor("test", "--json", "empty.json").code == 0


@pytest.mark.needs("adk")
def test_the_criteria_beside_a_test_file_are_not_overwritten(proctor: Command, suite: Command, project: Path) -> None:
    suite("faq.test.json", text=json.dumps(ADK))
    (project / "test_config.json").write_text('{"criteria": {"response_match_score": 0.5}}')
    ended = proctor("test", "faq.test.json", "--agent", "agents.py:echo", "--json", "test_config.json")
    assert ended.code == 2
    assert "would overwrite a file" in ended.err
    assert "response_match_score" in (project / "test_config.json").read_text()


def test_a_device_takes_any_report(proctor: Command, suite: Command) -> None:
    suite()
    assert proctor("test", "--json", "/dev/null").code == 0


def test_reports_are_selected_by_ending_and_by_name(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    ended = proctor("test", "--report", "scores.csv", "--report", "code-quality=q.json", "--report", "r.HTML")
    assert ended.code == 0
    assert (project / "scores.csv").read_text().startswith("run,suite,case")
    assert json.loads((project / "q.json").read_text()) == []
    assert (project / "r.HTML").read_text().startswith("<!doctype html>")
    assert proctor("show", "last", "--report", "csv=-").out == (project / "scores.csv").read_text()


def test_the_hidden_options_of_before_still_work(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    assert proctor("test", "--csv", "s.csv", "--code-quality", "q.json").code == 0
    assert (project / "s.csv").is_file()
    assert "--csv" not in proctor("test", "--help").out


def test_a_report_of_an_installed_package_is_written(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(run: Run, verdict: Any, out: Any) -> None:
        out.write(f"{verdict.outcome}: {len(run.summaries)}\n")

    sheet = Plugin(name="acme", reporters=[Reporter(name="sheet", help="A sheet.", suffix=".sheet", write=write)])
    monkeypatch.setattr("proctor.plugins.installed_plugins", lambda: (sheet,))
    suite()
    assert proctor("test", "--report", "out.sheet").code == 0
    assert (project / "out.sheet").read_text() == "passed: 1\n"
    assert proctor("show", "--report", "sheet=-").out == "passed: 1\n"


def test_scores_as_rows_need_no_pandas(
    proctor: Command, suite: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    suite()
    assert proctor("test", "--report", "s.csv").code == 0
    assert "ExactMatch" in (project / "s.csv").read_text() or "good" in (project / "s.csv").read_text()
    assert Store(project / ".proctor").find_run("last").to_dicts()[0]["outcome"] == "passed"


OUTPUT = {
    "scores.csv": ("show", "--report", "scores.csv"),
    "run.jsonl": ("runs", "export", "-o", "run.jsonl"),
    "report.json": ("show", "--json", "report.json"),
    "comparison.json": ("compare", "last", "last", "--json", "comparison.json"),
    "analysis.json": ("show", "--analysis", "--json", "analysis.json"),
    "aligned.json": ("compare", "last", "last", "--case", "one", "--json", "aligned.json"),
}


@pytest.mark.parametrize("name", OUTPUT)
def test_what_a_command_wrote_into_the_folder_does_not_stop_the_next_run(
    proctor: Command, suite: Command, project: Path, name: str
) -> None:
    suite()
    assert proctor("test").code == 0
    assert proctor(*OUTPUT[name]).code == 0
    assert (project / name).is_file()
    ended = proctor("test")
    assert ended.code == 0, ended.err
    assert "1 of 1 cases passed" in ended.out
    assert proctor("dataset", "list", "--json").out.count('"name"') == 1
    ended = proctor("test", name)
    assert ended.code == 2
    assert "is a report or an exported run of Proctor, not a suite" in ended.err
