"""What HoloDeck's models can do, for the dataclasses that stand for them here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, Self, cast

from proctor.base.errors import UsageError
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain


class HoloDeckModel:
    """What HoloDeck's models can do beside having fields: be had as data, and be made from data."""

    __slots__ = ()

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Any = None,
        exclude: Any = None,
        exclude_none: bool = False,
        exclude_defaults: bool = False,
    ) -> dict[str, Any]:
        """The fields as plain data, which JSON can hold in either `mode`; `include` and `exclude` name fields."""
        if mode not in ("python", "json"):
            raise UsageError(f"mode must be python or json, not {mode!r}")
        names = [f.name for f in fields(cast(Any, self)) if include is None or f.name in include]
        usual = _defaults(type(self)) if exclude_defaults else {}
        shown = {n: plain(getattr(self, n)) for n in names if n not in (exclude or ())}
        shown = {n: value for n, value in shown.items() if n not in usual or plain(usual[n]) != value}
        return cast(dict[str, Any], _without_none(shown)) if exclude_none else shown

    def model_dump_json(self, *, indent: int | None = None, **rest: Any) -> str:
        return json.dumps(self.model_dump(**rest), indent=indent)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed; its lists are its own if it is `deep`."""
        import copy

        made = copy.deepcopy(self) if deep else self
        changed: Self = replace(cast(Any, made), **(update or {}))
        return changed

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The object that data describes; raises `ValueError` where a field is missing, unknown or of another type."""
        if isinstance(data, cls):
            return data
        from pydantic import TypeAdapter

        known = [f.name for f in fields(cast(Any, cls))]
        for name in data if isinstance(data, Mapping) else ():
            if name not in known:
                raise ValueError(f"{cls.__name__} has no field {name!r}{nearest(str(name), known)}")
        return TypeAdapter(cls).validate_python(data)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))


def _defaults(cls: type) -> dict[str, Any]:
    """The fields that need not be given, with what they are then."""
    required = {f.name: None for f in fields(cast(Any, cls)) if _is_required(f)}
    blank = cls(**required)
    return {f.name: getattr(blank, f.name) for f in fields(cast(Any, cls)) if f.name not in required}


def _is_required(item: Any) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _without_none(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
