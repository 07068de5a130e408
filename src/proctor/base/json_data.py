"""Turns any Python value into plain JSON data, so that everything stored or compared is data and never code."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import math
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from proctor.base.errors import UsageError

Json: TypeAlias = Any
"""JSON data: None, bool, int, float, str, list of these, or dict of str to these."""


class Unset(enum.Enum):
    """The type of `UNSET`: no value, which differs from the value `None`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET

_SCALARS = (str, int, bool, type(None))

MAX_DEPTH = 200

MAX_INTEGER_BITS = 14_000
"""Python refuses to write out whole numbers that are a little longer."""


def to_json(value: object, *, _above: tuple[int, ...] = ()) -> Json:
    """The JSON form of `value`: dataclasses, pydantic models, enums, dates, decimals, sets and bytes included.

    A value without a natural JSON form becomes its `repr`, so that a report can always show it. Non-finite numbers
    become strings, because JSON cannot express them. A value that contains itself is cut there. Never raises.
    """
    kind = type(value)
    if kind is int:
        return value if value.bit_length() <= MAX_INTEGER_BITS else _long_number(value)  # type: ignore[attr-defined, arg-type]
    if kind in _SCALARS:
        return value
    if kind is float:
        return value if math.isfinite(value) else repr(value)  # type: ignore[arg-type]
    if len(_above) > MAX_DEPTH:
        return f"<{kind.__name__} nested too deeply>"
    if id(value) in _above:
        return f"<{kind.__name__} that contains itself>"
    within = (*_above, id(value))
    try:
        if isinstance(value, Mapping):
            return {_key(key): to_json(item, _above=within) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            fields = getattr(value, "_fields", None)
            if fields is not None:
                return {name: to_json(item, _above=within) for name, item in zip(fields, value, strict=True)}
            return [to_json(item, _above=within) for item in value]
        return _convert(value, within)
    except Exception:
        return _repr(value)


def _long_number(value: int) -> str:
    return f"<a number of about {int(value.bit_length() * math.log10(2)):,} digits>"


def _key(key: object) -> str:
    if type(key) is str:
        return key
    simple = to_json(key)
    return simple if isinstance(simple, str) else json.dumps(simple)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def _convert(value: Any, above: tuple[int, ...]) -> Json:
    """The JSON form of a value that is neither a scalar nor a container: a subclass of a scalar, or an object."""
    if isinstance(value, enum.Enum):
        return to_json(value.value, _above=above)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bool, int)):
        return to_json(int(value), _above=above)
    if isinstance(value, float):
        return to_json(float(value), _above=above)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # A field that counts neither for equality nor for `repr` is not part of the value, e.g. the position of a case.
        parts = (f.name for f in dataclasses.fields(value) if f.compare or f.repr)
        return {name: to_json(getattr(value, name), _above=above) for name in parts}
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return to_json(value.model_dump(), _above=above)
    return _standard_library_value(value, above)


def _standard_library_value(value: Any, above: tuple[int, ...]) -> Json:
    """The JSON form of values of the standard library, such as dates."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, (set, frozenset)):
        return sorted((to_json(item, _above=above) for item in value), key=canonical)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _library_value(value, above)


def _decimal(value: Any) -> Json:
    """A number if a float has exactly the same value, otherwise the digits as text."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) < 2**53:
        return int(value) if value.as_tuple().exponent >= 0 else float(value)
    number = float(value)
    return number if type(value)(repr(number)) == value else str(value)


def _library_value(value: Any, above: tuple[int, ...]) -> Json:
    """Arrays and data frames, by their own methods: their libraries are not imported here."""
    for method in ("to_dict", "tolist", "isoformat"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            try:
                return to_json(convert(), _above=above)
            except Exception:  # noqa: S112  try the next method
                continue
    return _repr(value)


def parse_json_or_keep(value: Any) -> Json:
    """The data of a JSON text; anything else, and text that is not JSON, unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def canonical(value: Json) -> str:
    """JSON text with sorted keys: equal data give equal text."""
    try:
        return _CANONICAL(value)
    except (TypeError, ValueError):  # keys that are not text, or numbers that are too long
        return _CANONICAL(to_json(value))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=to_json).encode


def to_text(value: Json, limit: int | None = None) -> str:
    """The text a person reads for a value: strings as they are, everything else as JSON."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=to_json)
    except (TypeError, ValueError):  # keys that are not text, or numbers that are too long
        text = json.dumps(to_json(value), ensure_ascii=False)
    if limit is not None and len(text) > limit:
        return f"{text[: limit - 1]}…"
    return text


def fingerprint(*parts: Json) -> str:
    """A short hash of plain data."""
    return hashlib.blake2b(canonical(list(parts)).encode(), digest_size=12).hexdigest()


def json_text(data: Json) -> str:
    """Indented JSON; escaped only if UTF-8 cannot encode the text."""
    text = json.dumps(to_json(data), indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(to_json(data), indent=2)
    return f"{text}\n"


def parse_inline_json(value: Any, name: str) -> Any:
    """The object, if `value` is text that begins with `{`, otherwise `value`. A JSON error has `name`."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not valid JSON: {to_text(str(error), 200)}") from None
