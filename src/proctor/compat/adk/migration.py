"""Convert a legacy array to an EvalSet, for `AgentEvaluator.migrate_eval_data_to_new_schema`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, json_text, to_json
from proctor.cases.suite import Case, Suite, Turn
from proctor.compat.adk.conversations import literal_call
from proctor.compat.adk.keys import EXTRA_KEY

SPELLINGS = ("adk", "adk-python")
"""camelCase, as ADK-TS writes EvalSets, and snake_case, the only spelling adk-python's loader reads."""

USER_DATA_KEYS = frozenset({"args", "state"})
"""Keys whose values are the user's data."""


def eval_set_text(suites: Sequence[Suite], spelling: str) -> str:
    """One EvalSet with the cases of all suites, which were read from legacy arrays."""
    data: Json = {
        "evalSetId": suites[0].name,
        "creationTimestamp": 0,
        "evalCases": [_case(suite, case) for suite in suites for case in suite.cases],
    }
    return json_text(to_json(data if spelling == "adk" else _to_snake_case(data)))


def _case(suite: Suite, case: Case) -> dict[str, Json]:
    if case.scenario is not None or case.final_state is not None or case.metadata:
        raise UsageError(f"{suite.path} is already an EvalSet")
    data: dict[str, Json] = {"evalId": case.id, "conversation": [_turn(turn) for turn in case.turns]}
    session = {name: value for name, value in case.extra.get(EXTRA_KEY, {}).items() if name in ("appName", "userId")}
    if session or case.state:
        # ADK requires these two names in a session.
        data["sessionInput"] = {"appName": suite.name, "userId": "user"} | session | {"state": dict(case.state)}
    return data


def _turn(turn: Turn) -> dict[str, Json]:
    expected, notes = turn.expected, turn.extra.get(EXTRA_KEY, {})
    data: dict[str, Json] = {"creationTimestamp": 0, "userContent": _content("user", turn.input)}
    if expected.output is not UNSET:
        data["finalResponse"] = _content("model", expected.output)
    if "intermediateData" in notes:
        data["intermediateData"] = notes["intermediateData"]
    elif expected.tools is not None:
        calls = [literal_call(call) for call in expected.tools]
        data["intermediateData"] = {"toolUses": calls, "intermediateResponses": []}
    return data


def _content(role: str, text: Json) -> dict[str, Json]:
    return {"role": role, "parts": [{"text": text}]}


def _to_snake_case(value: Json) -> Json:
    """Data with ADK's keys in snake_case; keys in the user's data are unchanged."""
    if isinstance(value, list):
        return [_to_snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"(?<=[a-z0-9])[A-Z]", lambda upper: f"_{upper[0].lower()}", key): item
        if key in USER_DATA_KEYS
        else _to_snake_case(item)
        for key, item in value.items()
    }
