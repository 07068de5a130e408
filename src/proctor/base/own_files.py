"""Recognizes files that Proctor wrote: an exported run, a table of scores, or a JSON report.

Such files are often in the folder of the suites, and some have keys that suites have, too. None of them is a suite.
"""

from __future__ import annotations

import re
from pathlib import Path

from proctor.base.source import ending

EXPORTED_RUN = "proctor_run"
"""The first key of an exported run."""
SCORE_COLUMNS = (
    "run",
    "suite",
    "case",
    "trial",
    "turn",
    "evaluator",
    "score",
    "threshold",
    "outcome",
    "reasoning",
    "input",
    "answer",
    "expected",
)
"""The columns of a table of scores."""

_DOCUMENT = re.compile(rf'\s*\[?\s*\{{\s*"(?:schema"\s*:\s*"proctor\.|{EXPORTED_RUN}"\s*:)')
"""A document or a list of rows that names its schema, or the first line of an exported run."""
SNIFF_BYTES = 500
"""How much of a file is read: its schema comes before anything that an agent wrote."""


def is_own_output(path: Path) -> bool:
    """Whether Proctor wrote the file as a report, a document or an exported run."""
    try:
        if not path.is_file():  # reading a pipe would block
            return False
        with path.open("rb") as file:
            text = file.read(SNIFF_BYTES).decode("utf-8-sig", "replace")
    except (OSError, ValueError):  # ValueError: a name that is not a path
        return False
    if ending(path) == ".csv":
        return text.partition("\n")[0].strip() == ",".join(SCORE_COLUMNS)
    return _DOCUMENT.match(text) is not None
