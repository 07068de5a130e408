"""Proctor tests AI agents: it runs suites of cases, scores what the agent did, and gives a verdict.

The public names stand in `__init__.pyi`, and evaluators declare themselves. Each name is loaded when it is first used,
so that importing Proctor costs next to nothing: pytest does it in every run, for the plugin.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.base.lazy_imports import lazy_names, names_in_stub


def _evaluators_and_tools() -> Mapping[str, str]:
    """Where evaluators and the names of tools are. Imported when a name is looked for that is not in the stub."""
    from proctor.evaluators import shipped_evaluators
    from proctor.plugins import exports_of_shipped_plugins

    evaluators = {name: place for name, place in shipped_evaluators().items() if name[:1].isupper()}
    return exports_of_shipped_plugins() | evaluators


_PLACE_OF = names_in_stub(__file__, without="proctor.compat")
__getattr__, __dir__ = lazy_names(
    globals(), _PLACE_OF, more=_evaluators_and_tools, renamed={"Judged": "JudgedEvaluator"}
)
