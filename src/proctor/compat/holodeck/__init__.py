"""HoloDeck's documented names: change where they are imported from to `proctor.compat.holodeck`, and nothing else.

All of them are Proctor's own. They stand in `__init__.pyi` and are loaded when they are first used.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
