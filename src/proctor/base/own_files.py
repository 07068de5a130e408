"""How a file that Proctor wrote is recognised: an exported run, a table of scores, or a document in JSON.

Such files often lie in the folder of the suites, and some have keys that suites have too; none of them is a suite.
"""

from __future__ import annotations

import re
from pathlib import Path

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
"""A document, or a list of rows, that names its schema; or the first line of an exported run."""
SNIFF_CHARS = 500
"""Bytes at the beginning of a file; the marks stand before anything that an agent said."""


def is_own_output(path: Path) -> bool:
    """Whether Proctor wrote the file as a report, a document or an exported run."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            text = file.read(SNIFF_CHARS).decode("utf-8-sig", "replace")
    except (OSError, ValueError):  # ValueError: a name that is not a path
        return False
    if path.suffix == ".csv":
        return text.partition("\n")[0].strip() == ",".join(SCORE_COLUMNS)
    return _DOCUMENT.match(text) is not None
