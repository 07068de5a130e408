from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from proctor.base.records import record


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
class Wider(Single):
    more: int = 1


def test_a_record_may_have_more_fields_than_the_one_it_extends() -> None:
    wider = Wider("a", more=2)
    assert (wider.value, wider.more, isinstance(wider, Single)) == ("a", 2, True)
    assert replace(wider, value="b") == Wider("b", 2) != Wider("b", 3)
