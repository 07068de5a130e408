"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.compat.pixie.choices import Sql as Sql
    from proctor.compat.pixie.choices import Translation as Translation
    from proctor.compat.pixie.choices import Battle as Battle
    from proctor.compat.pixie.choices import Summary as Summary
    from proctor.compat.pixie.choices import ClosedQA as ClosedQA
    from proctor.compat.pixie.choices import Humor as Humor
    from proctor.compat.pixie.choices import Possible as Possible
    from proctor.compat.pixie.choices import Security as Security

EVALUATORS: dict[str, str] = {
    "Sql": "proctor.compat.pixie.choices:Sql",
    "Translation": "proctor.compat.pixie.choices:Translation",
    "Battle": "proctor.compat.pixie.choices:Battle",
    "Summary": "proctor.compat.pixie.choices:Summary",
    "ClosedQA": "proctor.compat.pixie.choices:ClosedQA",
    "Humor": "proctor.compat.pixie.choices:Humor",
    "Possible": "proctor.compat.pixie.choices:Possible",
    "Security": "proctor.compat.pixie.choices:Security",
}
"""The module and class of each name that a suite may use."""
