"""Matchers made of other matchers: optional values, objects and lists, with or without extra parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from proctor.base.json_data import Json
from proctor.cases.matchers.value_matchers import (
    MAX_PARTS,
    Difference,
    Equals,
    Ignore,
    Matcher,
    Options,
    Parts,
    accepts,
    describe,
    differences_of,
    form,
    key_path,
    literal,
    read_boolean,
    summarize,
    unequal_items,
    unexpected_keys,
)


@form("$optional")
@dataclass(frozen=True, slots=True)
class MaybeAbsent:
    """An argument, or a key of an object, that may be missing; if it is there, it must match."""

    matcher: Matcher

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        return cls(parts.read(operand))

    def mismatch(self, actual: Json) -> str | None:
        return self.matcher.mismatch(actual)

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        return differences_of(self.matcher, actual, path)

    def describe(self) -> str:
        return f"optionally {describe(self.matcher)}"

    def to_json(self) -> Json:
        return {"$optional": self.matcher.to_json()}


def may_be_absent(matcher: Matcher) -> bool:
    """Whether an argument or key with this matcher may be missing."""
    return isinstance(matcher, (Ignore, MaybeAbsent))


@form("$object", "extra")
@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object with exactly these keys; with `extra`, it may have others."""

    fields: Mapping[str, Matcher]
    extra: bool = False

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if not isinstance(operand, Mapping):
            raise ValueError("$object needs an object with a value or matcher per key")
        fields = {name: parts.read_key(item, name) for name, item in operand.items()}
        return object_of(fields, extra=read_boolean("$object", options, "extra"))

    def mismatch(self, actual: Json) -> str | None:
        return summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        if not isinstance(actual, Mapping):
            yield Difference(path, f"expected an object, got {literal(actual)}")
            return
        for key, matcher in self.fields.items():
            if key in actual:
                yield from differences_of(matcher, actual[key], key_path(path, key))
            elif not may_be_absent(matcher):
                yield Difference(key_path(path, key), f"missing, expected {describe(matcher)}")
        if not self.extra:
            yield from unexpected_keys(actual, self.fields, path)

    def describe(self) -> str:
        parts = [f"{name}: {describe(part)}" for name, part in islice(self.fields.items(), MAX_PARTS)]
        return f"{{{', '.join([*parts, '…'] if self.extra or len(self.fields) > MAX_PARTS else parts)}}}"

    def to_json(self) -> Json:
        fields = {key: matcher.to_json() for key, matcher in self.fields.items()}
        if self.extra:
            return {"$object": fields, "extra": True}
        return {"$object": fields} if any(str(key).startswith("$") for key in fields) else fields


def object_of(fields: Mapping[str, Matcher], *, extra: bool) -> Matcher:
    """The matcher of an object with these keys: `Equals` if all its values are literals."""
    if not extra and all(type(matcher) is Equals for matcher in fields.values()):
        return Equals({name: getattr(matcher, "value", None) for name, matcher in fields.items()})
    return ObjectOf(fields, extra)


