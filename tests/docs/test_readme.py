"""The README stays short, and each promise in it names a test or a figure that exists."""

from __future__ import annotations

import re

import pytest
from repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def promises() -> dict[str, str]:
    """By promise: what the table says it is shown by."""
    table = README.split("## What it promises")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    return dict(rows[2:])  # type: ignore[arg-type]


@pytest.mark.parametrize(("promise", "shown"), promises().items(), ids=lambda text: text[:40])
def test_a_promise_names_a_test_or_a_script_that_exists(promise: str, shown: str) -> None:
    tests = re.findall(r'\]\((tests/[^\s)]+) "(\w+)"\)', shown)
    scripts = re.findall(r"`([^`]+)`", shown)

    assert tests or scripts, promise
    for path, test in tests:
        assert re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test
    for script in scripts:
        assert (ROOT / script).is_file(), script


def test_a_figure_in_a_promise_is_in_the_table_it_leads_to() -> None:
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    [promise] = [text for text in promises() if "simulation" in text]

    false_alarm, rerun = re.findall(r"([\d.]+) % in the simulation, .* has (\d+) %", promise)[0]
    assert f"**proctor** | {false_alarm} % ·" in page
    assert re.search(rf"rerun once \| {rerun}\.\d % ·", page)


def test_the_readme_is_one_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 100


def test_every_page_of_the_documentation_that_people_start_from_is_on_its_map() -> None:
    told = set(re.findall(r"\(docs/([\w-]+)\.md", README))
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index", "promptfoo", "holodeck-agent"}

    assert {"tutorial", "gate", "native", "verdicts"} <= told <= pages
