"""Old names that keep working for one release, each with a `DeprecationWarning` that says the new one.

A dataclass whose fields were renamed lists the old names:

    @renamed_fields({"keywords": "contains"})
    @dataclass(frozen=True)
    class Expected: ...

`Expected(keywords=...)`, `replace(expected, keywords=...)` and `expected.keywords` then work as before. Type checkers
know only the new names. A module does the same for its classes with `renamed_names`, and a class that users derive
from with `renamed_attributes`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def renamed_fields(
    names: Mapping[str, str], *, inverted: Mapping[str, str] | None = None
) -> Callable[[type[T]], type[T]]:
    """A class decorator that accepts the old `names` of fields, properties and methods (old to new).

    `inverted` has the fields whose meaning was turned around as well: `gates=False` is `report_only=True`.
    """
    inverted = dict(inverted or {})
    new_name_of = {**names, **inverted}

    def decorate(kind: type[T]) -> type[T]:
        field_names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
        arguments = {old: new for old, new in new_name_of.items() if new in field_names}
        for old, new in new_name_of.items():
            setattr(kind, old, _old_attribute(kind, old, new, invert=old in inverted))
        if arguments:
            _accept_old_arguments(kind, arguments, inverted)
        return kind

    return decorate


def _old_attribute(kind: type, old: str, new: str, *, invert: bool) -> property:
    def get(self: Any) -> Any:
        _warn(f"{kind.__name__}.{old} is now {'not ' if invert else ''}{kind.__name__}.{new}")
        value = getattr(self, new)
        return not value if invert else value

    return property(get, doc=f"Deprecated: use `{new}`.")


def _accept_old_arguments(kind: Any, arguments: Mapping[str, str], inverted: Mapping[str, str]) -> None:
    """Let the constructor take the old `arguments` by keyword."""
    create = kind.__init__

    @functools.wraps(create)
    def init(self: Any, *args: Any, **values: Any) -> None:
        if values and not arguments.keys().isdisjoint(values):
            for old in arguments.keys() & values.keys():
                new, value = arguments[old], values.pop(old)
                was, now = f"{kind.__name__}({old}=...)", f"{kind.__name__}({new}=...)"
                _warn(f"{was} is now {now}" + (", with the opposite meaning" if old in inverted else ""))
                # `replace` passes every field under its new name too, so the old name wins.
                values[new] = not value if old in inverted else value
        create(self, *args, **values)

    kind.__init__ = init


def renamed_attributes(names: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """A class decorator that accepts the old `names` of attributes and methods (old to new) of a class.

    Unlike with `renamed_fields`, users may also assign to the old names, and define them in the body of a subclass.
    """

    def decorate(kind: Any) -> Any:
        for old, new in names.items():
            setattr(kind, old, _old_variable(kind, old, new))

        def init_subclass(cls: Any, /, **options: Any) -> None:
            for old, new in names.items():
                if old in cls.__dict__:
                    _warn(f"{cls.__name__}.{old} is now {cls.__name__}.{new}")
                    value = cls.__dict__[old]
                    delattr(cls, old)
                    if new not in cls.__dict__:
                        setattr(cls, new, value)
            super(kind, cls).__init_subclass__(**options)

        kind.__init_subclass__ = classmethod(init_subclass)
        return kind

    return decorate


def _old_variable(kind: type, old: str, new: str) -> property:
    def get(self: Any) -> Any:
        _warn(f"{kind.__name__}.{old} is now {kind.__name__}.{new}")
        return getattr(self, new)

    def assign(self: Any, value: Any) -> None:
        _warn(f"{kind.__name__}.{old} is now {kind.__name__}.{new}")
        setattr(self, new, value)

    return property(get, assign, doc=f"Deprecated: use `{new}`.")


def get_renamed(target: Any, old: str, new: str) -> Any:
    """The attribute `new` of a user's object, or its attribute `old`; `None` if it has neither."""
    value = getattr(target, new, None)
    if value is None and (value := getattr(target, old, None)) is not None:
        _warn(f"{type(target).__name__}.{old} is now {type(target).__name__}.{new}")
    return value


def renamed_names(module: str, names: Mapping[str, tuple[str, Any]]) -> Callable[[str], Any]:
    """`__getattr__` for a module: old names, each with the new name and its value."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new, value = names[name]
        _warn(f"{module}.{name} is now {new}")
        return value

    return get


def _warn(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=3)
