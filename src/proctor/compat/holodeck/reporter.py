"""The report `holodeck`: a run as HoloDeck's `TestReport`, from what the store has of it."""

from __future__ import annotations

import json
from typing import TextIO

from proctor.base.json_data import to_json
from proctor.compat.holodeck.result_builder import report_of
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """One report for a run of one suite, a list of reports for a run of several."""
    reports = [to_json(report_of(run, verdict, info.name).model_dump()) for info in run.suites]
    json.dump(reports[0] if len(reports) == 1 else reports, out, indent=2)
    out.write("\n")
