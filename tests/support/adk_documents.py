"""ADK documents for the tests: a few by hand, any number by Hypothesis, and the way from text to suite and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from proctor.base.documents import Document
from proctor.cases.suite import Suite
from proctor.compat.adk.eval_set import read_document
from proctor.compat.adk.recognition import recognises


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def model(text: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": text}]}


def tools(*uses: dict[str, Any]) -> dict[str, Any]:
    return {"toolUses": list(uses), "intermediateResponses": []}


def turn(text: str = "Where is parcel 7?", **rest: Any) -> dict[str, Any]:
    return {"creationTimestamp": 0, "userContent": user(text), **rest}


TRACK = {"name": "track", "args": {"parcel": 7}}
ANSWERED = turn(finalResponse=model("It is in Utrecht."))
TRACKED = turn(intermediateData=tools(TRACK))
BOTH = turn(finalResponse=model("It is in Utrecht."), intermediateData=tools(TRACK))


def case(eval_id: str = "parcel", *turns: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"evalId": eval_id, "conversation": list(turns or (BOTH,)), **rest}


def eval_set(*cases: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"evalSetId": "parcels", "creationTimestamp": 0, "evalCases": list(cases or (case(),)), **rest}


DOCUMENTED = {
    "a set": eval_set(name="Parcel desk"),
    "only a response": case("hello", ANSWERED),
    "only tools": case("track", TRACKED),
    "several turns": case("two", BOTH, turn("And parcel 8?", finalResponse=model("In Ghent."))),
    "a session": case(
        "state", ANSWERED, sessionInput={"appName": "post", "userId": "u1", "state": {"parcels": [7, 8]}}
    ),
    "legacy rows": [{"query": "Where?", "reference": "Utrecht", "expected_tool_use": [TRACK]}],
}


def read(folder: Path, data: Any, config: Any = None, name: str = "desk.test.json") -> Suite:
    """The one suite of a document, written to `folder` as people have it on disk."""
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        (folder / "test_config.json").write_text(text)
    path = folder / name
    text = json.dumps(data, indent=2)
    path.write_text(text)
    assert recognises(path, data)
    [suite] = read_document(Document(path, text))
    return suite


def content_of(suite: Suite) -> Suite:
    """The suite without what depends on where the file lies."""
    warnings = tuple(replace(warning, path=None, line=None, where="") for warning in suite.warnings)
    return replace(suite, path=None, warnings=warnings)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=6), json_values, max_size=3)
text_parts = st.builds(lambda text: {"text": text}, words)
other_parts = st.sampled_from(
    [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"function_response": {"name": "track", "response": {"at": "Utrecht"}}},
        {"text": "hmm", "thought": True},
    ]
)
calls = st.fixed_dictionaries({"name": words}, optional={"args": objects, "id": words})
timestamps = st.integers(0, 9) | st.floats(0, 1e9)
events = st.fixed_dictionaries(
    {"author": words},
    optional={"content": st.builds(lambda c: {"role": "model", "parts": [{"functionCall": c}]}, calls)},
)


def contents(role: str) -> st.SearchStrategy[Any]:
    parts = st.lists(text_parts | other_parts, max_size=2)
    return st.builds(
        lambda before, text, after, named: {"parts": [*before, text, *after], **({"role": role} if named else {})},
        parts,
        text_parts,
        parts,
        st.booleans(),
    )


intermediate_data = st.fixed_dictionaries(
    {"toolUses": st.lists(calls, max_size=3)},
    optional={
        "toolResponses": st.lists(objects, max_size=1),
        "intermediateResponses": st.lists(st.tuples(words, st.lists(text_parts, max_size=1)).map(list), max_size=2),
    },
) | st.fixed_dictionaries({"invocationEvents": st.lists(events, max_size=2)})

rubrics = st.lists(
    st.builds(
        lambda name, text, more: {"rubricId": name, "rubricContent": {"textProperty": text}, **more},
        words,
        words,
        st.fixed_dictionaries({}, optional={"type": st.just("TOOL_USE_QUALITY"), "description": words}),
    ),
    max_size=2,
)
turns = st.fixed_dictionaries(
    {"userContent": contents("user"), "creationTimestamp": timestamps, "finalResponse": contents("model")},
    optional={
        "intermediateData": intermediate_data,
        "invocationId": words,
        "rubrics": rubrics,
        "duration": timestamps,
        "appDetails": objects,
    },
)
cases = st.fixed_dictionaries(
    {"conversation": st.lists(turns, min_size=1, max_size=3)},
    optional={
        "sessionInput": st.fixed_dictionaries(
            {"appName": words, "userId": st.text(max_size=4)}, optional={"state": objects}
        ),
        "finalSessionState": objects,
        "rubrics": rubrics,
        "creationTimestamp": timestamps,
    },
)
eval_sets = st.fixed_dictionaries(
    {
        "evalSetId": words,
        "evalCases": st.lists(cases, min_size=1, max_size=3).map(
            lambda found: [{"evalId": f"case {number}", **data} for number, data in enumerate(found)]
        ),
    },
    optional={"name": words, "description": words, "creationTimestamp": timestamps},
)
criteria = st.dictionaries(
    st.sampled_from(["tool_trajectory_avg_score", "response_match_score", "safety_v1"]),
    st.decimals(0, 1, places=2).map(float),
    min_size=1,
) | st.sampled_from(
    [
        {"response_evaluation_score": 3.7},
        {"tool_trajectory_avg_score": {"threshold": 0.5, "matchType": "in order", "ignoreArgs": True}},
        {"response_match_score": {"threshold": 0.8, "tokenizer": "typescript"}},
        {
            "rubric_based_tool_use_quality_v1": {
                "threshold": 0.8,
                "judge_model_options": {"judge_model": "small", "num_samples": 3},
                "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "It asks before it acts."}}],
            }
        },
    ]
)

scenarios = st.fixed_dictionaries(
    {"startingPrompt": words, "conversationPlan": words},
    optional={
        "userPersona": st.sampled_from(["EXPERT", "NOVICE", "EVALUATOR"])
        | st.fixed_dictionaries({"id": words, "description": words, "behaviors": st.just([])})
    },
)
simulated_sets = st.builds(
    lambda told, state: eval_set(
        *(
            {"evalId": f"case {number}", "conversationScenario": scenario, "finalSessionState": state}
            for number, scenario in enumerate(told)
        )
    ),
    st.lists(scenarios, min_size=1, max_size=3),
    objects,
)
"""EvalSets whose users are simulated; nothing but a config can say how to judge them."""

simulators = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("llm_backed"),
        "model": st.sampled_from(["gemini-2.5-flash", "openai:gpt-5-mini"]),
        "model_configuration": st.sampled_from([{"temperature": 0.5}, {"thinking_config": {"thinking_budget": 1}}]),
        "max_allowed_invocations": st.integers(1, 1000) | st.just(-1),
        "custom_instructions": st.just("{{ stop_signal }} {{conversation_plan}} {{ conversation_history }}"),
        "include_function_calls": st.booleans(),
    },
)
custom_metrics = st.fixed_dictionaries(
    {"code_config": st.sampled_from([{"name": "desk.metrics.polite"}, {"name": "checks.py:polite"}])},
    optional={
        "description": words,
        "metric_info": st.just({"metric_value_info": {"interval": {"min_value": -4, "max_value": 4}}}),
    },
)
configs = st.builds(
    lambda known, own, informs, simulator: {
        "criteria": known | {"mine": 1} | ({"token_usage_v1": {}} if informs else {}),
        "custom_metrics": {"mine": own},
        "user_simulator_config": simulator,
    },
    criteria,
    custom_metrics,
    st.booleans(),
    simulators,
)
"""Configs with everything in them."""
