from __future__ import annotations

import copy
import inspect
import math
import pickle
import sys
import tracemalloc
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base import records
from proctor.base.records import Packed, mutable_record, record


@record
class Point:
    """A place."""

    version: ClassVar[str] = "1"
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    cached: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cached", self.x + self.y)


@record
class Single:
    value: Any = None


@record
class Nothing:
    pass


def test_a_record_is_a_dataclass_to_everybody_who_asks() -> None:
    assert is_dataclass(Point)
    assert [item.name for item in fields(Point)] == ["x", "y", "tags", "cached"]
    assert asdict(Point(1, tags=["a"])) == {"x": 1, "y": 0, "tags": ["a"], "cached": 1}
    assert replace(Point(1, 2), y=5) == Point(1, 5)
    assert list(inspect.signature(Point).parameters) == ["x", "y", "tags"]


def test_a_record_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises(FrozenInstanceError):
        point.other = 1
    assert not hasattr(point, "__dict__")


def test_records_are_equal_by_what_they_say() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(2, 1)
    assert Single(1) != Point(1)
    assert Nothing() == Nothing()
    assert hash(Single("a")) == hash(Single("a"))
    with pytest.raises(TypeError):
        hash(Single([]))


def test_every_record_gets_its_own_defaults() -> None:
    first, second = Point(1), Point(1)
    first.tags.append("mine")
    assert second.tags == []
    assert Point(2, 3).cached == 5


def test_a_record_shows_itself_as_it_was_made() -> None:
    assert repr(Point(1, tags=["a"])) == "Point(x=1, y=0, tags=['a'])"
    assert repr(Single(None)) == "Single(value=None)"


def test_missing_and_unknown_arguments_are_refused_as_by_any_function() -> None:
    with pytest.raises(TypeError, match="x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="z"):
        Point(1, z=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [Point(1, 2, ["a"]), Single({"a": 1}), Nothing()])
def test_records_can_be_copied_and_pickled(value: Any) -> None:
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_help_shows_the_fields_before_there_is_an_instance() -> None:
    @record
    class Place:
        street: str
        number: int = 1
        names: list[str] = field(default_factory=list)

    assert [str(item).split("=")[0] for item in inspect.signature(Place).parameters.values()] == [
        "street",
        "number",
        "names",
    ]
    assert Place("Elm").number == 1


@record
class Row:
    name: str
    place: int
    seconds: float
    tokens: int | None = None
    flag: bool = False


ROWS = st.lists(
    st.builds(
        Row,
        st.text(st.characters()) | st.just("half a pair \ud800"),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False) | st.integers(),
        st.none() | st.integers(),
        st.booleans(),
    ),
    max_size=8,
)


@given(ROWS, st.integers(0, 8))
def test_packed_records_come_back_as_they_were_in_any_number(rows: list[Row], few: int) -> None:
    packed = Packed(Row, "name", {"place": "q", "seconds": "d", "tokens": "q"})
    with patch.object(records, "FEW", few):
        packed.extend(rows)

    assert packed == rows
    assert list(packed) == rows
    assert (packed[1:3], packed[-1:]) == (rows[1:3], rows[-1:])
    assert len(packed) == len(rows)
    packed.sort("place")
    assert packed == sorted(rows, key=lambda row: row.place)


def test_packed_records_take_less_than_half_of_the_memory() -> None:
    packed = Packed(Row, "name", {"place": "q", "seconds": "d", "tokens": "q"})
    tracemalloc.start()
    try:
        packed.extend(Row(f"case-{at}", at, at / 7) for at in range(20_000))
        small = tracemalloc.get_traced_memory()[0]
        held = [*packed]
        large = tracemalloc.get_traced_memory()[0] - small
    finally:
        tracemalloc.stop()

    assert len(held) == len(packed)
    assert math.isclose(packed[7].seconds, 1.0)
    assert small < large / 2


def test_a_mutable_record_can_be_changed_and_cannot_be_hashed() -> None:
    @mutable_record
    class Counter:
        count: int = 0
        names: list[str] = field(default_factory=list)

    counter = Counter()
    counter.count += 1
    counter.names.append("a")

    assert counter == Counter(1, ["a"]) != Counter()
    assert repr(counter).endswith("Counter(count=1, names=['a'])")
    assert copy.deepcopy(counter) == counter
    with pytest.raises(TypeError):
        hash(counter)
    with pytest.raises(AttributeError):
        counter.other = 1  # type: ignore[attr-defined]


def test_a_record_computes_a_cached_property_once() -> None:
    computed = []

    @record
    class Square:
        side: int

        @cached_property
        def area(self) -> int:
            computed.append(self.side)
            return self.side**2

    square = Square(3)

    assert (square.area, square.area, computed) == (9, 9, [3])
    assert square == Square(3)
    with pytest.raises(FrozenInstanceError):
        square.side = 4  # type: ignore[misc]


def test_the_first_instance_and_the_hundredth_are_made_alike() -> None:
    made = [Point(number, tags=["a"]) for number in range(100)]

    assert [(point.x, point.y, point.tags, point.cached) for point in made] == [(n, 0, ["a"], n) for n in range(100)]
    for _ in range(2):  # before and after its `__init__` is compiled
        with pytest.raises(TypeError, match="multiple values"):
            Point(1, x=2)  # type: ignore[misc]


def test_a_dataclass_can_be_derived_from_a_record() -> None:
    @dataclass
    class Pin(Point):
        label: str = ""

    assert [item.name for item in fields(Pin)] == ["x", "y", "tags", "cached", "label"]


def test_a_default_that_all_instances_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Shared\.names: all instances would share \[\]"):

        @record
        class Shared:
            names: list[str] = []  # noqa: RUF012


def test_a_record_matches_by_position() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


@record
class Wider(Single):
    more: int = 1


def test_a_record_may_have_more_fields_than_the_one_it_extends() -> None:
    wider = Wider("a", more=2)
    assert (wider.value, wider.more, isinstance(wider, Single)) == ("a", 2, True)
    assert replace(wider, value="b") == Wider("b", 2) != Wider("b", 3)


def test_fields_are_told_although_the_module_of_the_record_was_forgotten() -> None:
    @record
    class Forgotten:
        value: int = 1

    with patch.dict(sys.modules):
        del sys.modules[__name__]
        assert [item.name for item in fields(Forgotten)] == ["value"]
