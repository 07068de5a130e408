"""The report `holodeck`: a stored run as HoloDeck's `TestReport`."""

from __future__ import annotations

import json
from typing import TextIO

from proctor.base.json_data import to_json
from proctor.compat.holodeck.report import generate_markdown_report
from proctor.compat.holodeck.result_builder import build_report
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict


def write_markdown(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the reports of all suites as Markdown, one after the other."""
    reports = [generate_markdown_report(build_report(run, verdict, info.name)) for info in run.suites]
    out.write("\n".join(reports))


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write one report for a run of one suite, or a list of reports for several."""
    reports = [to_json(build_report(run, verdict, info.name).model_dump()) for info in run.suites]
    json.dump(reports[0] if len(reports) == 1 else reports, out, indent=2)
    out.write("\n")
