"""DeepEval's documented names: write `proctor.compat.deepeval` for `deepeval`, here and in its modules.

`proctor.compat.deepeval.metrics`, `.test_case` and `.dataset` have what DeepEval's modules of these names have; all
of it can be imported from here as well. The names stand in `__init__.pyi` and are loaded when they are first used.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
