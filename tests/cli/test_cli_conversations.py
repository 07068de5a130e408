"""What is expected of single turns, where an evaluator looks at the whole conversation; and matchers in results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tool_marks import needing

Command = Callable[..., Any]

APP = """
import json
import proctor


@proctor.tool
def pay(amount):
    return {"id": "P-7", "amount": amount}


def agent(question):
    for _ in range(question.count("pay")):
        pay(5)
    return f"said {question}"


def two_outputs(question):
    proctor.wrap(f"note on {question}", purpose="output", name="note")
    proctor.wrap(f"said {question}", purpose="output", name="answer")


def data(question):
    return json.dumps({"said": question, "hidden": "secret"})
"""


@pytest.fixture
def scored(proctor: Command, project: Path) -> Callable[..., Any]:
    (project / "app.py").write_text(APP)

    def run(text: str) -> Any:
        (project / "suite.yaml").write_text(text)
        return proctor("test", "suite.yaml")

    return run


TURNS = {
    "a call in the turn that is to have none": ("pay", "[]", "pay", "[pay]", 1),
    "no call in it, and one in the other": ("hi", "[]", "pay", "[pay]", 0),
    "no call in it, and none in the other": ("hi", "[]", "hi", "[pay]", 1),
    "a call where nothing is said": ("hi", "[]", "pay", None, 0),
    "a call in the silent turn, and nothing said of the other": ("pay", "[]", "hi", None, 1),
    "none at all": ("hi", "[]", "hi", "[]", 0),
    "one although both are to have none": ("hi", "[]", "pay", "[]", 1),
}


@pytest.mark.parametrize("evaluator", ["ExpectedTools", needing("deepeval", "ToolCorrectness"), "ToolTrajectory"])
@pytest.mark.parametrize("name", TURNS)
def test_no_tool_in_one_turn_means_that_turn_also_where_the_whole_is_looked_at(
    scored: Command, name: str, evaluator: str
) -> None:
    first, expects_first, second, expects_second, code = TURNS[name]
    later = "" if expects_second is None else f", expected: {{tools: {expects_second}}}"
    turns = f"[{{input: {first}, expected: {{tools: {expects_first}}}}}, {{input: {second}{later}}}]"
    ended = scored(
        f"agent: app.py:agent\nevaluators: [{{{evaluator}: {{scope: case}}}}]\ncases: [{{id: a, turns: {turns}}}]\n"
    )
    assert ended.code == code, ended.out


@pytest.mark.parametrize(
    ("agent", "look", "found", "missing"),
    [
        ("two_outputs", "output: answer", "said one", "note on one"),
        ("two_outputs", "output: note", "note on one", "said one"),
        ("data", "output_path: said", "one", "secret"),
    ],
)
def test_words_of_a_conversation_are_looked_for_in_the_output_that_is_named(
    scored: Command, agent: str, look: str, found: str, missing: str
) -> None:
    for words, code in ((found, 0), (missing, 1)):
        for check in (f"Contains: {{any: [{words}], ", f"Regex: {{pattern: {words}, "):
            evaluators = f"evaluators: [{{{check}conversation: true, {look}}}}}]\n"
            ended = scored(
                f"agent: app.py:{agent}\n{evaluators}cases: [{{id: a, turns: [{{input: one}}, {{input: two}}]}}]\n"
            )
            assert ended.code == code, ended.out


RESULTS = {
    "a matcher that fits": ("{id: {$regex: 'P-.*'}, amount: {$type: integer}}", 0),
    "a matcher that does not": ("{id: {$regex: 'Q-.*'}, amount: 5}", 1),
    "a literal": ("{id: P-7, amount: 5}", 0),
    "one of several": ("{$one_of: [{id: P-7, amount: 5}]}", 0),
}


@pytest.mark.needs("deepeval")
@pytest.mark.parametrize("name", RESULTS)
def test_matchers_work_in_the_result_that_is_expected_of_a_call(scored: Command, proctor: Command, name: str) -> None:
    result, code = RESULTS[name]
    case = f"{{id: a, input: pay, expected: {{tools: [{{name: pay, result: {result}}}]}}}}"
    evaluators = "[{ToolCorrectness: {compare_results: true, threshold: 1}}]"
    ended = scored(f"agent: app.py:agent\nevaluators: {evaluators}\ncases:\n- {case}\n")
    assert ended.code == code, ended.out
    has_pattern = "$regex" in result  # the oracle invents no text for one
    assert proctor("test", "suite.yaml", "--agent", "oracle").code == (4 if has_pattern else 0)


@pytest.mark.parametrize(
    ("result", "said"), [("{id: {$nosuch: 1}}", "$nosuch"), ("{$predicate: 'app.py:agent'}", "allowed only in args")]
)
def test_what_is_no_matcher_in_a_result_is_refused_with_its_line(scored: Command, result: str, said: str) -> None:
    ended = scored(
        f"agent: app.py:agent\ncases:\n- id: a\n  input: x\n  expected: {{tools: [{{name: pay, result: {result}}}]}}\n"
    )
    assert ended.code == 2
    assert "suite.yaml:5: " in ended.err and said in ended.err
