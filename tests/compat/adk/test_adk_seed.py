"""Every JSON snippet of ADK-TS's page on testing agents, word for word: it reads, and the oracle gets full marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator

FULL_EXAMPLE = """\
{
  "evalSetId": "weather-agent-tests",
  "name": "Weather Agent Evaluation",
  "creationTimestamp": 0,
  "evalCases": [
    {
      "evalId": "case-1",
      "conversation": [
        {
          "creationTimestamp": 0,
          "userContent": {
            "role": "user",
            "parts": [{ "text": "What is the weather in London?" }]
          },
          "finalResponse": {
            "role": "model",
            "parts": [{ "text": "The weather in London" }]
          },
          "intermediateData": {
            "toolUses": [
              {
                "name": "get_weather",
                "args": { "city": "London" }
              }
            ],
            "intermediateResponses": []
          }
        }
      ]
    }
  ]
}
"""

RESPONSE_ONLY = """\
{
  "evalId": "greeting-test",
  "conversation": [
    {
      "creationTimestamp": 0,
      "userContent": {
        "role": "user",
        "parts": [{ "text": "Hello!" }]
      },
      "finalResponse": {
        "role": "model",
        "parts": [{ "text": "Hello! How can I help you today?" }]
      }
    }
  ]
}
"""

TOOL_TRAJECTORY = """\
{
  "evalId": "search-test",
  "conversation": [
    {
      "creationTimestamp": 0,
      "userContent": {
        "role": "user",
        "parts": [{ "text": "Search for TypeScript tutorials" }]
      },
      "intermediateData": {
        "toolUses": [
          {
            "name": "web_search",
            "args": { "query": "TypeScript tutorials" }
          }
        ],
        "intermediateResponses": []
      }
    }
  ]
}
"""

MULTI_TURN = """\
{
  "evalId": "multi-turn-test",
  "conversation": [
    {
      "creationTimestamp": 0,
      "userContent": {
        "role": "user",
        "parts": [{ "text": "What is the weather in London?" }]
      },
      "finalResponse": {
        "role": "model",
        "parts": [{ "text": "The weather in London is sunny, 22°C." }]
      },
      "intermediateData": {
        "toolUses": [{ "name": "get_weather", "args": { "city": "London" } }],
        "intermediateResponses": []
      }
    },
    {
      "creationTimestamp": 0,
      "userContent": {
        "role": "user",
        "parts": [{ "text": "What about Tokyo?" }]
      },
      "finalResponse": {
        "role": "model",
        "parts": [{ "text": "The weather in Tokyo is cloudy, 18°C." }]
      },
      "intermediateData": {
        "toolUses": [{ "name": "get_weather", "args": { "city": "Tokyo" } }],
        "intermediateResponses": []
      }
    }
  ]
}
"""

STATEFUL = """\
{
  "evalId": "stateful-test",
  "conversation": [
    {
      "creationTimestamp": 0,
      "userContent": {
        "role": "user",
        "parts": [{ "text": "What is my account balance?" }]
      },
      "finalResponse": {
        "role": "model",
        "parts": [{ "text": "Your account balance is $1,250." }]
      }
    }
  ],
  "sessionInput": {
    "appName": "banking_app",
    "userId": "user_123",
    "state": {
      "account_balance": 1250,
      "account_type": "checking"
    }
  }
}
"""

CONFIG = """\
{
  "criteria": {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.8
  }
}
"""

DEFAULTS = """\
{
  "tool_trajectory_avg_score": 1.0,
  "response_match_score": 0.8
}
"""

LEGACY = """\
[
  {
    "query": "What is the weather in London?",
    "reference": "The weather in London",
    "expected_tool_use": [
      { "name": "get_weather", "args": { "city": "London" } }
    ]
  }
]
"""

EVAL_SETS = {
    "a full example": FULL_EXAMPLE,
    "a response only": RESPONSE_ONLY,
    "a tool trajectory": TOOL_TRAJECTORY,
    "several turns": MULTI_TURN,
    "a session with state": STATEFUL,
}
"""The page shows whole sets and single cases."""


def write_file(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", EVAL_SETS.values(), ids=EVAL_SETS.keys())
def test_the_oracle_gets_full_marks_for_every_documented_set(text: str, tmp_path: Path) -> None:
    write_file(tmp_path, "basic.test.json", text)
    run = AgentEvaluator.evaluate_sync("oracle", tmp_path)
    assert {score.value for trial in run.trials for score in trial.scores} == {1.0}


@pytest.mark.parametrize("text", EVAL_SETS.values(), ids=EVAL_SETS.keys())
def test_an_agent_that_does_nothing_fails_every_documented_set(text: str, tmp_path: Path) -> None:
    write_file(tmp_path, "basic.test.json", text)
    with pytest.raises(AgentEvaluationFailed):
        AgentEvaluator.evaluate_sync("nop", tmp_path)


def test_the_documented_legacy_rows_still_run_with_a_warning(tmp_path: Path) -> None:
    write_file(tmp_path, "old.test.json", LEGACY)
    with pytest.warns(DeprecationWarning, match="legacy format"):
        run = AgentEvaluator.evaluate_sync("oracle", tmp_path / "old.test.json")
    assert {score.value for trial in run.trials for score in trial.scores} == {1.0}


def test_the_documented_config_and_the_documented_defaults_are_the_criteria(tmp_path: Path) -> None:
    found = AgentEvaluator.find_config_for_test_file_sync
    assert found(tmp_path / "basic.test.json") == json.loads(DEFAULTS)
    write_file(tmp_path, "test_config.json", CONFIG)
    assert found(tmp_path / "basic.test.json") == json.loads(CONFIG)["criteria"]


def test_the_documented_folder_runs_as_it_is(tmp_path: Path) -> None:
    write_file(tmp_path, "tests/basic.test.json", FULL_EXAMPLE)
    write_file(tmp_path, "tests/edge-cases.test.json", MULTI_TURN)
    write_file(tmp_path, "tests/test_config.json", CONFIG)
    write_file(tmp_path, "agent.ts", "export const agent = 1;")
    run = AgentEvaluator.evaluate_sync("oracle", tmp_path, 1)
    assert [suite.name for suite in run.suites] == ["weather-agent-tests", "edge-cases"]
