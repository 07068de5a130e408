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

from proctor.running.plan import Plan, PlannedTrial


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


def trials_on_arms(
    plan: Plan, cases: Iterable[tuple[str, str]], *, numbers: Iterable[int], arms: Sequence[str] = ()
) -> list[PlannedTrial]:
    """Trials of some cases on some arms, in the order of the plan; `interleaved` puts them in the order to run.

    `cases` has the name of the suite in its file and the id of each case. `numbers` are the numbers of the trials,
    which must not have run yet. Without `arms`, all of them. A run in progress executes such trials as a further round
    (`Execution`), as often as the caller wants; their positions follow the first trial of their case, so the caller
    reserves room for them (`gate_trials.reserve_positions`).
    """
    chosen, wanted = frozenset(cases), tuple(numbers)
    trials: dict[tuple[str, str, int], PlannedTrial] = {}
    for planned in plan.trials:
        is_chosen = ((planned.suite.source or planned.suite.suite.name), planned.case.id) in chosen
        if planned.number == 1 and is_chosen and (not arms or planned.suite.agent_name in arms):
            for number in wanted:
                trials[(*planned.address[:2], number)] = planned.follow_up(number)
    return list(trials.values())
