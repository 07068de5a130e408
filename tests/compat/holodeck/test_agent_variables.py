from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.cases.suite import Suite
from proctor.compat.holodeck import reader
from proctor.compat.holodeck.variables import substitute

REST = """
evaluations: {metrics: [{metric: equality}]}
test_cases:
  - input: Who is ${PROCTOR_WHO}?
"""


def read(text: str) -> Suite:
    [suite] = reader.read(Document(Path("agent.yaml"), dedent(text)))
    return suite


def test_variables_are_filled_in_also_inside_longer_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_WHO", "Ada: #1")
    suite = read(f"name: bot # ${{NOT_SET_ANYWHERE}}\n{REST}")
    assert suite.cases[0].turns[0].input == "Who is Ada: #1?"


def test_a_variable_that_is_not_set_is_a_problem_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_WHO", raising=False)
    with pytest.raises(InvalidSuite) as caught:
        read(f"name: bot\n{REST}")
    assert str(caught.value) == (
        "agent.yaml:5: test_cases[0].input uses ${PROCTOR_WHO}, which is not set in the environment"
    )


def test_no_secret_is_kept_and_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_WHO", "Ada")
    monkeypatch.setenv("PROCTOR_KEY", "sk-hidden")
    monkeypatch.setenv("PROCTOR_HOST", "example.org")
    monkeypatch.delenv("UNSET_API_KEY", raising=False)
    suite = read("""
        name: bot
        model:
          provider: openai
          endpoint: https://${PROCTOR_HOST}/?k=${PROCTOR_KEY}
          api_key: ${PROCTOR_KEY}
          max_tokens: 10
        embedding_provider: {api_key: "${UNSET_API_KEY}"}
        tools: [{type: mcp, headers: {Authorization: Bearer sk-hidden}, env: {DB_PASSWORD: sk-hidden, MODE: dev}}]
        evaluations:
          model: {provider: openai, name: m, api_key: sk-hidden}
          metrics: [{metric: fluency, model: {provider: openai, name: m, api_key: sk-hidden}}]
        test_cases: [{input: "${PROCTOR_WHO}"}]
    """)
    assert "sk-hidden" not in repr(suite)
    assert isinstance(suite.agent, dict)
    described = suite.agent["holodeck"]
    assert described["model"] == {
        "provider": "openai",
        "endpoint": "https://example.org/?k=${PROCTOR_KEY}",
        "api_key": "${PROCTOR_KEY}",
        "max_tokens": 10,
    }
    assert described["embedding_provider"] == {"api_key": "${UNSET_API_KEY}"}
    assert described["tools"][0]["env"] == {"DB_PASSWORD": "***", "MODE": "dev"}
    assert suite.evaluators[0].arguments["model"] == {"provider": "openai", "name": "m", "api_key": "***"}


def test_what_a_test_expects_is_never_concealed() -> None:
    suite = read("""
        name: bot
        evaluations: {metrics: [{metric: equality}]}
        test_cases: [{input: q, expected_tools: [{name: login, args: {password: hunter2}}]}]
    """)
    [call] = suite.cases[0].turns[0].expected.tools or ()
    assert call.args is not None
    assert call.args["password"].to_json() == "hunter2"


@pytest.mark.parametrize("text", ["${1A}", "$A", "${}", "${A", "$${"])
def test_what_is_not_a_variable_is_left_as_it_is(text: str) -> None:
    document = Document(Path("a.json"), "{}", {"a": text})
    assert substitute(document, document.data, hides_secrets=lambda pointer: False, environment={}) == {"a": text}
    assert document.problems == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: &a [*a]", "refers to a value that contains it"),
        ("name: bot\nmodel: " + "[" * 300 + "]" * 300, "nested too deeply"),
        ("name: !!binary aGk=", "could not determine a constructor"),
        ("name: 1e999", "too large for a number"),
    ],
)
def test_yaml_that_is_not_plain_data_is_a_problem(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSuite) as caught:
        read(f"{text}\nevaluations: {{metrics: [{{metric: equality}}]}}\ntest_cases: [{{input: q}}]\n")
    assert complaint in str(caught.value)


def test_a_value_shared_a_billion_times_is_walked_once() -> None:
    shared: list[Any] = ["lol"]
    for _ in range(30):
        shared = [shared] * 9
    document = Document(Path("a.yaml"), "", {"x-a": shared})
    assert substitute(document, document.data, hides_secrets=lambda pointer: False).keys() == document.data.keys()
