"""Pixie's words."""

from proctor import Evaluation

from proctor import Evaluable, ExactMatch, ScoreThreshold, assert_pass_sync, evaluate_sync, wrap


def app(question):
    wrap("It is shipped.", purpose="output", name="answer")


def fine(evaluable, *, trace=None):
    return Evaluation(score=1.0, reasoning="It is.")


assert evaluate_sync(ExactMatch(), Evaluable(eval_input="Where?", eval_output="x", expectation="x")).score == 1.0
assert_pass_sync(app, ["Where is A-17?"], [fine], pass_criteria=ScoreThreshold(0.5, pct=1.0))
