"""What ADK's formats declare to the loader: how their files are recognised, read and written.

The loader asks every format about every file, so reader and writer are loaded when a file really is an EvalSet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.base.documents import Document
from proctor.base.json_data import Json
from proctor.cases.formats.adk.keys import CONFIG_NAME, CONVERSATION_KEYS, ID_KEYS, SET_KEYS, SUITE_NAMES, is_row
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
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


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    """An EvalSet in camelCase, as ADK-TS writes it."""
    from proctor.cases.formats.adk.eval_set_writer import write_eval_set

    return write_eval_set(suites)


def write_for_python(suites: Sequence[Suite]) -> Written:
    """The same in snake_case, which is all that adk-python's loader takes at the top level."""
    from proctor.cases.formats.adk.eval_set_writer import write_eval_set

    return write_eval_set(suites, snake=True)


def _resembles(path: Path, text: str) -> bool:
    return path.suffix in JSON_AND_YAML and mentions_key(text, "eval_cases", "evalCases")


def _evaluator_names() -> dict[str, str]:
    from proctor.cases.formats.adk.criteria import METRICS

    return {name: metric.evaluator for name, metric in METRICS.items()}


DECLARED = Declaration(
    endings=(".json",),
    own_keys=SET_KEYS,
    file_names=SUITE_NAMES,
    written_to=SUITE_NAMES,
    companions=(CONFIG_NAME,),
    resembles=_resembles,
    evaluator_names=_evaluator_names,
    dialects={"adk-python": write_for_python},
)
