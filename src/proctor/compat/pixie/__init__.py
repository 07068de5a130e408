"""Everything about pixie: its datasets, evaluators, scorecards, traces and Python names.

Files that import `pixie` run unchanged with `aliases = ["pixie"]`. Without the alias, write `proctor.compat.pixie` for
`pixie`. Most names are Proctor's own. They are listed in `__init__.pyi` and loaded on first use; those in
`unavailable.py` can only be imported. A dataset comes in through `reader.py` and becomes a suite; `datasets.py` is the
API that creates and changes dataset files.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub
from proctor.compat.pixie import unavailable

_MODULE_OF = names_in_stub(__file__)
_MODULE_OF |= dict.fromkeys(unavailable.__all__, unavailable.__name__)

PRIVATE_NAMES = ("_Unset", "_reset_state", "_slugify")
"""Private names of pixie that fixtures of test modules use. They can be imported, but not with a star."""

__all__ = [name for name in _MODULE_OF if name not in PRIVATE_NAMES]
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
