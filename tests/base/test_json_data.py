"""Everything kept or compared is plain JSON data, whatever it was made of."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import types
import uuid
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.base.json_data import canonical, fingerprint, to_json, to_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):  # noqa: UP042  the older way is the one with a surprising str()
    YES = "yes"


class Point(NamedTuple):
    x: int
    y: float


class Model(pydantic.BaseModel):
    name: str
    when: datetime.date
    inner: Model | None = None


@dataclasses.dataclass
class Box:
    content: Any
    size: int = 1


class Shouting(str):
    def __str__(self) -> str:
        return "SHOUT"


class Array:
    """As numpy's: knows how to become a list."""

    def tolist(self) -> list[Any]:
        return [[1, 2.5], [math.nan, self]]


class Frame:
    def to_dict(self) -> dict[Any, Any]:
        return {0: {"a": 1}}


UUID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Word.YES, "yes"),
        ({Word.YES: 1, Colour.RED: 2, Level.HIGH: 3, None: 4, True: 5, 1.5: 6, (1, "a"): 7}, None),
        (Point(1, 2.0), {"x": 1, "y": 2.0}),
        (Model(name="a", when=datetime.date(2024, 1, 2)), {"name": "a", "when": "2024-01-02", "inner": None}),
        (Box(Box({1})), {"content": {"content": [1], "size": 1}, "size": 1}),
        (datetime.datetime(2024, 1, 2, 3, 4, tzinfo=datetime.UTC), "2024-01-02T03:04:00+00:00"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(seconds=1.5), 1.5),
        (decimal.Decimal("3"), 3),
        (decimal.Decimal("3.0"), 3.0),
        (decimal.Decimal("0.1"), 0.1),
        (decimal.Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (decimal.Decimal("1E+400"), "1E+400"),
        (decimal.Decimal("NaN"), "NaN"),
        (decimal.Decimal("-Infinity"), "-Infinity"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"a", 1, None}, None),
        (b"hi", "aGk="),
        (bytearray(b"hi"), "aGk="),
        (memoryview(b"hi"), "aGk="),
        (UUID, str(UUID)),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (ValueError("bad"), "ValueError: bad"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (collections.deque([1]), "deque([1])"),
        (Shouting("quiet"), "quiet"),
        (Frame(), {"0": {"a": 1}}),
        (int, "<class 'int'>"),
        (Model, None),
        (..., "Ellipsis"),
    ],
)
def test_every_value_has_one_json_form(value: object, expected: Any) -> None:
    actual = to_json(value)
    assert json.loads(json.dumps(actual, allow_nan=False)) == actual
    if expected is not None:
        assert actual == expected
        assert type(actual) is type(expected)


def test_keys_become_text_as_in_json() -> None:
    keys = {Word.YES: 1, Colour.RED: 2, Level.HIGH: 3, None: 4, True: 5, 1.5: 6, (1, "a"): 7, Shouting("q"): 8}
    assert list(to_json(keys)) == ["yes", "red", "3", "null", "true", "1.5", '[1, "a"]', "q"]


def test_arrays_become_lists_of_plain_data() -> None:
    assert to_json(Array()) == [[1, 2.5], ["nan", "<Array that contains itself>"]]


def test_a_value_that_contains_itself_is_cut() -> None:
    twins: list[Any] = []
    twins += [twins, twins, {"deep": twins}]
    assert to_json(twins) == ["<list that contains itself>"] * 2 + [{"deep": "<list that contains itself>"}]
    box = Box(None)
    box.content = {"box": box}
    assert to_json(box)["content"] == {"box": "<Box that contains itself>"}


def test_the_same_object_twice_is_not_a_cycle() -> None:
    shared = [1]
    assert to_json([shared, shared]) == [[1], [1]]


def test_deep_nesting_is_cut() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert "nested too deeply" in json.dumps(to_json(deep))


class Hostile:
    """Breaks wherever it is touched."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class Unfinished(pydantic.BaseModel):
    value: Any

    @pydantic.model_serializer
    def refuse(self) -> Any:
        raise RuntimeError("not today")


@dataclasses.dataclass
class Hollow:
    value: int = dataclasses.field(init=False)


def test_to_json_never_raises() -> None:
    values = [Hostile(), Unfinished(value=1), Hollow(), [Hostile()], {"a": Hostile()}, {Hostile(): 1}, {Hostile()}]
    assert len(json.loads(json.dumps(to_json(values)))) == len(values)


@settings(deadline=None)
@given(JSON)
def test_plain_data_is_unchanged(value: Any) -> None:
    assert to_json(value) == value


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(list(value))}
    return [_shuffled(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(JSON)
def test_canonical_text_and_fingerprint_do_not_depend_on_the_order_of_keys(value: Any) -> None:
    assert canonical(_shuffled(value)) == canonical(value)
    assert fingerprint(_shuffled(value)) == fingerprint(value)
    assert json.loads(canonical(value)) == value


@settings(max_examples=200, deadline=None)
@given(JSON, JSON)
def test_different_data_have_different_canonical_texts(left: Any, right: Any) -> None:
    if canonical(left) == canonical(right):
        assert left == right
    else:
        assert fingerprint(left) != fingerprint(right)


def test_a_fingerprint_is_the_same_in_every_process_and_version() -> None:
    assert fingerprint({"a": 1, "b": [None, "é", "\ud800"]}, "x") == "9ad8140eabd209b08154584f"
    assert fingerprint("a", "b") != fingerprint("ab")


def test_strings_are_shown_as_they_are_and_other_values_as_json() -> None:
    assert to_text("a\nb") == "a\nb"
    assert to_text({"ä": None}) == '{"ä": null}'
    assert to_text("abcdef", 4) == "abc…"
    assert len(to_text(list(range(1000)), 50)) == 50


class Series:
    """As pandas has them: its labels are lost if it becomes a list."""

    def tolist(self) -> list[int]:
        return [1, 2]

    def to_dict(self) -> dict[str, int]:
        return {"a": 1, "b": 2}


def test_labels_of_a_series_are_kept() -> None:
    assert to_json(Series()) == {"a": 1, "b": 2}