@form("$list", "order", "extra")
@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of these items, in this order; `any_order`: in any order; `extra`: there may be other items."""

    items: tuple[Matcher, ...]
    any_order: bool = False
    extra: bool = False

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if not isinstance(operand, list):
            raise ValueError("$list needs a list of items")
        order = options.get("order", "given")
        if order not in ("given", "any"):
            raise ValueError(f"order of $list must be given or any, not {literal(order)}")
        items = tuple(parts.read(item, index) for index, item in enumerate(operand))
        extra = read_boolean("$list", options, "extra")
        if order == "given" and not extra and all(type(item) is Equals for item in items):
            return Equals([getattr(item, "value", None) for item in items])
        return cls(items, order == "any", extra)

    def mismatch(self, actual: Json) -> str | None:
        return summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        if not isinstance(actual, (list, tuple)):
            yield Difference(path, f"expected a list, got {literal(actual)}")
        elif self.any_order:
            yield from self._unordered(actual, path)
        elif self.extra:
            yield from _missing_items(path, [self.items[index] for index in self._not_in_order(actual)])
        else:
            yield from unequal_items(self.items, actual, path)

    def _unordered(self, actual: Sequence[Json], path: str) -> Iterator[Difference]:
        candidates = [[j for j, item in enumerate(actual) if accepts(matcher, item)] for matcher in self.items]
        matched = _maximum_matching(candidates)
        used = set(matched.values())
        missing = [matcher for index, matcher in enumerate(self.items) if index not in used]
        extra = [j for j in range(len(actual)) if j not in matched]
        if len(missing) == 1 == len(extra) and not self.extra:
            yield from differences_of(missing[0], actual[extra[0]], f"{path}[{extra[0]}]")
            return
        yield from _missing_items(path, missing)
        if not self.extra:
            yield from (Difference(f"{path}[{j}]", f"not expected, got {literal(actual[j])}") for j in extra)

    def _not_in_order(self, actual: Sequence[Json]) -> Iterator[int]:
        """The items that are missing after the items before them. Taking the earliest place for each is optimal."""
        start = 0
        for index, matcher in enumerate(self.items):
            place = next((j for j in range(start, len(actual)) if accepts(matcher, actual[j])), None)
            if place is None:
                yield index
            else:
                start = place + 1

    def describe(self) -> str:
        return _bracketed(self.items, more=self.extra) + (" in any order" if self.any_order else "")

    def to_json(self) -> Json:
        items = [matcher.to_json() for matcher in self.items]
        options = ({"order": "any"} if self.any_order else {}) | ({"extra": True} if self.extra else {})
        return {"$list": items, **options} if options else items


def _bracketed(items: Sequence[Matcher], *, more: bool) -> str:
    """The items in brackets; `more` adds an ellipsis, because there may be other items."""
    parts = [describe(part) for part in items[:MAX_PARTS]]
    return f"[{', '.join([*parts, '…'] if more or len(items) > MAX_PARTS else parts)}]"


def _missing_items(path: str, missing: Sequence[Matcher]) -> Iterator[Difference]:
    for matcher in missing:
        yield Difference(path, f"lacks {describe(matcher)}")


def _maximum_matching(candidates: Sequence[Sequence[int]]) -> dict[int, int]:
    """The largest set of pairs of a place in the list and an item that may be there, by place.

    `candidates` has the possible places of each item. Giving each item its first free place would be wrong: it can take
    the only place of a later item. So when all places of an item are taken, a breadth-first search looks for a chain of
    items that can each move to another place (an augmenting path).
    """
    taken: dict[int, int] = {}
    for first in range(len(candidates)):
        came_from: dict[int, tuple[int, int | None]] = {}
        queue: list[tuple[int, int | None]] = [(first, None)]
        for item, place in queue:
            free = next((j for j in candidates[item] if j not in taken), None)
            if free is not None:
                came_from[free] = item, place
                _augment(taken, came_from, free)
                break
            for j in candidates[item]:
                if j not in came_from:
                    came_from[j] = item, place
                    queue.append((taken[j], j))
    return taken


def _augment(taken: dict[int, int], came_from: Mapping[int, tuple[int, int | None]], free: int) -> None:
    """Move the items along the path that ends at the place `free`."""
    place: int | None = free
    while place is not None:
        taken[place], place = came_from[place]


@form("$each", "at_least", "at_most")
@dataclass(frozen=True, slots=True)
class Each:
    """A list whose items all match, with a number of items between the bounds."""

    item: Matcher
    at_least: int = 0
    at_most: int | None = None

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        bounds = {"at_least": 0, "at_most": None, **options}
        for name, bound in options.items():
            if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
                raise ValueError(f"{name} of $each must be a whole number from 0, not {literal(bound)}")
        least, most = bounds["at_least"], bounds["at_most"]
        if most is not None and most < least:
            raise ValueError(f"at_most of $each is {most}, which is less than at_least, {least}")
        return cls(parts.read(operand), least, most)

    def mismatch(self, actual: Json) -> str | None:
        return summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        if not isinstance(actual, (list, tuple)):
            yield Difference(path, f"expected a list, got {literal(actual)}")
            return
        if len(actual) < self.at_least or (self.at_most is not None and len(actual) > self.at_most):
            most = "" if self.at_most is None else f" and at most {self.at_most}"
            yield Difference(path, f"expected at least {self.at_least}{most} items, got {len(actual)}")
        for index, item in enumerate(actual):
            yield from differences_of(self.item, item, f"{path}[{index}]")

    def describe(self) -> str:
        return f"a list of {describe(self.item)}"

    def to_json(self) -> Json:
        form: dict[str, Json] = {"$each": self.item.to_json()}
        if self.at_least:
            form["at_least"] = self.at_least
        return form if self.at_most is None else form | {"at_most": self.at_most}


@dataclass(frozen=True, slots=True)
class Including:
    """A list that has each of these items somewhere; one item of the list may match several."""

    items: tuple[Matcher, ...]

    def mismatch(self, actual: Json) -> str | None:
        return summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        if not isinstance(actual, (list, tuple)):
            yield Difference(path, f"expected a list, got {literal(actual)}")
            return
        missing = [matcher for matcher in self.items if not any(accepts(matcher, item) for item in actual)]
        yield from _missing_items(path, missing)

    def describe(self) -> str:
        return _bracketed(self.items, more=True)

    def to_json(self) -> Json:
        return {"$subset": [matcher.to_json() for matcher in self.items]}
