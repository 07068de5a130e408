"""Everything about pixie: its datasets, evaluators, scorecards, traces and Python names.

To use it, change `from pixie import ...` to `from proctor.compat.pixie import ...` and nothing else. Most names are
Proctor's own. They are listed in `__init__.pyi` and loaded on first use. A dataset comes in through `reader.py` and
becomes a suite; `datasets.py` is the API that creates and changes dataset files.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
