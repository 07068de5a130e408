"""Whatever a file holds, the ADK reader gives suites or an InvalidSuite, and never anything else."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import adk_documents as docs
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.compat.adk.eval_set import read_document
from proctor.compat.adk.recognition import recognises

KEYS = [
    *"evalSetId evalCases eval_cases evalId conversation conversationScenario userContent final_response".split(),
    *"intermediateData toolUses invocationEvents parts text thought functionCall name args query reference".split(),
    *"expected_tool_use tool_name tool_input data initial_session sessionInput state criteria threshold".split(),
    *"tool_trajectory_avg_score response_match_score rubrics judge_model_options match_type num_samples".split(),
]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner),
    max_leaves=20,
)


def read_or_refuse(data: Any, config: Any = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "desk.test.json"
        if config is not None:
            (Path(folder) / "test_config.json").write_text(json.dumps(config))
        text = json.dumps(data)
        try:
            suites = read_document(Document(path, text, data))
        except InvalidSuite as error:
            assert error.problems
            return
        for suite in suites:
            assert suite.cases


@st.composite
def mutated(draw: st.DrawFn, valid: st.SearchStrategy[Any]) -> Any:
    """A valid document with something in it replaced, removed or added."""
    data = copy.deepcopy(draw(valid))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = data
        while isinstance(place, (dict, list)) and place:
            key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], (dict, list)) or draw(st.booleans()):
                if draw(st.booleans()):
                    place[key] = draw(anything)
                else:
                    del place[key]
                break
            place = place[key]
    return data


@settings(deadline=None)
@given(anything)
def test_random_data_never_breaks_the_reader(data: Any) -> None:
    recognises(Path("desk.test.json"), data)
    if data is not None:
        read_or_refuse(data)


@settings(deadline=None)
@given(mutated(docs.eval_sets | docs.simulated_sets | st.sampled_from(list(docs.DOCUMENTED.values()))))
def test_a_damaged_eval_set_never_breaks_the_reader(data: Any) -> None:
    read_or_refuse(data)


@settings(deadline=None)
@given(mutated(docs.configs | docs.criteria.map(lambda criteria: {"criteria": criteria})) | anything)
def test_a_damaged_config_never_breaks_the_reader(config: Any) -> None:
    read_or_refuse(docs.eval_set(), config)
