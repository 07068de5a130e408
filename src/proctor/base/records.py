"""`@record`: a frozen dataclass with slots whose class takes a third of the time to make.

Most of a short run is start-up, and a third of that was the standard decorator compiling six methods for each of some
seventy classes. Here only `__init__` is compiled; the others are shared. `dataclasses.fields`, `replace` and
`is_dataclass` work as usual, and so do `copy` and `pickle`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass with slots; fields and defaults are written as for `@dataclass`."""
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    own = fields(made)
    made._compared = staticmethod(_values_of([item.name for item in own if item.compare]))
    made._given = staticmethod(_values_of([item.name for item in own if item.init]))
    made.__signature__ = _Late(made, own)
    for method in (_eq, _hash, _repr, _reduce, _setattr, _delattr):
        name = f"_{method.__name__}__"
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


class _Late:
    """Compiles the real `__init__` when it is first needed: most classes that a short run imports have no instance."""

    def __init__(self, made: Any, own: tuple[Field[Any], ...]) -> None:
        self._made, self._own, self._compiled = made, own, None

        def first(instance: Any, *values: Any, **named: Any) -> None:
            self.compile()(instance, *values, **named)

        self._first = made.__init__ = first

    def compile(self) -> Any:
        if self._compiled is None:
            self._compiled = _init(self._made, self._own)
        if self._made.__init__ is self._first:  # and not wrapped by the class since
            self._made.__init__ = self._compiled
        return self._compiled

    def __get__(self, instance: object, owner: Any) -> Any:
        """As `__signature__`: there is none, and `inspect` looks at `__init__` next."""
        self.compile()
        raise AttributeError("__signature__")


def _init(made: Any, own: tuple[Field[Any], ...]) -> Any:
    """Sets each slot through its descriptor: the one way in that does not pass `__setattr__`."""
    scope: dict[str, Any] = {"_MISSING": MISSING}
    parameters, lines = [], []
    for item in own:
        name = item.name
        scope[f"_set_{name}"] = getattr(made, name).__set__
        scope[f"_default_{name}"] = item.default
        scope[f"_make_{name}"] = item.default_factory
        value = name if item.init else f"_default_{name}"
        if item.default_factory is not MISSING:
            value = f"_make_{name}() if {name} is _MISSING else {name}" if item.init else f"_make_{name}()"
        if item.init:
            optional = item.default is not MISSING or item.default_factory is not MISSING
            parameters.append(f"{name}=_default_{name}" if optional else name)
        lines.append(f"    _set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("    self.__post_init__()")
    source = f"def __init__(self, {', '.join(parameters)}):\n" + ("\n".join(lines) or "    pass")
    exec(source, scope)  # noqa: S102  the text is made of the class's own field names
    init = scope["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _repr(self: Any) -> str:
    pairs = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(pairs)})"


def _reduce(self: Any) -> Any:
    return type(self), self._given(self)


def _setattr(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
