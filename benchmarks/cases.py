"""The suites and agents that are measured: as trivial as possible, so that the cost is that of the framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AGENTS = '''"""Agents that do nothing."""


def echo(question: str) -> str:
    return question


def echo_object(args: dict[str, str]) -> str:
    return args["question"]
'''

EVALUATORS = ["ExactMatch", "LevenshteinMatch"]


def question(number: int) -> str:
    """A question that the agent returns as its answer."""
    return f"What is the answer to question number {number}?"


def write_agents(folder: Path) -> None:
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")


def write_jsonl(path: Path, cases: int) -> Path:
    """A suite in JSON Lines, as Proctor reads it."""
    write_agents(path.parent)
    head = {"suite": {"name": path.stem, "agent": "agents.py:echo", "evaluators": EVALUATORS}}
    rows = [{"id": f"case-{n}", "input": question(n), "expected": question(n)} for n in range(cases)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]), encoding="utf-8")
    return path


def write_one_case_files(folder: Path) -> dict[str, Path]:
    """One case in each format, by the name of the format."""
    write_agents(folder)
    text = question(1)
    files = {
        "native YAML": ("native.yaml", _native(text)),
        "ADK JSON": ("adk.test.json", json.dumps(_adk(text))),
        "pixie JSON": ("pixie.json", json.dumps(pixie_dataset([text], "agents.py:echo_object"))),
        "HoloDeck YAML": ("holodeck.yaml", _holodeck(text)),
        "keywords JSON": ("keywords.json", json.dumps(_keywords(text))),
    }
    for name, content in files.values():
        (folder / name).write_text(content, encoding="utf-8")
    return {title: folder / name for title, (name, _) in files.items()}


def pixie_dataset(questions: list[str], runnable: str) -> dict[str, Any]:
    entries = [
        {"input_data": {"question": text}, "description": f"entry {n}", "expectation": text}
        for n, text in enumerate(questions)
    ]
    return {"name": "trivial", "runnable": runnable, "evaluators": EVALUATORS, "entries": entries}


def _native(text: str) -> str:
    return (
        f"name: one\nagent: agents.py:echo\nevaluators: [{', '.join(EVALUATORS)}]\n"
        f"cases:\n  - id: only\n    input: {text}\n    expected: {text}\n"
    )


def _adk(text: str) -> dict[str, object]:
    turn = {
        "invocationId": "first",
        "userContent": {"role": "user", "parts": [{"text": text}]},
        "finalResponse": {"role": "model", "parts": [{"text": text}]},
    }
    return {"evalSetId": "one", "evalCases": [{"evalId": "only", "conversation": [turn]}]}


def _holodeck(text: str) -> str:
    return (
        "name: one\nmodel:\n  provider: openai\n  name: gpt-4o-mini\ninstructions:\n  inline: Repeat the question.\n"
        "evaluations:\n  metrics:\n    - type: standard\n      metric: bleu\n      threshold: 0.5\n"
        f"test_cases:\n  - name: only\n    input: {text}\n    ground_truth: {text}\n"
    )


def _keywords(text: str) -> list[dict[str, object]]:
    return [{"id": "only", "input": text, "expected_output_contains": ["question"]}]
