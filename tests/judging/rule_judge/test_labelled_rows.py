"""The rule-based judge on labelled rows: what it decides is right, and it leaves open what it cannot prove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.judging.rule_judge.agreement import compare_answers
from proctor.judging.rule_judge.claims import makes_claim, split_statements
from proctor.judging.rule_judge.proof import judge_claims
from proctor.judging.rule_judge.relevance import relevances
from proctor.results.statistics import wilson

Row = dict[str, str]
Judged = tuple[Row, bool, bool | None]
"""A row, whether its answer is faithful, and what the judge says."""
HERE = Path(__file__).parent


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def verdict(row: Row) -> bool | None:
    """Whether the answer is faithful to its context; `None` if the judge cannot tell."""
    claims = [text for text in split_statements(row["answer"]) if makes_claim(text)]
    found = {each.answer for each in judge_claims(claims, [row["context"]], [row.get("question", "")])}
    if "contradicted" in found:
        return False
    return True if found == {"supported"} else None


@pytest.fixture(scope="module")
def faithful() -> list[Judged]:
    return [(row, row["label"] == "supported", verdict(row)) for row in rows("labelled_rows.jsonl")]


def test_no_wrong_answer_passes_and_no_right_one_fails(faithful: list[Judged]) -> None:
    wrong = [(row["context"], row["answer"]) for row, label, found in faithful if found is not None and found != label]
    assert not wrong


def test_it_decides_a_third_of_them(faithful: list[Judged]) -> None:
    assert sum(found is not None for _, _, found in faithful) > len(faithful) / 3


@pytest.mark.parametrize("decision", [True, False])
def test_passes_and_fails_are_right_often_enough_to_rely_on(faithful: list[Judged], decision: bool) -> None:
    right = [label == decision for _, label, found in faithful if found is decision]
    low, _ = wilson(sum(right) / len(right), len(right))
    assert low > 0.98


def test_a_polite_or_rephrased_right_answer_never_fails(faithful: list[Judged]) -> None:
    right = [found for row, label, found in faithful if label and row["category"] in ("polite", "paraphrase")]
    assert len(right) >= 20
    assert False not in right


def test_other_languages_are_left_open_unless_a_sentence_is_copied(faithful: list[Judged]) -> None:
    found = [found for row, _, found in faithful if row["category"] == "language"]
    assert len(found) >= 10
    assert False not in found


def test_what_tempts_a_rule_to_prove_or_refute_too_much_is_right_or_left_open() -> None:
    wrong = []
    for row in rows("tempting_rows.jsonl"):
        found = judge_claims([row["claim"]], [row["passage"]], [row["question"]] if "question" in row else [])[0].answer
        if found not in ("cannot tell", row["truth"]):
            wrong.append((row["passage"], row["claim"], found))
    assert not wrong


def relevance(row: Row) -> bool | None:
    texts = split_statements(row["answer"])
    found = {each.verdict for each in relevances(row["question"], texts)}
    if not texts or "irrelevant" in found:
        return False
    return None if "cannot tell" in found else True


def test_what_it_says_about_relevance_is_right() -> None:
    judged = [(row, row["label"] == "relevant", relevance(row)) for row in rows("relevance_rows.jsonl")]
    wrong = [(row["question"], row["answer"]) for row, label, found in judged if found is not None and found != label]
    assert not wrong
    assert sum(found is not None for _, _, found in judged) > 0.25 * len(judged)


def agreement(row: Row) -> bool | None:
    found = compare_answers(row["question"], row["reference"], row["answer"]).answer
    return None if found == "cannot tell" else found == "supported"


def test_what_it_says_about_answers_and_references_is_right() -> None:
    """Most of the wrong answers contain the reference: a part of a name or a list, in another role, taken back."""
    judged = [(row, row["label"] == "correct", agreement(row)) for row in rows("agreement_rows.jsonl")]
    wrong = [(row["reference"], row["answer"]) for row, label, found in judged if found is not None and found != label]
    assert not wrong
    assert sum(found is not None for _, _, found in judged) > 0.25 * len(judged)


def test_rows_that_were_written_to_break_the_rules_are_judged_right_or_left_open() -> None:
    wrong = []
    for row in rows("breaking_rows.jsonl"):
        judged = agreement(row) if "reference" in row else verdict(row) if "context" in row else relevance(row)
        if judged is not None and judged != (row["label"] in ("correct", "supported", "relevant")):
            wrong.append(row["id"])
    assert not wrong
