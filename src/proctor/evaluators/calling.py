"""How a function is called as an evaluator: with the whole `Evaluable`, or with the values that its parameters name.

    def polite(e): return "please" in e.output          # one parameter of any other name: the Evaluable
    def close(output, expected): ...                    # names of `VIEW`: these values
    def brief(output, expected=None): ...               # a default makes a value optional

A required value that the case does not have skips the evaluator, with the reason. The signature is read once, when the
evaluator is resolved.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.functions import title_of
from proctor.base.json_data import UNSET
from proctor.base.threads import is_async, run_in_thread
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import UNCLAMPED, Evaluation, NothingToCompare, clamp_notice, to_evaluation
from proctor.evaluators.observation import require_observed

VIEW: Final[Mapping[str, str]] = {
    "input": "",
    "output": "",
    "expected": "expected output",
    "tool_calls": "",
    "metadata": "",
    "turns": "",
    "context": "context",
    "retrieval_context": "retrieval context",
    "state": "state",
    "usage": "usage",
    "duration_ms": "duration",
    "trace": "trace",
    "description": "",
}
"""The values that a function can name, and what each is called if it is missing; an empty text if it never is."""

OTHER_NAMES: Final[Mapping[str, str]] = {"expectation": "expected", "expected_output": "expected"}
"""Other names of the values, which an `Evaluable` has too."""

_FIXED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class CallStyle:
    """What an evaluator is called with."""

    names: tuple[str, ...] = ()
    """The values that it is called with, by name; empty if it gets the `Evaluable`."""
    optional: frozenset[str] = frozenset()
    """Those of them that have a default."""
    positional: int = 0
    """How many of them are passed by position."""
    takes_trace: bool = False
    """Whether it gets `trace=` besides the `Evaluable`."""

    @property
    def reads_expected(self) -> bool:
        """Whether the function can look at the expected output."""
        return not self.names or any(OTHER_NAMES.get(name, name) == "expected" for name in self.names)

    def arguments(self, evaluable: Evaluable) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one call; raises `NothingToCompare` if the case does not have a value that it needs."""
        if not self.names:
            return (evaluable,), {"trace": evaluable.trace} if self.takes_trace else {}
        values = {name: value for name in self.names if (value := self._value(evaluable, name)) is not UNSET}
        in_order = [values.pop(name) for name in self.names[: self.positional] if name in values]
        return tuple(in_order), values

    def _value(self, evaluable: Evaluable, name: str) -> Any:
        """The value, or `UNSET` if it is missing and has a default."""
        meaning = OTHER_NAMES.get(name, name)
        if meaning == "tool_calls":
            require_observed(evaluable)
        value = getattr(evaluable, meaning)
        is_missing = value is UNSET or (value is None and VIEW[meaning] and meaning != "expected")
        if is_missing and name not in self.optional:
            raise NothingToCompare(f"needs {name!r}, and this case has no {VIEW[meaning]}")
        return UNSET if is_missing else value


EVALUABLE: Final = CallStyle()


def is_named_by(parameters: list[inspect.Parameter]) -> bool:
    """Whether a function with these parameters gets values by name."""
    fixed = [p for p in parameters if p.kind in _FIXED]
    required = [p.name for p in fixed if p.default is p.empty]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    known = [name for name in (required or [p.name for p in fixed]) if name in VIEW or name in OTHER_NAMES]
    # `trace` alone is the second argument of an evaluator that takes an Evaluable.
    return not is_open and bool(set(known) - {"trace"}) and len(known) == len(required or known)


def call_style(function: Callable[..., Any]) -> CallStyle:
    """How to call a function or object; raises `UsageError` if its parameters do not fit."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return EVALUABLE
    takes_trace = any(
        p.kind is p.VAR_KEYWORD or (p.name == "trace" and p.kind is not p.POSITIONAL_ONLY) for p in parameters
    )
    if is_named_by(parameters):
        fixed = [p for p in parameters if p.kind in _FIXED and (p.name in VIEW or p.name in OTHER_NAMES)]
        optional = frozenset(p.name for p in fixed if p.default is not p.empty)
        positional = sum(p.kind is p.POSITIONAL_ONLY for p in fixed)
        return CallStyle(tuple(p.name for p in fixed), optional, positional)
    required = [p.name for p in parameters if p.kind in _FIXED and p.default is p.empty and p.name != "trace"]
    if len(required) > 1:
        unknown = next(name for name in required if name not in VIEW and name not in OTHER_NAMES)
        raise UsageError(
            f"evaluator {title_of(function)!r}: there is no {unknown!r}{did_you_mean(unknown, VIEW) or ';'} "
            f"Take one Evaluable, or any of: {', '.join(VIEW)}".replace("; Take", "; take")
        )
    return CallStyle(takes_trace=takes_trace)


async def evaluate(evaluator: Callable[..., Any], evaluable: Evaluable, *, trace: Any = None) -> Evaluation | None:
    """Run one evaluator on one evaluable. Sync evaluators run in a thread. `None`: there was nothing to compare."""
    arguments, named = call_style(evaluator).arguments(evaluable if trace is None else replace(evaluable, trace=trace))
    if is_async(evaluator):
        verdict = await evaluator(*arguments, **named)
    else:
        verdict = await run_in_thread(evaluator, *arguments, **named)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    evaluation = to_evaluation(verdict)
    if evaluation is not None and UNCLAMPED in evaluation.details:
        warnings.warn(clamp_notice(evaluation), RuntimeWarning, stacklevel=2)
    return evaluation
