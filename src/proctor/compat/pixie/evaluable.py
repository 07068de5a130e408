"""pixie's `Evaluable`: Proctor's own, but it requires an input."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.evaluation import Evaluable as _Evaluable


class _AnyEvaluable(type):
    """Makes `isinstance(x, Evaluable)` true for every evaluable of the engine, so that users' checks work."""

    def __instancecheck__(cls, instance: Any) -> bool:
        # A subclass is the user's own: only its own instances are.
        return isinstance(instance, _Evaluable) if cls is Evaluable else super().__instancecheck__(instance)


class Evaluable(_Evaluable, metaclass=_AnyEvaluable):
    """What an evaluator sees; `eval_input` has at least one item, and `expected_output` is the expectation."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.eval_input:
            raise ValueError('eval_input must have at least one item, such as {"name": "input", "value": "Hello"}')


TestCase = Evaluable
