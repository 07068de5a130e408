"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.compat.adk.measured import Measured as Measured

EVALUATORS: dict[str, str] = {
    "Measured": "proctor.compat.adk.measured:Measured",
}
"""The module and class of each name that a suite may use."""
