from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutated import SCALARS, VALUES, mutations

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.formats import holodeck
from proctor.cases.matchers import Approx
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, ExpectedCall, Keywords, Settings, Suite, Turn


def read(data: Any) -> Suite:
    """JSON, so that half characters are tried as well."""
    [suite] = holodeck.read(Document(Path("agent.json"), json.dumps(data)))
    return replace(suite, warnings=(), path=None)


def read_text(text: str) -> Suite:
    [suite] = holodeck.read(Document(Path("agent.yaml"), text))
    return replace(suite, warnings=(), path=None)


characters = st.text(st.characters(exclude_categories=["Cs"]))
words = characters.filter(lambda text: bool(text.strip()) and "${" not in text)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | words
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2), max_leaves=5
)
objects = st.dictionaries(words, values, max_size=2)
thresholds = st.floats(0, 1)
metrics = st.one_of(
    st.fixed_dictionaries(
        {"metric": st.sampled_from(["bleu", "rouge", "meteor", "fluency"])},
        optional={"threshold": thresholds, "timeout_ms": st.integers(1, 10**6), "enabled": st.just(True)},
    ),
    st.fixed_dictionaries(
        {"metric": st.just("coherence")},
        optional={
            "response_path": st.sampled_from(["a", "a.b-c[0].d"]),
            "retry_on_failure": st.integers(1, 3),
            "fail_on_error": st.booleans(),
        },
    ),
    st.fixed_dictionaries({"metric": st.just("equality")}, optional={"case_insensitive": st.booleans()}),
    st.fixed_dictionaries({"metric": st.just("numeric")}, optional={"absolute_tolerance": st.floats(0, 10)}),
    st.fixed_dictionaries(
        {"type": st.just("geval"), "name": words, "criteria": words},
        optional={"evaluation_steps": st.lists(words), "strict_mode": st.booleans(), "model": objects},
    ),
    st.fixed_dictionaries(
        {"type": st.just("rag"), "metric_type": st.just("faithfulness")}, optional={"threshold": thresholds}
    ),
    st.fixed_dictionaries({"type": st.just("code"), "grader": st.just("g.py:fn")}, optional={"name": words}),
)
arguments = st.dictionaries(
    words,
    values.filter(lambda v: not isinstance(v, dict) or not v.keys() & {"fuzzy", "regex"})
    | st.just({"regex": "a+"})
    | st.just({"fuzzy": "x"}),
    max_size=2,
)
tools = st.lists(
    words | st.fixed_dictionaries({"name": words}, optional={"args": arguments, "count": st.integers(1, 5)}),
    min_size=1,
    max_size=2,
)
content: dict[str, Any] = {
    "ground_truth": words,
    "expected_tools": tools,
    "retrieval_context": st.lists(words, max_size=2),
    "evaluations": st.lists(metrics, max_size=2),
    "files": st.lists(
        st.fixed_dictionaries({"url": words, "type": st.just("pdf")}, optional={"pages": st.lists(st.integers(1, 9))}),
        max_size=2,
    ),
    "x-own": values,
}
turns = st.fixed_dictionaries({"input": words}, optional={**content, "turn_config": objects})
tests = st.one_of(
    st.fixed_dictionaries({"input": words}, optional={**content, "name": words | st.just("same")}),
    st.fixed_dictionaries(
        {"turns": st.lists(turns, min_size=1, max_size=3)},
        optional={"name": words, "evaluations": st.lists(metrics, max_size=2)},
    ),
)
agents = st.fixed_dictionaries(
    {
        "name": words,
        "evaluations": st.fixed_dictionaries(
            {"metrics": st.lists(metrics, min_size=1, max_size=2)}, optional={"model": objects}
        ),
        "test_cases": st.lists(tests, min_size=1, max_size=3),
    },
    optional={
        "description": words,
        "agent": st.just("app.py:agent") | objects,
        "model": objects,
        "tools": st.lists(objects, max_size=2),
        "execution": st.fixed_dictionaries(
            {},
            optional={
                "llm_timeout": st.integers(1, 99),
                "parallel_test_cases": st.integers(1, 9),
                "quiet": st.booleans(),
            },
        ),
        "x-mine": values,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(agents)
def test_an_agent_survives_being_written_and_read_and_loses_nothing(data: Any) -> None:
    suite = read(data)
    written = holodeck.write([suite])
    assert written.losses == ()
    assert read_text(written.text) == suite


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(agents.flatmap(lambda data: mutations(data, VALUES | SCALARS)) | VALUES)
def test_only_invalid_suite_ever_escapes(data: Any) -> None:
    holodeck.recognises(Path("agent.json"), data)
    try:
        suite = read(data)
    except InvalidSuite as error:
        assert error.problems
    else:
        holodeck.write([suite])


@given(st.text())
def test_no_text_makes_reading_crash(text: str) -> None:
    try:
        read_text(text)
    except InvalidSuite as error:
        assert error.problems


@given(st.text())
def test_any_text_can_be_written_as_yaml(text: str) -> None:
    suite = Suite("s", (Case("a", (Turn(text),)),), (EvaluatorSpec("Equality", label="equality", scope="turn"),))
    written = holodeck.write([suite])
    tests = Document(Path("a.yaml"), written.text).data["test_cases"]
    assert tests[0]["input"] == text or any("half a character" in loss for loss in written.losses)


@pytest.mark.parametrize(
    "text", ["1e5", "-1.5E10", "no", "2024-01-01", "1_000", "~", "0x1F", "012", "yes: no", "=", "<<"]
)
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    suite = read({"name": "a", "evaluations": {"metrics": [{"metric": "equality"}]}, "test_cases": [{"input": text}]})
    assert read_text(holodeck.write([suite]).text).cases[0].turns[0].input == text


def test_the_file_reads_like_one_a_person_wrote() -> None:
    data = {
        "name": "bot",
        "model": {"provider": "openai", "name": "gpt-4o", "api_key": "${OPENAI_API_KEY}"},
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality", "case_insensitive": True}]},
        "execution": {"llm_timeout": 30},
        "test_cases": [
            {"name": "Hello", "input": "Hi é", "ground_truth": "Hello", "expected_tools": ["search"]},
            {"name": "Talk", "turns": [{"input": "a", "turn_config": {"n": 1}}, {"input": "b"}]},
        ],
    }
    written = holodeck.write([read(data)])
    assert yaml.safe_load(written.text) == data
    assert list(yaml.safe_load(written.text)) == list(data)
    assert "Hi é" in written.text
    assert written.losses == ()


def test_everything_an_agent_file_cannot_say_is_listed() -> None:
    expected = Expected(
        output=None,
        keywords=Keywords(("a",)),
        tool_calls=(ExpectedCall("t", {"n": Approx(1.0)}, result=3),),
        context=("c",),
    )
    case = Case(
        "C1",
        (Turn({"q": 1}, expected),),
        "Other",
        tags=("t",),
        state={"a": 1},
        repeat=2,
        timeout=1.0,
        skip="s",
        metadata={"a": 1},
    )
    none = Case("none", (Turn("x", Expected(tool_calls=())),), evaluators=())
    specs = (
        EvaluatorSpec("Contains"),
        EvaluatorSpec("checks.py:fn"),
        EvaluatorSpec("Equality", {"odd": 1}, label="mine", gates=False, scope="case", output="o"),
        EvaluatorSpec("BLEU"),
        EvaluatorSpec("ExactMatch"),
        EvaluatorSpec("Faithfulness", timeout=2),
    )
    suite = Suite("s", (case, none), specs, criteria=Criteria(pct=0.5), settings=Settings(repeat=2, retries=1))
    losses = "\n".join(holodeck.write([suite]).losses)
    for phrase in (
        "criteria", "repeat", "retries", "tags", "state", "timeout", "skip", "metadata", "description", "keywords",
        "expected context", "no answer is expected", "its input is not text", "match in full", "no other arguments",
        "its result", "argument 'n'", "no tool is expected", "having no evaluators", "'Contains' has no metric",
        "'fn' has no metric", "argument 'odd'", "its label", "decides nothing", "whole case", "the output it looks at",
        "0.5 is written", "written as equality", "its timeout",
    ):  # fmt: skip
        assert phrase in losses, phrase


def test_text_that_would_be_read_as_a_variable_is_announced() -> None:
    suite = Suite("s", (Case("a", (Turn("pay ${AMOUNT}"),)),))
    assert "test_cases[0].input: '${' will be read as a variable of the environment" in holodeck.write([suite]).losses


def test_a_foreign_extension_of_the_same_name_does_no_harm() -> None:
    suite = Suite("s", (Case("a", (Turn("q"),)),), extra={"x-holodeck": {"evaluations": 3, "execution": [], "odd": 1}})
    assert "suite 's': x-holodeck.odd cannot be expressed" in holodeck.write([suite]).losses


def test_further_suites_stand_beside_the_first() -> None:
    suite = Suite("My bot", (Case("a", (Turn("q"),)),), (EvaluatorSpec("Equality", label="equality", scope="turn"),))
    written = holodeck.write([suite, suite])
    assert [name for name, _ in written.companions] == ["my-bot-2.yaml"]
    assert read_text(written.companions[0][1]).name == "My bot"


def test_writing_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        holodeck.write([])
