"""BLEU, ROUGE and METEOR: how many words an answer shares with the expected one, and their tokenizers.

The numbers are those of the reference implementations (sacrebleu, rouge-score, nltk), which differ mostly in how they
cut a text into words. So each tokenizer follows its implementation, extended to scripts without spaces between words.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.text.comparison import common_words
from proctor.evaluators.text.porter import stem
from proctor.evaluators.values import (
    expected_and_output,
    expected_but_got,
    require_bool,
    require_choice,
    require_number,
)

_IDEOGRAPHS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CLUSTERED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai and Lao, Myanmar, Khmer: a character and its marks are one unit, and there are no spaces between words."""

_LATIN_WORD = re.compile(r"[a-z0-9]+")
_NOT_TYPESCRIPT_WORD = re.compile(r"[^a-z0-9_\s]")
_MTEVAL_RULES = (
    (re.compile(r"""([!"#$%&()*+/:;<=>?@\[\\\]^_`{|}~])"""), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def unicode_words(text: str, *, stems: bool) -> list[str]:
    """Lower-case words of any script without punctuation; ideographs, kana, hangul and Thai clusters one by one.

    With `stems`, words of plain Latin letters lose their endings if they have more than three letters. Words with
    accents stay unchanged.
    """
    if text.isascii():
        words = _LATIN_WORD.findall(text.lower())
    else:
        normal = unicodedata.normalize("NFKC", text).lower()
        words = spaced(normal).translate(_WORD_CHARACTERS).split()
    if not stems:
        return words
    return [stem(word) if len(word) > 3 and word.isascii() else word for word in words]


def typescript_words(text: str, *, stems: bool) -> list[str]:
    """Lower-case words of ASCII letters, digits and underscores, as JavaScript's `\\w` has them."""
    words = _NOT_TYPESCRIPT_WORD.sub(" ", text.lower()).split()
    return [stem(word) if len(word) > 3 else word for word in words] if stems else words


def mteval_tokens(text: str) -> list[str]:
    """Words and punctuation as the `mteval-v13a` script cuts them, the standard for BLEU scores."""
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in line:
        for entity, character in _ENTITIES:
            line = line.replace(entity, character)
    line = f" {line} "
    for pattern, replacement in _MTEVAL_RULES:
        line = pattern.sub(replacement, line)
    return line.split()


def spaced(text: str) -> str:
    """The text with spaces around each unit of scripts that have no spaces between words."""
    return text if text.isascii() else _unspaced_units().sub(r" \g<0> ", text)


@cache
def _unspaced_units() -> re.Pattern[str]:
    characters = [chr(code) for first, last in _CLUSTERED for code in range(first, last + 1)]
    marks = "".join(character for character in characters if unicodedata.category(character).startswith("M"))
    bases = "".join(character for character in characters if unicodedata.category(character)[0] in "LN")
    return re.compile(f"[{_IDEOGRAPHS}]|[{bases}][{marks}]*")


class _WordCharacters(dict[int, str]):
    """For `str.translate`: letters, digits and the marks on them stay, all else is a space. Fills itself on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_word_character = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = replacement = character if is_word_character else " "
        return replacement


_WORD_CHARACTERS = _WordCharacters()


_ORDERS = 4
_STAGES = ("exact", "stem", "synonym")


@evaluator(family="text", needs="reference")
@dataclass(frozen=True, slots=True)
class BLEU(ScoreSettings):
    """How many runs of one to four words the answer shares with the expected one, as sacrebleu counts a sentence.

    The geometric mean of the shares of runs of 1 to 4 words that the expected text has, times a penalty for brevity;
    sacrebleu's number with `13a`. `auto` also cuts scripts without spaces.
    """

    tokenizer: str = "auto"

    def __post_init__(self) -> None:
        require_choice("tokenizer", self.tokenizer, ("auto", "13a"))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_and_output(evaluable, "BLEU")
        if blank := _blank(expected, output):
            return blank
        if self.tokenizer == "auto":
            reference, answer = mteval_tokens(spaced(expected)), mteval_tokens(spaced(output))
        else:
            reference, answer = mteval_tokens(expected), mteval_tokens(output)
        precisions, brevity = _precisions(reference, answer), _brevity(len(reference), len(answer))
        score = float(reference == answer)
        if precisions and reference != answer:
            score = min(1.0, brevity * math.exp(sum(map(math.log, precisions)) / len(precisions)))
        details = {"precisions": precisions, "brevity_penalty": brevity, "tokenizer": self.tokenizer}
        return Evaluation(score, f"BLEU {score:.4f}: {expected_but_got(expected, output)}", details)


def _precisions(reference: list[str], answer: list[str]) -> list[float]:
    """The share of the answer's n-grams that the reference has, by length; empty if no n-gram is shared.

    A length without a match counts as half a match, the next as a quarter, as NIST smooths them.
    """
    precisions: list[float] = []
    smoothing = 1.0
    matched = False
    for order in range(1, min(_ORDERS, len(answer)) + 1):
        shared = _shared(_runs(reference, order), _runs(answer, order))
        matched = matched or shared > 0
        smoothing *= 1.0 if shared else 2.0
        precisions.append((shared or 1.0 / smoothing) / (len(answer) - order + 1))
    return precisions if matched else []


def _brevity(reference: int, answer: int) -> float:
    if answer >= reference:
        return 1.0
    return math.exp(1 - reference / answer) if answer else 0.0


def _runs(words: list[str], order: int) -> Counter[Any]:
    if order == 1:
        return Counter(words)
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))


def _shared(reference: Counter[Any], answer: Counter[Any]) -> int:
    return sum(min(count, reference[run]) for run, count in answer.items() if run in reference)


@evaluator(family="text", needs="reference", example={"variant": "rouge1"})
@dataclass(frozen=True, slots=True)
class ROUGE(ScoreSettings):
    """How many words, pairs of words or words in order the answer and the expected text share (ROUGE).

    Counts shared words in order (`rougeL`), words (`rouge1`) or pairs of words (`rouge2`). The score is their share of
    the answer (`p`), of the expected text (`r`), or the harmonic mean of both (`f`). The tokenizer `unicode` gives the
    numbers of rouge-score and adk-python, `typescript` (`rouge1` only) those of ADK for TypeScript. Skipped if the
    expected output has no words.
    """

    variant: str = "rougeL"
    stem: bool | None = None
    """Whether `running` counts as `run`. By default true with `unicode` and false with `typescript`."""
    measure: str = "f"
    """`p` (precision), `r` (recall) or `f` (their harmonic mean)."""
    tokenizer: str = "unicode"

    def __post_init__(self) -> None:
        require_choice("variant", self.variant, ("rougeL", "rouge1", "rouge2"))
        require_choice("measure", self.measure, ("f", "p", "r"))
        require_choice("tokenizer", self.tokenizer, ("unicode", "typescript"))
        if self.stem is not None:
            require_bool(stem=self.stem)
        if self.tokenizer == "typescript" and self.variant != "rouge1":
            raise ValueError("tokenizer typescript works only with variant rouge1")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_and_output(evaluable, "ROUGE")
        if blank := _blank(expected, output):
            return blank
        reference, answer = self._words(expected), self._words(output)
        if not reference and expected != output:
            raise NothingToCompare(
                f"ROUGE needs words, and the expected output has none: {expected_but_got(expected, output)}"
            )
        scores, exact = self._scores(reference, answer)
        score = scores[self.measure]
        bound = "" if exact else " or more (compared in blocks because the texts are long)"
        details = {"precision": scores["p"], "recall": scores["r"], "f_measure": scores["f"], "exact": exact}
        return Evaluation(score, f"{self.variant} {score:.4f}{bound}: {expected_but_got(expected, output)}", details)

    def _words(self, text: str) -> list[str]:
        if self.tokenizer == "typescript":
            return list(dict.fromkeys(typescript_words(text, stems=bool(self.stem))))
        return unicode_words(text, stems=self.stem is not False)

    def _scores(self, reference: list[str], answer: list[str]) -> tuple[dict[str, float], bool]:
        if reference == answer:
            return {"p": 1.0, "r": 1.0, "f": 1.0}, True
        exact = True
        lost = 0
        if self.variant == "rougeL":
            shared, exact = common_words(reference, answer)
        else:
            order = int(self.variant[-1])
            shared, lost = _shared(_runs(reference, order), _runs(answer, order)), order - 1
        precision = shared / max(len(answer) - lost, 1)
        recall = shared / max(len(reference) - lost, 1)
        both = precision + recall
        return {"p": precision, "r": recall, "f": 2 * precision * recall / both if both else 0.0}, exact


@evaluator(family="text", needs="reference")
@dataclass(frozen=True, slots=True)
class METEOR(ScoreSettings):
    """How well the words of the answer align with the expected words (METEOR).

    Words match if they are equal, share a stem or are synonyms. The score is the weighted harmonic mean of precision
    and recall, minus a penalty for scattered matches: nltk's number, but 1 for the same text. Synonyms need the extra
    `wordnet` and its data. `null` uses them if they are installed, `true` requires them.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    synonyms: bool | None = None

    def __post_init__(self) -> None:
        require_number("alpha", self.alpha, most=1.0)
        require_number("beta", self.beta)
        require_number("gamma", self.gamma, most=1.0)
        if self.synonyms is not None:
            require_bool(synonyms=self.synonyms)
        if self.synonyms and wordnet_synonyms() is None:
            raise ValueError("synonyms need nltk and its WordNet data: python -m nltk.downloader wordnet")

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_and_output(evaluable, "METEOR")
        if blank := _blank(expected, output):
            return blank
        reference, answer = (mteval_tokens(spaced(text).lower()) for text in (expected, output))
        stages = align(answer, reference, None if self.synonyms is False else wordnet_synonyms())
        score, chunks = meteor_score(
            stages, len(answer), len(reference), alpha=self.alpha, beta=self.beta, gamma=self.gamma
        )
        if answer == reference:
            score = 1.0
        used = _STAGES[: len(stages)]
        details: dict[str, Any] = {"stages": list(used), "chunks": chunks}
        details["matches"] = {name: len(stage) for name, stage in zip(used, stages, strict=True)}
        reasoning = f"METEOR {score:.4f} by {_join_names(used)} matches: {expected_but_got(expected, output)}"
        return Evaluation(score, reasoning, details)


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _blank(expected: str, output: str) -> Evaluation | None:
    """The result if either text is blank, so that there are no words to count; `None` otherwise."""
    if expected.strip() and output.strip():
        return None
    score = float(not expected.strip() and not output.strip())
    return Evaluation(score, expected_but_got(expected, output))


Synonyms = Callable[[str], Iterable[str]]
_Alignment = list[tuple[int, int]]


def align(answer: Sequence[str], reference: Sequence[str], synonyms: Synonyms | None) -> list[_Alignment]:
    """One alignment per stage: same word, same stem and, if `synonyms` is given, synonym.

    In every stage the last words choose first and take the last free word of the reference, as nltk does.
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
        candidates = [indices for form in forms(answer[index]) if (indices := places.get(form))]
        if candidates:
            pairs.append((index, max(candidates, key=lambda indices: indices[-1]).pop()))
    return pairs


def meteor_score(
    stages: list[_Alignment], answer: int, reference: int, *, alpha: float, beta: float, gamma: float
) -> tuple[float, int]:
    """The score of an alignment of texts with this many words, and the number of chunks of adjacent matches."""
    matches = sorted(pair for stage in stages for pair in stage)
    if not matches:
        return 0.0, 0
    chunks = 1 + sum(here[0] + 1 != after[0] or here[1] + 1 != after[1] for here, after in pairwise(matches))
    precision, recall = len(matches) / answer, len(matches) / reference
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    return (1 - gamma * (chunks / len(matches)) ** beta) * mean, chunks


@cache
def wordnet_synonyms() -> Synonyms | None:
    """Synonyms from WordNet, or `None` if nltk or its WordNet data is not installed. Downloads nothing."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        return None
    return lru_cache(maxsize=1 << 14)(lambda word: _lemmas(wordnet, word))


def _lemmas(wordnet: Any, word: str) -> frozenset[str]:
    names = (lemma.name() for synset in wordnet.synsets(word) for lemma in synset.lemmas())
    return frozenset(name for name in names if "_" not in name) | {word}
