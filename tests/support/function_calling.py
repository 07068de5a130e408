"""Generated function-calling cases as public benchmarks have them, and a checker of their own that tries everything.

The checker shares nothing with Proctor: rules are plain dictionaries, lists in any order and parallel calls are tried
in every permutation.
"""

from __future__ import annotations

import copy
import random
from itertools import permutations
from typing import Any

Rule = dict[str, Any]
Call = tuple[str, dict[str, Any]]

TOWNS = ("Oslo", "New York", "Rio de Janeiro", "St. John's", "Bergen")
UNITS = ("km", "mi", "metre", "foot")
TOOLS = ("book_flight", "find_hotel", "plan_trip", "convert", "notify")


class Expected:
    """One expected call: the tool, and a rule for each argument."""

    def __init__(self, tool: str, rules: dict[str, Rule]) -> None:
        self.tool = tool
        self.rules = rules


def scalar(*values: Any, fuzzy: bool = False, integer: bool = False, optional: bool = False) -> Rule:
    return {"is": "scalar", "values": list(values), "fuzzy": fuzzy, "integer": integer, "optional": optional}


def an_object(fields: dict[str, Rule], *, opened: bool = False, optional: bool = False) -> Rule:
    return {"is": "object", "fields": fields, "open": opened, "optional": optional}


def a_list(items: list[Rule], *, any_order: bool = False, optional: bool = False) -> Rule:
    return {"is": "list", "items": items, "any_order": any_order, "optional": optional}


def each(item: Rule, *, optional: bool = False) -> Rule:
    return {"is": "each", "item": item, "optional": optional}


def generate(rng: random.Random) -> list[Expected]:
    """One case: one to four calls, of which some are of one tool."""
    return [_call(rng, number) for number in range(rng.randint(1, 4))]


def _call(rng: random.Random, number: int) -> Expected:
    towns = rng.sample(TOWNS, 3)
    rules: dict[str, Rule] = {
        "number": scalar(number + 1, integer=True),
        "where": an_object(
            {
                "city": scalar(towns[0], fuzzy=True),
                "unit": scalar(*rng.sample(UNITS, 2)),
                "floor": scalar(rng.randint(1, 9), optional=True),
                "point": an_object({"x": scalar(1.5, 2), "y": scalar(None, 0)}, opened=rng.random() < 0.5),
            }
        ),
        "stops": a_list([scalar(town) for town in towns[:2]]),
    }
    extras: list[tuple[str, Rule]] = [
        ("currency", scalar("EUR", "USD", optional=True)),
        ("flag", scalar(True, optional=True)),
        ("people", a_list([an_object({"age": scalar(age, integer=True)}) for age in (7, 9)], any_order=True)),
        ("codes", each(scalar("a", "b", "c"))),
        ("amount", scalar(rng.randint(10, 99), rng.random() + 100)),
        ("options", an_object({"seat": scalar("aisle")}, opened=True, optional=True)),
        ("tags", a_list([scalar("x"), scalar("x"), scalar("y")], any_order=True, optional=True)),
    ]
    rules |= dict(rng.sample(extras, rng.randint(1, len(extras))))
    return Expected(rng.choice(TOOLS), rules)


def form(rule: Rule) -> Any:
    """The rule as a suite writes it."""
    written = _form(rule)
    return {"$optional": written} if rule["optional"] else written


def _form(rule: Rule) -> Any:
    if rule["is"] == "object":
        fields = {name: form(inner) for name, inner in rule["fields"].items()}
        return {"$object": fields, "extra": True} if rule["open"] else fields
    if rule["is"] == "list":
        items = [form(item) for item in rule["items"]]
        return {"$list": items, "order": "any"} if rule["any_order"] else items
    if rule["is"] == "each":
        return {"$each": form(rule["item"]), "at_least": 1}
    values = [{"$fuzzy": v, "ignore_punctuation": True} if rule["fuzzy"] else v for v in rule["values"]]
    wanted = values[0] if len(values) == 1 else {"$one_of": values}
    return {"$type": "integer", "value": wanted} if rule["integer"] else wanted


def accepts_calls(expected: list[Expected], calls: list[Call]) -> bool:
    """Whether the calls are exactly the expected ones, in some order."""
    return len(expected) == len(calls) and any(
        all(_accepts_call(wanted, call) for wanted, call in zip(expected, order, strict=True))
        for order in permutations(calls)
    )


def contains_calls(expected: list[Expected], calls: list[Call]) -> bool:
    """Whether the expected calls are among these."""
    return any(
        all(_accepts_call(wanted, call) for wanted, call in zip(expected, order, strict=True))
        for order in permutations(calls, len(expected))
    )


def _accepts_call(wanted: Expected, call: Call) -> bool:
    name, arguments = call
    return name == wanted.tool and accepts(an_object(wanted.rules), arguments)


