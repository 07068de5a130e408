"""pixie's `TestCase`, `Evaluable` and `Evaluation`: the engine's own, with pixie's checks and pydantic's methods.

pixie's data classes are pydantic models, so users call `model_dump()` and expect a `ValidationError`. The engine's
are plain dataclasses. The classes here derive from them: what users create goes into the engine as it is, and
`isinstance(x, Evaluable)` is true for what the engine creates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NoReturn, Self

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from proctor.base.json_data import UNSET, to_json
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable as _Evaluable
from proctor.evaluators.evaluation import Evaluation as _Evaluation


def invalid(model: str, field: str, code: str, message: str, value: Any) -> ValidationError:
    """pydantic's error about one field."""
    problem = InitErrorDetails(
        type=PydanticCustomError(code, "{message}", {"message": message}), loc=(field,), input=value
    )
    return ValidationError.from_exception_data(model, [problem])


def refuse_assignment(model: str, field: str, value: Any) -> NoReturn:
    """Raise what pydantic raises for an assignment to a frozen model."""
    problem = InitErrorDetails(type="frozen_instance", loc=(field,), input=value)
    raise ValidationError.from_exception_data(model, [problem])


class AnyOfEngine(type):
    """Makes `isinstance(x, Evaluable)` true for every evaluable of the engine, so that users' checks work.

    A class that has `engine_class` in its own body stands for that class. Any other is the user's own: only its own
    instances count.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        engine_class = vars(cls).get("engine_class")
        return isinstance(instance, engine_class) if engine_class else super().__instancecheck__(instance)


class TestCase(_Evaluable, metaclass=AnyOfEngine):
    """What goes into a test: `eval_input` has at least one item, and `expected_output` is the expectation."""

    __slots__ = ()
    engine_class = _Evaluable

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except ValueError as error:  # a list with something else than named values
            field, _, _ = str(error).partition("[")
            raise invalid(type(self).__name__, field, "named_data", str(error), kwargs.get(field)) from None
        if not self.eval_input and self._needs_input(args, kwargs):
            message = 'eval_input must have at least one item, such as {"name": "input", "value": "Hello"}'
            raise invalid(type(self).__name__, "eval_input", "too_short", message, self.eval_input)
        if self.description is not None and not isinstance(self.description, str):
            message = f"description must be a string, not {type(self.description).__name__}"
            raise invalid(type(self).__name__, "description", "string_type", message, self.description)

    def _needs_input(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_assignment(type(self).__name__, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, also to those of an evaluable that the engine has created."""
        if not isinstance(other, _Evaluable):
            return NotImplemented
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    __hash__ = None  # type: ignore[assignment]  # the lists in it can change

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """An instance from what `model_dump` returned, or from another instance."""
        if isinstance(data, _Evaluable):
            return data if type(data) is cls else cls(**{item.name: getattr(data, item.name) for item in fields(data)})
        if not isinstance(data, Mapping):
            raise invalid(cls.__name__, "", "model_type", f"needs a dictionary, not {type(data).__name__}", data)
        known = {item.name for item in fields(cls)} | {"expected_output"}
        values = {name: value for name, value in data.items() if name in known}
        for name in ("expectation", "expected_output"):
            if values.get(name) == UNSET.value:
                values[name] = UNSET
        return cls(**values)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))

    def model_dump_json(self, *, indent: int | None = None, exclude_none: bool = False) -> str:
        return json.dumps(self.model_dump(mode="json", exclude_none=exclude_none), indent=indent, ensure_ascii=False)


class Evaluable(TestCase):
    """A test case with the output of the application. pixie 0.4 creates one without an input, too."""

    __slots__ = ()
    engine_class = _Evaluable

    def _needs_input(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """An empty list is an error. So is a list of outputs without an input; pixie 0.4 does not have such lists."""
        has_input = "eval_input" in kwargs or bool(args)
        value = (*args, kwargs.get("eval_input"))[0] if has_input else kwargs.get("eval_output")
        return type(value) in (list, tuple)  # not NamedValues, from a copy of an evaluable


class Evaluation(_Evaluation, metaclass=AnyOfEngine):
    """The result of one evaluator on one answer; pixie requires a reasoning."""

    __slots__ = ()
    engine_class = _Evaluation

    def __init__(
        self, score: float, reasoning: str, details: dict[str, Any] | None = None, *rest: Any, **more: Any
    ) -> None:
        super().__init__(score, reasoning, {} if details is None else details, *rest, **more)

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """An evaluation from what `model_dump` returned, or from another one."""
        if isinstance(data, _Evaluation):
            return data if type(data) is cls else cls(data.score, data.reasoning, data.details, data.passed)
        missing = [name for name in ("score", "reasoning") if name not in data]
        if missing:
            raise invalid(cls.__name__, missing[0], "missing", f"{' and '.join(missing)} required", data)
        return cls(**{item.name: data[item.name] for item in fields(cls) if item.name in data})

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        dumped = {"score": self.score, "reasoning": self.reasoning, "details": dict(self.details)}
        return to_json(dumped) if mode == "json" else dumped

    def model_dump_json(self, *, indent: int | None = None) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        return replace(self, details=dict(self.details), **dict(update or {}))


__all__ = ["Evaluable", "Evaluation", "NamedData", "TestCase"]
