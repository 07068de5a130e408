"""The cases that did not pass as a code quality report, which GitLab shows at their lines in a merge request."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TextIO

from proctor.base.json_data import Json
from proctor.reporting.ci_findings import Finding, findings
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write one entry a case; an empty list where everything passed."""
    entries = [_entry(item) for item in findings(run, verdict, os.environ)]
    out.write(json.dumps(entries, indent=2) + "\n")


def _entry(item: Finding) -> dict[str, Json]:
    name = f"{item.suite}/{item.case_id}"
    return {
        "description": f"{name}: {item.reason}" if item.reason else name,
        "check_name": "proctor",
        "fingerprint": hashlib.sha256(f"{item.path}\0{name}".encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": "minor" if item.outcome is Outcome.ERROR or not item.decides else "major",
        "location": {"path": item.path or item.suite, "lines": {"begin": item.line or 1}},
    }
