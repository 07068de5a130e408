"""Where cases and evaluators are written: every reader knows the file and line of each, whatever stands around them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tool_marks import needing

from proctor.base.positions import Position
from proctor.cases.formats.loading import case_positions, load
from proctor.cases.suite import Case, EvaluatorSpec, Suite

THOROUGH = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
Draw = Callable[[st.SearchStrategy[Any]], Any]

CASES = ("alpha", "beta", "gamma")
EVALUATORS = ("ROUGE", "Levenshtein")
MISLEADING = st.sampled_from(["alpha ROUGE", "beta", "ROUGE", "gamma Levenshtein", "cases"])
"""Words of the cases and evaluators, for comments and other keys: a search of the text would stop there."""


def _yaml(lines: list[str], draw: Draw) -> str:
    """The lines with comments and blank lines put between them."""
    found: list[str] = []
    for line in lines:
        found += [*draw(st.lists(st.just("") | MISLEADING.map(lambda words: f"# {words}"), max_size=2)), line]
    return "\n".join(found) + "\n"


def _json(data: Any, draw: Draw) -> str:
    """The data as JSON with other keys and a random indent, and blank lines between lines."""
    text = json.dumps(data, indent=draw(st.integers(0, 3)))
    return "\n".join(f"{draw(st.sampled_from(['', chr(10)]))}{line}" for line in text.split("\n"))


def _shuffled(data: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """The same keys in another order, with one more that says misleading things."""
    keys = draw(st.permutations([*data, "x-note"]))
    return {key: data[key] if key in data else draw(MISLEADING) for key in keys}


def native_yaml(draw: Draw) -> dict[str, str]:
    lines = ["name: alpha", "x-note: ROUGE", "agent: app.py:agent", "cases:"]
    for case, evaluator in zip(CASES, (*EVALUATORS, "ROUGE"), strict=True):
        keys = draw(st.permutations([f"id: {case}", "input: alpha", f"evaluators: [{evaluator}]", "expected: beta"]))
        lines += [f"{'  - ' if number == 0 else '    '}{key}" for number, key in enumerate(keys)]
    return {"suite.yaml": _yaml(lines, draw)}


def native_json(draw: Draw) -> dict[str, str]:
    cases = [
        _shuffled(
            {"id": case, "input": "alpha", "expected": "beta", "evaluators": [{"ROUGE": {"variant": "rouge1"}}]}, draw
        )
        for case in CASES
    ]
    return {"suite.json": _json(_shuffled({"name": "beta", "cases": cases}, draw), draw)}


def json_lines(draw: Draw) -> dict[str, str]:
    rows = [{"suite": {"name": "alpha", "evaluators": ["ROUGE"]}}]
    rows += [_shuffled({"id": case, "input": "beta", "expected": "x"}, draw) for case in CASES]
    return {"suite.jsonl": "".join("\n" * draw(st.integers(0, 2)) + json.dumps(row) + "\n" for row in rows)}


def table(draw: Draw) -> dict[str, str]:
    rows = ["id,input,expected"]
    for case in CASES:
        rows += [*[""] * draw(st.integers(0, 1)), f'{case},"{draw(st.sampled_from(["q", "two lines"]))}",x']
    return {"suite.csv": "\n".join(rows) + "\n"}


def adk(draw: Draw) -> dict[str, str]:
    turn = {"userContent": {"parts": [{"text": "alpha"}]}, "finalResponse": {"parts": [{"text": "beta"}]}}
    name = draw(st.sampled_from(["evalId", "eval_id"]))
    cases = [dict(draw(st.permutations([(name, case), ("conversation", [turn])]))) for case in CASES]
    config = {"criteria": dict(draw(st.permutations([("response_match_score", 0.5), ("safety_v1", 0.5)])))}
    return {
        "suite.test.json": _json({"evalSetId": "beta", "evalCases": cases}, draw),
        "test_config.json": _json(config, draw),
    }


def pixie(draw: Draw) -> dict[str, str]:
    rows = [
        _shuffled({"description": case, "input_data": {"q": "alpha"}, "evaluators": ["ROUGE"]}, draw) for case in CASES
    ]
    return {"data.json": _json(_shuffled({"runnable": "app.py:App", "entries": rows}, draw), draw)}


def _tests(draw: Draw) -> list[str]:
    lines = ["test_cases:"]
    for case in CASES:
        keys = draw(st.permutations([f"name: {case}", "input: alpha", "ground_truth: beta"]))
        lines += [f"{'  - ' if number == 0 else '    '}{key}" for number, key in enumerate(keys)]
        lines += ["    evaluations:", "      - type: standard", "        metric: rouge"]
    return lines


AGENT = ["name: alpha", "description: rouge", "model: {provider: openai, name: gpt-4o}", "instructions: {inline: beta}"]


def holodeck(draw: Draw) -> dict[str, str]:
    return {"agent.yaml": _yaml([*AGENT, *_tests(draw)], draw)}


def holodeck_with_test_cases_file(draw: Draw) -> dict[str, str]:
    return {"agent.yaml": _yaml([*AGENT, "test_cases_file: tests.yaml"], draw), "tests.yaml": _yaml(_tests(draw), draw)}


def python_list(draw: Draw) -> dict[str, str]:
    lines = ["# alpha", "OTHER = ['alpha']", "TEST_CASES = ["]
    for case in CASES:
        keys = draw(st.permutations([f"'id': '{case}'", "'input': 'beta'", "'expected_output_contains': ['alpha']"]))
        lines += ["    {", *(f"        {key}," for key in keys), "        'evaluators': ['...', 'ROUGE'],", "    },"]
    return {"cases.py": _yaml([*lines, "]"], draw)}


SPELLING = {"ROUGE": ("ROUGE", "rouge", "response_match_score"), "Safety": ("safety_v1",)}


def _specs(suite: Suite) -> list[EvaluatorSpec]:
    lists = [suite.evaluators, *(case.evaluators or () for case in suite.cases)]
    return [spec for specs in lists for spec in specs if spec.position is not None]


def _line(position: Position | None) -> str:
    assert position is not None
    assert position.line is not None
    return position.path.read_text(encoding="utf-8").split("\n")[position.line - 1]


@pytest.mark.parametrize(
    "write",
    [
        native_yaml,
        native_json,
        json_lines,
        table,
        needing("adk", adk),
        needing("pixie", pixie),
        needing("holodeck", holodeck),
        needing("holodeck", holodeck_with_test_cases_file),
        python_list,
    ],
)
def test_the_line_of_a_case_has_its_id_and_that_of_an_evaluator_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Draw], dict[str, str]]
) -> None:
    monkeypatch.chdir(tmp_path)

    @THOROUGH
    @given(st.data())
    def check(data: st.DataObject) -> None:
        files = write(data.draw)
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        first = next(iter(files))
        [suite] = load([f"{first}:TEST_CASES" if first.endswith(".py") else first])
        assert [case.id for case in suite.cases] == list(CASES)
        for case in suite.cases:
            assert case.id in _line(case.position)
        named = _specs(suite)
        assert named or first == "suite.csv"
        for spec in named:
            assert any(name in _line(spec.position) for name in SPELLING.get(spec.name, (spec.name,)))

    check()


@pytest.mark.needs("holodeck")
def test_cases_of_another_file_are_there(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("\n".join([*AGENT, "test_cases_file: tests.yaml"]))
    (tmp_path / "tests.yaml").write_text("- {name: one, input: q}\n- {name: two, input: q}\n")
    assert case_positions(tmp_path / "agent.yaml") == {
        "one": Position(tmp_path / "tests.yaml", 1),
        "two": Position(tmp_path / "tests.yaml", 2),
    }


def test_a_case_that_is_an_alias_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        textwrap.dedent(
            """\
            x-shared:
              - &one {input: q, expected: a}
              - &two {input: r, expected: b}
            cases:
              - *one
              # *two
              - *two
              - {<<: *one, id: three}
            """
        )
    )
    [suite] = load([path])
    assert [case.position.line for case in suite.cases if case.position] == [5, 7, 8]


def test_keys_have_positions_with_everything_below_them(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        "cases: [{input: q, expected: a}]\njudge: openai:gpt-5-mini\n\nagent:\n  http:\n    url: http://localhost/\n"
    )
    [suite] = load([path])
    assert {place: position.line for place, position in suite.key_positions.items()} == {
        "judge": 2,
        "agent": 4,
        "agent.http": 5,
        "agent.http.url": 6,
    }


def test_a_list_that_python_builds_has_the_line_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cases.py").write_text(
        "ONE = {'id': 'a', 'input': 'q', 'expected': 'x'}\n\nTEST_CASES = [*[ONE], {**ONE, 'id': 'b'}]\n"
    )
    [suite] = load(["cases.py:TEST_CASES"])
    assert [case.position for case in suite.cases] == [Position(Path("cases.py"), 3)] * 2


def test_positions_are_no_part_of_what_is_compared_or_shown() -> None:
    here, there = (Case(id="a", turns=(), position=Position(Path("a.yaml"), line)) for line in (1, 2))
    assert here == there
    assert repr(here) == repr(there) == repr(Case(id="a", turns=()))
    assert EvaluatorSpec("A", position=Position(Path("a.yaml"), 1)) == EvaluatorSpec("A")
