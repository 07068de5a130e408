from __future__ import annotations

from typing import Any

import proctor
from proctor.cases.suite import Attachment, Case, Expected, Suite, Turn


def run(agent: Any) -> tuple[str, ...]:
    turn = Turn("hi", Expected(output="hi"), attachments=(Attachment(path="notes.txt"),))
    suite = Suite("files", (Case("one", (turn,)),), evaluators=(proctor.EvaluatorSpec("ExactMatch"),))
    [trial] = proctor.run(suite, agent).trials
    return trial.warnings


def test_an_agent_that_takes_the_turn_sees_its_files() -> None:
    def agent(turn: Turn) -> str:
        assert turn.attachments[0].path == "notes.txt"
        return turn.input

    assert run(agent) == ()


def test_a_suite_made_in_python_is_scored_by_what_it_expects() -> None:
    suite = Suite("implied", (Case("one", (Turn("hi", Expected(output="hi")),)),))
    [trial] = proctor.run(suite, lambda question: question).trials
    assert [(score.evaluator, score.value) for score in trial.scores] == [("ExactMatch", 1.0)]
