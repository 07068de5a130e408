"""`@record`: a frozen dataclass with slots whose class is cheap to make. `@mutable_record` is not frozen.
`Packed` holds many of one class in little memory.

Most of a short run is start-up, and a third of that was the standard decorator compiling six methods for each of some
seventy classes. Here only `__init__` is compiled, once a class has had a few instances; the others are shared.
`dataclasses.fields`, `replace` and `is_dataclass` work as usual, and so do `copy` and `pickle`.
"""

from __future__ import annotations

import itertools
import math
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from operator import attrgetter, eq, itemgetter
from typing import Any, Generic, TypeVar, dataclass_transform, overload

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
    inherited = [item for base in cls.__bases__ if is_dataclass(base) for item in fields(base)]
    every = [item for item in inherited if item.name not in names] + own
    init = _Init(every)
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
        "_compared": staticmethod(_values_of([item.name for item in every if item.compare])),
        "_names": init.names,
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
        self._module = sys.modules.get(cls.__module__)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if self._name not in self._cls.__dict__:
            if self._module is not None:  # `dataclasses` looks there, and code under test may have removed it
                sys.modules.setdefault(self._cls.__module__, self._module)
            dataclass(init=False, repr=False, eq=False)(self._cls)
        return self._cls.__dict__[self._name]


def changed(instance: T, **changes: Any) -> T:
    """`dataclasses.replace` for a record, in a third of its time."""
    kind: Any = type(instance)
    values = kind._given(instance)
    return kind(**{**dict(zip(kind._names, values, strict=True)), **changes})  # type: ignore[no-any-return]


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


FEW = 5_000
"""So many records are held as they are: packing takes time, and saves nothing worth it."""

_NONE = {"q": -(1 << 63), "d": math.nan}
"""What stands in an array for no number."""


class Packed(Sequence[T], Generic[T]):
    """Records of one class in a third of the memory: the text and the numbers of each, and the rest once for all alike.

    Iterating makes each record anew, unless there are few. `numbers` has the type codes of arrays by field; a number
    that does not fit into its array stands beside it.
    """

    def __init__(self, kind: type[T], text: str, numbers: Mapping[str, str]) -> None:
        names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
        rest = [name for name in names if name != text and name not in numbers]
        self._kind = kind
        self._few: list[T] = []
        self._text = attrgetter(text)
        self._number_names = list(numbers)
        self._numbers = _values_of(self._number_names)
        self._rest = _values_of(rest)
        order = [text, *numbers, *rest]
        self._ordered = itemgetter(*[order.index(name) for name in names])
        self._columns: list[array[Any]] = [array(code) for code in numbers.values()]
        self._none = [_NONE[code] for code in numbers.values()]
        self._texts = bytearray()
        self._spans = (array("Q"), array("Q"))
        self._odd: dict[tuple[int, int], Any] = {}
        self._alike = array("Q")
        self._known: dict[tuple[Any, ...], int] = {}
        self._kept: list[tuple[Any, ...]] = []

    def append(self, item: T) -> None:
        if not self._alike and len(self._few) < FEW:
            self._few.append(item)
            return
        few, self._few = self._few, []
        for each in (*few, item):
            self._pack(each)

    def _pack(self, item: T) -> None:
        at = len(self._alike)
        for number, value in enumerate(self._numbers(item)):
            column, none = self._columns[number], self._none[number]
            try:
                column.append(none if value is None else value)
            except (TypeError, OverflowError):
                column.append(none)
            if value is not None and (column[at] != value or value == none):  # it does not fit, or is not a number
                column[at], self._odd[number, at] = none, value
        begins, ends = self._spans
        begins.append(len(self._texts))
        self._texts += self._text(item).encode("utf-8", "surrogatepass")
        ends.append(len(self._texts))
        rest = self._rest(item)
        place = self._known.setdefault(rest, len(self._kept))
        if place == len(self._kept):
            self._kept.append(rest)
        self._alike.append(place)

    def extend(self, items: Iterable[T]) -> None:
        for item in items:
            self.append(item)

    def __len__(self) -> int:
        return len(self._few) or len(self._alike)

    def __iter__(self) -> Iterator[T]:
        return iter(self._few) if self._few else map(self._made, range(len(self._alike)))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if self._few:
            return self._few[at]
        places = range(len(self._alike))[at]
        return self._made(places) if isinstance(places, int) else [self._made(place) for place in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} of {self._kind.__qualname__}>"

    def _made(self, at: int) -> T:
        begin, end = self._spans
        text = self._texts[begin[at] : end[at]].decode("utf-8", "surrogatepass")
        numbers = [column[at] for column in self._columns]
        for number, none in enumerate(self._none):
            if numbers[number] == none or numbers[number] != numbers[number]:
                numbers[number] = self._odd.get((number, at))
        return self._kind(*self._ordered((text, *numbers, *self._kept[self._alike[at]])))

    def sort(self, name: str) -> None:
        """Bring the records into the order of one of their numbers."""
        if self._few:
            self._few.sort(key=attrgetter(name))
            return
        values = self._columns[self._number_names.index(name)] if self._alike else ()
        if all(one <= next_one for one, next_one in itertools.pairwise(values)):
            return
        order = sorted(range(len(self)), key=values.__getitem__)
        now = {at: to for to, at in enumerate(order)} if self._odd else {}
        self._odd = {(number, now[at]): value for (number, at), value in self._odd.items()}
        columns: list[array[Any]] = [*self._columns, *self._spans, self._alike]
        for column in columns:
            column[:] = array(column.typecode, [column[at] for at in order])
