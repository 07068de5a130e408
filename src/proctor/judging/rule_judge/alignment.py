"""Aligns a claim with a source: the cheapest edit script that turns the source's tokens into the claim's.

The script is monotone: it keeps the order of both. Order carries the roles (who did what to whom, cause and effect,
condition and consequence), so a claim that only reorders words is not aligned with its source. A token may be changed
only into one that fills the same slot and excludes it, such as another amount; other differences are additions and
losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.judging.rule_judge.reading import Token, excludes, matches

_CHANGE, _CONTENT, _FUNCTION = 3, 2, 1
"""Costs. A change is cheaper than losing one content token and adding another."""
MAX_TOKENS = 160
"""Longer sentences are not aligned: nobody writes a claim that needs them."""


@dataclass(frozen=True, slots=True)
class Edits:
    """The difference between a claim and a source."""

    changed: tuple[tuple[Token, Token], ...]
    """The claim's token and the source's."""
    added: tuple[Token, ...]
    """Tokens of the claim that the source does not have."""
    dropped: tuple[tuple[Token, ...], ...]
    """Runs of tokens of the source that the claim leaves out."""
    kept: int


def align(claim: Sequence[Token], source: Sequence[Token]) -> Edits | None:
    """The cheapest edit script, or `None` for sentences that are too long."""
    if len(claim) > MAX_TOKENS or len(source) > MAX_TOKENS:
        return None
    costs = [[0] * (len(source) + 1) for _ in range(len(claim) + 1)]
    for row in range(len(claim), -1, -1):
        for column in range(len(source), -1, -1):
            costs[row][column] = min((cost for cost, _, _ in _steps(claim, source, row, column, costs)), default=0)
    return _trace(claim, source, costs)


def _steps(
    claim: Sequence[Token], source: Sequence[Token], row: int, column: int, costs: list[list[int]]
) -> list[tuple[int, int, int]]:
    """The possible next steps with the cost from here to the end: how far each moves in the claim and the source."""
    steps = []
    if row < len(claim) and column < len(source):
        if matches(claim[row], source[column]):
            return [(costs[row + 1][column + 1], 1, 1)]
        if excludes(claim[row], source[column]):
            steps.append((costs[row + 1][column + 1] + _CHANGE, 1, 1))
    if column < len(source):
        steps.append((costs[row][column + 1] + _cost(source[column]), 0, 1))
    if row < len(claim):
        steps.append((costs[row + 1][column] + _cost(claim[row]), 1, 0))
    return steps


def _cost(token: Token) -> int:
    return _CONTENT if token.is_content else _FUNCTION


def _trace(claim: Sequence[Token], source: Sequence[Token], costs: list[list[int]]) -> Edits:
    changed: list[tuple[Token, Token]] = []
    added: list[Token] = []
    dropped: list[tuple[Token, ...]] = []
    run: list[Token] = []
    row = column = kept = 0
    while row < len(claim) or column < len(source):
        _, down, across = min(_steps(claim, source, row, column, costs))
        if across and not down:
            run.append(source[column])
        elif run:
            dropped.append(tuple(run))
            run = []
        if down and across:
            if matches(claim[row], source[column]):
                kept += 1
            else:
                changed.append((claim[row], source[column]))
        elif down:
            added.append(claim[row])
        row, column = row + down, column + across
    if run:
        dropped.append(tuple(run))
    return Edits(tuple(changed), tuple(added), tuple(dropped), kept)
