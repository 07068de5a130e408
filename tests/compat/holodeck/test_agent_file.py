from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET
from proctor.cases.matchers import Equals, Fuzzy, Regex
from proctor.cases.suite import AttachedFile, EvaluatorSpec, ExpectedCall, FileSettings, Settings, Suite
from proctor.compat.holodeck import plugin, reader

TOOLS = EvaluatorSpec("ExpectedTools", label="expected_tools", scope="turn")
EQUALITY = EvaluatorSpec("Equality", label="equality", scope="turn")
METRICS = {"metrics": [{"type": "standard", "metric": "equality"}]}


def read_text(text: str, folder: Path = Path()) -> Suite:
    [suite] = reader.read(Document(folder / "agent.yaml", dedent(text)))
    return suite


def read(data: Any, folder: Path = Path()) -> Suite:
    return read_text(yaml.safe_dump(data, sort_keys=False), folder)


def agent(*tests: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "bot", "evaluations": METRICS, "test_cases": list(tests), **fields}


def problems(data: Any, folder: Path = Path()) -> list[str]:
    with pytest.raises(InvalidSuite) as caught:
        read(data, folder)
    return [str(problem) for problem in caught.value.problems]


def test_an_agent_with_tests_becomes_a_suite() -> None:
    suite = read_text("""
        name: support
        description: Answers customers
        model: {provider: openai, name: gpt-4o}
        instructions: {inline: Be kind}
        execution: {llm_timeout: 45, parallel_test_cases: 4}
        evaluations:
          metrics:
            - {type: standard, metric: equality}
        test_cases:
          - name: Refund policy
            input: What is the refund policy?
            ground_truth: 30 days
            retrieval_context: [Refunds within 30 days.]
          - input: Hello
    """)
    refund, hello = suite.cases
    assert (suite.name, suite.description, suite.format) == ("support", "Answers customers", "holodeck")
    assert suite.settings == Settings(parallel=4, timeout=45)
    assert suite.evaluators == (EQUALITY,)
    described = {"name": "support", "model": {"provider": "openai", "name": "gpt-4o"}}
    assert suite.agent == {"holodeck": {**described, "instructions": {"inline": "Be kind"}}}
    assert (refund.id, refund.description, refund.evaluators) == ("Refund policy", "Refund policy", None)
    assert refund.turns[0].input == "What is the refund policy?"
    assert refund.turns[0].expected.output == "30 days"
    assert refund.turns[0].retrieval_context == ("Refunds within 30 days.",)
    assert (hello.id, hello.description, hello.turns[0].expected.output) == ("test-2", "", UNSET)


def test_without_execution_tests_run_one_after_another() -> None:
    assert read(agent({"input": "q"})).settings == Settings(parallel=1)


@pytest.mark.parametrize("reference", ["app.py:agent", {"url": "http://localhost:1"}])
def test_an_agent_of_ones_own_may_be_named(reference: Any) -> None:
    assert read(agent({"input": "q"}, agent=reference)).agent == reference


def test_expected_tools_bring_their_own_check() -> None:
    suite = read(agent({"input": "q", "expected_tools": ["search", {"name": "book", "args": {"n": 2}, "count": 3}]}))
    [case] = suite.cases
    assert case.evaluators == (EQUALITY, TOOLS)
    assert case.turns[0].expected.tools == (
        ExpectedCall("search", substring=True, extra_args=True),
        ExpectedCall("book", {"n": Equals(2)}, count=3, substring=True, extra_args=True),
    )


def test_arguments_are_matched_by_the_shape_of_what_is_expected() -> None:
    arguments = {"a": {"fuzzy": "206,588"}, "b": {"regex": "[0-9]+"}, "c": {"x": 1}, "d": [1], "e": {"$regex": "x"}}
    suite = read(agent({"input": "q", "expected_tools": [{"name": "t", "args": arguments}]}))
    [call] = suite.cases[0].turns[0].expected.tools or ()
    assert call.args == {
        "a": Fuzzy("206,588"),
        "b": Regex("[0-9]+"),
        "c": Equals({"x": 1}),
        "d": Equals([1]),
        "e": Equals({"$regex": "x"}),
    }


def test_an_empty_list_of_tools_asserts_nothing_and_says_so() -> None:
    suite = read(agent({"input": "q", "expected_tools": []}))
    assert suite.cases[0].turns[0].expected.tools is None
    assert "checks nothing" in suite.warnings[0].message


