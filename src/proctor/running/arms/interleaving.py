"""Puts the trials of arms in an order in which no arm has an advantage from when it runs.

A provider has slow minutes, a cache warms up, an agent gets its first connection: what runs first differs from what
runs last. If all trials of one arm ran before those of the other, such effects would look like a difference between the
arms. So the arms of a case run right after one another, as a block, and the order within the block is random. A random
order alone would put the same arm first in all of three cases every fourth time. So each group of as many blocks as
there are arms uses one random order, rotated: in it, every arm is first once and last once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from proctor.running.plan import PlannedTrial


def interleaved(trials: Iterable[PlannedTrial], random_order: random.Random | None = None) -> list[PlannedTrial]:
    """The trials, with those of the arms of a suite interleaved; trials of other suites keep their order.

    The trials of a case with the same number form a block, with the arms in a random order.
    """
    rng = random.Random() if random_order is None else random_order  # noqa: S311  no secret
    groups: dict[str, dict[tuple[str, int], list[PlannedTrial]]] = {}
    ordered: list[list[PlannedTrial]] = []
    for trial in trials:
        source = trial.suite.source
        if not source:
            ordered.append([trial])
            continue
        blocks = groups.setdefault(source, {})
        place = trial.case.id, trial.number
        if place not in blocks:
            blocks[place] = []
            ordered.append(blocks[place])
        blocks[place].append(trial)
    for blocks in groups.values():
        _shuffle_blocks(list(blocks.values()), rng)
    return [trial for block in ordered for trial in block]


def _shuffle_blocks(blocks: Sequence[list[PlannedTrial]], rng: random.Random) -> None:
    """Order each block; the arm that is first changes from block to block."""
    arms = list(dict.fromkeys(trial.suite for block in blocks for trial in block))
    order, turns = list(arms), list(range(len(arms)))
    for number, block in enumerate(blocks):
        turn = number % len(arms)
        if turn == 0:
            rng.shuffle(order)
            rng.shuffle(turns)
        rotated = order[turns[turn] :] + order[: turns[turn]]
        block.sort(key=lambda trial: rotated.index(trial.suite))
