"""`--reuse` and files: an answer is reused only if the files that the agent read are the same."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import proctor
from proctor.agents.opened_files import FileRecorder, recording_opened_files
from proctor.base.errors import InvalidSuite

Ask = Callable[..., "proctor.Run"]

AGENTS = """
import contextlib
import functools
import pathlib

PROMPT = pathlib.Path("at_import.md").read_text()

def reads(text):
    return pathlib.Path("prompt.md").read_text() + text

def loads(text):
    return PROMPT + text

@functools.lru_cache
def cached():
    return pathlib.Path("prompt.md").read_text()

def caches(text):
    return cached() + text

async def waits(text):
    return pathlib.Path("prompts/deep.md").read_bytes().decode() + text

def starts_thread(text):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return pool.submit(cached.__wrapped__).result() + text

def lists(text):
    return f"{sorted(item.name for item in pathlib.Path('prompts').glob('*.md'))} {text}"

def imports(text):
    import importlib, sys
    importlib.invalidate_caches()
    sys.path.insert(0, str(pathlib.Path.cwd()))
    with contextlib.suppress(ImportError):
        import no_such_module
    return text

def falls_back(text):
    try:
        return pathlib.Path("override.md").read_text() + text
    except FileNotFoundError:
        return text

def queries(text):
    import contextlib, sqlite3
    with contextlib.closing(sqlite3.connect("known.db")) as database:
        return database.execute("select text from fact").fetchone()[0] + text

def remembers(text):
    import contextlib, sqlite3
    with contextlib.closing(sqlite3.connect("memory.db")) as database, database:
        database.execute("create table if not exists heard (text)")
        database.execute("insert into heard values (?)", [text])
    return text

def writes(text):
    with open("state.txt", "a") as file:
        file.write(text)
    return pathlib.Path("state.txt").read_text()[:5] + text
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run two cases with an agent of a new module, and reuse what is stored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    for name in ("at_import.md", "prompt.md", "prompts/deep.md"):
        (tmp_path / name).write_text("v1 ")

    def ask(agent: str, **more: object) -> proctor.Run:
        path = tmp_path / f"{agent}.yaml"
        cases = "cases:\n  - {id: a, input: hi, expected: {contains: [i]}}\n  - {id: b, input: ho, expected: ho}\n"
        extra = "".join(f"{key}: {value}\n" for key, value in more.items())
        path.write_text(f"agent: {agent}_app.py:{agent}\n{extra}{cases}")
        (tmp_path / f"{agent}_app.py").write_text(AGENTS)
        return proctor.run(path, store=tmp_path / ".proctor", reuse=True, parallel=1, progress=False)

    return ask


def reused(run: proctor.Run) -> list[bool]:
    return [trial.reused for trial in run.trials]


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("reads", "prompt.md"),
        ("loads", "at_import.md"),
        ("caches", "prompt.md"),
        ("waits", "prompts/deep.md"),
        ("starts_thread", "prompt.md"),
    ],
)
def test_a_changed_prompt_file_is_noticed(ask: Ask, tmp_path: Path, agent: str, file: str) -> None:
    assert reused(ask(agent)) == [False, False]
    assert reused(ask(agent)) == [True, True]
    (tmp_path / file).write_text("v2 ")
    assert reused(ask(agent)) == [False, False]
    (tmp_path / file).unlink()
    (tmp_path / file).write_text("v2 ")  # the same contents again
    assert reused(ask(agent)) == [True, True]


def test_a_new_file_in_a_folder_that_the_agent_lists_is_noticed(ask: Ask, tmp_path: Path) -> None:
    ask("lists")
    assert reused(ask("lists")) == [True, True]
    (tmp_path / "prompts" / "new.md").write_text("new")
    assert reused(ask("lists")) == [False, False]


def test_a_new_module_in_a_folder_that_is_searched_for_modules_changes_nothing(ask: Ask, tmp_path: Path) -> None:
    ask("imports")
    (tmp_path / "unrelated").mkdir()
    assert reused(ask("imports")) == [True, True]


def test_a_file_that_the_agent_missed_is_noticed_once_it_is_there(ask: Ask, tmp_path: Path) -> None:
    ask("falls_back")
    assert reused(ask("falls_back")) == [True, True]
    (tmp_path / "override.md").write_text("shout ")
    assert reused(ask("falls_back")) == [False, False]


def test_a_changed_database_is_noticed(ask: Ask, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "known.db")) as database, database:
        database.execute("create table fact as select 'v1 ' as text")
    ask("queries")
    assert reused(ask("queries")) == [True, True]
    with contextlib.closing(sqlite3.connect(tmp_path / "known.db")) as database, database:
        database.execute("update fact set text = 'version 2 '")
    assert reused(ask("queries")) == [False, False]


def test_a_database_that_the_agent_writes_itself_does_not_count(ask: Ask) -> None:
    ask("remembers")
    assert reused(ask("remembers")) == [True, True]


def test_what_the_agent_writes_itself_does_not_count(ask: Ask) -> None:
    ask("writes")
    assert reused(ask("writes")) == [True, True]


def test_declared_files_belong_to_the_fingerprint(ask: Ask, tmp_path: Path) -> None:
    def ask_writer() -> list[bool]:
        return reused(ask("writes", depends_on="[prompts/*.md, prompt.md]"))

    assert ask_writer() == [False, False]
    assert ask_writer() == [True, True]
    (tmp_path / "prompts" / "more.md").write_text("new")
    assert ask_writer() == [False, False]


def test_a_declared_file_that_does_not_exist_is_an_error(ask: Ask) -> None:
    with pytest.raises(InvalidSuite, match=r"depends_on: nowhere\.md is not a file"):
        ask("writes", depends_on="[nowhere.md]")


@pytest.mark.process
def test_reuse_says_what_it_cannot_know_about_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("import sys\nprint(sys.stdin.read())\n")
    (tmp_path / "prompt.md").write_text("v1")
    suite = tmp_path / "suite.yaml"
    text = "agent: 'cmd:python app.py'\n{more}cases:\n  - {{id: a, input: hi, expected: {{contains: [hi]}}}}\n"

    def warnings(more: str = "") -> list[str]:
        suite.write_text(text.format(more=more))
        for _ in range(2):
            run = proctor.run(suite, store=tmp_path / ".proctor", reuse=True, progress=False)
        assert reused(run) == [True]
        return list(run.trials[0].warnings)

    assert any("cannot know whether its prompts" in warning and "depends_on" in warning for warning in warnings())
    assert warnings("depends_on: [prompt.md]\n") == []


def test_only_files_of_the_project_that_are_read_here_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.md", ".git/config", "node_modules/x.json", "code.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path.parent / "outside.md").write_text("x")
    with recording_opened_files() as opened:
        for name in ("a.md", ".git/config", "node_modules/x.json", "code.py", "../outside.md"):
            Path(name).read_text()
        thread = threading.Thread(target=lambda: Path("a.md").read_text())
        thread.start()
        thread.join()
    Path("a.md").read_text()
    assert isinstance(opened, FileRecorder)
    assert "a.md" in opened.digests()
    assert {name for name in opened.digests() if "outside" in name or "code" in name or name[0] == "."} == set()
