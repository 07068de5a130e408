"""google-adk: the trajectories of tool calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from peers_equal.comparison import Comparison, Peer, compare_items
from peers_equal.environments import Environment

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
TRAJECTORIES = 12_000


def compare(environment: Environment) -> Iterator[Comparison]:
    lists = {"trajectories": list(random_trajectories(TRAJECTORIES))}
    original, ours = environment.call("adk_original.py", lists), environment.call("adk_ours.py", lists)
    yield compare_items("random lists of tool calls", original["trajectories"], ours["trajectories"])


def random_trajectories(count: int) -> Iterator[dict[str, Any]]:
    """Expected and actual calls. Few different ones, so that many lists match, or nearly so."""
    chance = random.Random(28)
    for number in range(count):
        names = ["search", "book", "pay"][: chance.randint(1, 3)]
        expected = [random_call(chance, names) for _ in range(chance.choice((0, 0, 1, 1, 2, 2, 3, 4)))]
        actual = [random_call(chance, names) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 5)))]
        if chance.random() < 0.5:  # what was expected, with changes
            actual = [*expected, *actual[: chance.choice((0, 0, 1, 2))]]
            if chance.random() < 0.5:
                chance.shuffle(actual)
        yield {
            "name": f"list {number}",
            "match_type": MATCH_TYPES[number % 3],
            "ignore_args": chance.random() < 0.25,
            "expected": expected,
            "actual": actual,
        }


def random_call(chance: random.Random, names: list[str]) -> dict[str, Any]:
    values = ("London", "london", "", 1, 1.0, 2, None, ["a", "b"], ["b", "a"], {"to": "Rome", "via": None}, {})
    arguments = {key: chance.choice(values) for key in ("city", "day") if chance.random() < 0.4}
    return {"name": chance.choice(names), "args": arguments}


PEER = Peer("adk", ("google-adk[eval]",), compare)
