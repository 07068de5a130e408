"""Each key of a test, of its turns, expected tools and files, and of `execution`, as it shows in a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import proctor
from proctor.agents.reply import Reply, ToolCall
from proctor.cases.formats.loading import load
from proctor.results.run import Run

EQUALITY = {"type": "standard", "metric": "equality"}


def examined(folder: Path, agent: Any, *tests: dict[str, Any], **more: Any) -> Run:
    data = {"name": "bot", "evaluations": {"metrics": [EQUALITY]}, "test_cases": list(tests), **more}
    (folder / "agent.yaml").write_text(yaml.safe_dump(data))
    [suite] = load([folder / "agent.yaml"])
    return proctor.run(suite, agent=agent)


def outcome(folder: Path, agent: Any, **test: Any) -> str:
    [trial] = examined(folder, agent, {"name": "one", "input": "q", **test}).trials
    return trial.outcome


class Asked:
    """An agent that keeps what it was asked, and always answers the same."""

    def __init__(self, answer: str = "done") -> None:
        self.answer = answer
        self.heard: list[str] = []

    def __call__(self, question: str) -> str:
        self.heard.append(question)
        return self.answer


def booking(question: str) -> Reply:
    calls = [ToolCall("book_room", {"nights": 2, "city": "New York"}), ToolCall("book_room", {"nights": 3})]
    return Reply("done", tool_calls=tuple(calls))


def test_a_test_is_reported_by_its_name_and_asks_its_input(tmp_path: Path) -> None:
    agent = Asked()
    [trial] = examined(tmp_path, agent, {"name": "mine", "input": "Who?", "ground_truth": "done"}).trials
    assert trial.case.id == "mine"
    assert agent.heard == ["Who?"]


@pytest.mark.parametrize(("key", "good", "bad"), [("ground_truth", "done", "other")])
def test_an_answer_is_compared_with_its_ground_truth(tmp_path: Path, key: str, good: str, bad: str) -> None:
    assert outcome(tmp_path, Asked(), **{key: good}) == "passed"
    assert outcome(tmp_path, Asked(), **{key: bad}) == "failed"


@pytest.mark.parametrize(
    ("expected_tools", "verdict"),
    [
        (["book"], "passed"),
        (["cancel"], "failed"),
        ([{"name": "book_room"}], "passed"),
        ([{"name": "room_book"}], "failed"),
        ([{"name": "book", "count": 2}], "passed"),
        ([{"name": "book", "count": 3}], "failed"),
        ([{"name": "book", "args": {"nights": 3}}], "passed"),
        ([{"name": "book", "args": {"nights": 4}}], "failed"),
        ([{"name": "book", "args": {"nights": 3}, "count": 2}], "failed"),
        ([{"name": "book", "args": {"city": {"fuzzy": " new  york"}}}], "passed"),
        ([{"name": "book", "args": {"city": {"fuzzy": "newyork"}}}], "failed"),
        ([{"name": "book", "args": {"city": {"regex": "New .*"}}}], "passed"),
        ([{"name": "book", "args": {"city": {"regex": "New"}}}], "failed"),
    ],
)
def test_expected_tools_are_looked_for_in_the_calls(tmp_path: Path, expected_tools: Any, verdict: str) -> None:
    assert outcome(tmp_path, booking, ground_truth="done", expected_tools=expected_tools) == verdict


def test_evaluations_of_a_test_and_of_a_turn_replace_the_agents(tmp_path: Path) -> None:
    loose = [{**EQUALITY, "case_insensitive": True}]
    turns = [{"input": "a", "ground_truth": "DONE", "evaluations": loose}, {"input": "b", "ground_truth": "DONE"}]
    assert outcome(tmp_path, Asked(), ground_truth="DONE", evaluations=loose) == "passed"
    assert outcome(tmp_path, Asked(), ground_truth="DONE") == "failed"
    [trial] = examined(tmp_path, Asked(), {"name": "talk", "turns": turns}).trials
    assert [score.outcome for score in trial.scores] == ["passed", "failed"]


def test_retrieval_context_of_a_test_or_turn_is_what_its_answer_rests_on(tmp_path: Path) -> None:
    (tmp_path / "graders.py").write_text("def rests(context):\n    return 'thirty' in str(context.retrieval_context)\n")
    metrics = [{"type": "code", "grader": "graders.py:rests"}]
    turns = [{"input": "a", "retrieval_context": ["thirty days"]}, {"input": "b", "retrieval_context": ["none"]}]
    assert outcome(tmp_path, Asked(), retrieval_context=["thirty days"], evaluations=metrics) == "passed"
    assert outcome(tmp_path, Asked(), retrieval_context=["none"], evaluations=metrics) == "failed"
    [trial] = examined(tmp_path, Asked(), {"name": "talk", "turns": turns, "evaluations": metrics}).trials
    assert [score.outcome for score in trial.scores] == ["passed", "failed"]


def test_turns_are_asked_one_after_another_and_each_is_scored(tmp_path: Path) -> None:
    (tmp_path / "graders.py").write_text("def least(context):\n    return context.turn_config['least'] < 5\n")
    grader = [{"type": "code", "grader": "graders.py:least"}]
    agent = Asked()
    turns = [
        {"input": "a", "ground_truth": "done"},
        {"input": "b", "expected_tools": ["book"]},
        {"input": "c", "turn_config": {"least": 3}, "evaluations": grader},
        {"input": "d", "turn_config": {"least": 9}, "evaluations": grader},
    ]
    [trial] = examined(tmp_path, agent, {"name": "talk", "turns": turns}).trials
    assert agent.heard == ["a", "b", "c", "d"]
    verdicts = [score.outcome for score in trial.scores if score.outcome != "skipped"]
    assert verdicts == ["passed", "failed", "passed", "failed"]


def test_files_of_a_test_and_of_a_turn_are_reported_with_path_and_description(tmp_path: Path) -> None:
    (tmp_path / "deed.txt").write_text("signed in 1901")
    files = [{"path": "deed.txt", "type": "text", "description": "the deed"}]
    agent = Asked()
    turns = [{"input": "a", "files": files, "ground_truth": "done"}, {"input": "b", "ground_truth": "done"}]
    single = {"name": "single", "input": "q", "files": files, "ground_truth": "done"}
    examined(tmp_path, agent, single, {"name": "talk", "turns": turns})
    assert ["signed in 1901" in heard and "the deed" in heard for heard in agent.heard] == [True, True, False]


def test_the_type_of_a_file_says_how_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "deed.txt").write_text("signed in 1901")
    heard = {}
    for kind in ("text", "pdf"):
        agent = Asked()
        examined(tmp_path, agent, {"input": "q", "files": [{"path": "deed.txt", "type": kind}], "ground_truth": "done"})
        heard[kind] = any("1901" in said for said in agent.heard)
    assert heard == {"text": True, "pdf": False}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, ["name", "tea", "other"]),
        ({"sheet": "Second"}, ["other"]),
        ({"sheet": "First"}, ["name", "tea"]),
        ({"sheet": "First", "range": "A2:B2"}, ["tea"]),
    ],
)
def test_of_a_workbook_the_sheet_and_range_are_read(tmp_path: Path, options: dict[str, str], told: list[str]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "First"
    book.active.append(["name", "price"])
    book.active.append(["tea", 3])
    book.create_sheet("Second").append(["other"])
    book.save(tmp_path / "a.xlsx")
    agent = Asked()
    file = {"path": "a.xlsx", "type": "excel", **options}
    examined(tmp_path, agent, {"name": "one", "input": "q", "files": [file], "ground_truth": "done"})
    body = agent.heard[0].split("a.xlsx", 1)[1]
    assert [word for word in ("name", "tea", "other") if word in body] == told


def test_pages_that_a_file_does_not_have_are_asked_for_in_vain(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "a.pdf")
    test = {"name": "one", "input": "q", "ground_truth": "done"}
    [trial] = examined(tmp_path, Asked(), {**test, "files": [{"path": "a.pdf", "type": "pdf", "pages": [4]}]}).trials
    assert trial.outcome == "error"
    assert "no page 4" in trial.reason


class Site(BaseHTTPRequestHandler):
    """A web site that may be kept for an hour, and one page of which never comes."""

    asked: list[str]
    closing: threading.Event

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/never.txt":
            self.closing.wait()
            return
        self.send_response(200)
        self.send_header("cache-control", "max-age=3600")
        self.send_header("content-type", "text/plain")
        self.end_headers()
        self.wfile.write(b"signed in 1901")

    def log_message(self, *given: Any) -> None: ...


@pytest.fixture
def site() -> Iterator[tuple[str, type[Site]]]:
    kind = type("Fresh", (Site,), {"asked": [], "closing": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", kind
    kind.closing.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("file", "execution", "fetched"),
    [
        ({}, {}, 1),
        ({"cache": False}, {}, 2),
        ({}, {"cache_enabled": False}, 2),
        ({}, {"cache_dir": "kept"}, 1),
    ],
)
def test_a_url_is_fetched_and_kept_as_the_file_says(
    tmp_path: Path, site: tuple[str, type[Site]], file: dict[str, Any], execution: dict[str, Any], fetched: int
) -> None:
    url, kind = site
    files = [{"url": f"{url}/deed.txt", "type": "text", **file}]
    for _ in range(2):
        agent = Asked()
        examined(tmp_path, agent, {"input": "q", "files": files, "ground_truth": "done"}, execution=execution)
        assert "signed in 1901" in agent.heard[0]
    assert len(kind.asked) == fetched
    assert (tmp_path / "kept").exists() is ("cache_dir" in execution)


def test_download_timeout_gives_up_a_page_that_never_comes(tmp_path: Path, site: tuple[str, type[Site]]) -> None:
    files = [{"url": f"{site[0]}/never.txt", "type": "text"}]
    test = {"name": "one", "input": "q", "files": files, "ground_truth": "done"}
    [trial] = examined(tmp_path, Asked(), test, execution={"download_timeout": 0.2, "file_timeout": 0.2}).trials
    assert trial.outcome == "error"
    assert "never.txt" in trial.reason


def test_file_timeout_gives_up_a_file_that_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "deed.txt").write_text("signed in 1901")
    test = {"name": "one", "input": "q", "files": [{"path": "deed.txt", "type": "text"}], "ground_truth": "done"}
    [trial] = examined(tmp_path, Asked(), test, execution={"file_timeout": 1e-9}).trials
    assert trial.outcome == "error"
    assert "deed.txt was not read within" in trial.reason


def test_llm_timeout_gives_up_an_agent_that_never_answers(tmp_path: Path) -> None:
    import asyncio

    async def never(question: str) -> str:
        await asyncio.Event().wait()
        return ""

    [trial] = examined(tmp_path, never, {"input": "q", "ground_truth": "a"}, execution={"llm_timeout": 0.2}).trials
    assert trial.outcome == "failed"
    assert "no answer within 0.2 s" in trial.reason


@pytest.mark.parametrize("parallel_test_cases", [1, 4])
def test_as_many_tests_run_at_once_as_parallel_test_cases_says(tmp_path: Path, parallel_test_cases: int) -> None:
    import asyncio

    now, most = 0, 0

    async def agent(question: str) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(20):
            await asyncio.sleep(0)
        now -= 1
        return "done"

    tests = [{"input": str(n), "ground_truth": "done"} for n in range(8)]
    examined(tmp_path, agent, *tests, execution={"parallel_test_cases": parallel_test_cases})
    assert most == parallel_test_cases
