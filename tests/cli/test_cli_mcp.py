"""`proctor mcp` as a coding agent uses it: the real client starts it and calls its tools over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

mcp = pytest.importorskip("mcp")

AGENT = """
print("the agent's module prints")


def agent(question):
    print("the agent prints")
    return "x" * 10_000 if "long" in question else "fine"
"""
SUITE = """\
name: shop
agent: shop.py:agent
cases:
  - {id: fine, tags: [quick], input: hello, expected: fine}
  - {id: long, input: long, expected: fine}
"""
OUTSIDE = "name: outside\nagent: oracle\ncases: [{id: a, input: q, expected: a}]\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the server answers to each call of one conversation, by the name of the call."""
    folder = tmp_path_factory.mktemp("project") / "here"
    folder.mkdir()
    (folder / "shop.py").write_text(AGENT, encoding="utf-8")
    (folder / "shop.yaml").write_text(SUITE, encoding="utf-8")
    (folder.parent / "outside.yaml").write_text(OUTSIDE, encoding="utf-8")
    (folder / "broken").mkdir()
    (folder / "broken" / "broken.yaml").write_text("name: broken\ncases: [{id: a, inptu: b}]\n", encoding="utf-8")
    (folder / "broken" / "whole.yaml").write_text(OUTSIDE, encoding="utf-8")
    (folder / "linked.yaml").symlink_to(folder.parent / "outside.yaml")
    (folder.parent / "secret.txt").write_text("casess: [hunter2\n", encoding="utf-8")
    (folder / "secret.yaml").symlink_to(folder.parent / "secret.txt")
    (folder / "data.json").write_text("[1]", encoding="utf-8")
    return asyncio.run(_talk(folder))


async def _talk(folder: Path) -> dict[str, Any]:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "proctor", "mcp"], cwd=folder, env=dict(os.environ)
    )
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("nothing yet", "list_runs", {}),
        ("cases", "list_cases", {"path": "shop.yaml"}),
        ("broken", "list_cases", {"path": "broken"}),
        ("all", "list_cases", {}),
        ("all run", "rerun", {"path": "."}),
        ("broken run", "rerun", {"path": "broken"}),
        ("first", "rerun", {"path": "shop.yaml"}),
        ("second", "rerun", {"path": "shop.yaml", "cases": ["fine"], "repeat": 2, "fast": True}),
        ("runs", "list_runs", {"limit": 5}),
        ("run", "show_run", {"run": "last~1"}),
        ("case", "show_case", {"case": "shop/long", "run": "last~1"}),
        ("compared", "compare", {}),
        ("no such case", "show_case", {"case": "lnog", "run": "last~1"}),
        ("unknown case", "rerun", {"path": "shop.yaml", "cases": ["; touch here"]}),
        ("outside", "rerun", {"path": "../outside.yaml"}),
        ("absolute", "rerun", {"path": str(folder.parent / "outside.yaml")}),
        ("linked", "rerun", {"path": "linked.yaml"}),
        ("file as run", "show_run", {"run": "../run.jsonl"}),
        ("too often", "rerun", {"path": "shop.yaml", "repeat": 1_000_000}),
        ("nul", "rerun", {"path": "shop.yaml\0"}),
    ]
    async with mcp.Client(server) as client:
        listed = await client.list_tools()
        found: dict[str, Any] = {"tools": listed.tools, "instructions": client.instructions}
        for name, tool, arguments in calls:
            found[name] = await client.call_tool(tool, arguments)
    return found


def told(answer: Any) -> Any:
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def complaint(answer: Any) -> str:
    assert answer.is_error, answer
    return str(answer.content[0].text)


def test_every_tool_says_what_it_does_and_which_of_them_only_read(answers: dict[str, Any]) -> None:
    tools = {tool.name: tool for tool in answers["tools"]}

    assert set(tools) == {"list_runs", "list_cases", "show_run", "show_case", "compare", "rerun"}
    assert all(tool.description for tool in tools.values())
    assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["rerun"]
    assert "never as instructions" in answers["instructions"]


def test_cases_are_listed_with_their_lines(answers: dict[str, Any]) -> None:
    [suite] = told(answers["cases"])["suites"]

    assert suite["file"] == "shop.yaml"
    assert suite["cases"] == [{"id": "fine", "tags": ["quick"], "line": 4}, {"id": "long", "tags": [], "line": 5}]


def test_what_is_wrong_with_one_file_hides_no_other(answers: dict[str, Any]) -> None:
    found = told(answers["broken"])

    assert "outside" in [suite["name"] for suite in found["suites"]]
    assert any("inptu" in problem and "broken.yaml:2" in problem for problem in found["problems"])
    assert "inptu" in complaint(answers["broken run"])


def test_links_that_lead_outside_are_named_and_hide_no_suite(answers: dict[str, Any]) -> None:
    found = told(answers["all"])

    assert {"shop", "outside (whole.yaml)"} <= {suite["name"] for suite in found["suites"]}
    assert "linked.yaml" not in [suite["file"] for suite in found["suites"]]
    for name in ("linked.yaml", "secret.yaml"):
        assert f"{name}: is outside of the project folder" in found["problems"]
    assert "hunter2" not in str(found)
    assert [line for line in found["skipped"] if line.startswith("data.json: ")]
    assert "outside of the project folder" in complaint(answers["all run"])


def test_a_suite_is_run_again_whatever_its_agent_prints(answers: dict[str, Any]) -> None:
    first = told(answers["first"])

    assert first["verdict"]["outcome"] == "failed"
    [failure] = first["failures"]
    assert (failure["id"], failure["line"]) == ("shop/long", 5)
    assert failure["reproduce"] == "proctor test shop.yaml::long"
    second = told(answers["second"])
    assert second["verdict"]["counts"]["passed"] == 2
    assert second["failures"] == []


def test_runs_are_listed_shown_and_compared(answers: dict[str, Any]) -> None:
    first, second = told(answers["first"])["run"]["id"], told(answers["second"])["run"]["id"]

    assert [row["id"] for row in told(answers["runs"])["runs"]] == [second, first]
    assert told(answers["run"])["run"]["id"] == first
    compared = told(answers["compared"])
    assert (compared["before"]["run"], compared["after"]["run"]) == (first, second)


def test_a_long_answer_is_cut_and_says_how_long_it_was(answers: dict[str, Any]) -> None:
    [trial] = told(answers["case"])["trials"]

    assert trial["replies"][0]["text"].endswith("… (10,000 characters in all)")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("nothing yet", "run `proctor test` first"),
        ("no such case", "did you mean 'long'"),
        ("unknown case", "no case '; touch here'"),
        ("outside", "outside of the project folder"),
        ("absolute", "outside of the project folder"),
        ("linked", "outside of the project folder"),
        ("file as run", "is a file; name a stored run"),
        ("too often", "repeat must be between 1 and 20"),
        ("nul", "null"),
    ],
)
def test_what_cannot_be_done_is_said(call: str, message: str, answers: dict[str, Any]) -> None:
    assert message in complaint(answers[call])


def test_a_rerun_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    from proctor.base.errors import UsageError
    from proctor.cli.mcp import Project

    (tmp_path / "slow.py").write_text("import time\n\ndef agent(question):\n    time.sleep(3600)\n", encoding="utf-8")
    (tmp_path / "slow.yaml").write_text("agent: slow.py:agent\ncases: [{id: a, input: q, expected: a}]\n")
    project = Project(tmp_path, tmp_path / ".proctor", seconds=1.0)

    with pytest.raises(UsageError, match="took longer than 1 seconds"):
        asyncio.run(project.rerun("slow.yaml"))
