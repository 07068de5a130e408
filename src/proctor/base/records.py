"""`@record`: a frozen dataclass with slots whose class takes a third of the time to make; `Packed`: many of one class.

Most of a short run is start-up, and a third of that was the standard decorator compiling six methods for each of some
seventy classes. Here only `__init__` is compiled; the others are shared. `dataclasses.fields`, `replace` and
`is_dataclass` work as usual, and so do `copy` and `pickle`.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter, eq, itemgetter
from typing import Any, Generic, TypeVar, dataclass_transform, overload

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
        scope[f"_set_{name}"] = made.__dict__[name].__set__
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


_NONE = {"q": -(1 << 63), "d": math.nan}
"""What stands in an array for no number, and for one that does not fit."""


class Packed(Sequence[T], Generic[T]):
    """Records of one class in a fifth of the memory: the text and the numbers of each, and the rest once for all alike.

    Iterating makes each record anew; a number that an array cannot hold stands beside it.
    """

    def __init__(self, kind: type[T], text: str, numbers: Mapping[str, str]) -> None:
        names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
        rest = [name for name in names if name != text and name not in numbers]
        self._kind = kind
        self._text = attrgetter(text)
        self._numbers: list[tuple[Callable[[T], Any], array[Any]]] = [
            (attrgetter(name), array(code)) for name, code in numbers.items()
        ]
        self._rest = _values_of(rest)
        order = [text, *numbers, *rest]
        self._ordered = itemgetter(*[order.index(name) for name in names])
        self._texts = bytearray()
        self._spans = (array("Q"), array("Q"))
        self._odd: dict[tuple[int, int], Any] = {}
        self._alike = array("Q")
        self._known: dict[tuple[Any, ...], int] = {}
        self._kept: list[tuple[Any, ...]] = []

    def append(self, item: T) -> None:
        at = len(self._alike)
        for column, (value_of, values) in enumerate(self._numbers):
            value, none = value_of(item), _NONE[values.typecode]
            try:
                values.append(none if value is None else value)
            except (TypeError, OverflowError):
                values.append(none)
            if value is not None and (values[-1] != value or value == none):
                values[-1], self._odd[column, at] = none, value
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
        return len(self._alike)

    def __iter__(self) -> Iterator[T]:
        return map(self._made, range(len(self)))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        places = range(len(self))[at]
        return self._made(places) if isinstance(places, int) else [self._made(place) for place in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} of {self._kind.__qualname__}>"

    def _made(self, at: int) -> T:
        begin, end = self._spans
        text = self._texts[begin[at] : end[at]].decode("utf-8", "surrogatepass")
        numbers = [self._number(column, at) for column in range(len(self._numbers))]
        return self._kind(*self._ordered((text, *numbers, *self._kept[self._alike[at]])))

    def _number(self, column: int, at: int) -> Any:
        values = self._numbers[column][1]
        value = values[at]
        is_none = value != value or value == _NONE[values.typecode]
        return self._odd.get((column, at)) if is_none else value

    def sort(self, number: int = 0) -> None:
        """Bring the records into the order of one of their numbers."""
        values = self._numbers[number][1]
        if all(one <= next_one for one, next_one in itertools.pairwise(values)):
            return
        order = sorted(range(len(self)), key=values.__getitem__)
        if self._odd:
            now = {at: to for to, at in enumerate(order)}
            self._odd = {(column, now[at]): value for (column, at), value in self._odd.items()}
        columns: list[array[Any]] = [*(values for _, values in self._numbers), *self._spans, self._alike]
        for column in columns:
            column[:] = array(column.typecode, [column[at] for at in order])
