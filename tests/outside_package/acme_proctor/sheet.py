"""Acme's score sheet: a line for each case."""

from __future__ import annotations

from typing import TextIO

from proctor.results.run import Run
from proctor.results.verdict import RunVerdict


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the sheet of a run."""
    out.write("ACME SCORE SHEET\n")
    for trial in run.trials:
        out.write(f"{trial.case.id}: {trial.outcome.value}\n")
