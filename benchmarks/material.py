"""The suites and agents that are measured: as trivial as they can be, so that what is left is the framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AGENTS = '''"""Agents that do nothing, or nothing but wait."""

import asyncio
import time


def echo(question: str) -> str:
    return question


def echo_object(args: dict[str, str]) -> str:
    return args["question"]


async def echo_async(question: str) -> str:
    return question


def slow(question: str) -> str:
    time.sleep(0.05)
    return question


async def slow_async(question: str) -> str:
    await asyncio.sleep(0.05)
    return question


def busy(question: str) -> str:
    sum(number * number for number in range(1_500_000))
    return question
'''

EVALUATORS = ["ExactMatch", "LevenshteinMatch"]


def question(number: int) -> str:
    """A question that its agent gives back as it is."""
    return f"What is the answer to question number {number}?"


def write_agents(folder: Path) -> None:
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")


def write_jsonl(path: Path, cases: int, agent: str) -> Path:
    """A suite in JSON Lines, as Proctor reads it."""
    write_agents(path.parent)
    head = {"suite": {"name": path.stem, "agent": f"agents.py:{agent}", "evaluators": EVALUATORS}}
    rows = [{"id": f"case-{n}", "input": question(n), "expected": question(n)} for n in range(cases)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]), encoding="utf-8")
    return path


def write_one_case_files(folder: Path) -> dict[str, Path]:
    """One case in each format, by the name of the format; those that name no agent need `agents.py:echo`."""
    write_agents(folder)
    asked = question(1)
    files: dict[str, tuple[str, str]] = {
        "native YAML": ("native.yaml", _native(asked)),
        "ADK JSON": ("adk.test.json", json.dumps(_adk(asked))),
        "pixie JSON": ("pixie.json", json.dumps(pixie_dataset([asked], "agents.py:echo_object"))),
        "HoloDeck YAML": ("holodeck.yaml", _holodeck(asked)),
        "keywords JSON": ("keywords.json", json.dumps(_keywords(asked))),
    }
    for name, text in files.values():
        (folder / name).write_text(text, encoding="utf-8")
    return {title: folder / name for title, (name, _) in files.items()}


def pixie_dataset(questions: list[str], runnable: str) -> dict[str, Any]:
    entries = [
        {"input_data": {"question": asked}, "description": f"entry {n}", "expectation": asked}
        for n, asked in enumerate(questions)
    ]
    return {"name": "trivial", "runnable": runnable, "evaluators": EVALUATORS, "entries": entries}


WRAPPED = '''"""An application that asks for one input and shows one output, and how it looks without either."""

import {library}

from agents import echo


async def plain(args):
    return echo(args["question"])


async def wrapped(args):
    customer = {library}.wrap({{"tier": "unknown"}}, purpose="input", name="customer")
    assert customer["tier"] == "gold"
    return {library}.wrap(echo(args["question"]), purpose="output", name="answer")
'''

OBSERVED = """

@proctor.observe
async def observed(args):
    return await wrapped(args)
"""


def write_wrapped(folder: Path, library: str, function: str, cases: int) -> None:
    """A dataset whose entries bring an input to be asked for, and the application that does or does not ask."""
    application = WRAPPED.format(library=library) + (OBSERVED if library == "proctor" else "")
    (folder / "application.py").write_text(application, encoding="utf-8")
    dataset = pixie_dataset([question(n) for n in range(cases)], f"application.py:{function}")
    if function != "plain":
        for entry in dataset["entries"]:
            entry["eval_input"] = [{"name": "customer", "value": {"tier": "gold", "since": 2019}}]
    (folder / "dataset.json").write_text(json.dumps(dataset), encoding="utf-8")


def _native(asked: str) -> str:
    return (
        f"name: one\nagent: agents.py:echo\nevaluators: [{', '.join(EVALUATORS)}]\n"
        f"cases:\n  - id: only\n    input: {asked}\n    expected: {asked}\n"
    )


def _adk(asked: str) -> dict[str, object]:
    turn = {
        "invocationId": "first",
        "userContent": {"role": "user", "parts": [{"text": asked}]},
        "finalResponse": {"role": "model", "parts": [{"text": asked}]},
    }
    return {"evalSetId": "one", "evalCases": [{"evalId": "only", "conversation": [turn]}]}


def _holodeck(asked: str) -> str:
    return (
        "name: one\nmodel:\n  provider: openai\n  name: gpt-4o-mini\ninstructions:\n  inline: Repeat the question.\n"
        "evaluations:\n  metrics:\n    - type: standard\n      metric: bleu\n      threshold: 0.5\n"
        f"test_cases:\n  - name: only\n    input: {asked}\n    ground_truth: {asked}\n"
    )


def _keywords(asked: str) -> list[dict[str, object]]:
    return [{"id": "only", "input": asked, "expected_output_contains": ["question"]}]
