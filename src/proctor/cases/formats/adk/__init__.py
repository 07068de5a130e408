"""ADK's EvalSets, as ADK-TS and adk-python write them, and the flat arrays that came before EvalSets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
from proctor.cases.suite import Suite

if TYPE_CHECKING:
    from proctor.cases.formats.adk.test_config import Gates

NAME = "adk"
CONFIG_NAME = "test_config.json"
SUITE_NAMES = ("*.test.json", "*.evalset.json")

SET_KEYS = frozenset({"evalSetId", "eval_set_id", "evalCases", "eval_cases"})
ID_KEYS = frozenset({"evalId", "eval_id"})
CONVERSATION_KEYS = frozenset({"conversation", "conversationScenario", "conversation_scenario"})
ROW_KEYS = frozenset({"reference", "expected_tool_use"})


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


def is_row(data: Mapping[str, Json]) -> bool:
    """Whether it is one row of a legacy array."""
    return "query" in data and bool(ROW_KEYS & data.keys())


def read(document: Document, gates: Gates | None = None) -> list[Suite]:
    """The suite of a document, judged by the config beside it, or by `gates` if they are given."""
    from proctor.cases.formats.adk.eval_set import read_document

    return read_document(document, gates)


def write(suites: Sequence[Suite], ending: str = "") -> Written:
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
