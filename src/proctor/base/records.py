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
    made._names = [item.name for item in own if item.init]
    made._given = staticmethod(_values_of(made._names))
    made.__signature__ = _Late(made, own)
    for method in (_eq, _hash, _repr, _reduce, _setattr, _delattr):
        name = f"_{method.__name__}__"
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def changed(instance: T, **changes: Any) -> T:
    """`dataclasses.replace` for a record, in a third of its time."""
    kind: Any = type(instance)
    values = kind._given(instance)
    return kind(**{**dict(zip(kind._names, values, strict=True)), **changes})  # type: ignore[no-any-return]


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
