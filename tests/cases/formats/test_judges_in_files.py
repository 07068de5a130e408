"""Who judges, as files of each format say it, and what becomes of it on the way into another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite
from proctor.cases.formats import native, table
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.writer import write_text
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, Turn

JUDGES = ["openai:gpt-5-mini", "rules", {"model": "openai:m", "samples": 3}, {"jury": ["openai:a", "openai:b"]}]


def _native(folder: Path, judge: Any, name: str = "suite.json") -> Suite:
    path = folder / name
    path.write_text(json.dumps({"judge": judge, "cases": [{"input": "q", "expected": "a"}]}), encoding="utf-8")
    return load([path])[0]


def _suite(judge: Any) -> Suite:
    case = Case(id="one", turns=(Turn("q", Expected("a")),))
    return Suite("s", (case,), evaluators=(EvaluatorSpec("Fluency"),), judge=judge)


@pytest.mark.parametrize("judge", JUDGES)
def test_a_native_suite_names_its_judge_and_keeps_it_when_written(tmp_path: Path, judge: Any) -> None:
    assert _native(tmp_path, judge).judge == judge
    written = tmp_path / "again.yaml"
    written.write_text(write_text([_suite(judge)]).text, encoding="utf-8")
    assert load([written])[0].judge == judge


@pytest.mark.parametrize("judge", ["", "  ", 3, True, ["openai:a"]])
def test_a_judge_that_is_no_name_and_no_object_is_a_problem(tmp_path: Path, judge: Any) -> None:
    with pytest.raises(InvalidSuite, match=r"judge must be a model such as openai:gpt-5-mini"):
        _native(tmp_path, judge)


def test_no_judge_is_the_same_as_leaving_it_out(tmp_path: Path) -> None:
    assert _native(tmp_path, None).judge is None


def test_the_schema_knows_the_judge(tmp_path: Path) -> None:
    import jsonschema_rs

    shipped = Path(native.__file__).parents[3] / "schemas" / "suite.schema.json"
    schema = json.loads(shipped.read_text(encoding="utf-8"))
    cases = [{"input": "q", "expected": "a"}]
    for judge in JUDGES:
        jsonschema_rs.validate(schema, {"judge": judge, "cases": cases})
    for judge in ("", 3, ["openai:a"]):
        assert not jsonschema_rs.is_valid(schema, {"judge": judge, "cases": cases})


@pytest.mark.needs("holodeck")
def test_holodecks_default_judge_is_the_suites(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        """
name: desk
model: {provider: openai, name: gpt-4o}
instructions: {inline: help}
evaluations:
  model: {provider: openai, name: gpt-5-mini, temperature: 0, api_key: "${SOME_API_KEY}"}
  metrics:
    - {type: standard, metric: fluency}
    - {type: standard, metric: relevance, model: {provider: anthropic, name: claude}}
test_cases: [{input: q, ground_truth: a}]
""",
        encoding="utf-8",
    )
    suite = load([path])[0]
    model = {"provider": "openai", "name": "gpt-5-mini", "temperature": 0, "api_key": "${SOME_API_KEY}"}
    assert suite.judge == model
    assert suite.warnings == ()
    assert suite.evaluators[1].arguments["model"] == {"provider": "anthropic", "name": "claude"}


def test_csv_has_no_word_for_the_judge_and_says_so() -> None:
    assert any("judge" in loss for loss in table.write([_suite("openai:gpt-5-mini")]).losses)
