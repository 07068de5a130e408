"""One secret in everything that a user writes and an agent says, and every door through which it could get out."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from served_viewer import serve_viewer

from proctor.cli.mcp import Project

Command = Callable[..., Any]

# Put together here, so that no line of this file looks like a key to those who scan repositories for keys.
SECRET = "gh" + "p_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
OTHER = "gh" + "p_" + "zZ9dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
MASK = "[secret: GitHub token, 40 characters]"
REPORTS = {"--html": "r.html", "--md": "r.md", "--json": "r.json", "--junit": "r.xml", "--csv": "r.csv"}
AGENT = """
import logging

import proctor
from proctor import Reply, ToolCall


@proctor.observe
def look_up(token, **more):
    return {token: token}


def agent(question):
    token = question.split()[-1]
    print("printed", token)
    logging.getLogger("desk").warning("logged %s", token)
    look_up(token, **{token: 1})
    if "raise" in question:
        raise RuntimeError(f"refused {token}")
    return Reply(f"key {token}", (ToolCall("login", {token: "x", "header": token}, result={token: 1}),))


def broken(evaluable):
    raise ValueError(f"cannot score {evaluable}")
"""


@pytest.fixture
def project(project: Path) -> Path:
    (project / "desk.py").write_text(AGENT)
    case = {"tags": [SECRET], "description": SECRET, "metadata": {SECRET: SECRET}, "expected": f"key {SECRET}"}
    cases = [
        {"id": f"login {SECRET}", "input": f"is {SECRET}", **case},
        {"id": f"login {OTHER}", "input": f"raise {OTHER}", "expected": "no"},
        {"id": f"score {SECRET}", "input": f"is {OTHER}", "expected": "no", "evaluators": ["desk.py:broken"]},
    ]
    suite = {"name": f"desk {SECRET}", "agent": "desk.py:agent", "evaluators": ["ExactMatch"], "cases": cases}
    (project / "desk.json").write_text(json.dumps(suite))
    return project


def leaks(text: str | bytes) -> bool:
    data = text.encode() if isinstance(text, str) else text
    data = data.replace(b"<wbr>", b"")
    return SECRET[4:].encode() in data or OTHER[4:].encode() in data


def stored_bytes(folder: Path) -> bytes:
    """Everything in the store, with what is compressed unpacked."""
    parts = [path.read_bytes() for path in folder.iterdir() if path.is_file()]
    with sqlite3.connect(folder / "results.db") as database:
        parts += [zlib.decompress(data) for (data,) in database.execute("SELECT content FROM traces")]
    database.close()
    return b"\n".join(parts)


def test_a_secret_gets_out_through_no_command_report_or_file(project: Path, proctor: Command) -> None:
    said: dict[str, str] = {}

    def run(*words: str) -> Any:
        ended = proctor(*words)
        said[" ".join(words)] = ended.out + ended.err
        return ended

    run("test", "desk.json", "-v", *(word for pair in REPORTS.items() for word in pair))
    run("test", "desk.json", "--repeat", "2")
    run("test", "desk.json", "--case", f"nothing {SECRET}")
    for words in (
        *(
            ("show", "last", "-v"),
            ("compare", "last~1", "last"),
            ("runs",),
            ("rescore", "last", "-v"),
            ("trace", "list"),
        ),
        *(("runs", "export", "last"), ("dataset", "list", "desk.json"), ("approve", "desk.json", "--json")),
        *(("baseline", "accept", "last"), ("grade", "last", "--json")),
    ):
        run(*words)
    files = {path.name: path.read_bytes() for path in project.iterdir() if path.is_file() and path.name != "desk.json"}
    files["store"] = stored_bytes(project / ".proctor")
    assert {*REPORTS.values()} <= {*files}
    assert [name for name, text in {**said, **files}.items() if leaks(text)] == []
    assert MASK in said["show last -v"]
    assert MASK.encode() in files["store"]


def test_the_viewer_and_the_mcp_server_show_no_secret(project: Path, proctor: Command) -> None:
    proctor("test", "desk.json")
    proctor("test", "desk.json")
    pages: dict[str, str] = {}
    with serve_viewer(project / ".proctor") as client:
        waiting = ["/"]
        while waiting and len(pages) < 25:
            address = waiting.pop(0)
            pages[address] = client.get(address).text
            links = {link.replace("&amp;", "&") for link in re.findall(r'href="(/[^"#]*)"', pages[address])}
            waiting += sorted(links - {*pages, *waiting})
    assert [address for address, page in pages.items() if leaks(page) or leaks(address)] == []
    assert any("GitHub token" in page for page in pages.values())
    server = Project(project, project / ".proctor")
    answers = [server.list_cases("desk.json"), server.list_runs(), server.show_run(), server.compare()]
    answers += [server.show_case(f"login {MASK}")]
    assert not leaks(json.dumps(answers))


def test_a_case_with_a_secret_in_its_id_is_found_by_its_masked_id(project: Path, proctor: Command) -> None:
    """Two ids that are masked alike stay two. The id of the file finds the case too, and those that look like it."""
    second = proctor("test", "desk.json", "--case", f"login {MASK} #2", "--json", "second.json")
    assert second.code == 1
    assert case_ids(project / "second.json") == [f"login {MASK} #2"]
    assert f"login {MASK} #2" in proctor("show", "last", "--case", f"login {MASK} #2").out
    proctor("test", "desk.json", "--case", f"login {OTHER}", "--json", "both.json")
    assert case_ids(project / "both.json") == [f"login {MASK}", f"login {MASK} #2"]
    assert proctor("test", f"desk.json::score {SECRET}", "--json", "one.json").code == 4
    assert case_ids(project / "one.json") == [f"score {MASK}"]


def test_the_same_cases_resume_and_fail_again(project: Path, proctor: Command) -> None:
    proctor("test", "desk.json")
    proctor("test", "desk.json", "--lf", "--json", "failed.json")
    assert case_ids(project / "failed.json") == [f"login {MASK} #2", f"score {MASK}"]


def test_a_quarantine_names_the_case_by_either_id(project: Path, proctor: Command) -> None:
    row = {"suite": f"desk {SECRET}", "case": f"score {SECRET}", "reason": "known", "until": "2999-01-01"}
    (project / "desk.quarantine.jsonl").write_text(json.dumps(row) + "\n")
    assert "score [secret" in proctor("test", "desk.json", "--json", "r.json").out
    quarantined = json.loads((project / "r.json").read_text())["suites"][0]
    assert "known" in json.dumps(quarantined)


def test_an_answer_with_a_masked_secret_is_not_offered_as_an_expectation(project: Path, proctor: Command) -> None:
    rows = json.loads(proctor("approve", "desk.json", "--json").out)
    assert rows[0]["question"] == [f"is {MASK}"]
    assert "masked" in rows[0]["refusal"]


def case_ids(report: Path) -> list[str]:
    return [trial["case"]["id"] for trial in json.loads(report.read_text())["trials"]]