def accepts(rule: Rule, value: Any) -> bool:
    if rule["is"] == "object":
        return isinstance(value, dict) and (
            (rule["open"] or all(key in rule["fields"] for key in value))
            and all(
                accepts(inner, value[key]) if key in value else inner["optional"]
                for key, inner in rule["fields"].items()
            )
        )
    if rule["is"] == "each":
        return isinstance(value, list) and len(value) >= 1 and all(accepts(rule["item"], item) for item in value)
    if rule["is"] == "list":
        items = rule["items"]
        if not isinstance(value, list) or len(value) != len(items):
            return False
        orders = permutations(value) if rule["any_order"] else [tuple(value)]
        return any(all(map(accepts, items, order)) for order in orders)
    if rule["integer"] and type(value) is not int:
        return False
    return any(_equal(wanted, value, rule["fuzzy"]) for wanted in rule["values"])


def _equal(wanted: Any, value: Any, fuzzy: bool) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool) or wanted is None or value is None:
        return wanted is value
    if isinstance(wanted, str) and isinstance(value, str) and fuzzy:
        return _letters(wanted) == _letters(value)
    return isinstance(wanted, str) == isinstance(value, str) and wanted == value


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def right_calls(expected: list[Expected]) -> list[Call]:
    """Everything in full, in the order in which it is expected."""
    return [(call.tool, {name: _example(rule) for name, rule in call.rules.items()}) for call in expected]


def _example(rule: Rule) -> Any:
    if rule["is"] == "object":
        return {name: _example(inner) for name, inner in rule["fields"].items()}
    if rule["is"] == "list":
        return [_example(item) for item in rule["items"]]
    if rule["is"] == "each":
        return [_example(rule["item"])]
    return rule["values"][0]


def acceptable_calls(expected: list[Expected], rng: random.Random) -> list[Call]:
    """Other values that are fine as well, optional ones left out, any order where it does not matter."""
    calls = [(call.tool, _variant(an_object(call.rules), rng)) for call in expected]
    rng.shuffle(calls)
    return calls


def _variant(rule: Rule, rng: random.Random) -> Any:
    if rule["is"] == "object":
        kept = [(name, inner) for name, inner in rule["fields"].items() if not inner["optional"] or rng.random() < 0.5]
        value = {name: _variant(inner, rng) for name, inner in kept}
        return value | {"more": [1]} if rule["open"] else value
    if rule["is"] == "list":
        items = [_variant(item, rng) for item in rule["items"]]
        if rule["any_order"]:
            rng.shuffle(items)
        return items
    if rule["is"] == "each":
        return [_variant(rule["item"], rng) for _ in range(rng.randint(1, 3))]
    value = rng.choice(rule["values"])
    if rule["fuzzy"]:
        return rng.choice(
            [value.upper(), value.replace(" ", "-"), value.replace(" ", "").replace(".", ""), f" {value}, "]
        )
    return float(value) if type(value) is int and not rule["integer"] and rng.random() < 0.3 else value


def _nested(calls: list[Call]) -> dict[str, Any]:
    return calls[0][1]["where"]


def _rename(calls: list[Call], rng: random.Random) -> None:
    calls[0] = ("another_tool", calls[0][1])


def _drop(calls: list[Call], rng: random.Random) -> None:
    calls.pop(rng.randrange(len(calls)))


def _add(calls: list[Call], rng: random.Random) -> None:
    calls.insert(rng.randint(0, len(calls)), ("look_around", {}))


def _double(calls: list[Call], rng: random.Random) -> None:
    calls.append(copy.deepcopy(rng.choice(calls)))


def _leave_out(calls: list[Call], rng: random.Random) -> None:
    del calls[0][1]["number"]


def _too_much(calls: list[Call], rng: random.Random) -> None:
    calls[0][1]["surprise"] = None


def _wrong_value(calls: list[Call], rng: random.Random) -> None:
    _nested(calls)["city"] = "Atlantis"


def _wrong_type(calls: list[Call], rng: random.Random) -> None:
    calls[0][1]["number"] = rng.choice([float(calls[0][1]["number"]), str(calls[0][1]["number"]), True])


def _wrong_inside(calls: list[Call], rng: random.Random) -> None:
    where = _nested(calls)
    rng.choice([lambda: where.pop("unit"), lambda: where.update(extra=1), lambda: where["point"].update(x=9)])()


def _wrong_list(calls: list[Call], rng: random.Random) -> None:
    stops = calls[0][1]["stops"]
    rng.choice([stops.reverse, stops.pop, lambda: stops.append(stops[0]), lambda: stops.__setitem__(1, "Atlantis")])()


MISTAKES = {
    "another tool": _rename,
    "a call is missing": _drop,
    "a call too many": _add,
    "a call made twice": _double,
    "an argument is missing": _leave_out,
    "an argument too many": _too_much,
    "another value": _wrong_value,
    "another type": _wrong_type,
    "wrong inside an object": _wrong_inside,
    "wrong inside a list": _wrong_list,
}
"""Ten ways to be wrong; each changes calls in place."""
