"""Files as people really have them: broken, empty, of another kind. All that is wrong is said at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tool_marks import needing

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.json", b'{"cases": [', "s.json:1: is not valid JSON"),
        ("s.json", b"", "s.json: is empty"),
        ("s.json", b"  \n", "s.json: is empty"),
        ("s.json", b"[]", "s.json: is not a suite in any known format"),
        ("s.json", b"{}", "s.json: is not a suite in any known format"),
        ("s.json", b'{"case": []}', "it has 'case'; did you mean 'cases'?"),
        ("s.json", b'{"cases": []}', "cases is empty; add at least one"),
        ("s.json", b'{"cases": 3}', "cases must be a list, not a number"),
        ("s.json", b'{"cases": [7]}', "cases[0] must be an object, not a number"),
        ("s.json", b'{"cases": [{"input": NaN}]}', "NaN is not JSON"),
        ("s.json", b"\x00\xff\xfe", "s.json:1: is not UTF-8 text"),
        ("s.json", b"[" * 100_000, "nested too deeply"),
        ("s.yaml", b"cases: [", "s.yaml:1: is not valid YAML"),
        ("s.yaml", b"# nothing but a remark\n", "s.yaml: is empty"),
        ("s.yaml", b"[" * 100_000, "nested too deeply"),
        ("s.yaml", b"- " * 100_000, "nested too deeply"),
        (
            "s.yaml",
            b"cases:\n  - inptu: hi\n    expected: hi\n",
            "s.yaml:2: cases[0] needs 'input', 'turns' or 'scenario'",
        ),
        ("s.yaml", b"cases:\n  - {input: hi, expected: hi, tgas: [a]}\n", "did you mean 'tags'?"),
        needing(
            "holodeck",
            "agent.yaml",
            b"model: {provider: openai, name: m}\ninstructions: {inline: hi}\n",
            "describes an agent without tests",
        ),
        ("s.jsonl", b'{"input": "a", "expected": "b"}\n{"input"\n', "s.jsonl:2: is not valid JSON"),
        ("s.csv", b"input,expectd\na,b\n", "column 'expectd' is not known; did you mean 'expected'?"),
        ("s.csv", b'input,expected\n"a,b\n', "s.csv"),
        ("s.txt", b"hello", "s.txt: is not one of .json"),
        ("s.py", b"TEST_CASES = []", "s.py:TEST_CASES"),
    ],
)
def test_a_broken_file_is_explained_with_its_place(
    proctor: Command, project: Path, name: str, content: bytes, said: str
) -> None:
    (project / name).write_bytes(content)
    ended = proctor("test", name, "--agent", "nop")
    assert ended.code == 2
    assert said in ended.err
    assert "nothing was run" in ended.err


def test_a_case_without_an_input_is_told_that_alone(proctor: Command, project: Path) -> None:
    (project / "s.yaml").write_text("cases:\n  - id: first\n    expected: {output: hi, contains: [hi]}\n")
    ended = proctor("test", "s.yaml", "--agent", "nop")
    assert ended.code == 2
    assert "needs 'input', 'turns' or 'scenario'" in ended.err
    assert "known key" not in ended.err


@pytest.mark.parametrize("judge", ["opnai:gpt-5", "nobody"])
def test_a_misspelt_judge_is_a_mistake_also_where_nothing_asks_a_judge(
    proctor: Command, project: Path, judge: str
) -> None:
    (project / "s.yaml").write_text("cases:\n  - {input: hi, expected: hi}\n")
    (project / "t.yaml").write_text(f"judge: {judge}\ncases:\n  - {{input: hi, expected: hi}}\n")
    given = proctor("test", "s.yaml", "--agent", "nop", "--judge", judge)
    written = proctor("test", "t.yaml", "--agent", "nop")
    assert (given.code, written.code) == (2, 2)
    assert judge.partition(":")[0] in given.err
    assert judge.partition(":")[0] in written.err


def test_all_problems_of_all_files_are_reported_together_before_anything_runs(
    proctor: Command, suite: Command, project: Path
) -> None:
    (project / "touching.py").write_text(
        "import pathlib\ndef agent(q):\n    pathlib.Path('ran').touch()\n    return q\n"
    )
    suite("fine.yaml", text="agent: touching.py:agent\ncases: [{input: a, expected: a}]\n")
    suite("broken.json", text='{"cases": [')
    suite("keys.yaml", text="cases:\n  - input: a\n    expected: a\n    tgas: [x]\n  - input: b\n    repeat: 0\n")
    suite("twice.yaml", text="cases:\n- {id: x, input: a, expected: a}\n- {id: x, input: b, expected: b}\n")
    ended = proctor("test", "fine.yaml", "broken.json", "keys.yaml", "twice.yaml", "nowhere.yaml")
    assert ended.code == 2
    for line in (
        "error: broken.json:1: is not valid JSON",
        "error: keys.yaml:4: cases[0].tgas is not a known key; did you mean 'tags'?",
        "error: keys.yaml:6: cases[1].repeat must be at least 1, not 0",
        "error: keys.yaml:5: cases[1] has nothing to check",
        "error: twice.yaml:3: cases[1].id 'x' is also the id of cases[0]",
        "error: nowhere.yaml: does not exist",
    ):
        assert line in ended.err
    assert not (project / "ran").exists()


def test_agents_and_evaluators_of_all_suites_are_looked_for_before_anything_runs(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite("a.yaml", text="agent: nowhere.py:x\ncases:\n  - input: a\n    evaluators: [ExctMatch]\n")
    suite("b.yaml", text="cases:\n  - input: a\n    evaluators: [checks.py:god]\n")
    ended = proctor("test", "a.yaml", "b.yaml")
    assert ended.code == 2
    assert "a.yaml:1: agent: no file 'nowhere.py'" in ended.err
    assert "a.yaml:4: no evaluator is called 'ExctMatch'; did you mean 'ExactMatch'?" in ended.err
    assert "b.yaml: has no agent" in ended.err
    assert "b.yaml:3: 'checks.py:god': checks.py has no 'god'; did you mean 'good'?" in ended.err
    assert "4 problems" in ended.err
    assert not (project / ".proctor").exists()


def test_an_agent_file_that_raises_or_does_not_parse_is_named_with_its_line(
    proctor: Command, suite: Command, project: Path
) -> None:
    (project / "raising.py").write_text("x = 1\n\nraise RuntimeError('no key')\n")
    (project / "garbled.py").write_text("x = 1\ndef agent(:\n")
    (project / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    suite()
    assert "raising.py:3 could not be loaded: RuntimeError: no key" in proctor("test", "--agent", "raising.py:x").err
    assert "garbled.py:2 could not be loaded: SyntaxError" in proctor("test", "--agent", "garbled.py:x").err
    assert "leaving.py:2 could not be loaded: SystemExit: 3" in proctor("test", "--agent", "leaving.py:x").err
    (project / "exits.py").write_text("import sys\n\nclass Agent:\n    def __init__(self):\n        sys.exit(0)\n")
    assert (
        "Agent cannot be created with no arguments: SystemExit: 0" in proctor("test", "--agent", "exits.py:Agent").err
    )
    (project / "lazy.py").write_text("import sys\n\ndef __getattr__(name):\n    sys.exit(0)\n")
    assert "'lazy.py:x' could not be found: SystemExit: 0" in proctor("test", "--agent", "lazy.py:x").err


def test_a_folder_called_like_a_suite_is_searched_for_suites(proctor: Command, project: Path) -> None:
    (project / "x.json").mkdir()
    ended = proctor("test", "x.json")
    assert ended.code == 2
    assert "x.json: has no suite in any known format" in ended.err


def test_a_path_that_no_system_takes_is_a_problem_like_any_other(proctor: Command) -> None:
    ended = proctor("test", "a" * 5000 + ".json")
    assert ended.code == 2
    assert "cannot be read: File name too long" in ended.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_said_plainly(proctor: Command, suite: Command, project: Path) -> None:
    suite("secret.yaml").chmod(0)
    assert "secret.yaml: cannot be read: Permission denied" in proctor("test", "secret.yaml").err
    suite()
    (project / "closed").mkdir(mode=0o500)
    assert proctor("test", "suite.yaml", "--store", "closed/store").code == 4


def test_answers_of_ten_megabytes_and_with_half_a_surrogate_pair_are_run_kept_and_shown(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite("huge.yaml", agent="huge", check="bad")
    suite("surrogate.yaml", agent="surrogate", check="bad")
    ended = proctor("test", "huge.yaml", "surrogate.yaml", "--md", "r.md", "--json", "r.json", "--junit", "r.xml")
    assert ended.code == 1
    assert len(ended.out) < 100_000
    assert proctor("show", "-v").code == 0
    assert "\\ud800" in (project / "r.json").read_text(encoding="utf-8")


def test_half_a_surrogate_pair_in_a_question_reaches_the_agent(proctor: Command, project: Path) -> None:
    (project / "s.json").write_text(
        '{"agent": "agents.py:echo", "cases": [{"input": "\\ud800", "expected": "\\ud800"}]}'
    )
    assert proctor("test", "s.json", "-v").code == 0


def test_a_dataset_is_data_and_never_code(proctor: Command, project: Path) -> None:
    (project / "a.yaml").write_text(f'cases: !!python/object/apply:os.mkdir ["{project}/made"]\n')
    (project / "b.yaml").write_text(f'cases:\n- !!python/object/new:os.mkdir ["{project}/made"]\n')
    pickle = '{"py/reduce": [{"py/function": "os.mkdir"}, {"py/tuple": ["made"]}]}'
    (project / "c.json").write_text(f'{{"cases": [{{"input": {pickle}, "expected": {{"output": {pickle}}}}}]}}')
    assert proctor("test", "a.yaml", "b.yaml", "--agent", "oracle").code == 2
    assert proctor("test", "c.json", "--agent", "oracle").code == 0
    assert not (project / "made").exists()


def test_a_store_that_is_a_file_or_not_a_database_prevents_a_verdict(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    (project / ".proctor").write_text("not a folder")
    ended = proctor("test")
    assert ended.code == 4
    assert ".proctor" in ended.err
    (project / ".proctor").unlink()
    (project / ".proctor").mkdir()
    (project / ".proctor" / "results.db").write_bytes(b"this is not SQLite" * 100)
    for command in ("test", "runs", "show", "rescore"):
        ended = proctor(command)
        assert ended.code == 4
        assert ended.err.startswith("error: ")


@pytest.mark.parametrize("command", ["runs", "show", "rescore"])
def test_without_results_a_command_says_how_to_get_some(proctor: Command, command: str) -> None:
    ended = proctor(command)
    assert ended.code == 2
    assert "run `proctor test` first" in ended.err


def test_a_folder_is_run_whole_and_reports_left_in_it_are_not_taken_for_suites(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    reports = ("--json", "report.json", "--md", "report.md", "--junit", "report.xml")
    assert proctor("test", *reports).code == 0
    assert proctor("test", *reports).code == 0
    (project / "data.json").write_text('{"rows": [1, 2]}')
    (project / "log.jsonl").write_text('{"level": "info"}\n')
    (project / "numbers.csv").write_text("a,b\n1,2\n")
    assert proctor("test").code == 0


def test_a_suite_that_does_not_parse_is_not_passed_over_because_it_lies_in_a_folder(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite()
    suite("broken.yaml", text="cases:\n  - input: [\n")
    suite("broken.jsonl", text='{"input": "a", "expected": "b"}\n{"input": "a"\n')
    suite("broken.csv", text="id,input,expected\n1,2\n")
    ended = proctor("test")
    assert ended.code == 2
    assert "broken.yaml:2" in ended.err
    assert "broken.jsonl:2" in ended.err
    assert "broken.csv:2" in ended.err
