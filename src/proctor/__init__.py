"""Proctor examines AI agents: it runs suites of cases, scores what the agent did, and gives a verdict.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, so that importing Proctor costs next to
nothing: pytest does it in every run, for the plugin.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
