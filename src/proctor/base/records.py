"""`@record`: a frozen dataclass with slots whose class is cheap to make. `@mutable_record` is not frozen.

Most of a short run is start-up, and a third of that was the standard decorator compiling six methods for each of some
seventy classes. Here only `__init__` is compiled, once a class has had a few instances; the others are shared.
`dataclasses.fields`, `replace` and `is_dataclass` work as usual, and so do `copy` and `pickle`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
COMPILED_FROM = 20
"""Compiling takes as long as making so many instances without: most classes of a short run have fewer."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass with slots; fields and defaults are written as for `@dataclass`."""
    return _made(cls, _FROZEN)


@dataclass_transform(field_specifiers=(field,))
def mutable_record(cls: type[T]) -> type[T]:
    """Make `cls` a dataclass with slots whose fields can be changed; like any such, it cannot be hashed."""
    return _made(cls, _MUTABLE)


def _made(cls: type[T], methods: dict[str, Any]) -> type[T]:
    """The class with slots, made at once with its methods: one set later makes Python go through its slots again."""
    own = _own_fields(cls)
    names = tuple(item.name for item in own)
    init = _Init(own)
    namespace = methods | vars(cls)
    cached = any(isinstance(value, cached_property) for value in namespace.values())
    for name in ("__dict__", "__weakref__", *names):
        namespace.pop(name, None)
    namespace |= {
        "__qualname__": cls.__qualname__,
        "__slots__": (*names, "__dict__") if cached else names,
        "__match_args__": tuple(init.names),
        "__dataclass_fields__": _Described(cls),
        "__dataclass_params__": _Described(cls),
        "__init__": init.first,
        "__signature__": init,
        "_compared": staticmethod(_values_of([item.name for item in own if item.compare])),
        "_given": staticmethod(_values_of(init.names)),
    }
    make_class: Any = type(cls)
    init.made = make_class(cls.__name__, cls.__bases__, namespace)
    return init.made  # type: ignore[no-any-return]


def _own_fields(cls: type) -> list[Field[Any]]:
    """One for each annotation that is no `ClassVar`, as far as they are needed to make instances."""
    found = []
    for name, annotation in cls.__annotations__.items():
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            continue
        default = cls.__dict__.get(name, MISSING)
        if default.__class__.__hash__ is None:
            raise ValueError(f"{cls.__qualname__}.{name}: all instances would share {default!r}; use default_factory")
        item = default if isinstance(default, Field) else field(default=default)
        item.name = name
        found.append(item)
    return found


class _Described:
    """What `dataclasses` notes on a class, once it is asked for: noting it takes as long as making the class."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if self._name not in self._cls.__dict__:
            dataclass(init=False, repr=False, eq=False)(self._cls)
        return self._cls.__dict__[self._name]


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


class _Init:
    """Fills the first instances field by field, and compiles the real `__init__` for a class that has more."""

    def __init__(self, own: list[Field[Any]]) -> None:
        self.made: Any = None
        self.names = [item.name for item in own if item.init]
        self._own, self._compiled, self._count = own, None, 0

        def first(instance: Any, *values: Any, **named: Any) -> None:
            self._count += 1
            if self._count > COMPILED_FROM or not self._fill(instance, values, named):
                self.compile()(instance, *values, **named)

        self.first = first

    def _fill(self, instance: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether the arguments were those of the class; the compiled `__init__` says what is wrong with others."""
        given = dict(zip(self.names, values, strict=False))
        if len(values) > len(self.names) or named.keys() & given or named.keys() - self.names:
            return False
        given |= named
        for item in self._own:
            value = given.get(item.name, item.default)
            if value is MISSING:
                if item.default_factory is MISSING:
                    return False
                value = item.default_factory()  # type: ignore[operator]
            object.__setattr__(instance, item.name, value)
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()
        return True

    def compile(self) -> Any:
        if self._compiled is None:
            self._compiled = _init(self.made, self._own)
        if self.made.__init__ is self.first:  # and not wrapped by the class since
            self.made.__init__ = self._compiled
        return self._compiled

    def __get__(self, instance: object, owner: Any) -> Any:
        """As `__signature__`: there is none, and `inspect` looks at `__init__` next."""
        self.compile()
        raise AttributeError("__signature__")


def _init(made: Any, own: list[Field[Any]]) -> Any:
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


def _replace(self: Any, /, **changes: Any) -> Any:
    return replace(self, **changes)


def _setattr(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_MUTABLE: dict[str, Any] = {"__eq__": _eq, "__hash__": None, "__repr__": _repr, "__replace__": _replace}
_FROZEN: dict[str, Any] = {
    f"_{method.__name__}__": method for method in (_eq, _hash, _repr, _reduce, _replace, _setattr, _delattr)
}
