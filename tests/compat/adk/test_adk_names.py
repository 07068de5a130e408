"""The names that people import from here instead of from ADK."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import proctor.compat.adk
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator

DOCUMENTED = re.findall(
    r"^(from proctor\S* import [^\n]+|import proctor\S*)$",
    (Path(__file__).parents[3] / "docs" / "adk.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_a_star_import_provides_every_name() -> None:
    names: dict[str, object] = {}
    exec("from proctor.compat.adk import *", names)
    assert set(proctor.compat.adk.__all__) <= names.keys()
    assert names["AgentEvaluator"] is AgentEvaluator
    assert {"AgentEvaluator", "AgentEvaluationFailed", "NUM_RUNS", "DEFAULT_CRITERIA"} <= names.keys()


@pytest.mark.parametrize(
    "statement",
    [
        *dict.fromkeys(DOCUMENTED),
        "from proctor import AgentEvaluator",
        "from proctor.compat.adk.agent_evaluator import AgentEvaluator",
        "from proctor.compat.adk import NUM_RUNS, DEFAULT_CRITERIA",
    ],
)
def test_documented_imports_work(statement: str) -> None:
    exec(statement, {})


@pytest.mark.parametrize(
    "name",
    [
        *("evaluate", "evaluate_eval_set", "find_config_for_test_file", "migrate_eval_data_to_new_schema"),
        *("evaluateEvalSet", "findConfigForTestFile", "migrateEvalDataToNewSchema"),
    ],
)
def test_the_methods_of_both_adks_are_coroutines(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(AgentEvaluator, name))


def test_a_failed_evaluation_is_an_assertion_error_as_in_adk_python() -> None:
    assert issubclass(AgentEvaluationFailed, AssertionError)
