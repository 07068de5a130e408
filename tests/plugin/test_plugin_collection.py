"""Which files pytest collects as suites, and what their items are called."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_marks import needing

from proctor.plugin.startup import is_suite

pytest_plugins = "pytester"

AGENT = """
def agent(question):
    return question.upper()
"""
EVAL_SET = {
    "evalSetId": "faq",
    "evalCases": [
        {
            "evalId": "hello",
            "conversation": [
                {
                    "userContent": {"parts": [{"text": "hello"}]},
                    "finalResponse": {"parts": [{"text": "HELLO"}]},
                }
            ],
        }
    ],
}


def suite(*ids: str, **rest: object) -> str:
    cases = [{"id": name, "input": name, "expected": name.upper()} for name in ids]
    return json.dumps({"agent": "agent.py:agent", "evaluators": ["ExactMatch"], "cases": cases, **rest})


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "agent.py").write_text(AGENT)
    return pytester


def write(project: pytest.Pytester, name: str, text: str) -> None:
    path = project.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_each_trial_of_a_case_is_a_test_item_that_can_be_run_by_its_node_id(project: pytest.Pytester) -> None:
    write(
        project, "evaluation/faq.proctor.json", suite("one", "two", settings={"repeat": 2}, agent="../agent.py:agent")
    )

    listed = project.runpytest("--collect-only", "-q")
    alone = project.runpytest("evaluation/faq.proctor.json::two[2]", "-v")

    listed.stdout.fnmatch_lines([f"evaluation/faq.proctor.json::{n}" for n in ("one?1?", "one?2?", "two?1?", "two?2?")])
    alone.assert_outcomes(passed=1)
    alone.stdout.fnmatch_lines(["evaluation/faq.proctor.json::two?2? PASSED*"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        needing("adk", "faq.test.json", json.dumps(EVAL_SET)),
        needing("adk", "faq.evalset.json", json.dumps(EVAL_SET)),
        needing("holodeck", "agent.yaml", "name: x\ninstructions: {inline: hi}\nagent: agent.py:agent\ntest_cases:\n"
                       "  - {name: hello, input: hello, ground_truth: HELLO}\n"
                       "evaluations: {metrics: [{type: standard, metric: equality}]}\n"),
        ("a.proctor.yaml", "cases: [{id: hello, input: hello, expected: HELLO}]"),
        ("a.proctor.jsonl", '{"id": "hello", "input": "hello", "expected": "HELLO"}\n'),
        ("a.proctor.csv", "input,expected\nhello,HELLO\n"),
        needing("pixie", "datasets/d.json",
                            '{"name": "d", "runnable": "../agent.py:agent", "evaluators": ["ExactMatch"], "entries": '
                            '[{"description": "hi", "input_data": {"question": "hello"}, "expectation": "HELLO"}]}'),
    ],
)  # fmt: skip
def test_suites_of_every_format_are_found_in_a_folder(project: pytest.Pytester, name: str, text: str) -> None:
    write(project, f"evaluation/{name}", text)
    write(project, "evaluation/agent.py", AGENT)

    result = project.runpytest("evaluation", "--proctor-agent", "agent.py:agent")

    result.assert_outcomes(passed=1)


def test_a_repository_with_500_other_json_files_is_left_alone(project: pytest.Pytester) -> None:
    for number in range(500):
        write(project, f"data/{number % 7}/record-{number}.json", json.dumps({"items": [number], "query": "x"}))
    write(project, "data/broken.json", "{")
    write(project, "snapshots/page.test.json", '{"title": "not a suite"}')
    write(project, "deploy/agent.yaml", "kind: Deployment\n")
    write(project, "datasets/numbers.json", "[1, 2, 3]")
    write(
        project,
        "test_other_files_are_left_alone.py",
        "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n): pass\n",
    )

    result = project.runpytest()

    result.assert_outcomes(passed=3)
    assert "proctor" not in result.stdout.str().partition("collected")[2]
    assert not (project.path / ".proctor").exists()


def test_patterns_in_the_ini_file_select_further_suites(project: pytest.Pytester) -> None:
    write(project, "checks/greeting.yaml", "agent: ../agent.py:agent\ncases: [{id: a, input: a, expected: A}]")
    project.makeini("[pytest]\nproctor_suites = checks/*.yaml\n")

    project.runpytest().assert_outcomes(passed=1)


def test_a_suite_with_any_file_name_runs_if_it_is_on_the_command_line(project: pytest.Pytester) -> None:
    write(project, "greeting.yaml", "agent: agent.py:agent\ncases: [{id: a, input: a, expected: A}]")

    project.runpytest().assert_outcomes()
    project.runpytest("greeting.yaml").assert_outcomes(passed=1)


def test_a_suite_with_any_file_name_runs_if_its_folder_is_on_the_command_line_too(project: pytest.Pytester) -> None:
    (project.path / "sub").mkdir()
    (project.path / "sub" / "anything.json").write_text(
        '{"agent": "../agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "A"}]}'
    )

    for arguments in ((".", "sub/anything.json"), ("sub/anything.json", "sub"), ("sub/anything.json::a", ".")):
        project.runpytest(*arguments).assert_outcomes(passed=1)


def test_an_invalid_suite_is_a_collection_error_with_lines_and_without_a_traceback(project: pytest.Pytester) -> None:
    write(
        project, "bad.proctor.yaml", "agent: agent.py:agent\ncases:\n  - {id: a, input: a, expcted: A}\n  - {id: a}\n"
    )
    write(project, "good.proctor.yaml", "agent: agent.py:agent\ncases: [{id: b, input: b, expected: B}]")

    result = project.runpytest("--continue-on-collection-errors")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*bad.proctor.yaml:3: *expcted*", "*bad.proctor.yaml:4: *"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"cases": [', "*x.proctor.json:1: *"),
        ('{"cases": []}', "*cases is empty*"),
        ("", "*is empty*"),
        ('{"agent": "nowhere.py:agent", "cases": [{"input": "a", "expected": "A"}]}', "*no file 'nowhere.py'*"),
        ('{"agent": "agent.py:agent", "evaluators": ["Exactmatch"], "cases": [{"input": "a"}]}', "*did you mean*"),
    ],
)  # fmt: skip
def test_all_problems_of_a_file_are_reported_before_anything_runs(
    project: pytest.Pytester, text: str, complaint: str
) -> None:
    write(project, "x.proctor.json", text)

    result = project.runpytest()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([complaint])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.needs("adk")
def test_an_agent_that_cannot_be_loaded_is_one_message(project: pytest.Pytester) -> None:
    write(project, "faq.test.json", json.dumps(EVAL_SET))

    result = project.runpytest("--proctor-agent", "agent.py:agnt")

    result.stdout.fnmatch_lines(["*has no 'agnt'; did you mean 'agent'?*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.needs("adk")
def test_a_suite_without_agent_is_skipped_in_a_folder_and_an_error_on_the_command_line(
    project: pytest.Pytester,
) -> None:
    write(project, "faq.test.json", json.dumps(EVAL_SET))

    in_folder, named = project.runpytest("-rs"), project.runpytest("faq.test.json")

    in_folder.assert_outcomes(skipped=1)
    in_folder.stdout.fnmatch_lines(["*faq.test.json*no agent; set one with --proctor-agent*"])
    named.assert_outcomes(errors=1)
    named.stdout.fnmatch_lines(["*no agent; set one with --proctor-agent*"])


def test_words_and_tags_select_cases(project: pytest.Pytester) -> None:
    cases = [{"id": "a", "input": "a", "expected": "A", "tags": ["slow"]}, {"id": "b", "input": "b", "expected": "B"}]
    write(project, "x.proctor.json", json.dumps({"agent": "agent.py:agent", "cases": cases}))

    result = project.runpytest("-k", "not slow", "-v")

    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*x.proctor.json::b PASSED*", "*1 trial*"])


def test_two_suites_with_the_same_name_and_case_ids_are_distinguished(project: pytest.Pytester) -> None:
    write(project, "a/faq.proctor.json", suite("one", "two", name="faq", agent="../agent.py:agent"))
    write(project, "b/faq.proctor.json", suite("one", name="faq", agent="../agent.py:agent"))

    result = project.runpytest("-v")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["a/faq.proctor.json::one PASSED*", "b/faq.proctor.json::one PASSED*"])
    result.stdout.fnmatch_lines(["faq: 2 passed*", "faq (b/faq.proctor.json): 1 passed*", "3 trials"])


def test_cases_with_ids_that_are_invalid_in_node_ids_run(project: pytest.Pytester) -> None:
    ids = ["a::b", "a:b", "line\nbreak", "päck \U0001f600", "with space", "[x]"]
    write(project, "x.proctor.json", suite(*ids))

    project.runpytest("-v").assert_outcomes(passed=len(ids))


@given(
    st.binary(max_size=200), st.sampled_from(["a.test.json", "agent.yaml", "datasets/x.json", "x.csv"]), st.booleans()
)
def test_collection_never_fails_whatever_a_file_contains(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str, named: bool
) -> None:
    folder = tmp_path_factory.mktemp("looked")
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)

    assert is_suite(path, folder, [], named=named) in (True, False)
    assert is_suite(folder / "gone.test.json", folder, [], named=named) is False


def test_baseline_and_quarantine_files_are_not_suites(project: pytest.Pytester) -> None:
    write(project, "faq.proctor.json", suite("one"))
    write(project, "faq.proctor.baseline.jsonl", "{}\n")
    write(project, "faq.proctor.quarantine.jsonl", "")

    project.runpytest().assert_outcomes(passed=1)


def test_a_suite_with_several_agents_has_an_item_for_each(project: pytest.Pytester) -> None:
    text = suite("one", agent=None, arms={"loud": "agent.py:agent", "mute": "nop"})
    write(project, "faq.proctor.json", text)

    result = project.runpytest("faq.proctor.json", "-v")

    result.stdout.fnmatch_lines(["*one?loud? PASSED*", "*one?mute? FAILED*"])


@pytest.mark.needs("holodeck")
def test_items_have_the_file_and_line_of_their_cases(project: pytest.Pytester) -> None:
    write(
        project,
        "faq.proctor.yaml",
        "# two\nagent: agent.py:agent\nevaluators: [ExactMatch]\ncases:\n"
        "  - input: one\n    expected: ONE\n    id: one\n  # two\n  - {id: two, input: two, expected: no}\n",
    )
    metrics = "evaluations:\n  metrics:\n    - {type: standard, metric: equality}\n"
    write(project, "agent.yaml", f"name: x\ntest_cases_file: tests.yaml\nagent: agent.py:agent\n{metrics}")
    write(project, "tests.yaml", "# three\n- {name: three, input: three, ground_truth: THREE}\n")
    listed = project.inline_run("--collect-only", "faq.proctor.yaml", "agent.yaml")
    items = {call.item.name: call.item.reportinfo()[:2] for call in listed.getcalls("pytest_itemcollected")}
    assert items == {
        "one": (project.path / "faq.proctor.yaml", 6),
        "two": (project.path / "faq.proctor.yaml", 8),
        "three": (project.path / "tests.yaml", 1),
    }
