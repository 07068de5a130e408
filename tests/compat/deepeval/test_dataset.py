"""Datasets of goldens and test cases: never mixed, and the same after a way through any file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.base.errors import InvalidSuite, StoreError, UsageError
from proctor.compat.deepeval import (
    ConversationalGolden,
    ConversationalTestCase,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    ToolCall,
    Turn,
)
from proctor.compat.deepeval.metric_base import to_evaluable

GOLDEN = Golden(
    input="a|b; c",
    expected_output='he said "x"\nand more',
    context=["one | two", "three"],
    expected_tools=[ToolCall(name="calc", input_parameters={"x": [1, {"y": None}]})],
    additional_metadata={"expected_output_contains": ["1,498"]},
)


def read(dataset: EvaluationDataset, kind: str, path: Path, what: str = "goldens") -> None:
    getattr(dataset, f"add_{what}_from_{kind}_file")(path)


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_goldens_are_the_same_after_a_file(tmp_path: Path, kind: Any) -> None:
    path = EvaluationDataset([GOLDEN, Golden(input="b")]).save_as(kind, tmp_path / "new", "mine")
    assert path == tmp_path / "new" / f"mine.{kind}"
    again = EvaluationDataset()
    read(again, kind, path)
    assert again.goldens == [GOLDEN, Golden(input="b")]


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_test_cases_and_conversations_are_the_same_after_a_file(tmp_path: Path, kind: Any) -> None:
    cases = [LLMTestCase(input="a", actual_output="b", tools_called=["calc"], token_cost=0.5)]
    path = EvaluationDataset(test_cases=cases).save_as(kind, tmp_path, include_test_cases=True)
    again = EvaluationDataset()
    read(again, kind, path, "test_cases")
    assert again.test_cases == cases
    talks = [ConversationalGolden(scenario="s", turns=[Turn(role="user", content="hi")])]
    path = EvaluationDataset(talks).save_as(kind, tmp_path, "talks")
    again = EvaluationDataset()
    read(again, kind, path)
    assert again.goldens == talks


texts = st.sampled_from(["[1]", "{}", "null", "\r", "\u2028", " "]) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["json", "jsonl", "csv"]),
    goldens=st.lists(
        st.builds(Golden, input=texts, expected_output=st.none() | texts, context=st.none() | st.lists(texts)),
        min_size=1,
        max_size=4,
    ),
)
def test_any_golden_is_the_same_after_a_file(tmp_path: Path, kind: Any, goldens: list[Golden]) -> None:
    path = EvaluationDataset(goldens).save_as(kind, tmp_path)
    again = EvaluationDataset()
    read(again, kind, path)
    assert again.goldens == goldens


def test_cells_as_deepeval_writes_them_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("input,context,expected_tools,expected_output\nq,one|two,calc;search,\n")
    dataset = EvaluationDataset()
    dataset.add_goldens_from_csv_file(path)
    [golden] = dataset.goldens
    assert golden.context == ["one", "two"]
    assert [tool.name for tool in golden.expected_tools] == ["calc", "search"]
    assert golden.expected_output is None


@pytest.mark.parametrize(
    ("kind", "suffix", "text"),
    [
        ("json", "key_name", '[{"query": "q", "ctx": ["one", "two"], "category": "x"}]'),
        ("jsonl", "key_name", '{"query": "q", "ctx": ["one", "two"], "category": "x"}\n'),
        ("csv", "col_name", "query,ctx,category\nq,one;two,x\n"),
    ],
)
def test_columns_go_by_whatever_name_they_are_given(tmp_path: Path, kind: str, suffix: str, text: str) -> None:
    path = tmp_path / "d"
    path.write_text(text)
    dataset = EvaluationDataset()
    named = {f"input_{suffix}": "query", f"context_{suffix}": "ctx", f"expected_output_{suffix}": "expected_output"}
    signs = {"context_col_delimiter": ";"} if kind == "csv" else {}
    getattr(dataset, f"add_goldens_from_{kind}_file")(file_path=path, **named, **signs)
    assert dataset.goldens == [Golden(input="q", context=["one", "two"])]
    getattr(dataset, f"add_test_cases_from_{kind}_file")(path, **named, **signs, encoding_type="utf-8")
    assert dataset.test_cases == [LLMTestCase(input="q", context=["one", "two"])]


def test_columns_that_are_not_there_and_parameters_that_do_not_exist_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("input\nq\n")
    with pytest.raises(InvalidSuite, match="has no column 'answer', which was named for expected_output"):
        EvaluationDataset().add_goldens_from_csv_file(path, expected_output_col_name="answer")
    for wrong in ("inputt_col_name", "input_col_delimiter", "anything"):
        with pytest.raises(TypeError, match=wrong):
            EvaluationDataset().add_goldens_from_csv_file(path, **{wrong: "x"})
    with pytest.raises(InvalidSuite, match="klingon"):
        EvaluationDataset().add_goldens_from_csv_file(path, encoding_type="klingon")
    path.write_bytes("input\ncaf\xe9\n".encode("latin-1"))
    dataset = EvaluationDataset()
    dataset.add_goldens_from_csv_file(path, encoding_type="latin-1")
    assert dataset.goldens == [Golden(input="caf\xe9")]


def test_files_that_deepeval_wrote_are_read_with_all_their_empty_fields(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(
        '[{"input": "q", "actual_output": null, "expectations": null, "images_mapping": null,'
        ' "custom_column_key_values": {"team": "loans"}}]'
    )
    dataset = EvaluationDataset()
    dataset.add_goldens_from_json_file(path)
    [golden] = dataset.goldens
    assert golden == Golden(input="q", custom_column_key_values={"team": "loans"})
    case = golden.test_case(actual_output="a", metadata={"id": 1})
    assert to_evaluable(case).eval_metadata == {"team": "loans", "id": 1}


def test_questions_and_conversations_are_never_mixed() -> None:
    talk = ConversationalTestCase(turns=[Turn(role="user", content="hi")])
    dataset = EvaluationDataset([Golden(input="a")])
    for add, wrong in (
        (dataset.add_golden, ConversationalGolden(scenario="s")),
        (dataset.add_test_case, talk),
        (dataset.add_golden, LLMTestCase(input="a")),
        (dataset.add_test_case, {"input": "a"}),
    ):
        with pytest.raises(TypeError):
            add(wrong)  # type: ignore[operator]
    with pytest.raises(TypeError):
        dataset.test_cases = [talk]
    assert (len(dataset), list(dataset)) == (1, [])


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("json", "{", "is not valid JSON"),
        ("json", "{}", "must be a list"),
        ("json", "[3]", "must be an object"),
        ("json", '[{"input": "a"}, {"actual_output": 3}]', "input"),
        ("jsonl", '{"input": "a"}\n{"typo": 1, "input": "b"}\nnope\n', ":2: Golden has no field 'typo'"),
        ("csv", "question\na\n", "question"),
    ],
)
def test_everything_wrong_with_a_file_is_reported_and_nothing_is_added(
    tmp_path: Path, kind: str, text: str, said: str
) -> None:
    path = tmp_path / "d"
    path.write_text(text)
    dataset = EvaluationDataset()
    with pytest.raises(InvalidSuite, match=said):
        read(dataset, kind, path)
    assert dataset.goldens == []


def test_files_that_cannot_be_read_or_written_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match="does not exist"):
        EvaluationDataset().add_goldens_from_json_file(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSuite, match="UTF-8"):
        EvaluationDataset().add_goldens_from_json_file(tmp_path / "bytes")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        EvaluationDataset([GOLDEN]).save_as("json", tmp_path / "file")
    with pytest.raises(UsageError, match="xml"):
        EvaluationDataset([GOLDEN]).save_as("xml", tmp_path)  # type: ignore[arg-type]


def test_a_golden_becomes_a_test_case() -> None:
    case = GOLDEN.test_case(actual_output="done")
    assert (case.input, case.actual_output, case.metadata) == (GOLDEN.input, "done", GOLDEN.additional_metadata)
    assert case.expected_tools == GOLDEN.expected_tools


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("csv", 'input,scenario,turns\n"a\nlong\ncell",,\n\n,s,"[{""role"": ""nobody""}]"\n', 6),
        ("json", '[\n  {"input": "a"},\n\n  {"input": 5}\n]', 4),
        ("jsonl", '{"input": "a"}\n\n{"input": 5}\n', 3),
    ],
)
def test_a_bad_golden_is_reported_at_its_line(tmp_path: Path, kind: str, text: str, line: int) -> None:
    path = tmp_path / f"goldens.{kind}"
    path.write_text(text, encoding="utf-8")
    limit = csv.field_size_limit()
    with pytest.raises(InvalidSuite) as failure:
        read(EvaluationDataset(), kind, path)
    assert {problem.line for problem in failure.value.problems} == {line}
    assert csv.field_size_limit() == limit


def test_an_empty_dataset_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No goldens found"):
        EvaluationDataset().save_as("json", tmp_path)
