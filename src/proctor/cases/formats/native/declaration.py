"""What the native format declares to the loader: YAML or JSON with `cases`, or JSON Lines with one case a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.base.json_data import Json
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
from proctor.cases.formats.native.json_lines import LINES, parse_lines
from proctor.cases.suite import Case, Suite


def recognises(path: Path, data: Json) -> bool:
    """A `cases` list, or objects with an input or turns, in a bare list or one a line."""
    if isinstance(data, Mapping):
        return "cases" in data
    marks = ("input", "turns", "suite") if path.suffix in LINES else ("input", "turns")
    return isinstance(data, list) and any(isinstance(row, Mapping) and any(k in row for k in marks) for row in data)


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    """The suites as one document of the kind that the ending asks for."""
    from proctor.cases.formats.native.writer import write_text  # only commands that write suites need it

    return write_text(suites, ending or ".yaml")


def edit(path: Path, text: str, suite: Suite, changed: Mapping[int, Case]) -> str:
    """The text of a suite's file with some of its cases changed, and every other line as it is."""
    from proctor.cases.formats.native.editing import edit_cases  # only `proctor approve` needs it

    return edit_cases(path, text, suite, changed)


def _resembles(path: Path, text: str) -> bool:
    if path.suffix in LINES:
        return re.search(r'"(?:input|turns|suite)"\s*:', text) is not None
    return path.suffix in JSON_AND_YAML and mentions_key(text, "cases")


DECLARED = Declaration(
    endings=(*JSON_AND_YAML, *LINES),
    own_keys=frozenset({"cases"}),
    file_names=("*.proctor.*",),
    companions=("suite.schema.json",),
    parsers=dict.fromkeys(LINES, parse_lines),
    resembles=_resembles,
    agent_hint="add `agent: app.py:agent`, or ",
    edit=edit,
)
