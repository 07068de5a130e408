"""Finding suites: which files are some, in which format, and everything that is wrong with them, at once."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_mutations import VALUES
from tool_marks import needing

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load, load_file
from proctor.cases.suite import Case, Suite, Turn
from proctor.plugins import Format, Plugin, installed_plugins

Write = Callable[[str, Any], Path]

ADK = {
    "evalSetId": "set",
    "evalCases": [
        {
            "evalId": "one",
            "conversation": [
                {"userContent": {"parts": [{"text": "hi"}]}, "finalResponse": {"parts": [{"text": "hello"}]}}
            ],
        }
    ],
}
PIXIE = {
    "name": "set",
    "runnable": "app.py:App",
    "evaluators": ["ExactMatch"],
    "entries": [{"input_data": {"q": "hi"}, "description": "says hi", "expectation": "hello"}],
}
HOLODECK = {
    "name": "agent",
    "model": {"provider": "openai", "name": "gpt"},
    "instructions": {"inline": "be kind"},
    "evaluations": {"metrics": [{"type": "standard", "metric": "bleu"}]},
    "test_cases": [{"name": "hi", "input": "hi", "ground_truth": "hello"}],
}
KEYWORDS = [{"id": "a", "input": "hi", "expected_output_contains": ["hello"]}]
NATIVE = {"cases": [{"id": "a", "input": "hi", "expected": "hello"}]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def problems(*paths: Any) -> list[str]:
    with pytest.raises(InvalidSuite) as error:
        load(paths)
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize(
    ("content", "known"),
    [
        needing("adk", ADK, "adk"),
        needing("pixie", PIXIE, "pixie"),
        needing("holodeck", HOLODECK, "holodeck"),
        (KEYWORDS, "native"),
        ({"test_cases": KEYWORDS}, "native"),
        (NATIVE, "native"),
        (NATIVE["cases"], "native"),
    ],
)
@pytest.mark.parametrize("name", ["anything.json", "anything.yaml"])
def test_a_format_is_told_by_what_a_file_holds_and_not_by_its_name(
    write: Write, content: Any, known: str, name: str
) -> None:
    [suite] = load([write(name, content)])
    assert suite.format == known
    assert len(suite.cases) == 1


def test_a_table_is_the_sixth_format(write: Write) -> None:
    assert load([write("a.csv", "input,expected\nhi,hello\n")])[0].format == "csv"


@pytest.mark.needs("adk")
def test_a_folder_gives_its_suites_in_order_and_leaves_the_rest_alone(write: Write, tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "deep/er/c.yaml", "z.test.json"):
        write(name, ADK if name.startswith("z") else NATIVE)
    for name in ("node_modules/x/a.json", ".hidden/a.json", ".hidden.json", "venv/a.json", "__pycache__/a.json"):
        write(name, NATIVE)
    write("test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    write("package.json", {"name": "x", "cases": []})
    write("foreign.json", {"rows": [1, 2, 3]})
    write("foreign.yaml", "jobs:\n  build: {{ steps }}\n")
    write("foreign.jsonl", '{"level": "info"}\n')
    write("foreign.csv", "a,b\n1,2\n")
    write("notes.txt", "cases:")
    suites = load([tmp_path])
    assert [suite.path.relative_to(tmp_path).as_posix() for suite in suites if suite.path] == [
        "a.json",
        "b.json",
        "z.test.json",
        "deep/er/c.yaml",
    ]


def test_a_link_that_leads_back_to_its_own_folder_is_not_followed(write: Write, tmp_path: Path) -> None:
    write("in/a.json", NATIVE)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in", target_is_directory=True)
    assert len(load([tmp_path])) == 1


def test_an_empty_folder_is_a_problem_and_so_is_one_of_foreign_files(write: Write, tmp_path: Path) -> None:
    assert problems(tmp_path) == [f"{tmp_path}: has no suite in any known format"]
    path = write("broken.yaml", "a: [")
    assert problems(tmp_path)[1].startswith(f"{path}:1: is not valid YAML")


@pytest.mark.needs("adk", "holodeck")
def test_a_file_in_a_folder_that_is_called_a_suite_must_be_one(write: Write, tmp_path: Path) -> None:
    write("good.json", NATIVE)
    for name in ("a.test.json", "b.evalset.json", "c.proctor.yaml", "agent.yaml"):
        write(name, '{"rows": []}')
    assert len(problems(tmp_path)) == 4


@pytest.mark.needs("holodeck")  # whose key `test_cases` is
def test_a_file_in_a_folder_that_reads_like_a_suite_must_be_one(write: Write, tmp_path: Path) -> None:
    write("good.json", NATIVE)
    write("a.json", '{"cases": [{"input": 1,}]}')
    write("b.yaml", "test_cases:\n - {a\n")
    write("c.jsonl", '{"input": "a", "expected": "b"}\n{\n')
    write("d.csv", "input,expected\na\n")
    write("e.json", '{"notes": "our cases", ]')
    assert [problem.split(": ")[0].removeprefix(f"{tmp_path}/") for problem in problems(tmp_path)] == [
        "a.json:1",
        "b.yaml:2",
        "c.jsonl:2",
        "d.csv:2",
    ]


def test_problems_of_all_paths_come_together(write: Write, tmp_path: Path) -> None:
    paths = [write("a.json", "{"), tmp_path / "nowhere.yaml", tmp_path / "nowhere.py", write("b.yaml", "cases: []")]
    assert [problem.removeprefix(f"{tmp_path}/") for problem in problems(*paths, f"{tmp_path}/c.py:CASES")][1:4] == [
        "nowhere.yaml: does not exist",
        "nowhere.py: does not exist",
        "b.yaml:1: cases is empty; add at least one",
    ]


def test_the_same_file_twice_is_a_problem_even_by_another_way(write: Write, tmp_path: Path) -> None:
    path = write("a.json", NATIVE)
    assert problems(path, tmp_path / "." / "a.json", tmp_path) == [f"{path}: is passed more than once"] * 2


def test_suites_of_one_name_are_told_apart(write: Write, tmp_path: Path) -> None:
    for name in ("x/a.json", "y/a.json", "z.json"):
        write(name, {**NATIVE, "name": "same"})
    write("w.json", {**NATIVE, "name": "other"})
    names = [suite.name for suite in load([tmp_path])]
    assert names == ["other", "same (z.json)", "same (a.json)", "same (a.json) #2"]


def test_a_list_in_a_python_file_is_a_suite(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("test_agent.py", f"TEST_CASES = {KEYWORDS!r}\nNUMBER = 5\n")
    monkeypatch.chdir(tmp_path)
    [suite] = load(["test_agent.py:TEST_CASES"])
    assert (suite.format, suite.cases[0].id) == ("native", "a")
    assert "must be a list of cases" in problems("test_agent.py:NUMBER")[0]
    assert "did you mean 'TEST_CASES'?" in problems("test_agent.py:TEST_CASE")[0]
    assert "write" in problems(tmp_path / "test_agent.py")[0]


def test_a_name_that_is_no_path_is_a_problem(tmp_path: Path) -> None:
    for name in ("a" * 5000, "a" * 5000 + ".json", "a\0b.json"):
        assert "cannot be read" in problems(name)[0] or "does not exist" in problems(name)[0]


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes an entry point known as if a package had brought it."""

    def install(name: str, value: str, group: str) -> None:
        entry = importlib.metadata.EntryPoint(name, value, group)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry] if entry.group == group else [])
        installed_plugins.cache_clear()

    yield install
    installed_plugins.cache_clear()


