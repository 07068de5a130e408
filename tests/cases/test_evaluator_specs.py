from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_mutations import VALUES

from proctor.base.documents import Document
from proctor.base.json_data import Json
from proctor.cases.evaluator_specs import read_specs, write_specs
from proctor.cases.suite import EvaluatorSpec

PATH = Path("suite.json")


def reading(
    value: Json, defaults: tuple[EvaluatorSpec, ...] | None = None
) -> tuple[tuple[EvaluatorSpec, ...], list[str]]:
    data = {"evaluators": value}
    document = Document(PATH, json.dumps(data), data)
    specs = read_specs(document, value, ("evaluators",), defaults=defaults)
    return specs, [str(problem) for problem in document.problems]


def test_a_name_and_a_reference_are_evaluators() -> None:
    specs, problems = reading(["ExactMatch", "checks.py:polite"])
    assert specs == (EvaluatorSpec("ExactMatch"), EvaluatorSpec("checks.py:polite"))
    assert problems == []


def test_settings_are_told_from_arguments() -> None:
    options = {"threshold": 0.8, "name": "true", "report_only": True, "scope": "case", "output": "answer", "timeout": 3}
    specs, problems = reading([{"Faithfulness": {**options, "model": "m", "strict": True}}])
    assert problems == []
    assert specs == (
        EvaluatorSpec(
            "Faithfulness",
            {"model": "m", "strict": True},
            0.8,
            "true",
            report_only=True,
            scope="case",
            output="answer",
            timeout=3,
        ),
    )


@pytest.mark.parametrize("options", [None, {}])
def test_an_object_without_options_is_the_plain_evaluator(options: Json) -> None:
    assert reading([{"ExactMatch": options}]) == ((EvaluatorSpec("ExactMatch"),), [])


def test_dots_merge_the_defaults_in_place_and_once() -> None:
    defaults = (EvaluatorSpec("A"), EvaluatorSpec("B"))
    specs, _ = reading(["First", "...", "A", "..."], defaults)
    assert [spec.name for spec in specs] == ["First", "A", "B"]


def test_dots_among_the_defaults_themselves_are_a_mistake() -> None:
    specs, problems = reading(["..."])
    assert specs == ()
    [problem] = problems
    assert problem.startswith('suite.json:1: evaluators[0] "..." stands for')


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("ExactMatch", "evaluators must be a list"),
        ([""], "evaluators[0] must not be blank"),
        ([7], "evaluators[0] must be an evaluator's name or an object, not a number"),
        ([{}], "exactly one key"),
        ([{"A": {}, "B": {}}], "exactly one key"),
        ([{"...": {}}], "'...' is not the name of an evaluator"),
        ([{"A": 3}], "evaluators[0].A must be an object"),
        ([{"A": {"threshold": 1.5}}], "evaluators[0].A.threshold must be at most 1"),
        ([{"A": {"threshold": True}}], "threshold must be a number"),
        ([{"A": {"timeout": 0}}], "timeout must be more than 0"),
        ([{"A": {"scope": "turns"}}], "did you mean 'turn'?"),
        ([{"A": {"report_only": 1}}], "report_only must be true or false"),
        ([{"A": {"name": " "}}], "name must not be blank"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(value: Json, complaint: str) -> None:
    _, problems = reading(value)
    assert len(problems) == 1
    assert complaint in problems[0]


def test_writing_says_dots_for_inherited_evaluators() -> None:
    defaults = (EvaluatorSpec("A"), EvaluatorSpec("B", threshold=0.7))
    assert write_specs((*defaults, EvaluatorSpec("C")), defaults=defaults) == ["...", "C"]
    assert write_specs((EvaluatorSpec("C"),), defaults=()) == ["C"]
    assert write_specs(defaults[:1], defaults=defaults) == ["A"]


names = st.text(min_size=1).filter(lambda text: text.strip() and text != "...")
specs_strategy = st.builds(
    EvaluatorSpec,
    names,
    arguments=st.dictionaries(
        st.text().filter(lambda t: t not in {"threshold", "name", "report_only", "gate", "scope", "output", "timeout"}),
        VALUES,
        max_size=2,
    ),
    threshold=st.none() | st.floats(0, 1),
    label=st.none() | names,
    report_only=st.booleans(),
    scope=st.sampled_from([None, "turn", "case"]),
    output=st.none() | names,
    timeout=st.none() | st.floats(0.001, 1e6),
)


@given(st.lists(specs_strategy, max_size=3), st.lists(specs_strategy, max_size=2))
def test_what_is_written_is_read_again(own: list[EvaluatorSpec], defaults: list[EvaluatorSpec]) -> None:
    unique_defaults = tuple(spec for i, spec in enumerate(defaults) if spec not in defaults[:i])
    for candidates in (own, [*unique_defaults, *own]):
        specs = tuple(spec for i, spec in enumerate(candidates) if spec not in candidates[:i])
        read, problems = reading(write_specs(specs, defaults=unique_defaults), unique_defaults)
        assert problems == []
        assert read == specs


@given(VALUES)
def test_no_json_value_makes_reading_crash(value: Json) -> None:
    reading(value, ())