def test_each_turn_has_its_own_expectations_and_evaluators() -> None:
    bleu = [{"metric": "bleu", "threshold": 0.4}]
    turns = [
        {"input": "a", "ground_truth": "A", "turn_config": {"strict": True}},
        {"input": "b", "expected_tools": ["t"]},
        {"input": "c", "evaluations": [{"metric": "meteor", "threshold": 0.3}], "expected_tools": ["t"]},
        {"input": "d", "evaluations": []},
    ]
    [case] = read(agent({"name": "talk", "turns": turns, "evaluations": bleu})).cases
    scored = EvaluatorSpec("BLEU", threshold=0.4, label="bleu", scope="turn")
    meteor = EvaluatorSpec("METEOR", threshold=0.3, label="meteor", scope="turn")
    assert case.evaluators == (scored,)
    assert [turn.evaluators for turn in case.turns] == [None, (scored, TOOLS), (meteor, TOOLS), None]
    assert case.turns[0].metadata == {"strict": True}


def test_an_empty_list_of_metrics_falls_back_to_the_agents() -> None:
    assert read(agent({"input": "q", "evaluations": []})).cases[0].evaluators is None


def test_equal_names_are_kept_apart_and_warned_about() -> None:
    suite = read(agent({"name": "a", "input": "q"}, {"name": "a", "input": "r"}))
    assert [case.id for case in suite.cases] == ["a", "a-2"]
    [warning] = suite.warnings
    assert (warning.where, warning.line) == ("test_cases[1].name", 9)


def test_files_become_attachments(tmp_path: Path) -> None:
    (tmp_path / "bill.pdf").write_text("x")
    files = [
        {"path": "bill.pdf", "type": "pdf", "pages": [1, 2], "description": "The bill"},
        {"url": "https://example.org/a.xlsx", "type": "excel", "sheet": "S", "range": "A1:B2", "cache": False},
    ]
    [case] = read(agent({"input": "q", "files": files}), tmp_path).cases
    assert case.turns[0].files == (
        AttachedFile("bill.pdf", None, "pdf", "The bill", {"pages": [1, 2]}),
        AttachedFile(
            None, "https://example.org/a.xlsx", "excel", None, {"sheet": "S", "range": "A1:B2", "cache": False}
        ),
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_tests_may_stand_in_a_file_of_their_own(tmp_path: Path, wrapped: bool) -> None:
    tests = [{"name": "a", "input": "q"}]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.yaml").write_text(yaml.safe_dump({"test_cases": tests} if wrapped else tests))
    suite = read({"name": "bot", "evaluations": METRICS, "test_cases_file": "tests/t.yaml"}, tmp_path)
    assert [case.id for case in suite.cases] == ["a"]


def test_problems_of_that_file_are_located_in_it(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("# tests\n- name: a\n  input: ''\n- input: q\n  groundtruth: x\n")
    found = problems({"name": "bot", "evaluations": METRICS, "test_cases_file": "t.yaml"}, tmp_path)
    assert found == [
        f"{tmp_path}/t.yaml:3: [0].input must not be blank",
        f"{tmp_path}/t.yaml:5: [1].groundtruth is not a known key; did you mean 'ground_truth'?",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "does not exist"),
        ("a: [", "is not valid YAML"),
        ("", "must be an object, not nothing"),
        ("[]", "is empty"),
        ("test_cases: []", "test_cases is empty"),
        ("tests: []", "needs 'test_cases'"),
        ("- 3", "[0] must be an object"),
    ],
)
def test_a_tests_file_with_other_content_is_a_problem(tmp_path: Path, content: str | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / "t.yaml").write_text(content)
    found = problems({"name": "bot", "evaluations": METRICS, "test_cases_file": "t.yaml"}, tmp_path)
    assert complaint in found[0]
    assert "t.yaml" in found[0]


def test_settings_of_files_and_the_terminal_are_data_of_the_suite() -> None:
    suite = read(agent({"input": "q"}, execution={"verbose": True, "cache_dir": "c", "file_timeout": 3}))
    assert suite.file_settings == FileSettings(3, 30, Path("c").resolve())
    assert suite.verbosity == "verbose"
    assert suite.warnings == ()


