"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.compat.deepeval.evaluators import ToolCorrectness as ToolCorrectness
    from proctor.compat.deepeval.evaluators import Hallucination as Hallucination
    from proctor.compat.deepeval.dag import JudgementDAG as JudgementDAG
    from proctor.compat.deepeval.evaluators import GoalAccuracy as GoalAccuracy

EVALUATORS: dict[str, str] = {
    "ToolCorrectness": "proctor.compat.deepeval.evaluators:ToolCorrectness",
    "Hallucination": "proctor.compat.deepeval.evaluators:Hallucination",
    "JudgementDAG": "proctor.compat.deepeval.dag:JudgementDAG",
    "GoalAccuracy": "proctor.compat.deepeval.evaluators:GoalAccuracy",
}
"""The module and class of each name that a suite may use."""
