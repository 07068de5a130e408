"""When an answer counts for a question: the files that go with it are known by what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.base.positions import Position
from proctor.cases.encoding import decode_case, encode_case
from proctor.cases.files.digests import DIGESTS_KEY, FileDigests, digests_of
from proctor.cases.identity import case_key, content_key, question_key
from proctor.cases.matchers import Approx, Equals, Fuzzy, Ignore, OneOf, Predicate, Regex, Subset, parse
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Quarantine,
    ToolMock,
    Turn,
)


def case(*files: AttachedFile) -> Case:
    return Case(id="c", turns=(Turn("What does it say?", files=files),))


def key(base: Path, *files: AttachedFile) -> str:
    return question_key(FileDigests(base).with_digests(case(*files)))


def test_a_changed_file_is_another_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    before = key(tmp_path, AttachedFile(path="a.txt"))
    (tmp_path / "a.txt").write_text("two")
    assert key(tmp_path, AttachedFile(path="a.txt")) != before


def test_a_file_that_only_moved_is_the_same_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    before = key(tmp_path, AttachedFile(path="a.txt"))
    (tmp_path / "inner").mkdir()
    moved = (tmp_path / "a.txt").rename(tmp_path / "inner" / "b.txt")
    assert key(tmp_path, AttachedFile(path="inner/b.txt")) == before
    assert key(tmp_path / "inner", AttachedFile(path="b.txt")) == before
    assert key(Path("/"), AttachedFile(path=str(moved))) == before


@pytest.mark.parametrize(
    "change",
    [{"options": {"pages": [1]}}, {"description": "the deed"}, {"kind": "pdf"}, {"options": {"sheet": "First"}}],
)
def test_what_is_read_of_a_file_and_said_of_it_is_part_of_the_question(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("one")
    plain = AttachedFile(path="a.txt")
    assert key(tmp_path, plain) != key(tmp_path, replace(plain, **change))


def test_an_address_is_known_by_itself_and_its_options(tmp_path: Path) -> None:
    pages = AttachedFile(url="https://example.org/a.pdf", options={"pages": [1]})
    assert key(tmp_path, pages) == key(Path("/"), pages)
    assert key(tmp_path, pages) != key(tmp_path, replace(pages, options={"pages": [2]}))
    assert key(tmp_path, pages) != key(tmp_path, replace(pages, url="https://example.org/b.pdf"))


@pytest.mark.parametrize("path", ["gone.txt", ".", "/dev/zero", "a\0b", "\ud800", "x" * 5000, ""])
def test_a_file_that_cannot_be_read_is_known_by_its_name(tmp_path: Path, path: str) -> None:
    asked = FileDigests(tmp_path).with_digests(case(AttachedFile(path=path)))
    assert asked == case(AttachedFile(path=path))
    assert question_key(asked) == question_key(case(AttachedFile(path=path)))
    assert question_key(asked) != question_key(case(AttachedFile(path="other.txt")))


def test_of_a_kept_case_whose_file_is_gone_the_old_content_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    kept = decode_case(encode_case(FileDigests(tmp_path).with_digests(case(AttachedFile(path="a.txt")))))
    (tmp_path / "a.txt").unlink()
    assert question_key(FileDigests(tmp_path).with_digests(kept)) == question_key(kept)
    (tmp_path / "a.txt").write_text("two")
    assert question_key(FileDigests(tmp_path).with_digests(kept)) != question_key(kept)


def test_what_is_kept_of_files_survives_the_store(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    asked = FileDigests(tmp_path).with_digests(
        case(AttachedFile(path="a.txt"), AttachedFile(url="https://example.org/"))
    )
    kept = decode_case(encode_case(asked))
    assert [bool(content) for content in digests_of(kept.turns[0])] == [True, False]
    assert question_key(kept) == question_key(asked)


@pytest.mark.parametrize("wrong", ["text", [], [None, None], [1]])
def test_content_addresses_of_another_shape_are_not_believed(wrong: Any) -> None:
    turn = Turn("?", files=(AttachedFile(path="a.txt"),), extra={DIGESTS_KEY: wrong})
    assert question_key(Case(id="c", turns=(turn,))) == question_key(Case(id="c", turns=(replace(turn, extra={}),)))


def test_cases_without_files_are_left_as_they_are(tmp_path: Path) -> None:
    asked = case()
    assert FileDigests(tmp_path).with_digests(asked) is asked


def test_a_renamed_case_that_is_scored_otherwise_has_the_same_content() -> None:
    before = Case(
        id="a", turns=(Turn("hi", Expected(output="yo"), evaluators=(EvaluatorSpec("ExactMatch"),)),), tags=("x",)
    )
    after = Case(id="b", turns=(Turn("hi", Expected(output="yo")),), description="greets", repeat=3, timeout=9.0)
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
    before = Case(id="a", turns=(Turn("hi", Expected(output="yo")),))
    assert content_key(before) != content_key(replace(before, **change))


def test_a_file_that_only_moved_is_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("one")
    one, other = (FileDigests(tmp_path).with_digests(case(AttachedFile(path=name))) for name in ("a.txt", "b.txt"))
    assert content_key(one) == content_key(other)
    (tmp_path / "b.txt").write_text("two")
    assert content_key(one) != content_key(FileDigests(tmp_path).with_digests(case(AttachedFile(path="b.txt"))))


SIMPLE = Case(id="a", turns=(Turn("hi"),))
PINNED = {
    "Case": SIMPLE,
    "Case, all but turns": replace(
        SIMPLE,
        description="d",
        tags=("t",),
        evaluators=(),
        inputs=(NamedData("n", 1),),
        metadata={"m": 1},
        state={"s": 1},
        final_state={},
        repeat=2,
        timeout=3.0,
        skip="later",
        position=Position(Path("suite.yaml"), 7),
        extra={"x-b": 2},
    ),
    "Turn": replace(SIMPLE, turns=(Turn({"q": 1}, retrieval_context=("r",), metadata={"m": 1}, extra={"x-a": 1}),)),
    "Expected, Keywords": replace(
        SIMPLE, turns=(Turn("hi", Expected(None, contains=Keywords(("a",), ("b",)), tools=(), context=("c",))),)
    ),
    "ExpectedCall, matchers": replace(
        SIMPLE,
        turns=(
            Turn(
                "hi",
                Expected(
                    tools=(
                        ExpectedCall("t"),
                        ExpectedCall(
                            "t",
                            {"a": Equals(1), "b": Regex("x+")},
                            count=2,
                            substring=True,
                            extra_args=True,
                            result=None,
                        ),
                        ExpectedCall("t", {"a": Approx(1.0), "b": Subset({"k": 1}), "c": OneOf((1, "b"))}),
                        ExpectedCall("t", {"a": Ignore(), "b": Predicate("c.py:f"), "c": Fuzzy("a")}),
                        ExpectedCall("t", {"a": Fuzzy("a", True), "b": parse({"$type": "string"})}),
                    )
                ),
            ),
        ),
    ),
    "EvaluatorSpec": replace(
        SIMPLE,
        evaluators=(
            EvaluatorSpec("A"),
            EvaluatorSpec(
                "A",
                {"x": 1},
                0.5,
                "l",
                report_only=True,
                scope="case",
                output="o",
                timeout=3.0,
                output_path="p",
                retries=2,
                optional=True,
            ),
        ),
    ),
    "AttachedFile": replace(SIMPLE, turns=(Turn("hi", files=(AttachedFile("p", "u", "k", "d", {"pages": [1]}),)),)),
    "ToolMock": replace(
        SIMPLE, mocks={"t": (ToolMock(), ToolMock(args={"a": Equals(1)}, result=1, error="e", delay=0.5, times=2))}
    ),
    "Scenario": replace(SIMPLE, scenario=Scenario("s", "p")),
    "Scenario, all": replace(SIMPLE, scenario=Scenario("s", "p", {"id": 1}, 3, "stop", "m", "i", True)),
    "Quarantine": replace(SIMPLE, quarantine=Quarantine("r", "2030-01-31", "o")),
    "lone surrogate": Case(id="\ud800", turns=(Turn("\U0001f600"),)),
}
KEYS: dict[str, tuple[str, str, str]] = {
    "Case": ("2a6ba5a42145c4163df7bc73", "6eb6fc70e2872d477ac1e117", "8e547c920427aaafb00e9fc2"),
    "Case, all but turns": ("0abdc3f2929e9d37d077b9db", "961e8f911eb576ff4a9fa664", "cd820383bf6d7f7374bc34e4"),
    "Turn": ("e1107c883ff80ab9a72c0eef", "2a08bcfaaebdcc1d9e7b7b0f", "a0b6ad86a0fe260700af0f32"),
    "Expected, Keywords": ("4b5b405c25b7717fc86fa5d4", "961d733c8588b43e929afcc9", "8e547c920427aaafb00e9fc2"),
    "ExpectedCall, matchers": ("7d2705d3d35782e598a71044", "afac781514e6ddda5f9a3a75", "8e547c920427aaafb00e9fc2"),
    "EvaluatorSpec": ("11072e8d5ead4e80a873fee8", "6eb6fc70e2872d477ac1e117", "8e547c920427aaafb00e9fc2"),
    "AttachedFile": ("4e80e84b9f0b5d05aa049d6a", "4443c3955ac8f4cbe6458b61", "3ee35c0886567b1bd2eccfcf"),
    "ToolMock": ("d8e29d21c9b8a48f9f5f7a5f", "8896d0efd587dcede4595eb1", "2a6bb619bfcd7cab88e29725"),
    "Scenario": ("f9549aaaa250d7a8de555da9", "5f595da26f516235d8bc6d06", "83b19abb12fdfd96b1b8dce9"),
    "Scenario, all": ("be76ba2cc0c053631c4eb587", "cd229122c30b6e441827d315", "b8a3f4207a42af6321dce8d6"),
    "Quarantine": ("f6edc8d2fe8e5ad1fe394159", "6eb6fc70e2872d477ac1e117", "8e547c920427aaafb00e9fc2"),
    "lone surrogate": ("b93060e85db0271aa8101d71", "6a5d189a88e8415f2f5647f3", "2ad0a118c3da4673883c4444"),
}


@pytest.mark.parametrize("name", PINNED)
def test_keys_stay_what_they_are(name: str) -> None:
    """Stored runs, baselines and answers are found by these keys: whoever changes one loses every user's past."""
    case = PINNED[name]
    assert (case_key(encode_case(case)), content_key(case), question_key(case)) == KEYS[name]


def test_a_large_number_is_named_with_all_its_digits() -> None:
    near = Approx(1234567.25, tolerance=0.5)
    assert near.mismatch(5) == "5 is not within 0.5 of 1234567.25"
    assert near.describe() == "1234567.25 ± 0.5"
