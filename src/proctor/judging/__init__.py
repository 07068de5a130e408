"""Judges: they answer the questions of evaluators, with a language model or by rules.

In: a `Question` (instructions, untrusted material, the shape of the reply). Out: a validated reply, an abstention
(`CannotTell`) or a failure (`JudgeFailed`). `choosing` picks the judge, `panel` asks one or several, `model_judge` asks
a model through cache, rate limit and budget, and `rule_judge` needs no model. Called by `JudgedEvaluator`, simulated
users and calibration; this package knows no evaluator.

The public names are in `__init__.pyi`. Each is loaded when it is first used, because the engine imports this package in
every run and most runs ask no judge.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
