"""Reports that are sent to others do not say where files are on this machine."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from reporting_samples import FAILED, make_run, report, score, trial

from proctor.agents.reply import Reply, ToolCall
from proctor.reporting import junit
from proctor.reporting.html import report_page
from proctor.reporting.html.notebook import run_html
from proctor.reporting.markdown import report as markdown_report
from proctor.reporting.markdown.ci_pages import Comment, write_comment, write_step_summary
from proctor.reporting.wording import shown_path, without_machine_paths
from proctor.results.run import Run
from proctor.results.verdict import verdict


def run_in(folder: Path) -> Run:
    """A run whose suite, agent, error, traceback, reason and tool call all name files of the project."""
    error = f"FileNotFoundError: {folder}/data/orders.csv\n  at {folder}/desk.py:12 in load: open(path)"
    calls = (ToolCall("read", {"path": f"{folder}/data/orders.csv"}, error=f"no file {folder}/data/orders.csv"),)
    raised = trial("raised", FAILED, None, reason=error, replies=(Reply("", calls, error=error),))
    wrong = trial("wrong", FAILED, "No.", score(FAILED, 0.0, reasoning=f"{folder}/expected.txt differs in {folder}."))
    run = make_run([raised, wrong])
    info = replace(run.suites[0], path=f"{folder}/suites/shop.yaml", agent=f"{folder}/desk.py:agent")
    return replace(run, suites=(info,))


@pytest.mark.parametrize("place", ["html", "markdown", "junit", "comment", "step summary", "notebook"])
def test_no_path_of_this_machine_is_in_a_report(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_in(tmp_path)
    out = io.StringIO()
    if place == "comment":
        write_comment(Comment(run, verdict(run)), out)
    elif place == "step summary":
        write_step_summary(run, verdict(run), out)
    elif place == "notebook":
        out.write(run_html(run))
    else:
        out.write(report({"html": report_page, "markdown": markdown_report, "junit": junit}[place], run))
    text = out.getvalue()
    assert str(tmp_path) not in text
    assert "data/orders.csv" in text


def test_a_file_is_shown_relative_to_the_project_or_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = tmp_path / "home" / "project", tmp_path / "home"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    assert shown_path(f"{project}/suites/shop.yaml") == "suites/shop.yaml"
    assert shown_path("suites/shop.yaml") == "suites/shop.yaml"
    assert shown_path(f"{home}/elsewhere/shop.yaml") == shown_path("/srv/shop.yaml") == "shop.yaml"
    assert without_machine_paths(f"in {project}: {project}-old/a, {home}/b") == "in .: ~/project-old/a, ~/b"
