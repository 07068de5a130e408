"""The alignment behind METEOR: which word of the answer stands for which word of the reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from proctor.evaluators.text.porter import stem

Synonyms = Callable[[str], Iterable[str]]
_Alignment = list[tuple[int, int]]


def align(answer: Sequence[str], reference: Sequence[str], synonyms: Synonyms | None) -> list[_Alignment]:
    """One alignment per stage: the same word, the same stem, and a synonym where there is a dictionary of them.

    In every stage the last words choose first, and take the last reference word that is still free.
    """
    free_answer, free_reference = list(range(len(answer))), list(range(len(reference)))
    stages: list[Callable[[str], Iterable[str]]] = [lambda word: (word,), lambda word: (stem(word),)]
    stages += [] if synonyms is None else [synonyms]
    result: list[_Alignment] = []
    for number, forms in enumerate(stages):
        places: dict[str, list[int]] = defaultdict(list)
        for index in free_reference:
            places[stem(reference[index]) if number == 1 else reference[index]].append(index)
        stage = _match(answer, free_answer, places, forms)
        taken_answer, taken_reference = {a for a, _ in stage}, {r for _, r in stage}
        free_answer = [index for index in free_answer if index not in taken_answer]
        free_reference = [index for index in free_reference if index not in taken_reference]
        result.append(stage)
    return result


def _match(
    answer: Sequence[str], free: list[int], places: dict[str, list[int]], forms: Callable[[str], Iterable[str]]
) -> _Alignment:
    pairs: _Alignment = []
    for index in reversed(free):
        candidates = [found for form in forms(answer[index]) if (found := places.get(form))]
        if candidates:
            pairs.append((index, max(candidates, key=lambda found: found[-1]).pop()))
    return pairs


def score(
    stages: list[_Alignment], answer: int, reference: int, *, alpha: float, beta: float, gamma: float
) -> tuple[float, int]:
    """The score of an alignment between texts of so many words, and into how many chunks the matches fall."""
    matches = sorted(pair for stage in stages for pair in stage)
    if not matches:
        return 0.0, 0
    chunks = 1 + sum(here[0] + 1 != after[0] or here[1] + 1 != after[1] for here, after in pairwise(matches))
    precision, recall = len(matches) / answer, len(matches) / reference
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    return (1 - gamma * (chunks / len(matches)) ** beta) * mean, chunks


@cache
def wordnet_synonyms() -> Synonyms | None:
    """Synonyms by WordNet, or `None` when nltk or its WordNet data is not installed. Nothing is downloaded."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        return None
    return lru_cache(maxsize=1 << 14)(lambda word: _lemmas(wordnet, word))


def _lemmas(wordnet: Any, word: str) -> frozenset[str]:
    names = (lemma.name() for synset in wordnet.synsets(word) for lemma in synset.lemmas())
    return frozenset(name for name in names if "_" not in name) | {word}
