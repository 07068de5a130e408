"""The report on mutants with hostile text in every field, and with more than fits on a page."""

from __future__ import annotations

import io

from hostile_text import check_hostile_text
from reporting_samples import FAILED

from proctor.agents.reply import Reply
from proctor.mutation.findings import Controls, KillRate, MutantResult, MutantStatus, MutationReport, SuiteFindings
from proctor.mutation.mutants import Mutant
from proctor.mutation.report import KindView, MutantView, RateRow, SuiteMutationView, write_html, write_markdown
from proctor.results.statistics import Estimate


def test_hostile_text_in_every_field_becomes_no_markup() -> None:
    rate = RateRow("Contains", KillRate(1, 2), Estimate(0.5, 0.1, 0.9, 2), "50 %", "1")
    mutant = MutantView("c1: dropped", "a note", "before", "after")
    suite = SuiteMutationView(
        "shop",
        "50 %",
        "1 killed",
        [KindView("number-changed", "before", "after", "kills 1 of 1", "expected: x")],
        [rate],
        "no",
        ["a remark"],
        [rate],
        [rate],
        1,
        [("Survivors", 2, [mutant])],
        [("a", "b")],
    )
    values = {"title": "Mutants", "outcome": FAILED, "rate": "1", "reason": "r", "run": "r1", "seed": 0}
    check_hostile_text("mutation/templates/report.html", {**values, "suites": [suite]})


def test_a_report_of_many_cases_and_mutants_says_how_many_it_leaves_out() -> None:
    mutants = tuple(
        MutantResult(
            Mutant("shop", f"c{number}", 1, 0, "number-changed", frozenset({"answer"}), "1", "2", (Reply("2"),)),
            MutantStatus.SURVIVED,
            {},
        )
        for number in range(620)
    )
    cases = tuple((f"c{number}", KillRate(0, 1)) for number in range(620))
    report = MutationReport("r1", 0, 24, (SuiteFindings("shop", Controls(), mutants, KillRate(0, 620), cases),))
    page, text = io.StringIO(), io.StringIO()
    write_html(report, page)
    assert page.getvalue().count("<del>") == 500
    assert "And 120 more." in page.getvalue()
    assert "And 120 more cases." in page.getvalue()
    write_markdown(report, text)
    assert text.getvalue().count("- before:") == 100
    assert "And 520 more." in text.getvalue()
    assert "And 520 more cases." in text.getvalue()
