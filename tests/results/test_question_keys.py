"""When an answer counts for a question: the files that go with it are known by what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.files import CONTENTS, Contents, contents_of
from proctor.cases.suite import Attachment, Case, EvaluatorSpec, Expected, Turn
from proctor.results.case_encoding import content_key, decode_case, encode_case, question_key


def case(*files: Attachment) -> Case:
    return Case("c", (Turn("What does it say?", attachments=files),))


def key(base: Path, *files: Attachment) -> str:
    return question_key(Contents(base).of(case(*files)))


def test_a_changed_file_is_another_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    before = key(tmp_path, Attachment(path="a.txt"))
    (tmp_path / "a.txt").write_text("two")
    assert key(tmp_path, Attachment(path="a.txt")) != before


def test_a_file_that_only_moved_is_the_same_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    before = key(tmp_path, Attachment(path="a.txt"))
    (tmp_path / "inner").mkdir()
    moved = (tmp_path / "a.txt").rename(tmp_path / "inner" / "b.txt")
    assert key(tmp_path, Attachment(path="inner/b.txt")) == before
    assert key(tmp_path / "inner", Attachment(path="b.txt")) == before
    assert key(Path("/"), Attachment(path=str(moved))) == before


@pytest.mark.parametrize(
    "change",
    [{"options": {"pages": [1]}}, {"description": "the deed"}, {"kind": "pdf"}, {"options": {"sheet": "First"}}],
)
def test_what_is_read_of_a_file_and_said_of_it_is_part_of_the_question(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("one")
    plain = Attachment(path="a.txt")
    assert key(tmp_path, plain) != key(tmp_path, replace(plain, **change))


def test_an_address_is_known_by_itself_and_its_options(tmp_path: Path) -> None:
    pages = Attachment(url="https://example.org/a.pdf", options={"pages": [1]})
    assert key(tmp_path, pages) == key(Path("/"), pages)
    assert key(tmp_path, pages) != key(tmp_path, replace(pages, options={"pages": [2]}))
    assert key(tmp_path, pages) != key(tmp_path, replace(pages, url="https://example.org/b.pdf"))


@pytest.mark.parametrize("path", ["gone.txt", ".", "/dev/zero", "a\0b", "\ud800", "x" * 5000, ""])
def test_a_file_that_cannot_be_read_is_known_by_its_name(tmp_path: Path, path: str) -> None:
    asked = Contents(tmp_path).of(case(Attachment(path=path)))
    assert asked == case(Attachment(path=path))
    assert question_key(asked) == question_key(case(Attachment(path=path)))
    assert question_key(asked) != question_key(case(Attachment(path="other.txt")))


def test_of_a_kept_case_whose_file_is_gone_the_old_content_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    kept = decode_case(encode_case(Contents(tmp_path).of(case(Attachment(path="a.txt")))))
    (tmp_path / "a.txt").unlink()
    assert question_key(Contents(tmp_path).of(kept)) == question_key(kept)
    (tmp_path / "a.txt").write_text("two")
    assert question_key(Contents(tmp_path).of(kept)) != question_key(kept)


def test_what_is_kept_of_files_survives_the_store(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    asked = Contents(tmp_path).of(case(Attachment(path="a.txt"), Attachment(url="https://example.org/")))
    kept = decode_case(encode_case(asked))
    assert [bool(content) for content in contents_of(kept.turns[0])] == [True, False]
    assert question_key(kept) == question_key(asked)


@pytest.mark.parametrize("wrong", ["text", [], [None, None], [1]])
def test_content_addresses_of_another_shape_are_not_believed(wrong: Any) -> None:
    turn = Turn("?", attachments=(Attachment(path="a.txt"),), extra={CONTENTS: wrong})
    assert question_key(Case("c", (turn,))) == question_key(Case("c", (replace(turn, extra={}),)))


def test_cases_without_files_are_left_as_they_are(tmp_path: Path) -> None:
    asked = case()
    assert Contents(tmp_path).of(asked) is asked


def test_a_renamed_case_that_is_scored_otherwise_has_the_same_content() -> None:
    before = Case("a", (Turn("hi", Expected(output="yo"), evaluators=(EvaluatorSpec("ExactMatch"),)),), tags=("x",))
    after = Case("b", (Turn("hi", Expected(output="yo")),), description="greets", repeat=3, timeout=9.0)
    assert content_key(before) == content_key(after)


@pytest.mark.parametrize(
    "change",
    [
        {"turns": (Turn("ho", Expected(output="yo")),)},
        {"turns": (Turn("hi", Expected(output="yes")),)},
        {"metadata": {"limit": 3}},
        {"state": {"user": "x"}},
    ],
)
def test_another_question_or_expectation_is_another_content(change: dict[str, Any]) -> None:
    before = Case("a", (Turn("hi", Expected(output="yo")),))
    assert content_key(before) != content_key(replace(before, **change))


def test_a_file_that_only_moved_is_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("one")
    one, other = (Contents(tmp_path).of(case(Attachment(path=name))) for name in ("a.txt", "b.txt"))
    assert content_key(one) == content_key(other)
    (tmp_path / "b.txt").write_text("two")
    assert content_key(one) != content_key(Contents(tmp_path).of(case(Attachment(path="b.txt"))))