@pytest.mark.parametrize("group", ["proctor.formats", "proctor.plugins"])
def test_a_broken_plug_in_is_named(install: Install, write: Write, group: str) -> None:
    install("mine", "nowhere_at_all", group)
    assert "'mine' (nowhere_at_all) could not be loaded" in problems(write("a.json", {"rows": []}))[0]


def read_lines(document: Document) -> list[Suite]:
    return [Suite("lines", tuple(Case(id=text, turns=(Turn(text),)) for text in document.data), path=document.path)]


def test_a_plugin_of_another_package_brings_a_format_with_its_own_suffix_and_parser(
    install: Install, monkeypatch: pytest.MonkeyPatch, write: Write, tmp_path: Path
) -> None:
    mine = ModuleType("lines_plugin")
    mine.__dict__["PLUGIN"] = Plugin(
        name="lines",
        formats=[
            Format(
                name="lines",
                summary="A question a line.",
                recognises=lambda path, data: path.suffix == ".questions",
                suffixes=(".questions",),
                parse=lambda path, text: Document(path, text, text.splitlines(), lambda pointer: None),
                read=read_lines,
            )
        ],
    )
    monkeypatch.setitem(sys.modules, "lines_plugin", mine)
    install("lines", "lines_plugin:PLUGIN", "proctor.plugins")
    path = write("a.questions", "Who?\nWhat?\n")
    assert [case.id for case in load([path])[0].cases] == ["Who?", "What?"]
    assert [suite.name for suite in load([tmp_path])] == ["lines"]


