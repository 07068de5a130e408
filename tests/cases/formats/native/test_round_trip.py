"""What is written is read again as it was, in every form the native format has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from native_documents import SUITES

from proctor.base.documents import Document
from proctor.cases.formats import NATIVE
from proctor.cases.formats.native.json_lines import parse_lines
from proctor.cases.formats.native.reader import read_document
from proctor.cases.formats.native.writer import write_text
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, Turn

THOROUGH = settings(deadline=None, suppress_health_check=list(HealthCheck))


def read(text: str, ending: str) -> Suite:
    path = Path(f"written{ending}")
    document = parse_lines(path, text) if ending == ".jsonl" else Document(path, text)
    assert NATIVE.recognises(path, document.data)
    [suite] = read_document(document)
    return replace(suite, path=None)


def write(suites: Sequence[Suite], ending: str) -> str:
    written = write_text(suites, ending)
    assert written.losses == ()
    written.text.encode()
    return written.text


@pytest.mark.parametrize("ending", [".yaml", ".json", ".jsonl"])
def test_a_suite_comes_back_from_a_file_as_it_was(ending: str) -> None:
    @THOROUGH
    @given(SUITES)
    def comes_back(suite: Suite) -> None:
        assert read(write([suite], ending), ending) == suite

    comes_back()


def test_suites_are_joined_with_their_own_evaluators_and_ids_of_their_own() -> None:
    first = Suite("one", (Case(id="a", turns=(Turn("x", Expected("x")),)),), evaluators=(EvaluatorSpec("ExactMatch"),))
    second = replace(first, name="two", evaluators=(EvaluatorSpec("LevenshteinMatch"),), agent="app.py:agent")
    written = write_text([first, second])
    joined = read(written.text, ".yaml")
    assert [case.id for case in joined.cases] == ["a", "a-2"]
    assert [joined.evaluators_of(case)[0].name for case in joined.cases] == ["ExactMatch", "LevenshteinMatch"]
    assert any("name, agent cannot be expressed" in loss for loss in written.losses)
    assert any("'a' is renamed to 'a-2'" in loss for loss in written.losses)


def test_an_argument_that_a_file_cannot_give_is_reported() -> None:
    spec = EvaluatorSpec("checks.py:Judge", {"threshold": 3, "depth": 2})
    written = write_text([Suite("s", (Case(id="a", turns=(Turn("x"),)),), evaluators=(spec,))])
    assert any("argument 'threshold' of evaluator 'Judge'" in loss for loss in written.losses)
    assert read(written.text, ".yaml").evaluators == (EvaluatorSpec("checks.py:Judge", {"depth": 2}),)


def test_values_that_only_python_has_are_written_as_data() -> None:
    import datetime

    turn = Turn({"when": datetime.date(2024, 1, 2), "set": {3, 1}}, Expected("x"))
    written = write_text([Suite("s", (Case(id="a", turns=(turn,), evaluators=(EvaluatorSpec("ExactMatch"),)),))])
    assert read(written.text, ".yaml").cases[0].turns[0].input == {"when": "2024-01-02", "set": [1, 3]}
