"""Evaluators: they score what an agent did.

In: an `Evaluable`, one turn or one conversation as seen from outside. Out: an `Evaluation` with a score from 0 to 1, a
reason and details. Or one of four exceptions: `NothingToCompare` (skipped), `EvaluationPending` (a person has to grade
it), `JudgeAbstained` (pending too), or any other exception (error). The engine calls evaluators in `running.scoring`.

An evaluator declares itself with `@evaluator` in its own file. `_index.py` is generated from the declarations, and each
name is imported when it is first used, so a suite with two evaluators loads two.
"""

from __future__ import annotations

import functools

from proctor.base.lazy_imports import lazy_names, names_in_stub
from proctor.evaluators._index import EVALUATORS
from proctor.plugins import evaluators_of_shipped_plugins, exports_of_shipped_plugins, load

_PLACE_OF = {name: place for name, place in EVALUATORS.items() if name[:1].isupper()} | names_in_stub(
    __file__, without="proctor.compat"
)


def _names_of_tools() -> dict[str, str]:
    return exports_of_shipped_plugins() | evaluators_of_shipped_plugins()


RENAMED = {"Judged": "JudgedEvaluator"}
"""Former names, which still work with a notice."""

__getattr__, __dir__ = lazy_names(globals(), _PLACE_OF, more=_names_of_tools, renamed=RENAMED)


def shipped_evaluators() -> dict[str, str]:
    """The place (`module:class`) of each shipped evaluator, by every name that a suite may use."""
    return EVALUATORS | evaluators_of_shipped_plugins()


@functools.cache
def family_of(name: str) -> str:
    """The family of a shipped evaluator, such as `tools`; "" for any other name."""
    place = shipped_evaluators().get(name)
    return "" if place is None else str(load(place).declaration.family)
