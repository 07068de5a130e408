"""Variables of a project's `.env` in a pytest session."""

from __future__ import annotations

import json
import os

import pytest

pytest_plugins = "pytester"


def test_a_session_has_the_variables_of_the_projects_env_file_and_removes_them(pytester: pytest.Pytester) -> None:
    case = {"id": "one", "input": "q", "expected": "from-the-project"}
    suite = {"agent": "agent.py:agent", "evaluators": ["ExactMatch"], "cases": [case]}
    (pytester.path / "one.proctor.json").write_text(json.dumps(suite))
    pytester.makepyfile(agent="import os\n\ndef agent(question):\n    return os.environ['DESK_ANSWER']\n")
    (pytester.path / "proctor.toml").write_text("")
    (pytester.path / ".env").write_text("DESK_ANSWER=from-the-project\n")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "one.proctor.json")
    result.assert_outcomes(passed=1)
    assert "DESK_ANSWER" not in os.environ
