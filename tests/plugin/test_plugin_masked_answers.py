"""Answers with masked secrets in a test session: a test scores what the agent said, never the mask."""

from __future__ import annotations

import pytest

pytest_plugins = "pytester"

TOKEN = "ghp" + "_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def test_a_leak_stays_a_failure_when_answers_of_the_last_session_are_reused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        agent=f"def agent(question):\n    return 'the key is {TOKEN}' if 'key' in question else 'fine'\n",
        test_leak=f"""
        def test_key(agent_runner):
            assert {TOKEN!r} not in agent_runner.run_test_case("key").actual_output

        def test_fine(agent_runner):
            assert agent_runner.run_test_case("fine").actual_output == "fine"
        """,
    )
    for _ in range(2):
        session = pytester.runpytest("--proctor-agent", "agent.py:agent", "--proctor-reuse")
        session.assert_outcomes(failed=1, passed=1)
    session.stdout.fnmatch_lines(["1 answer reused from earlier sessions*"])