def test_a_format_of_the_older_group_is_a_module(
    install: Install, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    mine = ModuleType("format_of_lines", "Questions in a list.")
    mine.__dict__.update(
        NAME="lines", recognises=lambda path, data: isinstance(data, list) and "Who?" in data, read=read_lines
    )
    monkeypatch.setitem(sys.modules, "format_of_lines", mine)
    install("lines", "format_of_lines", "proctor.formats")
    assert [case.id for case in load([write("a.json", ["Who?"])])[0].cases] == ["Who?"]


@pytest.mark.parametrize(
    "data", [{"runnable": True, "kind": "chart"}, {"name": "x", "entries": []}, {"items": [], "runnable": None}]
)
def test_json_of_another_tool_does_not_stop_a_folder(write: Write, tmp_path: Path, data: Any) -> None:
    write("chart.json", data)
    write("suite.json", NATIVE)
    assert len(load([tmp_path])) == 1
    assert "is not a suite in any known format" in problems(tmp_path / "chart.json")[0]


@pytest.mark.needs("pixie")
@pytest.mark.parametrize(
    "data",
    [
        {"runnable": "app.py:App"},
        {"runnable": "app", "entries": []},
        {"name": "x", "evaluators": ["Contains"], "entries": []},
        {"entries": [{"entry_kwargs": {}}]},
        {"items": [{"eval_input": "q"}]},
    ],
)
def test_a_dataset_with_a_mistake_is_still_a_mistake_in_a_folder(write: Write, tmp_path: Path, data: Any) -> None:
    write("data.json", data)
    write("suite.json", NATIVE)
    assert problems(tmp_path)


def test_a_quarantine_of_a_case_that_does_not_exist_is_reported_at_its_line(write: Write) -> None:
    path = write("suite.json", NATIVE)
    entry = {"suite": "suite", "case": "gone", "reason": "flaky", "until": "2030-01-31"}
    write("suite.quarantine.jsonl", f"\n{json.dumps(entry)}\n")
    assert "suite.quarantine.jsonl:2: quarantines 'gone', but 'suite' has no such case" in problems(path)[0]


def test_a_wrong_line_in_a_quarantine_file_does_not_lose_the_suite(write: Write) -> None:
    path = write("suite.json", NATIVE)
    write("suite.quarantine.jsonl", "{}")
    with pytest.raises(InvalidSuite) as caught:
        load([path])
    assert len(caught.value.problems) == 1
    assert [suite.name for suite in caught.value.partial_suites] == ["suite"]
    with pytest.raises(InvalidSuite) as caught:
        load_file(path)
    assert [suite.name for suite in caught.value.partial_suites] == ["suite"]


TEXTS = (
    st.text()
    | VALUES.map(json.dumps)
    | st.text("{}[]:,\"'-&*!|>\\#? \n\tacest01.~<")
    | st.lists(st.sampled_from(["cases:", "- input: a", "  expected: b", "a: &x", "*x", "<<: *x", "[", "!!map", "? "]))
    .map("\n".join)
    | VALUES.map(lambda value: json.dumps({"cases": value}))
    | VALUES.map(lambda value: json.dumps({"cases": [{"input": value, "expected": value, "evaluators": value}]}))
    | VALUES.map(lambda value: json.dumps({"test_cases": value, "name": value}))
    | VALUES.map(lambda value: json.dumps({"evalCases": value, "eval_set_id": value}))
    | VALUES.map(lambda value: json.dumps({"entries": value, "runnable": value}))
)  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=80) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    ending=st.sampled_from([".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".csv", ".test.json", ".txt", ""]),
)
def test_no_file_whatever_is_in_it_raises_anything_but_its_problems(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz{ending}"
    path.write_bytes(content)
    try:
        suites = load([path])
    except InvalidSuite as error:
        assert error.problems
    else:
        assert all(suite.cases for suite in suites)


def test_what_looks_like_a_pickle_stays_data(write: Write, tmp_path: Path) -> None:
    reduce = {"py/reduce": [{"py/function": "os.mkdir"}, {"py/tuple": [str(tmp_path / "made")]}]}
    [suite] = load([write("a.json", {"cases": [{"input": reduce, "expected": {"output": reduce}}]})])
    assert suite.cases[0].turns[0].input == reduce
    made = tmp_path / "made"
    for tag in ("object/apply:os.mkdir", "object/new:os.mkdir", "name:os.mkdir", "module:os"):
        assert "could not determine a constructor" in problems(write("a.yaml", f"a: !!python/{tag} ['{made}']\n"))[0]
    assert not made.exists()


def test_a_file_that_does_not_exist_is_reported_with_one_of_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text("cases: []", encoding="utf-8")
    assert problems(tmp_path / "desk.yml")[0].endswith("does not exist; did you mean 'desk.yaml'?")
    assert problems(tmp_path / "shop.yaml")[0].endswith("does not exist")


def test_the_word_of_another_tool_for_cases_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("tests: [{input: Hi}]", encoding="utf-8")
    assert problems(tmp_path / "suite.yaml")[0].endswith("it has 'tests'; did you mean 'cases'?")
