"""Files of google-adk's own models load here, and what is written for adk-python loads there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the package that reads and writes the files")

from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file
from google.genai import types

from proctor.cases.formats.loading import load
from proctor.compat.adk import AgentEvaluator


def text_content(text: str, role: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def google_set() -> EvalSet:
    used = IntermediateData(tool_uses=[types.FunctionCall(name="look", args={"parcelId": 7})])
    talk = Invocation(
        user_content=text_content("Hi", "user"), final_response=text_content("Hello", "model"), intermediate_data=used
    )
    session = SessionInput(app_name="desk", user_id="me", state={"userName": "Ann"})
    return EvalSet(eval_set_id="talk", eval_cases=[EvalCase(eval_id="one", conversation=[talk], session_input=session)])


@pytest.mark.parametrize("options", [{}, {"by_alias": True}, {"exclude_none": True}], ids=["snake", "camel", "short"])
def test_what_google_adk_writes_loads_without_a_word(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "talk.evalset.json"
    path.write_text(google_set().model_dump_json(**options))
    [suite] = load([path])
    [case] = suite.cases
    assert suite.warnings == ()
    assert (case.turns[0].input, case.turns[0].expected.output, case.state) == ("Hi", "Hello", {"userName": "Ann"})


def test_a_migrated_legacy_file_is_loaded_by_google_adk(tmp_path: Path) -> None:
    old, new = tmp_path / "old.test.json", tmp_path / "new.test.json"
    uses = [{"tool_name": "look", "tool_input": {"parcelId": 7}}]
    old.write_text(json.dumps([{"query": "Hi", "reference": "Hello", "expected_tool_use": uses}]))
    asyncio.run(AgentEvaluator.migrate_eval_data_to_new_schema(old, new))
    [case] = load_eval_set_from_file(str(new), "new").eval_cases
    assert case.conversation[0].intermediate_data.tool_uses[0].name == "look"


def test_an_eval_set_in_memory_is_evaluated() -> None:
    criteria = {"response_match_score": 0.8}
    run = asyncio.run(AgentEvaluator.evaluate_eval_set(lambda text: "Hello", google_set(), criteria, 1))
    assert [trial.outcome.value for trial in run.trials] == ["passed"]
