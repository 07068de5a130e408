"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.compat.holodeck.equality import Equality as Equality
    from proctor.compat.holodeck.marks import Groundedness as Groundedness
    from proctor.compat.holodeck.marks import Relevance as Relevance
    from proctor.compat.holodeck.marks import Coherence as Coherence
    from proctor.compat.holodeck.marks import Fluency as Fluency
    from proctor.compat.holodeck.grader import CodeGrader as CodeGrader

EVALUATORS: dict[str, str] = {
    "Equality": "proctor.compat.holodeck.equality:Equality",
    "Groundedness": "proctor.compat.holodeck.marks:Groundedness",
    "Relevance": "proctor.compat.holodeck.marks:Relevance",
    "Coherence": "proctor.compat.holodeck.marks:Coherence",
    "Fluency": "proctor.compat.holodeck.marks:Fluency",
    "CodeGrader": "proctor.compat.holodeck.grader:CodeGrader",
}
"""The module and class of each name that a suite may use."""
