"""The comparison of arms in the terminal, in Markdown, as JSON and on a page."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from served_viewer import serve_viewer

import proctor as package
from proctor.agents.reply import Reply, Usage
from proctor.cases.suite import Case, Suite
from proctor.reporting.arms_report import print_arms
from proctor.reporting.build_findings import findings
from proctor.reporting.reporters import write_reports
from proctor.reporting.terminal.screen import StreamScreen
from proctor.results.run import Run

SCHEMA = json.loads((Path(package.__file__).parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def answer(text: str, cost: float) -> Any:
    return lambda question: Reply(text or question, usage=Usage(10, 5, cost_usd=cost))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arms") / ".proctor"


@pytest.fixture(scope="module")
def run(store: Path) -> Run:
    suite = Suite("desk", [Case(f"question {n}", f"question {n}") for n in range(8)])
    arms = {"old": answer("", 0.01), "new": answer("I cannot answer that <b>question</b>", 0.02)}
    return suite.run(arms=arms, store=store)


def terminal(run: Run, width: int | None = None) -> str:
    out = io.StringIO()
    print_arms(run, StreamScreen(out, width=width))
    return out.getvalue()


def test_the_terminal_has_one_table_with_totals_on_top(run: Run) -> None:
    lines = terminal(run).splitlines()
    assert lines[0].split() == ["desk", "old", "new"]
    assert lines[1].split()[:4] == ["pass", "rate", "100%", "[68%,"]
    assert any(line.startswith("cost per trial") and "$0.01" in line and "$0.02" in line for line in lines)
    assert any(line.startswith("question-0") and "1/1" in line and "0/1" in line and "$0.02" in line for line in lines)
    assert any("new compared with old: worse: 8 of 8 cases broken" in line for line in lines)
    assert any("pass rate -100 points" in line and "cost x2.00" in line for line in lines)


@pytest.mark.parametrize("arms", [2, 3, 5, 8])
def test_the_table_fits_into_eighty_columns(arms: int) -> None:
    suite = Suite("a suite with a long name", [Case(f"a case with quite a long name {n}", "x") for n in range(3)])
    run = suite.run(arms={f"version-{n}": answer("x" * n, 0.0123) for n in range(arms)})
    table = terminal(run, 80).split(" compared with ")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert sum("1/1" in line or "0/1" in line for line in table) == 3


def test_json_has_cells_totals_and_pairs(run: Run, tmp_path: Path) -> None:
    write_reports(run, run.verdict, {"json": str(tmp_path / "r.json")})
    data = json.loads((tmp_path / "r.json").read_text())
    jsonschema_rs.validator_for(SCHEMA).validate(data)
    [table] = data["arms"]
    assert [arm["arm"] for arm in table["arms"]] == ["old", "new"]
    assert [cell["outcome"] for cell in table["cases"][0]["cells"]] == ["passed", "failed"]
    assert table["cases"][0]["cells"][1]["cost_usd"] == 0.02
    assert [(item["before"], item["after"], item["verdict"]) for item in table["comparisons"]] == [
        ("old", "new", "worse")
    ]
    assert {trial["arm"] for trial in data["trials"]} == {"old", "new"}


@pytest.mark.parametrize("kind", ["md", "html"])
def test_files_have_the_same_table(run: Run, tmp_path: Path, kind: str) -> None:
    write_reports(run, run.verdict, {kind: str(tmp_path / "r")})
    text = (tmp_path / "r").read_text()
    text = text[text.index("desk: 2 arms") :].partition("\n## ")[0]
    for part in (
        "desk: 2 arms",
        "new compared with old: worse: 8 of 8",
        "pass rate",
        "cost per trial",
        "I cannot answer",
    ):
        assert part in text
    assert "<b>question</b>" not in text


def test_the_viewer_has_a_page_with_cases_as_rows_and_arms_as_columns(run: Run, store: Path) -> None:
    with serve_viewer(store) as client:
        page = client.get(f"/runs/{run.id}/arms")
        assert page.status_code == 200
        for part in ("<h2>desk: 2 arms</h2>", "new compared with old: worse", "question-7", "$0.02", "1/1", "0/1"):
            assert part in page.text
        assert f"/runs/{run.id}/case?suite=desk+%5Bnew%5D&amp;case=question-7" in page.text
        assert "<b>question</b>" not in page.text
        assert f'href="/runs/{run.id}/arms"' in client.get(f"/runs/{run.id}").text


def test_a_run_without_arms_has_no_such_page(store: Path) -> None:
    ordinary = Suite("desk", [Case("hi", "hi")]).run(lambda question: question, store=store)
    with serve_viewer(store) as client:
        assert client.get(f"/runs/{ordinary.id}/arms").status_code == 404


@pytest.mark.parametrize(("last", "failures"), [("good", 0), ("bad", 2)])
def test_only_the_arm_that_decides_fails_a_build(last: str, failures: int, tmp_path: Path) -> None:
    arms = {"good": answer("", 0.0), "bad": answer("no", 0.0)}
    ordered = {name: arms[name] for name in sorted(arms, key=lambda name: name == last)}
    run = Suite("desk", [Case("a", "a"), Case("b", "b")]).run(arms=ordered)
    write_reports(run, run.verdict, {"junit": str(tmp_path / "junit.xml")})
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert len(suites.findall(".//failure")) == failures == sum(int(item.attrib["failures"]) for item in suites)
    skipped = [item.attrib["message"] for item in suites.findall(".//skipped")]
    assert [message.startswith("for comparison: failed: ") for message in skipped] == [True] * (2 - failures)
    assert sum(int(item.attrib["skipped"]) for item in suites) == 2 - failures
    assert [item.suite for item in findings(run, run.verdict, {})] == ["desk [bad]"] * failures


def test_the_head_names_the_suite_once_and_its_arms(run: Run) -> None:
    assert str(run).startswith("desk: 8 cases, 16 trials, arms old, new\n")
