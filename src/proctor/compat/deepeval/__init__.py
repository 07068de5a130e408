"""Everything about DeepEval: its test cases, metrics, datasets, `evaluate` and `assert_test`.

To use it, write `proctor.compat.deepeval` instead of `deepeval`. The modules `metrics`, `test_case` and `dataset` have
the same names in them as DeepEval's, and all of these can also be imported from here. They are listed in `__init__.pyi`
and loaded on first use; those in `unavailable.py` can only be imported. A test case goes in, Proctor's evaluators score
it, and DeepEval's result objects come out.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub
from proctor.compat.deepeval import unavailable

_MODULE_OF = names_in_stub(__file__)
_MODULE_OF |= dict.fromkeys(unavailable.__all__, unavailable.__name__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
