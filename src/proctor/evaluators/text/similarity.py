"""How much two texts have in common, exactly where that can be afforded and as honest bounds where it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from proctor.base.records import record

S = TypeVar("S", bound=Sequence[str])

EXACT_CELLS = 10_000_000_000
"""The product of lengths up to which texts are compared exactly: about half a second."""
BLOCK = 2048
"""The length of the blocks in which longer texts are compared."""


@record
class Similarity:
    """A similarity between 0 and 1. Unless `exact`, the true one lies between `score` and `at_most`."""

    score: float
    at_most: float
    exact: bool = True


def edit_similarity(left: str, right: str) -> Similarity:
    """One minus the Levenshtein distance over the longer length, in code points; two empty texts are alike.

    Very long texts are compared exactly when few edits separate them. Otherwise they are cut into as many blocks each
    and the blocks compared in turn: an alignment that is possible, if not the best, so the score is a lower bound.
    """
    if left == right:
        return Similarity(1.0, 1.0)
    from rapidfuzz.distance import Levenshtein

    longest = max(len(left), len(right))
    if len(left) * len(right) <= EXACT_CELLS:
        score = 1.0 - Levenshtein.distance(left, right) / longest
        return Similarity(score, score)
    affordable = EXACT_CELLS // longest
    distance = Levenshtein.distance(left, right, score_cutoff=affordable)
    if distance <= affordable:
        score = 1.0 - distance / longest
        return Similarity(score, score)
    at_least = max(affordable + 1, abs(len(left) - len(right)))
    blockwise = sum(Levenshtein.distance(a, b) for a, b in _blocks(left, right))
    return Similarity(1.0 - blockwise / longest, 1.0 - at_least / longest, exact=False)


def edit_score(left: str, right: str) -> float:
    """The score of `edit_similarity` alone."""
    return edit_similarity(left, right).score


def common_words(left: Sequence[str], right: Sequence[str]) -> tuple[int, bool]:
    """The length of the longest common subsequence of words, and whether it is exact (else it is at least that)."""
    from rapidfuzz.distance import LCSseq

    if len(left) * len(right) <= EXACT_CELLS:
        return LCSseq.similarity(left, right), True
    return sum(LCSseq.similarity(a, b) for a, b in _blocks(left, right)), False


def _blocks(left: S, right: S) -> Iterator[tuple[S, S]]:
    """Both sides cut into the same number of pieces, so that the pieces lie at the same share of the way."""
    count = -(-max(len(left), len(right)) // BLOCK)
    for index in range(count):
        yield _piece(left, index, count), _piece(right, index, count)


def _piece(whole: S, index: int, count: int) -> S:
    return whole[len(whole) * index // count : len(whole) * (index + 1) // count]  # type: ignore[return-value]
