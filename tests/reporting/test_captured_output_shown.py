"""What a trial printed is shown where people look at failures: terminal, HTML, JUnit, JSON, notebook."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

from lxml import etree
from reporting_samples import FAILED, HOSTILE, PASSED, make_run, report, trial

from proctor.base.output_capture import CapturedOutput
from proctor.reporting import json_report, junit
from proctor.reporting.failed_run import failure_message
from proctor.reporting.html import report_page
from proctor.reporting.html.notebook import run_html
from proctor.reporting.terminal.progress import print_finished_run
from proctor.results.run import Run

LINES = "".join(f"step {number}\n" for number in range(2000))
OUTPUT = CapturedOutput(LINES, "to stderr\n", "WARNING  shop:app.py:3 no stock\n", "checked\n")
SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))


def noisy_run(output: CapturedOutput = OUTPUT) -> Run:
    quiet = trial("good", PASSED)
    return make_run([replace(trial("bad", FAILED), captured=output), replace(quiet, captured=output)])


def on_terminal(run: Run, *, verbose: bool = False) -> str:
    stream = io.StringIO()
    print_finished_run(run, stream, verbose=verbose)
    return stream.getvalue()


def test_the_terminal_shows_the_last_lines_of_a_failure_only() -> None:
    shown = on_terminal(noisy_run())

    assert shown.count("step 1999") == 1 and "step 1990\n" in shown and "step 1989\n" not in shown
    assert shown.count("earlier lines are not shown") == 1
    assert "to stderr" in shown and "no stock" in shown and "checked" in shown
    assert shown.count("\n") < 50
    assert on_terminal(noisy_run(), verbose=True).count("step 1950\n") == 2


def test_html_has_the_output_of_every_trial_and_opens_that_of_failures() -> None:
    page = report(report_page, noisy_run())
    assert page.count('<details class="printed" open>') == 1
    assert page.count('<details class="printed">') == 1
    assert "step 1999" in page and "to stderr" in page

    hostile = report(report_page, noisy_run(CapturedOutput(HOSTILE)))
    assert "<script>alert" not in hostile


def test_junit_keeps_the_output_of_failures_and_stays_valid() -> None:
    root = etree.fromstring(report(junit, noisy_run()).encode(), etree.XMLParser(huge_tree=True))
    SCHEMA.assertValid(root)
    [text] = root.xpath("//system-out/text()")
    assert "----- stdout of bad -----\nstep 0\n" in text and "step 1999\n" in text
    assert "of good -----" not in text


def test_json_assertions_and_notebooks_have_it_too() -> None:
    trials = json.loads(report(json_report, noisy_run()))["trials"]
    assert [item["captured"]["stderr"] for item in trials] == ["to stderr\n", "to stderr\n"]
    assert "step 1999" in failure_message(noisy_run())
    assert "step 1999" in run_html(noisy_run())
