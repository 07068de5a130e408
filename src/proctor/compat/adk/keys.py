"""The names and keys by which ADK's files are recognized."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.base.json_data import Json

NAME = "adk"
CONFIG_NAME = "test_config.json"
EXTRA_KEY = "x-adk"
"""The key of `extra` under which a case, turn or suite stores ADK's data that Proctor does not use."""
SUITE_NAMES = ("*.test.json", "*.evalset.json")

SET_KEYS = frozenset({"evalSetId", "eval_set_id", "evalCases", "eval_cases"})
ID_KEYS = frozenset({"evalId", "eval_id"})
RESULT_ID_KEYS = frozenset({"evalSetResultId", "eval_set_result_id"})
CONVERSATION_KEYS = frozenset({"conversation", "conversationScenario", "conversation_scenario"})
ROW_KEYS = frozenset({"reference", "expected_tool_use"})


def is_row(data: Mapping[str, Json]) -> bool:
    """Whether the data is one row of a legacy array; one without `query` is reported when it is read."""
    return bool(ROW_KEYS & data.keys()) and not data.keys() & (SET_KEYS | ID_KEYS)
