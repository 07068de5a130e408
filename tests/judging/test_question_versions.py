"""The version of the shipped questions, which is part of the fingerprint of every judged score."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from repository import ROOT

from proctor.judging.judge import QUESTIONS_VERSION

KNOWN = {2: {2: 7}, 3: {2: 4, 3: 3}}
"""By `QUESTIONS_VERSION`: how many shipped questions have which version above 1."""


def versions() -> Counter[int]:
    """How many calls of `Question(...)` give which version."""
    found: Counter[int] = Counter()
    for path in (ROOT / "src" / "proctor").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Question":
                given = [word.value for word in node.keywords if word.arg == "version"] or node.args[1:2]
                found.update(value.value for value in given if isinstance(value, ast.Constant))
    return found


@pytest.mark.needs("adk", "deepeval")
def test_raising_the_version_of_a_question_raises_the_version_of_all() -> None:
    found = {version: count for version, count in versions().items() if version > 1}
    assert found == KNOWN[QUESTIONS_VERSION], (
        "a question has another version: raise QUESTIONS_VERSION in judging/judge.py too, since scores are not what "
        "they were, and write down the counts here"
    )
