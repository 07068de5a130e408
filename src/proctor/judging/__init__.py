"""The judges behind some evaluators, and the questions they are asked: for users who write evaluators with a judge.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, because the engine imports this package
in every run and most runs ask no judge.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
