"""What `--json` prints is what the schema of its name and version says, and every command has one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest

from proctor.cli import group, main

AGENT = """
import itertools

import proctor

COUNT = itertools.count()


def agent(question):
    if "flaky" in question:
        return "yes" if next(COUNT) % 2 else "no"
    return "It is shipped."


class App(proctor.Runnable):
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args):
        proctor.wrap("done", purpose="output", name="response")
"""
SUITE = """
name: shop
agent: shop.py:agent
cases:
  - {id: shipped, input: Where is A-17?, expected: {contains: shipped}}
  - {id: lost, input: A-18 never came., expected: {contains: refund, tools: [{name: refund, args: {order: A-18}}]}}
  - {id: flaky, repeat: 4, input: flaky?, expected: "yes"}
  - {id: graded, input: Be kind., expected: yes, skip: later}
"""
OPEN = """
name: open
agent: shop.py:agent
cases:
  - {id: waits, input: Where?, evaluators: ["checks.py:waits"]}
  - {id: judged, input: Where is it?, retrieval_context: ["It is shipped."], evaluators: [Faithfulness]}
"""
CHECKS = """
from proctor import EvaluationPending


def waits(evaluable):
    raise EvaluationPending("a person has to look")
"""
CALLS: dict[str, list[list[str]]] = {
    "report": [
        ["test", "shop.yaml", "--json", "-"],
        ["show", "second", "--json", "-"],
        ["rescore", "open", "--json", "-"],
    ],
    "comparison": [["compare", "first", "second", "--json", "-"]],
    "aligned-case": [["compare", "first", "second", "--case", "lost", "--json", "-"]],
    "run-row": [["runs", "--json"]],
    "suite-run-row": [["runs", "--suite", "shop", "--json"]],
    "judge-calls": [["show", "open", "--judge-calls", "--json", "-"]],
    "pending-row": [["grade", "open", "--json"]],
    "analysis": [["show", "second", "--analysis", "--json", "-"], ["analyze", "open", "--json"]],
    "accepted-row": [["baseline", "accept", "second", "--json"]],
    "baseline-row": [["baseline", "show", "shop.yaml", "--json"]],
    "plan": [["test", "shop.yaml", "--gate", "--plan", "--json", "-"], ["plan", "open.yaml", "--json"]],
    "flaky-row": [["flaky", "shop.yaml", "--json"], ["flaky", "shop.yaml", "--rejudge", "2", "--json"]],
    "quarantine-row": [["quarantine", "--json"]],
    "proposal-row": [["approve", "open.yaml", "--json"]],
    "evaluator": [["list", "evaluators", "--json"], ["list", "evaluators", "Regex", "--json"]],
    "format-row": [["list", "formats", "--json"]],
    "agents": [["list", "agents", "--json"]],
    "validation": [["dataset", "validate", "shop.yaml", "../extra/broken.yaml", "--json"]],
    "suite-row": [["dataset", "list", "shop.yaml", "open.yaml", "--json"]],
    "import-row": [["runs", "import", "../extra/run.jsonl", "--json"]],
    "doctor": [["doctor", "shop.yaml", "../extra/broken.yaml", "--json"]],
    "trace-made": [["trace", "--runnable", "shop.py:App", "--input", "../extra/input.json", "--json"]],
    "trace-row": [["trace", "list", "--json"]],
    "trace": [["trace", "show", "last", "--json"], ["trace", "last", "--json"]],
    "trace-import": [["trace", "import", "../extra/trace.jsonl", "--json"]],
}
"""By schema, the commands that print it; each is run in the order of this table."""


def called(*arguments: str) -> str:
    """What a command prints."""
    out, sys.argv = io.StringIO(), ["proctor", *arguments]
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main()
    return out.getvalue()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """The documents and rows that each command prints, in one folder with a few runs."""
    folder, before = tmp_path_factory.mktemp("project") / "here", (Path.cwd(), list(sys.argv), list(sys.path))
    files = {"shop.py": AGENT, "checks.py": CHECKS, "shop.yaml": SUITE, "open.yaml": OPEN}
    files |= {"../extra/input.json": "{}", "../extra/broken.yaml": "name: broken\ncases: [{id: a, inptu: b}]\n"}
    folder.mkdir()
    (folder.parent / "extra").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    os.chdir(folder)
    try:
        yield dict(_all_printed())
    finally:
        os.chdir(before[0])
        sys.argv, sys.path[:] = before[1], before[2]


def _all_printed() -> Iterator[tuple[str, list[Any]]]:
    called("test", "shop.yaml", "--agent", "oracle", "--repeat", "2", "--name", "first")
    called("quarantine", "lost", "shop.yaml", "--reason", "known", "--until", "2099-01-01")
    called("test", "shop.yaml", "--name", "second")
    called("test", "open.yaml", "--name", "open")
    called("runs", "export", "open", "--output", "../extra/run.jsonl")
    called("trace", "--runnable", "shop.py:App", "--input", "../extra/input.json", "--output", "../extra/trace.jsonl")
    for schema, calls in CALLS.items():
        found = [json.loads(called(*call)) for call in calls]
        yield schema, [row for rows in found for row in (rows if isinstance(rows, list) else [rows])]


def schemas() -> dict[str, Any]:
    folder = resources.files("proctor").joinpath("schemas")
    found = (json.loads(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".json"))
    return {schema["$id"]: schema for schema in found if str(schema.get("$id", "")).startswith("proctor.")}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_command_prints_is_what_its_schema_says(name: str, printed: dict[str, list[Any]]) -> None:
    schema = schemas()[f"proctor.{name}/1"]

    assert printed[name]
    for document in printed[name]:
        assert document["schema"] == schema["$id"]
        jsonschema_rs.validate(schema, document)


def test_every_schema_says_which_command_prints_it_and_is_as_strict_as_it_can_be() -> None:
    for name, schema in schemas().items():
        if name != "proctor.suite/1":
            assert schema["description"], name
            assert schema["additionalProperties"] is False, name
            assert schema["x-commands"], name


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command with its words."""
    if path:
        yield " ".join(path), command
    names = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    for name in names:
        found = command.get_command(click.Context(command), name)  # type: ignore[attr-defined]
        yield from commands(found, (*path, name))


def test_every_command_that_prints_json_has_a_schema() -> None:
    known = dict(commands(group))
    printing = {words for words, command in known.items() if any("--json" in each.opts for each in command.params)}
    declared = {words for schema in schemas().values() for words in schema.get("x-commands", ())}

    assert printing == declared & known.keys()  # a command of an optional folder may be gone, and its schema still here