def test_a_test_with_turns_continues_after_a_failed_one() -> None:
    suite = read(agent({"input": "q"}, {"turns": [{"input": "a"}]}))
    assert [case.continue_after_failed_turn for case in suite.cases] == [False, True]
    assert suite.unscored == "skipped"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"test_cases": [{"input": "q"}], "evaluations": METRICS}, "needs 'name'"),
        (agent({"input": "q"}, name=" "), "name must not be blank"),
        (agent(), "test_cases is empty"),
        ({"name": "a", "test_cases_file": None}, "needs 'test_cases'"),
        (agent({"input": "q"}, test_cases_file="t.yaml"), "test_cases_file cannot be used together with"),
        (agent({"input": "q"}, descripton="x"), "did you mean 'description'?"),
        (agent({"input": "q"}, agent=3), "agent must be text"),
        (agent("q"), "test_cases[0] must be an object"),
        (agent({"name": "a"}), "test_cases[0] needs 'input'"),
        (agent({"input": "  "}), "test_cases[0].input must not be blank"),
        (agent({"input": "q", "name": ""}), "test_cases[0].name must not be blank"),
        (agent({"input": "q", "ground_truth": 42}), "test_cases[0].ground_truth must be text, not a number"),
        (agent({"input": "q", "ground_truth": ""}), "ground_truth must not be blank"),
        (agent({"input": "q", "turns": [{"input": "a"}]}), "test_cases[0].input cannot be used together with 'turns'"),
        (agent({"turns": []}), "test_cases[0].turns is empty"),
        (agent({"turns": [3]}), "test_cases[0].turns[0] must be an object"),
        (agent({"turns": [{"ground_truth": "x"}]}), "test_cases[0].turns[0] needs 'input'"),
        (agent({"input": "q", "turn_config": {}}), "turn_config is not a known key"),
        (agent({"input": "q", "expected_tools": [""]}), "expected_tools[0] must not be blank"),
        (agent({"input": "q", "expected_tools": [3]}), "expected_tools[0] must be a tool's name"),
        (agent({"input": "q", "expected_tools": [{"name": "t", "count": 0}]}), "count must be at least 1"),
        (agent({"input": "q", "expected_tools": [{"name": "t", "arg": {}}]}), "did you mean 'args'?"),
        (agent({"input": "q", "expected_tools": [{"name": "t", "args": {"a": {"regex": "("}}}]}), "args.a.regex '('"),
        (agent({"input": "q", "expected_tools": [{"name": "t", "args": {"a": {"regex": 3}}}]}), "a regular expression"),
        (agent({"input": "q", "expected_tools": [{"name": "t", "args": {"a": {"fuzzy": []}}}]}), "text or a number"),
        (
            agent({"input": "q", "expected_tools": [{"name": "t", "args": {"a": {"regex": "x", "fuzzy": "x"}}}]}),
            "must have exactly one key",
        ),
        (agent({"input": "q", "files": [{"type": "pdf"}]}), "files[0] needs either 'path' or 'url'"),
        (agent({"input": "q", "files": [{"path": "a", "url": "b", "type": "pdf"}]}), "needs either 'path' or 'url'"),
        (agent({"input": "q", "files": [{"url": "u"}]}), "files[0] needs 'type'"),
        (agent({"input": "q", "files": [{"url": "u", "type": "pfd"}]}), "did you mean 'pdf'?"),
        (agent({"input": "q", "files": [{"url": "u", "type": "pdf", "pages": [0]}]}), "pages[0] must be a page number"),
        (agent({"input": "q", "files": [{"url": "u", "type": "pdf"}] * 11}), "has 11 files"),
        (agent({"input": "q"}, execution={"llm_timeout": 0}), "llm_timeout must be more than 0"),
        (agent({"input": "q"}, execution={"parallel_test_cases": 0}), "parallel_test_cases must be at least 1"),
        (agent({"input": "q"}, execution={"quite": True}), "did you mean 'quiet'?"),
        (agent({"input": "q"}, evaluations={"metrics": []}), "evaluations.metrics is empty"),
        (agent({"input": "q"}, evaluations=[]), "evaluations must be an object"),
        (agent({"input": "q"}, evaluations={}), "needs 'metrics'"),
        (
            agent({"input": "q", "evaluations": [{"name": "n", "criteria": "c", "evaluation_params": []}]}),
            "evaluation_params is empty",
        ),
    ],
)  # fmt: skip
def test_one_mistake_is_one_problem_with_its_place(data: Any, complaint: str) -> None:
    found = problems(data)
    assert len(found) == 1, found
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("data", "recognised"),
    [
        ({"name": "a", "model": {}, "test_cases": []}, True),
        ({"name": "a", "agent": "x", "test_cases_file": "t.yaml"}, True),
        ({"name": "a", "test_cases": [{"input": "q"}, {"ground_truth": "x"}]}, True),
        ({"name": "a", "test_cases": [{"input": "q", "expected_output_contains": ["x"]}]}, False),
        ({"test_cases": [{"input": "q", "ground_truth": "x"}]}, False),
        ({"name": "a", "model": {}}, False),
        ({"name": "a", "test_cases": "x"}, False),
        ([], False),
        (None, False),
    ],
)
def test_an_agent_is_recognised_by_its_content(data: Any, recognised: bool) -> None:
    assert plugin.recognises(Path("agent.yaml"), data) is recognised


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (agent({"input": "q"}, evaluations=None), "test_cases[0] is not scored by anything"),
        (agent({"input": "q"}, {"input": "r"}, evaluations=None), "test_cases has no test that can be scored"),
        (
            agent({"input": "q", "evaluations": [{"metric": "bleu", "enabled": False}]}),
            "test_cases[0] is not scored by anything",
        ),
        (agent({"turns": [{"input": "q"}]}, evaluations=None), "test_cases[0] is not scored by anything"),
    ],
)
def test_a_test_that_nothing_scores_is_warned_about_and_refuses_nothing(data: Any, told: str) -> None:
    assert any(told in str(warning) for warning in read(data).warnings)
