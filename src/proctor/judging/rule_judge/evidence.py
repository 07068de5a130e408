"""Finds the few sentences in passages of any length that may support a statement.

Passages are split into sentences and indexed by word. Sentences vote by the weight of the shared words, rarer words
counting more, and a greedy cover picks those that together have the most words of the statement. Comparing a statement
with a whole passage would be slow, and would combine words of unrelated sentences into support.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from proctor.judging.rule_judge.dates import PartialDate
from proctor.judging.rule_judge.passage_reading import Reading, Term, read_statement
from proctor.judging.rule_judge.quantities import Quantity
from proctor.judging.rule_judge.statements import is_data, split_statements
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT, root

MAX_SENTENCES = 4
"""Up to this many sentences are all compared; of more, the best are chosen."""
_MAX_RECORD = 24
"""Up to this many entries of one piece of data are compared together: each says little without the others."""
_MAX_POSTINGS = 200
"""How many sentences one word votes for."""
_MAX_CANDIDATES = 16
"""How many sentences with the most votes the cover is picked from."""


class Evidence:
    """The sentences that a statement is compared with, and what they contain."""

    def __init__(self, readings: Sequence[Reading], *, is_data: bool = False, has_speaker: bool = False) -> None:
        self.readings = tuple(readings)
        self.has_speaker = has_speaker
        """Whether a passage is in the first person: then a statement may be, too."""
        self.is_data = is_data
        """Whether the sentences that share words with the statement are data, such as a tool's result."""

    @cached_property
    def polarity(self) -> dict[str, set[bool]]:
        """For each key, whether its mentions are denied (True), stated (False), or both."""
        found: dict[str, set[bool]] = {}
        for term in self.terms:
            found.setdefault(term.key, set()).add(term.denied)
        return found

    @cached_property
    def terms(self) -> list[Term]:
        return [term for reading in self.readings for term in reading.terms]

    @cached_property
    def after_names(self) -> set[str]:
        """The names that follow another name somewhere: family names with a first name."""
        return {
            term.key
            for reading in self.readings
            for before, term in pairwise(reading.terms)
            if before.text[0].isupper() and before.weight > GRAMMAR_WEIGHT and term.name
        }

    @cached_property
    def quantities(self) -> list[Quantity]:
        return [item for reading in self.readings for item in reading.quantities]

    @cached_property
    def days(self) -> list[PartialDate]:
        return [item for reading in self.readings for item in reading.days]

    @cached_property
    def years(self) -> set[int]:
        plain = {int(item.value) for item in self.quantities if item.is_year}
        return plain | {day.year for day in self.days if day.year is not None}

    @cached_property
    def roots(self) -> set[str]:
        return {root(term.key) for term in self.terms if term.weight > GRAMMAR_WEIGHT}

    @cached_property
    def beginnings(self) -> dict[str, list[str]]:
        """Longer words by their first five letters."""
        found: dict[str, list[str]] = {}
        for term in self.terms:
            if len(term.key) >= 5 and term.weight > GRAMMAR_WEIGHT:
                found.setdefault(term.key[:5], []).append(term.key)
        return found

    @cached_property
    def initials(self) -> set[str]:
        """The initials of two to five neighboring content words: `nfl` for National Football League."""
        found: set[str] = set()
        for reading in self.readings:
            letters = "".join(term.text[0].lower() for term in reading.terms if term.weight > GRAMMAR_WEIGHT)
            for length in (2, 3, 4, 5):
                found.update(letters[start : start + length] for start in range(len(letters) - length + 1))
        return found


class PassageIndex:
    """Passages split into sentences and indexed by word, so that a statement is compared with a few of them only."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.readings: list[Reading] = []
        self._records: dict[int, range] = {}
        self._data: set[int] = set()
        for passage in passages:
            before = len(self.readings)
            self.readings.extend(read_statement(sentence) for sentence in split_statements(passage))
            entries = range(before, len(self.readings))
            if is_data(passage):
                self._data.update(entries)
                if len(entries) <= _MAX_RECORD:
                    self._records |= dict.fromkeys(entries, entries)
        self._has_speaker = any(reading.first_person for reading in self.readings)
        self._where: dict[str, list[int]] = {}
        for index, reading in enumerate(self.readings):
            for term_key in reading.keys:
                self._where.setdefault(term_key, []).append(index)

    def evidence(self, statement: Reading) -> Evidence:
        """The sentences to compare the statement with: all if there are few, otherwise those that share most words."""
        weights = {term.key: term.weight for term in statement.terms if term.weight > GRAMMAR_WEIGHT}
        chosen: Iterable[int] = range(len(self.readings))
        if len(self.readings) > MAX_SENTENCES:
            chosen = dict.fromkeys(
                other for index in self._best_sentences(weights) for other in self._records.get(index, (index,))
            )
        sharing = [index for index in chosen if not weights.keys().isdisjoint(self.readings[index].keys)]
        is_data = bool(self._data) and self._data.issuperset(sharing or chosen)
        readings = [self.readings[index] for index in chosen]
        return Evidence(readings, is_data=is_data, has_speaker=self._has_speaker)

    def _best_sentences(self, weights: dict[str, float]) -> list[int]:
        """Indexes of the sentences that together have the most words of the statement, by vote and greedy cover."""
        votes: Counter[int] = Counter()
        for term_key, weight in weights.items():
            where = self._where.get(term_key, ())
            worth = weight / (1 + math.log1p(len(where)))
            for index in where[:_MAX_POSTINGS]:
                votes[index] += worth  # type: ignore[assignment]
        candidates = [index for index, _ in votes.most_common(_MAX_CANDIDATES)]
        chosen: list[int] = []
        missing = dict(weights)

        def gain(index: int) -> tuple[float, float]:
            keys = self.readings[index].keys
            return sum(weight for term_key, weight in missing.items() if term_key in keys), votes[index]

        while candidates and missing and len(chosen) < MAX_SENTENCES:
            best = max(candidates, key=gain)
            if not any(term_key in self.readings[best].keys for term_key in missing):
                break
            chosen.append(best)
            candidates.remove(best)
            for term_key in self.readings[best].keys:
                missing.pop(term_key, None)
        return chosen


@lru_cache(maxsize=8)
def _passage_index(passages: tuple[str, ...]) -> PassageIndex:
    return PassageIndex(passages)


def passage_index(passages: str | Sequence[str]) -> PassageIndex:
    """The index of the passages; the last few are cached, since all statements of an answer need the same one."""
    return _passage_index((passages,) if isinstance(passages, str) else tuple(passages))
