"""What a native file means: every key has an effect or is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.writer import write_case
from proctor.cases.suite import (
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Quarantine,
    Suite,
)

Read = Callable[..., Suite]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: Any, name: str = "suite.json") -> Suite:
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        [suite] = load([path])
        return suite

    return read


@pytest.fixture
def case(read: Read) -> Callable[..., Case]:
    def case(suite: dict[str, Any] | None = None, **keys: Any) -> Case:
        return read({**(suite or {}), "cases": [{"input": "q", **keys}]}).cases[0]

    return case


def _names(specs: tuple[EvaluatorSpec, ...] | None) -> list[str]:
    return [spec.name for spec in specs or ()]


def test_one_suite_in_four_file_types_gives_equal_cases(read: Read) -> None:
    rows = [
        {"id": "a", "input": "one", "expected": {"output": "1"}, "tags": ["x", "y"], "metadata": {"lang": "de"}},
        {"id": "b", "input": {"q": "two", "hint": "no"}, "expected": {"contains": {"any": ["2"], "all": ["t", "w"]}}},
        {"id": "c", "input": "3", "expected": {"tools": ["find", "say"]}, "state": {"k": "v"}, "description": "d"},
    ]
    table = (
        "id,input,input.q,input.hint,expected,contains,contains_all,tools,tags,description,metadata.lang,state.k\n"
        "a,one,,,1,,,,x; y,,de,\n"
        "b,,two,no,,2,t|w,,,,,\n"
        "c,3,,,,,,find;say,,d,,v\n"
    )
    yaml = "".join(f"- {json.dumps(row)}\n" for row in rows)
    lines = "".join(f"{json.dumps(row)}\n\n" for row in rows)
    suites = [
        read({"cases": rows}),
        read(json.dumps(rows), "list.json"),
        read("cases:\n" + "".join(f"  {line}\n" for line in yaml.splitlines()), "suite.yaml"),
        read(yaml, "list.yml"),
        read(lines, "suite.jsonl"),
        read(lines, "suite.ndjson"),
        read(table, "suite.csv"),
    ]
    for suite in suites[1:]:
        assert suite.cases == suites[0].cases


def test_every_key_of_a_suite_has_an_effect(read: Read) -> None:
    suite = read(
        {
            "$schema": "./suite.schema.json",
            "name": "n",
            "description": "d",
            "agent": {"python": "a.py:b"},
            "evaluators": ["ExactMatch"],
            "criteria": {"trials": "majority", "threshold": 0.7, "pct": 0.9},
            "settings": {"repeat": 2, "parallel": 3, "timeout": 4, "evaluator_timeout": 5.5, "retries": 0},
            "x-own": [1],
            "cases": [{"input": "q", "expected": "a"}],
        }
    )
    assert (suite.name, suite.description, suite.agent, suite.extra) == ("n", "d", {"python": "a.py:b"}, {"x-own": [1]})
    assert _names(suite.evaluators) == ["ExactMatch"]
    assert (suite.criteria.trials, suite.criteria.threshold, suite.criteria.pct) == ("majority", 0.7, 0.9)
    settings = suite.settings
    assert (settings.repeat, settings.parallel, settings.timeout) == (2, 3, 4)
    assert (settings.evaluator_timeout, settings.retries) == (5.5, 0)
    assert suite.cases[0].evaluators is None


def test_every_key_of_a_case_has_an_effect(case: Callable[..., Case]) -> None:
    given = case(
        id=12,
        description="d",
        tags=["t"],
        skip="later",
        expected={"output": None, "contains": "w", "tools": [], "context": ["c"]},
        retrieval_context=["p"],
        files=[
            "f.pdf",
            {"url": "http://x", "type": "pdf", "description": "e", "pages": [2], "sheet": "s", "cache": False},
        ],
        inputs={"b": 1, "a": 2},
        metadata={"m": 1},
        state={"s": 1},
        final_state={},
        repeat=3,
        timeout=1.5,
        **{"x-own": 1},
    )
    [turn] = given.turns
    assert (given.id, given.description, given.tags, given.skip) == ("12", "d", ("t",), "later")
    assert turn.expected == Expected(None, contains=Keywords(("w",)), tools=(), context=("c",))
    assert turn.retrieval_context == ("p",)
    assert turn.files == (
        AttachedFile("f.pdf"),
        AttachedFile(None, "http://x", "pdf", "e", {"pages": [2], "sheet": "s", "cache": False}),
    )
    assert given.inputs == (NamedData("b", 1), NamedData("a", 2))
    assert (given.metadata, given.state, given.final_state) == ({"m": 1}, {"s": 1}, {})
    assert (given.repeat, given.timeout, given.extra) == (3, 1.5, {"x-own": 1})


def test_every_key_of_an_expected_call_has_an_effect(case: Callable[..., Case]) -> None:
    tool = {"name": "t", "args": {"x": 1}, "count": 2, "substring": True, "extra_args": True, "result": None}
    [full, bare] = case(expected={"tools": [tool, "u"]}).turns[0].expected.tools or ()
    assert (full.name, full.count, full.substring, full.extra_args, full.result) == ("t", 2, True, True, None)
    assert full.args is not None
    assert full.args["x"].mismatch(1) is None
    assert bare == ExpectedCall("u")
    assert bare.result is UNSET


def test_turns_have_their_own_expectations_evaluators_and_files(read: Read) -> None:
    suite = read(
        {
            "evaluators": ["ROUGE"],
            "cases": [
                {
                    "turns": [
                        {"input": "a", "expected": "x", "evaluators": ["...", "ExactMatch"], "metadata": {"m": 1}},
                        {"input": None, "files": ["f"], "retrieval_context": [], "x-own": 1},
                    ]
                }
            ],
        }
    )
    first, second = suite.cases[0].turns
    assert _names(suite.evaluators_of(suite.cases[0], first)) == ["ROUGE", "ExactMatch"]
    assert first.metadata == {"m": 1}
    assert (second.input, second.evaluators, second.retrieval_context, second.extra) == (None, None, (), {"x-own": 1})


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("words", {"output": "words"}),
        (5, {"output": 5}),
        (None, {"output": None}),
        ([1, 2], {"output": [1, 2]}),
        ({"contains": "w"}, {"contains": {"any": ["w"]}}),
        ({"contains": ["v", "w"]}, {"contains": {"any": ["v", "w"], "all": []}}),
        ({"tools": ["t"]}, {"tools": [{"name": "t"}]}),
    ],
)
def test_short_forms_mean_the_long_ones(case: Callable[..., Case], short: Any, long: Any) -> None:
    assert case(expected=short) == case(expected=long)


@pytest.mark.parametrize(
    ("suite", "keys", "scored_by"),
    [
        ({}, {"expected": "a"}, ["ExactMatch"]),
        ({}, {"expected": None}, ["ExactMatch"]),
        ({}, {"expected": {"contains": ["a"]}}, ["Contains"]),
        ({}, {"expected": {"tools": []}}, ["ExpectedTools"]),
        ({}, {"final_state": {}}, ["FinalState"]),
        (
            {},
            {"expected": {"output": "a", "contains": "b", "tools": ["t"]}, "final_state": {"s": 1}},
            ["ExactMatch", "Contains", "ExpectedTools", "FinalState"],
        ),
        ({"evaluators": ["ROUGE"]}, {"expected": "a"}, ["ROUGE"]),
        ({"evaluators": ["ROUGE"]}, {"expected": {"output": "a", "contains": "b"}}, ["ROUGE", "Contains"]),
        ({"evaluators": ["Contains"]}, {"expected": {"contains": "b"}}, ["Contains"]),
        ({"evaluators": ["ToolTrajectory"]}, {"expected": {"tools": ["t"]}}, ["ToolTrajectory"]),
        ({"evaluators": ["ToolCorrectness"]}, {"expected": {"tools": ["t"]}}, ["ToolCorrectness"]),
        ({"evaluators": ["ROUGE"]}, {"expected": {"tools": ["t"]}, "evaluators": ["BLEU"]}, ["BLEU", "ExpectedTools"]),
        ({"evaluators": ["ROUGE"]}, {"expected": {"tools": ["t"]}, "evaluators": ["..."]}, ["ROUGE", "ExpectedTools"]),
        ({"evaluators": ["ROUGE"]}, {"expected": "a", "evaluators": ["BLEU", "..."]}, ["BLEU", "ROUGE"]),
        ({"evaluators": ["ROUGE"]}, {"expected": "a", "evaluators": ["...", "ROUGE"]}, ["ROUGE"]),
    ],
)
def test_a_case_is_scored_by_what_it_names_and_by_what_it_expects(
    read: Read, suite: dict[str, Any], keys: dict[str, Any], scored_by: list[str]
) -> None:
    made = read({**suite, "cases": [{"input": "q", **keys}]})
    assert _names(made.evaluators_of(made.cases[0])) == scored_by


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"expected": {}},
        {"expected": {"context": ["c"]}},
        {"evaluators": []},
        {"expected": "a", "evaluators": [], "implied": False},
        {"evaluators": ["..."]},
    ],
)
def test_a_case_that_nothing_scores_is_a_mistake(case: Callable[..., Case], keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidSuite, match="has nothing to check"):
        case(**keys)


def test_turns_that_name_no_evaluators_leave_a_case_unscored_whatever_the_case_says(read: Read) -> None:
    with pytest.raises(InvalidSuite, match="has nothing to check"):
        read({"evaluators": ["ROUGE"], "cases": [{"turns": [{"input": "a", "evaluators": []}]}]})
    turns = [{"input": "a", "evaluators": []}, {"input": "b", "evaluators": ["ROUGE"]}]
    assert len(read({"cases": [{"turns": turns}]}).cases[0].turns) == 2


def test_evaluators_carry_their_settings_and_their_arguments(case: Callable[..., Case]) -> None:
    options = {
        "threshold": 1,
        "name": "label",
        "report_only": True,
        "scope": "case",
        "output": "o",
        "timeout": 2,
        "variant": "rouge1",
    }
    [spec] = case(evaluators=[{"ROUGE": options}]).evaluators or ()
    assert spec == EvaluatorSpec(
        "ROUGE", {"variant": "rouge1"}, 1.0, "label", report_only=True, scope="case", output="o", timeout=2
    )


def test_ids_are_given_to_cases_without_one_and_names_to_suites(read: Read) -> None:
    suite = read({"cases": [{"input": "a", "expected": "a"}, {"id": "own", "input": "b", "expected": "b"}]}, "faq.json")
    assert suite.name == "faq"
    assert [case.id for case in suite.cases] == ["a", "own"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"inptu": 1}, "cases[0].inptu is not a known key; did you mean 'input'?"),
        ({"turns": [{"input": 1}]}, "cases[0].input must be in each turn if a case has `turns`"),
        (
            {"expected": {"answer": 1}},
            "cases[0].expected.answer is not a known key; if the expected answer is an object",
        ),
        ({"expected": {"contains": {"none": ["x"]}}}, "cases[0].expected.contains.none is not a known key"),
        ({"expected": {"contains": 5}}, "cases[0].expected.contains must be an object"),
        ({"expected": {"contains": [5]}}, "cases[0].expected.contains[0] must be text, not a number"),
        ({"expected": {"tools": [{"name": "t", "arg": {}}]}}, "arg is not a known key; did you mean 'args'?"),
        ({"expected": {"tools": [{"name": "t", "args": {"x": {"$regx": "a"}}}]}}, "args.x.$regx is not a matcher"),
        ({"expected": {"tools": [{"name": "t", "args": {"x": {"$regex": "("}}}]}}, "is not a pattern"),
        ({"expected": {"tools": 5}}, "cases[0].expected.tools must be a list"),
        ({"files": [{"path": "a", "url": "b"}]}, "cases[0].files[0] needs either 'path' or 'url'"),
        ({"files": [{"path": "a", "page": 1}]}, "page is not a known key; did you mean 'pages'?"),
        ({"files": [{"path": "a", "cache": "yes"}]}, "cache must be true or false, not text"),
        ({"tags": "a"}, "cases[0].tags must be a list, not text"),
        ({"tags": [1]}, "cases[0].tags[0] must be text, not a number"),
        ({"inputs": [1]}, "cases[0].inputs must be an object with names and values, not a list"),
        ({"metadata": 1}, "cases[0].metadata must be an object"),
        ({"repeat": 0}, "cases[0].repeat must be at least 1, not 0"),
        ({"repeat": 1.5}, "cases[0].repeat must be a whole number, not 1.5"),
        ({"repeat": True}, "cases[0].repeat must be a whole number, not true or false"),
        ({"timeout": 0}, "cases[0].timeout must be more than 0 seconds, not 0"),
        ({"timeout": -(10**400)}, "cases[0].timeout must be a finite number"),
        ({"timeout": 10**400}, "cases[0].timeout must be a finite number"),
        ({"id": ""}, "cases[0].id must not be blank"),
        ({"id": 1.5}, "cases[0].id must be text, not a number"),
        ({"skip": True}, "cases[0].skip must be text, not true or false"),
        ({"evaluators": "ROUGE"}, "cases[0].evaluators must be a list of evaluators, not text"),
        ({"evaluators": [{"A": {}, "B": {}}]}, "cases[0].evaluators[0] must have exactly one key"),
        ({"evaluators": [{"A": {"threshold": 2}}]}, "cases[0].evaluators[0].A.threshold must be at most 1, not 2"),
        (
            {"evaluators": [{"A": {"scope": "trun"}}]},
            "scope must be one of turn, case, not 'trun'; did you mean 'turn'?",
        ),
        ({"evaluators": [{"A": {"timeout": 0}}]}, "timeout must be more than 0 seconds"),
    ],
)
def test_a_mistake_in_a_case_is_named(case: Callable[..., Case], keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSuite) as error:
        case(**keys)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"evaluators": ["..."]}, 'evaluators[0] "..." stands for the evaluators of the suite'),
        ({"criteria": {"pct": 0}}, "criteria.pct must be more than 0"),
        ({"criteria": {"pct": 1.01}}, "criteria.pct must be at most 1, not 1.01"),
        ({"criteria": {"trials": "al"}}, "criteria.trials must be one of all, any, majority, mean"),
        ({"criteria": {"trials": ["all"]}}, "criteria.trials must be text, not a list"),
        ({"criteria": {"percent": 1}}, "criteria.percent is not a known key"),
        ({"criteria": 5}, "criteria must be an object, not a number"),
        ({"settings": {"paralel": 2}}, "settings.paralel is not a known key; did you mean 'parallel'?"),
        ({"settings": {"retries": -1}}, "settings.retries must be at least 0, not -1"),
        ({"agent": 5}, "agent must be a reference such as app.py:agent, or an object, not a number"),
        ({"name": " "}, "name must not be blank"),
        ({"evaluator": ["ROUGE"]}, "evaluator is not a known key; did you mean 'evaluators'?"),
    ],
)
def test_a_mistake_in_a_suite_is_named(read: Read, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSuite) as error:
        read({**keys, "cases": [{"input": 1, "expected": 1}]})
    assert said in str(error.value)


def test_ids_given_twice_are_found_whatever_they_were_written_as(read: Read) -> None:
    rows = [{"id": "1", "input": 1, "expected": 1}, {"id": 1, "input": 2, "expected": 2}, 5]
    with pytest.raises(InvalidSuite) as error:
        read({"cases": rows})
    assert [problem.where for problem in error.value.problems] == ["cases[1].id", "cases[2]"]
    with pytest.raises(InvalidSuite) as error:
        read({"cases": [5, {"input": 1, "expected": 1}, 6]})
    assert [problem.where for problem in error.value.problems] == ["cases[0]", "cases[2]"]


def test_json_lines_may_say_once_what_holds_for_all_cases(read: Read) -> None:
    lines = '{"suite": {"name": "n", "evaluators": ["ROUGE"]}}\n{"input": "a"}\n{"suite": {"agent": "a.py:b"}}\n'
    suite = read(lines, "s.jsonl")
    assert (suite.name, suite.agent, _names(suite.evaluators), len(suite.cases)) == ("n", "a.py:b", ["ROUGE"], 1)


def test_a_suite_line_that_repeats_itself_or_holds_cases_is_a_mistake(read: Read) -> None:
    lines = '{"suite": {"name": "n", "cases": []}}\n{"input": "a", "expected": "a"}\n{"suite": {"name": "m"}}\n'
    with pytest.raises(InvalidSuite) as error:
        read(lines, "s.jsonl")
    assert [(problem.line, problem.where) for problem in error.value.problems] == [
        (1, "suite.cases"),
        (3, "suite.name"),
    ]


def test_a_case_may_be_in_quarantine_until_a_day(case: Callable[..., Case], read: Read) -> None:
    said = {"reason": "the feed is down", "until": "2030-01-31", "owner": "ops"}
    found = case(expected="a", quarantine=said)
    assert found.quarantine == Quarantine("the feed is down", "2030-01-31", "ops")
    assert write_case(found)["quarantine"] == said
    text = "cases:\n  - {input: q, expected: a, quarantine: {reason: later, until: 2030-01-31}}\n"
    assert read(text, "suite.yaml").cases[0].quarantine == Quarantine("later", "2030-01-31")


@pytest.mark.parametrize(
    ("quarantine", "words"),
    [
        ({"reason": "x", "until": "soon"}, "must be a date as YYYY-MM-DD"),
        ({"reason": "x", "until": "2030-02-30"}, "must be a date as YYYY-MM-DD"),
        ({"reason": " ", "until": "2030-01-31"}, "must not be blank"),
        ({"reason": "x", "until": "2030-01-31", "ownr": "me"}, "ownr"),
        ("later", "quarantine"),
    ],
)
def test_a_quarantine_that_says_too_little_is_a_problem(case: Callable[..., Case], quarantine: Any, words: str) -> None:
    with pytest.raises(InvalidSuite) as caught:
        case(expected="a", quarantine=quarantine)
    assert words in str(caught.value)
