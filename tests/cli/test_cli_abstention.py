"""What happens where the rule-based judge cannot tell: nothing passes, nothing fails, and every report says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]

SUITE = """
name: refunds
agent: agents.py:echo
evaluators: [Contains, EVALUATOR]
cases:
  - id: open
    input: Somebody who paid gets everything back 5 days later.
    expected: {contains: [days]}
    retrieval_context: [Refunds take 5 days.]
  - id: plain
    input: Refunds take 5 days.
    expected: {contains: [days]}
    retrieval_context: [Refunds take 5 days.]
"""


def test_a_case_that_the_judge_cannot_tell_is_pending_and_so_is_the_run(
    proctor: Command, project: Path, suite: Any
) -> None:
    suite("refunds.yaml", text=SUITE.replace("EVALUATOR", "Faithfulness"))
    ended = proctor("test", "refunds.yaml", "--json", "r.json")
    assert ended.code == 3
    assert "the rule-based judge cannot decide; use a model (`--judge`) or `proctor grade`" in ended.out
    assert "rule-based judge: 1 score, abstained from 1" in ended.out
    (judge,) = json.loads((project / "r.json").read_text())["run"]["judges"]
    assert (judge["scores"], judge["abstained"]) == (1, 1)


def test_an_optional_evaluator_is_left_out_where_the_judge_cannot_tell(proctor: Command, suite: Any) -> None:
    suite("refunds.yaml", text=SUITE.replace("EVALUATOR", "{Faithfulness: {optional: true}}"))
    ended = proctor("test", "refunds.yaml")
    assert ended.code == 0
    assert "abstained from 1" in ended.out


def test_a_case_that_failed_otherwise_has_failed(proctor: Command, suite: Any) -> None:
    failing = SUITE.replace("EVALUATOR", "Faithfulness").replace("contains: [days]", "contains: [weeks]", 1)
    suite("refunds.yaml", text=failing)
    assert proctor("test", "refunds.yaml").code == 1


def test_a_person_can_give_the_verdict_that_the_judge_left_open(proctor: Command, suite: Any) -> None:
    suite("refunds.yaml", text=SUITE.replace("EVALUATOR", "Faithfulness"))
    proctor("test", "refunds.yaml")
    assert "gets everything back" in proctor("grade", "last", "--json").out
