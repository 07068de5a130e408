"""How good the answer was: the evaluators, what they see and what they return.

The engine gives an evaluator an `Evaluable`, which is what one turn or one conversation looked like, and gets an
`Evaluation` back. An evaluator declares itself with `@evaluator` in its own file; `_index.py` is written from that, and
each name is imported when it is first used: a suite with two evaluators loads two.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub
from proctor.evaluators._index import EVALUATORS
from proctor.plugins import evaluators_of_shipped_plugins, exports_of_shipped_plugins

_PLACE_OF = {name: place for name, place in EVALUATORS.items() if name[:1].isupper()} | names_in_stub(
    __file__, without="proctor.compat"
)


def _names_of_tools() -> dict[str, str]:
    return exports_of_shipped_plugins() | evaluators_of_shipped_plugins()


RENAMED = {"Judged": "JudgedEvaluator"}
"""Former names, which still work with a notice."""

__getattr__, __dir__ = lazy_names(globals(), _PLACE_OF, more=_names_of_tools, renamed=RENAMED)


def shipped_evaluators() -> dict[str, str]:
    """Where each evaluator of this package is (`module:class`), by every name that a suite may use."""
    return EVALUATORS | evaluators_of_shipped_plugins()
