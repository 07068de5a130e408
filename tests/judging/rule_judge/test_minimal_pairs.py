"""One changed number, name, date, unit or negation makes a right answer wrong, and the rule-based judge sees it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from proctor.judging.rule_judge.agreement import agreement
from proctor.judging.rule_judge.relevance import makes_claim
from proctor.judging.rule_judge.statements import split_statements
from proctor.judging.rule_judge.support import support

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parents[2] / "benchmarks" / "rule_judge" / "minimal_pairs.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("minimal_pairs", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["minimal_pairs"] = module
    spec.loader.exec_module(module)
    return module


def rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / "supported_rows.jsonl").read_text(encoding="utf-8").splitlines()]


def verdicts(row: dict[str, str]) -> set[str]:
    return {support(text, row["context"]).verdict for text in split_statements(row["answer"]) if makes_claim(text)}


def refused(row: dict[str, str]) -> bool:
    return not verdicts(row).isdisjoint(("contradicted", "unmentioned"))


def test_no_right_answer_is_refused_and_nine_tenths_are_passed() -> None:
    assert not any(map(refused, rows()))
    assert sum(verdicts(row) <= {"supported"} for row in rows()) >= 0.9 * len(rows())


def test_small_talk_changes_no_verdict(script: ModuleType) -> None:
    talked = [row for row in script.pairs(rows(), 0) if row["kind"] == "small talk"]
    assert [verdicts(row) for row in talked[::2]] == [verdicts(row) for row in talked[1::2]]


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize(("kind", "least"), [("swap", 0.9), ("relation", 0.9), ("antonym", 0.6)])
def test_swapped_values_turned_relations_and_opposites_are_caught(
    script: ModuleType, kind: str, least: float, held_out: bool
) -> None:
    made = [row for row in script.generated_pairs(300, 3, held_out=held_out) if row["kind"] == kind]
    changed = [row for row in made if row["label"] == "unsupported"]
    assert sum(map(refused, changed)) >= least * len(changed)
    assert not any(refused(row) for row in made if row["label"] == "supported")


@pytest.mark.parametrize("held_out", [False, True])
def test_a_right_paraphrase_is_passed_or_left_open_and_never_refused(script: ModuleType, held_out: bool) -> None:
    made = [row for row in script.generated_pairs(300, 3, held_out=held_out) if row["kind"] == "paraphrase"]
    assert not [row for row in made if refused(row)]


@pytest.mark.parametrize("kind", ["number", "name", "date", "unit", "negation"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_most_of_the_changed_answers_are_caught(script: ModuleType, kind: str, seed: int) -> None:
    changed = [row for row in script.pairs(rows(), seed) if row["kind"] == kind and row["label"] == "unsupported"]
    assert len(changed) >= 10
    assert sum(map(refused, changed)) >= 0.85 * len(changed)


def test_of_an_answer_with_a_reference_only_what_the_reference_says_is_changed(script: ModuleType) -> None:
    answer = "In 2019 the winner was Mia Holm from Oslo."
    row = {"id": "q", "input": "who won in 2019", "reference": "Mia Holm", "answer": answer, "label": "correct"}
    made = [changed for changed in script.pairs([row], 0) if changed["label"] == "incorrect"]
    assert {changed["kind"] for changed in made} == {"name", "negation"}
    for changed in made:
        assert "from Oslo" in changed["answer"]
        assert agreement(row["input"], row["reference"], changed["answer"]).verdict != "same"
