"""Turns the errors of pydantic into problems with a file, a line and a hint.

A tool's format is best described by pydantic models with the tool's own field names. `validate` reads data with such a
model and adds what is wrong to the document, in the same words as the native format:

    class Dialogue(BaseModel):
        model_config = ConfigDict(extra="forbid")
        opening: str
        limit: int = Field(5, ge=1)

    dialogue = validate(Dialogue, document.data, document)  # None if something is wrong
    document.finish()                                       # faq.yaml:3: opning is not a known key; did you mean ...

A rule over several fields is a validator that raises `problem_at` with the key to change:

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.quiet and self.verbose:
            raise problem_at(("quiet",), "cannot be true together with 'verbose'; remove one of them")
        return self
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from proctor.base.documents import Document, did_you_mean, json_type_name
from proctor.base.json_data import Json, to_text
from proctor.base.positions import Pointer

M = TypeVar("M", bound=BaseModel)

PROBLEM = "proctor_problem"
"""The type of the errors that `problem_at` creates, which have their own message and place."""

NOUNS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""What a value must be, by the type of pydantic's error."""


def problem_at(place: Pointer, message: str) -> PydanticCustomError:
    """The error for a validator to raise. `message` follows the place in a sentence: "must not be blank"."""
    return PydanticCustomError(PROBLEM, "{message}", {"message": message, "place": tuple(place)})


def validate(model: type[M], data: Json, document: Document, pointer: Pointer = (), context: Any = None) -> M | None:
    """The object that `data` describes, or `None` if something is wrong, which is added to the document's problems.

    `pointer` is where in the document the data is. Validators find `context` in their `info`.
    """
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            _report(document, tuple(pointer), data, item, model)
        return None


def _report(document: Document, pointer: Pointer, data: Json, error: Any, model: type[BaseModel]) -> None:
    kind_of_error, context = error["type"], error.get("ctx") or {}
    place, models = _walk(data, error["loc"], model)
    where = (*pointer, *place)
    if kind_of_error == "extra_forbidden":
        name = str(error["loc"][-1])
        known = [name for item in models for name in item.model_fields]
        document.unknown_key((*where, name), did_you_mean(name, known))
    elif kind_of_error == "missing":
        document.problem(where, f"needs {error['loc'][-1]!r}{_noun(models, str(error['loc'][-1]))}")
    elif kind_of_error == PROBLEM:
        document.problem((*where, *context["place"]), context["message"])
    else:
        document.problem(where, _message(kind_of_error, error, context))


def _message(kind_of_error: str, error: Any, context: Mapping[str, Any]) -> str:
    value = error["input"]
    if kind_of_error in NOUNS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        actual = (
            to_text(value, 40)
            if is_number and kind_of_error in ("int_type", "int_from_float")
            else json_type_name(value)
        )
        return f"must be {NOUNS[kind_of_error]}, not {actual}"
    if kind_of_error == "greater_than_equal":
        return f"must be at least {context['ge']:g}, not {to_text(value, 40)}"
    if kind_of_error == "less_than_equal":
        return f"must be at most {context['le']:g}, not {to_text(value, 40)}"
    if kind_of_error == "greater_than":
        return f"must be more than {context['gt']:g}"
    if kind_of_error == "finite_number":
        return "must be a finite number"
    if kind_of_error == "string_too_short":
        return "must not be blank"
    if kind_of_error == "too_short":
        return "is empty; add at least one" if context["min_length"] == 1 else f"needs {context['min_length']} items"
    if kind_of_error == "too_long":
        return f"has {context['actual_length']} items; at most {context['max_length']} are allowed"
    if kind_of_error in ("literal_error", "enum"):
        if not isinstance(value, str):
            return f"must be text, not {json_type_name(value)}"
        options = [part.strip("'") for part in context["expected"].replace(" or ", ", ").split(", ")]
        return f"must be one of {', '.join(options)}, not {value!r}{did_you_mean(value, options)}"
    text = str(context["error"]) if kind_of_error in ("value_error", "assertion_error") else error["msg"]
    return text[:1].lower() + text[1:]


def _walk(data: Json, loc: Sequence[str | int], model: type[BaseModel]) -> tuple[Pointer, list[type[BaseModel]]]:
    """The part of an error's location that is in the data, and the models that are expected there.

    A location also has the alternatives of a union, which are not keys, and a key that is missing or unknown.
    """
    place: list[str | int] = []
    models: list[type[BaseModel]] = [model]
    has_free_keys = False
    for at, part in enumerate(loc):
        if len(models) > 1 and isinstance(part, str):
            models = [item for item in models if _is_alternative(item, part)] or models
        elif isinstance(data, Mapping) and isinstance(part, str) and part in data:
            fields = [item.model_fields[part] for item in models if part in item.model_fields]
            if at == len(loc) - 1 and not fields and not has_free_keys:
                break
            place.append(part)
            data = data[part]
            if fields:
                models = [item for field in fields for item in _models_in(field.annotation)]
            has_free_keys = any("dict[" in str(field.annotation) for field in fields)
        elif isinstance(data, Sequence) and isinstance(part, int) and part < len(data):
            place.append(part)
            data = data[part]
    return tuple(place), models


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside an annotation such as `list[A | B] | None`."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    arguments = typing.get_args(annotation)
    for argument in arguments[:1] if typing.get_origin(annotation) is Annotated else arguments:
        yield from _models_in(argument)


def _is_alternative(model: type[BaseModel], name: str) -> bool:
    """Whether `name` is the alternative of a union that a model is: by its class, or by its discriminating key."""
    if model.__name__ == name:
        return True
    annotations = [field.annotation for field in model.model_fields.values()]
    return any(typing.get_origin(a) is Literal and name in typing.get_args(a) for a in annotations)


def _noun(models: Sequence[type[BaseModel]], name: str) -> str:
    """The description of a missing key's field, if it has one."""
    fields = [item.model_fields[name] for item in models if name in item.model_fields]
    return next((f" ({field.description})" for field in fields if field.description), "")
