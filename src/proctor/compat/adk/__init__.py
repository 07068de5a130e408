"""Everything about ADK: its EvalSets and `test_config.json`, its metrics, and `AgentEvaluator`.

`plugin.py` says what the folder adds to Proctor. A file comes in through `eval_set.py`, its criteria through
`test_config.py`, and a suite goes out. To use ADK's Python names, import them from `proctor.compat.adk` and change
nothing else. They are listed in `__init__.pyi` and loaded on first use.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
