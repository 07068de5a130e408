"""The report on mutants with hostile text in every field."""

from __future__ import annotations

from hostile_text import check_hostile_text
from reporting_samples import FAILED

from proctor.mutation.findings import KillRate
from proctor.mutation.report import MutantView, RateRow, SuiteMutationView
from proctor.results.statistics import Estimate


def test_hostile_text_in_every_field_becomes_no_markup() -> None:
    rate = RateRow("Contains", KillRate(1, 2), Estimate(0.5, 0.1, 0.9, 2), "50 %", "1")
    mutant = MutantView("c1: dropped", "a note", "before", "after")
    suite = SuiteMutationView(
        "shop", "50 %", "no", ["a remark"], [rate], [rate], [("Survivors", 2, [mutant])], [("a", "b")]
    )
    values = {"title": "Mutants", "outcome": FAILED, "rate": "1", "reason": "r", "run": "r1", "seed": 0}
    check_hostile_text("mutation/templates/report.html", {**values, "suites": [suite]})
