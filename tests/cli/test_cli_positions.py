"""Every problem and every failing case is reported in the file and on the line where it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tool_marks import needing

Command = Callable[..., Any]

TURN = {"userContent": {"parts": [{"text": "hi"}]}, "finalResponse": {"parts": [{"text": "hi"}]}}
EVAL_SET = json.dumps({"evalSetId": "faq", "evalCases": [{"evalId": "hello", "conversation": [TURN]}]})
CODE = {"code_config": {"name": "checks.py:nope"}}
AGENT_FILE = "name: desk\nmodel: {provider: openai, name: gpt-4o}\nagent: agents.py:echo\n"
WRONG: dict[str, tuple[dict[str, str], list[str]]] = {
    "native YAML, twice and after a comment": (
        {
            "suite.yaml": "# checks.py:nope\nagent: agents.py:echo\ncases:\n"
            "  - id: one\n    input: checks.py:nope\n    evaluators: [checks.py:nope]\n"
            "  - id: two\n    input: hi\n    evaluators:\n      - checks.py:good\n      - checks.py:nope\n"
        },
        ["suite.yaml:6", "suite.yaml:11"],
    ),
    "native JSON, with arguments": (
        {
            "suite.json": json.dumps(
                {
                    "agent": "agents.py:echo",
                    "x-note": "checks.py:nope",
                    "cases": [{"id": "one", "input": "hi", "evaluators": [{"checks.py:nope": {"least": 1}}]}],
                },
                indent=1,
            )
        },
        ["suite.json:10"],
    ),
    "JSON Lines": (
        {
            "suite.jsonl": '{"suite": {"agent": "agents.py:echo"}}\n{"input": "checks.py:nope", "expected": "x"}\n\n'
            '{"input": "hi", "evaluators": ["checks.py:nope"]}\n'
        },
        ["suite.jsonl:4"],
    ),
    "pixie": (
        {
            "data.json": '{"runnable": "agents.py:echo",\n "entries": [\n'
            '  {"description": "checks.py:nope", "input_data": {"q": 1}, "evaluators": ["checks.py:good"]},\n'
            '  {"description": "b", "input_data": {"q": 1}, "evaluators": ["checks.py:nope"]}\n]}'
        },
        ["data.json:4"],
    ),
    "ADK's test_config.json": (
        {
            "faq.test.json": EVAL_SET,
            "test_config.json": json.dumps({"criteria": {"polite": 1.0}, "custom_metrics": {"polite": CODE}}, indent=1),
        },
        ["test_config.json:8"],
    ),
    "HoloDeck": (
        {
            "agent.yaml": f"{AGENT_FILE}# checks.py:nope\nevaluations:\n  metrics:\n    - type: code\n"
            "      grader: checks.py:nope\ntest_cases:\n  - {name: one, input: hi, ground_truth: hi}\n"
        },
        ["agent.yaml:8"],
    ),
    "HoloDeck's test_cases_file": (
        {
            "agent.yaml": f"{AGENT_FILE}test_cases_file: tests.yaml\n",
            "tests.yaml": "- name: checks.py:nope\n  input: hi\n  ground_truth: hi\n  evaluations:\n"
            "    - type: code\n      grader: checks.py:nope\n",
        },
        ["tests.yaml:6"],
    ),
}


TOOL = {
    "pixie": "pixie",
    "ADK's test_config.json": "adk",
    "HoloDeck": "holodeck",
    "HoloDeck's test_cases_file": "holodeck",
}


@pytest.mark.parametrize("name", [needing(TOOL[name], name) if name in TOOL else name for name in WRONG])
@pytest.mark.parametrize("command", [("test",), ("dataset", "validate")], ids=["test", "validate"])
def test_an_evaluator_that_does_not_exist_is_reported_where_it_is_named(
    project: Path, proctor: Command, name: str, command: tuple[str, ...]
) -> None:
    files, places = WRONG[name]
    for file, text in files.items():
        (project / file).write_text(text, encoding="utf-8")
    extra = ("--agent", "agents.py:echo") if command == ("test",) and "faq.test.json" in files else ()
    done = proctor(*command, next(iter(files)), *extra)
    assert done.code == 2
    lines = [line for line in (done.out + done.err).splitlines() if "has no 'nope'" in line]
    assert len(lines) == len(places), lines
    for place in places:
        assert any(line.startswith(f"error: {place}: ") for line in lines), (place, lines)


def test_a_wrong_evaluator_of_a_python_list_is_reported_in_that_list(project: Path, proctor: Command) -> None:
    rows = "TEST_CASES = [\n    {'id': 'a', 'input': 'hi', 'expected': 'hi'},\n    {'id': 'b', 'input': 'hi',\n"
    (project / "cases.py").write_text(f"NOTE = 'checks.py:nope'\n{rows}     'evaluators': ['checks.py:nope']}},\n]\n")
    done = proctor("test", "cases.py:TEST_CASES", "--agent", "agents.py:echo")
    assert done.code == 2
    assert "error: cases.py:5: 'checks.py:nope': checks.py has no 'nope'" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# gone.py:agent\nname: gone.py:agent\nagent: gone.py:agent\n", "suite.yaml:3: agent: no file 'gone.py'"),
        (
            "name: x\nagents:\n  first: agents.py:echo\n  second: gone.py:agent\n",
            "suite.yaml:4: agent: no file 'gone.py'",
        ),
        ("name: x\nagents:\n  - agents.py:echo\n  - gone.py:agent\n", "suite.yaml:4: agent: no file 'gone.py'"),
        (
            "# ${NO_SUCH_TOKEN}\nagent:\n  http:\n    url: http://localhost:1\n    headers:\n"
            "      Authorization: ${NO_SUCH_TOKEN}\n",
            "suite.yaml:6: agent: ",
        ),
        ("agent: agents.py:echo\nreexecute: agents.py:gone\n", "suite.yaml:2: rerun_tools: "),
        (
            "agent: agents.py:echo\nname: nowhere:x\njudge: nowhere:x\nevaluators: [Factuality]\n",
            "suite.yaml:3: judge: ",
        ),
        (
            "agent: agents.py:echo\nname: nowhere:x\nevaluators:\n  - Factuality: {model: nowhere:x}\n",
            "suite.yaml:4: evaluator 'Factuality': model: ",
        ),
    ],
)
def test_agents_judges_and_tools_that_cannot_be_had_are_reported_at_their_key(
    project: Path, proctor: Command, text: str, said: str
) -> None:
    (project / "suite.yaml").write_text(f"{text}cases:\n  - {{id: one, input: hi, expected: hi}}\n")
    done = proctor("test", "suite.yaml")
    assert done.code == 2
    assert f"error: {said}" in done.err, done.err


@pytest.mark.needs("holodeck")
def test_annotations_and_code_quality_point_into_the_included_file(
    project: Path, proctor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    metrics = "evaluations:\n  metrics:\n    - {type: standard, metric: equality}\n"
    (project / "agent.yaml").write_text(f"{AGENT_FILE}{metrics}test_cases_file: tests.yaml\n")
    (project / "tests.yaml").write_text(
        "# bad\n- {name: good, input: hi, ground_truth: hi}\n\n- {name: bad, input: hi, ground_truth: other}\n"
    )
    done = proctor("test", "agent.yaml", "--code-quality", "quality.json")
    assert done.code == 1
    assert "::error file=tests.yaml,line=4,title=desk/bad failed::" in done.out
    [entry] = json.loads((project / "quality.json").read_text())
    assert entry["location"] == {"path": "tests.yaml", "lines": {"begin": 4}}
