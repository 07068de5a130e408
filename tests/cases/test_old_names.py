"""Names and keys that were renamed keep working for one release, with a notice that says the new one."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.base.errors import RenamedWarning
from proctor.cases import suite as suite_module
from proctor.cases.evaluator_specs import read_evaluators
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.writer import write_text
from proctor.cases.suite import (
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    Suite,
    ToolMock,
    Turn,
)

pytestmark = pytest.mark.unit

WORDS = Keywords(any=("a",))
CALLS = (ExpectedCall("t"),)
RENAMED: list[tuple[type, str, str, Any, dict[str, Any]]] = [
    (Keywords, "any_of", "any", ("a",), {}),
    (Keywords, "all_of", "all", ("a",), {}),
    (Expected, "keywords", "contains", WORDS, {}),
    (Expected, "tool_calls", "tools", CALLS, {}),
    (ExpectedCall, "arguments", "args", {}, {"name": "t"}),
    (ExpectedCall, "extra_arguments", "extra_args", True, {"name": "t"}),
    (ToolMock, "arguments", "args", {}, {}),
    (Turn, "attachments", "files", (AttachedFile("a.txt"),), {"input": "hi"}),
    (Case, "doubles", "mocks", {"t": (ToolMock(),)}, {"id": "a", "turns": (Turn("hi"),)}),
    (Suite, "reexecute", "rerun_tools", True, {"name": "s", "cases": ()}),
    (EvaluatorSpec, "path", "output_path", "a.b", {"name": "A"}),
]


@pytest.mark.parametrize(("kind", "old", "new", "value", "rest"), RENAMED)
def test_an_old_field_is_read_and_written_with_a_warning(
    kind: type, old: str, new: str, value: Any, rest: dict[str, Any]
) -> None:
    current = kind(**rest, **{new: value})
    with pytest.warns(DeprecationWarning, match=rf"{kind.__name__}\({old}=...\) is now {kind.__name__}\({new}=...\)"):
        assert kind(**rest, **{old: value}) == current
    with pytest.warns(DeprecationWarning, match=rf"{kind.__name__}\.{old} is now {kind.__name__}\.{new}"):
        assert getattr(current, old) == value
    with pytest.warns(DeprecationWarning):
        assert replace(kind(**rest), **{old: value}) == current  # type: ignore[type-var]
    assert pickle.loads(pickle.dumps(current)) == current


def test_gates_is_the_opposite_of_report_only() -> None:
    with pytest.warns(DeprecationWarning, match="opposite"):
        assert EvaluatorSpec("A", gates=False) == EvaluatorSpec("A", report_only=True)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning):
        assert EvaluatorSpec("A").gates is True  # type: ignore[attr-defined]


def test_old_methods_and_classes_work_with_a_warning() -> None:
    case: Any = Case(id="a", turns=(Turn("hi"),), metadata={"m": 1})
    suite: Any = Suite("s", (case,))
    with pytest.warns(DeprecationWarning, match=r"Suite\.with_cases is now Suite\.map_cases"):
        assert suite.with_cases(lambda each: each) == suite
    with pytest.warns(DeprecationWarning):
        assert case.told == {"m": 1}
    with pytest.warns(DeprecationWarning):
        assert case.as_planned == case
    for old, kind in (("Double", ToolMock), ("Attachment", AttachedFile)):
        with pytest.warns(DeprecationWarning, match=f"{old} is now {kind.__name__}"):
            assert getattr(suite_module, old) is kind
    with pytest.raises(AttributeError, match="no attribute 'Tripple'"):
        _ = suite_module.Tripple


def written(folder: Path, text: str) -> Path:
    path = folder / "desk.yaml"
    path.write_text(text, encoding="utf-8")
    return path


OLD = """\
agent: oracle
reexecute: true
cases:
  - id: a
    input: hi
    expected: hi
    evaluators:
      - ExactMatch: {gate: false}
    doubles: {search: {result: 1}}
  - id: b
    input: hi
    expected: hi
    doubles: {search: {result: 2}}
"""
NEW = OLD.replace("reexecute", "rerun_tools").replace("gate: false", "report_only: true").replace("doubles", "mocks")


def test_old_keys_of_a_suite_mean_what_they_meant_with_a_warning_on_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    [old] = load([path])
    written(tmp_path, NEW)
    [new] = load([path])
    assert new.warnings == ()
    assert replace(old, warnings=()) == new
    assert {(warning.path, warning.line, warning.where) for warning in old.warnings} == {
        (path, 2, "reexecute"),
        (path, 8, "cases[0].evaluators[0].ExactMatch.gate"),
        (path, 9, "cases[0].doubles"),
    }
    messages = " ".join(warning.message for warning in old.warnings)
    assert "'rerun_tools'" in messages and "'report_only: true'" in messages and "'mocks'" in messages
    text = write_text([old]).text
    assert all(key in text for key in ("rerun_tools", "report_only", "mocks"))
    assert not any(key in text for key in ("reexecute", "gate", "doubles"))


def test_a_mistake_under_an_old_key_is_reported_under_that_key(tmp_path: Path) -> None:
    with pytest.raises(proctor.InvalidSuite) as caught:
        load([written(tmp_path, OLD.replace("{result: 1}", "{results: 1}").replace("gate: false", "gate: 3"))])
    places = [problem.where for problem in caught.value.problems]
    assert places == ["cases[0].evaluators[0].ExactMatch.gate", "cases[0].doubles.search.results"]


@pytest.mark.parametrize(
    ("old", "both"),
    [
        ("reexecute: true", "reexecute: true\nrerun_tools: true"),
        ("{gate: false}", "{gate: false, report_only: true}"),
        ("doubles: {search: {result: 1}}", "doubles: {}\n    mocks: {}"),
    ],
)
def test_both_spellings_of_a_key_are_a_problem(tmp_path: Path, old: str, both: str) -> None:
    with pytest.raises(proctor.InvalidSuite, match="is the old name of"):
        load([written(tmp_path, OLD.replace(old, both))])


def test_an_old_key_of_an_evaluator_in_python_warns() -> None:
    with pytest.warns(RenamedWarning, match="report_only: true"):
        assert read_evaluators([{"A": {"gate": False}}]) == (EvaluatorSpec("A", report_only=True),)
