"""How ADK's files are recognised and read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proctor.base.documents import Document
from proctor.base.json_data import Json
from proctor.cases.formats import JSON_AND_YAML
from proctor.cases.formats.adk.keys import CONFIG_NAME, CONVERSATION_KEYS, ID_KEYS, SET_KEYS, SUITE_NAMES, is_row
from proctor.cases.suite import Suite

if TYPE_CHECKING:
    from proctor.cases.formats.adk.test_config import Gates


def recognises(path: Path, data: Json) -> bool:
    """An EvalSet, a single EvalCase, or legacy rows."""
    if path.name == CONFIG_NAME or path.suffix not in JSON_AND_YAML:
        return False
    if isinstance(data, dict):
        is_case = bool(ID_KEYS & data.keys() and CONVERSATION_KEYS & data.keys())
        return bool(SET_KEYS & data.keys()) or is_case or is_row(data)
    if data == []:
        return any(path.match(pattern) for pattern in SUITE_NAMES)
    return isinstance(data, list) and any(
        isinstance(row, dict) and ("query" in row or ("name" in row and "data" in row)) for row in data
    )


def read(document: Document, gates: Gates | None = None) -> list[Suite]:
    """The suite of an EvalSet, scored by `gates` or by the `test_config.json` beside it."""
    from proctor.cases.formats.adk.eval_set import read_document

    return read_document(document, gates)
