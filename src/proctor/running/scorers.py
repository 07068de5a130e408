"""Evaluators as Python code gives them: callables, classes, or names as in files."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from proctor.cases.model import EvaluatorSpec
from proctor.errors import ProctorError, UsageError
from proctor.evaluators.calling import BadVerdict, evaluate
from proctor.evaluators.datasets.files import read_evaluators
from proctor.evaluators.model import Evaluable, Evaluation, EvaluationPending, NothingToCompare
from proctor.plain import Json
from proctor.records import record
from proctor.references import describe
from proctor.results.model import Outcome
from proctor.running.matrix import unmeasured
from proctor.running.watching import is_being_cancelled
from proctor.tracing.capture import untraced

EvaluatorLike: TypeAlias = "Callable[..., Any] | str | Mapping[str, Json] | EvaluatorSpec"
"""An evaluator, or how files name one: `"ExactMatch"`, `{"Contains": {"any_of": ["yes"]}}`, `"checks.py:mine"`."""


@record
class Scorer:
    """One evaluator, ready to be called, and the name it goes by in messages."""

    title: str
    call: Callable[..., Any]
    output: str | None = None
    """The named output it looks at."""
    timeout: float | None = None

    async def evaluate(self, evaluable: Evaluable) -> Evaluation | None:
        """What it says; raises what it raises. Its own model calls are no part of any trace."""
        with untraced():
            try:
                return await asyncio.wait_for(evaluate(self.call, self._selected(evaluable)), self.timeout)
            except TimeoutError:
                if self.timeout is None:
                    raise
                raise BadVerdict(f"gave no score within {self.timeout:g} s") from None

    async def cell(self, evaluable: Evaluable) -> Evaluation:
        """What it says, or why it says nothing; one that breaks takes no other with it."""
        try:
            found = await self.evaluate(evaluable)
        except NothingToCompare as error:
            return unmeasured(Outcome.SKIPPED, str(error) or "it had nothing to compare")
        except EvaluationPending as error:
            return unmeasured(Outcome.PENDING, str(error) or "its verdict is yet to come")
        except (BadVerdict, ProctorError) as error:
            return unmeasured(Outcome.ERROR, str(error))
        except (Exception, SystemExit) as error:
            return unmeasured(Outcome.ERROR, f"raised {describe(error)}")
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            return unmeasured(Outcome.ERROR, "cancelled its own task")
        return unmeasured(Outcome.SKIPPED, "it had nothing to compare") if found is None else found

    def _selected(self, evaluable: Evaluable) -> Evaluable:
        if self.output is None:
            return evaluable
        chosen = [item for item in evaluable.eval_output if item.name == self.output]
        if not chosen:
            names = ", ".join(item.name for item in evaluable.eval_output)
            raise BadVerdict(
                f"looks at the output {self.output!r}, which the application did not give; it gave {names}"
            )
        return replace(evaluable, eval_output=tuple(chosen[-1:]))


def scorers_of(evaluators: Sequence[EvaluatorLike]) -> list[Scorer]:
    """All of them, before anything is run; raises `UsageError` for one that cannot be used."""
    if isinstance(evaluators, (str, Mapping, EvaluatorSpec)) or callable(evaluators):
        evaluators = [evaluators]
    return [scorer_of(item) for item in evaluators]


def scorer_of(evaluator: EvaluatorLike) -> Scorer:
    """A name as in files is looked up, a class is made, everything else that can be called is called."""
    if isinstance(evaluator, (str, Mapping, EvaluatorSpec)):
        [spec] = read_evaluators([evaluator])
        return _named(spec)
    if not callable(evaluator):
        raise UsageError(f"{evaluator!r} is no evaluator: give something that can be called, or a name as in files")
    title = _title(evaluator)
    if isinstance(evaluator, type):
        evaluator = _made(evaluator)
    return Scorer(title, evaluator)


def _named(spec: EvaluatorSpec) -> Scorer:
    from proctor.evaluators.registry import build

    said = {"threshold": spec.threshold is not None, "gate": not spec.gates, "scope": spec.scope is not None}
    for name, given in said.items():
        if given:
            raise UsageError(f"evaluator {spec.title!r}: {name!r} has no effect here; pass_criteria say what passes")
    if spec.path is not None or spec.retries or spec.optional:
        raise UsageError(f"evaluator {spec.title!r}: output_path, retries and optional have an effect in suites only")
    return Scorer(spec.title, build(spec).call, spec.output, spec.timeout)


def _made(kind: type[Any]) -> Callable[..., Any]:
    try:
        made = kind()
    except TypeError as error:
        raise UsageError(f"the evaluator {kind.__name__} cannot be made without arguments: {error}") from None
    if not callable(made):
        raise UsageError(f"{kind.__name__} is no evaluator: it cannot be called")
    return made  # type: ignore[no-any-return]


def _title(evaluator: Any) -> str:
    while isinstance(evaluator, functools.partial):
        evaluator = evaluator.func
    for name in (getattr(evaluator, "__name__", None), getattr(evaluator, "name", None)):
        if isinstance(name, str) and name:
            return name
    return type(evaluator).__name__
