"""How ADK's files are recognized."""

from __future__ import annotations

from pathlib import Path

from proctor.base.json_data import Json
from proctor.base.source import ending
from proctor.cases.formats import JSON_AND_YAML
from proctor.compat.adk.keys import (
    CONFIG_NAME,
    CONVERSATION_KEYS,
    ID_KEYS,
    RESULT_ID_KEYS,
    SET_KEYS,
    SUITE_NAMES,
    is_row,
)


def recognises(path: Path, data: Json) -> bool:
    """Whether the file is an EvalSet, a single EvalCase, or legacy rows."""
    if path.name == CONFIG_NAME or ending(path) not in JSON_AND_YAML:
        return False
    is_named = any(path.match(pattern) for pattern in SUITE_NAMES)
    if isinstance(data, dict):
        if RESULT_ID_KEYS & data.keys():
            return False
        is_case = bool(ID_KEYS & data.keys() and CONVERSATION_KEYS & data.keys())
        is_only_row = is_row(data) and ("query" in data or is_named)
        return bool(SET_KEYS & data.keys()) or is_case or is_only_row
    if data == []:
        return is_named
    return isinstance(data, list) and any(
        isinstance(row, dict) and ("query" in row or ("name" in row and "data" in row) or (is_named and is_row(row)))
        for row in data
    )


def refuse_result(data: Json) -> str | None:
    """Why a result of adk-python is not a suite."""
    if isinstance(data, dict) and RESULT_ID_KEYS & data.keys():
        return "is a result of adk-python; add it to the store with `proctor runs import`"
    return None


def recognises_result(name: str, start: str) -> bool:
    """Whether a file is a result of adk-python, from its name and its first characters."""
    return name.endswith(".evalset_result.json") or any(key in start for key in RESULT_ID_KEYS)
