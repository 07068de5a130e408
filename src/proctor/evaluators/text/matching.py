"""Evaluators that compare the answer as text: equality, edit distance, keywords, patterns, prefix and suffix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from proctor.base.deprecation import renamed_fields
from proctor.base.json_data import Json, to_text
from proctor.base.keywords import find_keywords
from proctor.base.regexes import check_pattern, fullmatch, search
from proctor.cases.suite import Keywords
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.text.comparison import difference, edit_similarity, equal_values, normalize
from proctor.evaluators.values import (
    as_plain_data,
    as_text,
    conversation_text,
    expected_and_output,
    expected_but_got,
    expected_value,
    quote,
    require_bool,
)


@evaluator(family="text", needs="reference")
@dataclass(frozen=True, slots=True)
class ExactMatch(ScoreSettings):
    """The answer equals the expected output: the same text or the same data.

    1 if both are the same text, the same data in any order of keys, data and its JSON text, or a number and its text
    (`123`, `"123"`). 1 equals 1.0, `true` does not equal 1, and no output equals empty text. `strip` and `ignore_case`
    apply to texts inside data too.
    """

    strip: bool = False
    """Whether to ignore white space around texts."""
    ignore_case: bool = False
    """Whether to ignore upper and lower case."""

    def __post_init__(self) -> None:
        require_bool(strip=self.strip, ignore_case=self.ignore_case)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_value(evaluable, "ExactMatch"), evaluable.output
        left, right = self._normalized(expected), self._normalized(output)
        if (type(right) is str and right == left) or equal_values(left, right):
            return Evaluation(1.0, f"the output is as expected: {quote(expected)}")
        hint = difference(left, right)
        return Evaluation(0.0, f"{expected_but_got(expected, output)}{f'; {hint}' if hint else ''}")

    def _normalized(self, value: Any) -> Json:
        value = value if type(value) is str else as_plain_data(value)
        if self.strip or self.ignore_case:
            return normalize(value, strip=self.strip, ignore_case=self.ignore_case)
        return value


@evaluator(family="text", needs="reference")
@dataclass(frozen=True, slots=True)
class LevenshteinMatch(ScoreSettings):
    """How similar the answer is to the expected text, by edit distance.

    1 minus the number of edits (Levenshtein) divided by the longer length. Very long texts that differ a lot get a
    lower bound, and the reason says so.
    """

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_and_output(evaluable, "LevenshteinMatch")
        similarity = edit_similarity(expected, output)
        if similarity.exact:
            reasoning = f"{similarity.score:.1%} alike: {expected_but_got(expected, output)}"
            return Evaluation(similarity.score, reasoning, {"method": "exact"})
        reasoning = (
            f"between {similarity.score:.1%} and {similarity.at_most:.1%} alike, compared in blocks because the texts "
            f"are long ({len(expected)} and {len(output)} characters): {expected_but_got(expected, output)}"
        )
        details = {"method": "blocks", "score_at_least": similarity.score, "score_at_most": similarity.at_most}
        return Evaluation(similarity.score, reasoning, details)


_OLD_PARAMETERS = {"any_of": "any", "all_of": "all"}


@evaluator(family="text", needs="keywords", threshold=1.0, example={"all": ["sorry", "refund"]})
@renamed_fields(_OLD_PARAMETERS)
@dataclass(frozen=True, slots=True)
class Contains(ScoreSettings):
    """The answer contains any (or all) of the keywords, set here or in the case.

    The lowest of: 1 or 0 for `any` of the evaluator, 1 or 0 for `any` of the case, and the share of the `all` keywords
    that are found. White space, compatible characters and the form of quotation marks, apostrophes and hyphens do not
    matter. A number is found in any notation: `1,498` is in `$1498.54`, but not in `11,498`, and `5 days` is not in
    `15 days`. With `whole_words`, `art` is not in `party`.
    With `conversation`, all answers of a conversation are searched together.
    """

    any: Sequence[str] = ()
    """Keywords of which the answer must mention at least one."""
    all: Sequence[str] = ()
    """Keywords that the answer must mention, every one of them."""
    ignore_case: bool = True
    conversation: bool = False
    """Whether to search all answers of a conversation together, for the keywords of all its turns."""
    whole_words: bool = False
    """Whether a keyword must not be a part of a longer word."""

    renamed_parameters: ClassVar[Mapping[str, str]] = _OLD_PARAMETERS
    """Old names that suites may still use, and the new ones."""

    def __post_init__(self) -> None:
        require_bool(ignore_case=self.ignore_case, conversation=self.conversation, whole_words=self.whole_words)
        for name in ("any", "all"):
            object.__setattr__(self, name, _keywords(name, getattr(self, name)))

    @property  # type: ignore[misc]
    def scope(self) -> str:  # type: ignore[override]
        return "case" if self.conversation else "turn"

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        from_case = _case_keywords(evaluable, self.conversation)
        alternatives = [group for group in (self.any, *(_nonblank(words.any) for words in from_case)) if group]
        required = tuple(dict.fromkeys([*self.all, *(word for words in from_case for word in _nonblank(words.all))]))
        if not alternatives and not required:
            raise NothingToCompare("Contains needs keywords, and neither the case nor the evaluator has any")
        text = conversation_text(evaluable) if self.conversation else as_text(evaluable.output)
        scores: list[float] = []
        found: list[str] = []
        missing: list[str] = []
        for group in alternatives:
            there, absent = self._find(group, text)
            scores.append(1.0 if there else 0.0)
            found += there
            missing += absent if not there else ()
        there, absent = self._find(required, text)
        if required:
            scores.append(len(there) / len(required))
        return _keyword_evaluation(min(scores), found + there, missing + absent, text)

    def _find(self, keywords: Sequence[str], text: str) -> tuple[list[str], list[str]]:
        return find_keywords(keywords, text, ignore_case=self.ignore_case, whole_words=self.whole_words)


def _case_keywords(evaluable: Evaluable, conversation: bool) -> list[Keywords]:
    """The keywords of the turn, or of all turns of the conversation."""
    if conversation and len(evaluable.turns) > 1:
        return [words for exchange in evaluable.turns if (words := exchange.turn.expected.contains) is not None]
    return [] if evaluable.keywords is None else [evaluable.keywords]


def _keyword_evaluation(score: float, found: list[str], missing: list[str], text: str) -> Evaluation:
    found, missing = list(dict.fromkeys(found)), list(dict.fromkeys(missing))
    parts = [
        f"{verb} {', '.join(map(quote, words))}" for verb, words in (("found", found), ("missing", missing)) if words
    ]
    if missing:
        parts.append(f"got {quote(text)}")
    return Evaluation(score, "; ".join(parts), {"found": found, "missing": missing})


def _keywords(name: str, value: Any) -> tuple[str, ...]:
    """Keywords as texts, from one keyword or a list of texts and numbers. A blank one would be in every answer."""
    words = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(word, (str, int, float)) and not isinstance(word, bool) for word in words):
        raise ValueError(f"{name} must be a list of keywords, not {value!r}")
    texts = tuple(to_text(word) for word in words)
    if not all(text.strip() for text in texts):
        raise ValueError(f"{name} has a blank keyword, which every answer would contain")
    return texts


def _nonblank(keywords: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(keyword for keyword in map(as_text, keywords) if keyword.strip())


@evaluator(family="text", example={"pattern": "rain(s|ing)"})
@dataclass(frozen=True, slots=True)
class Regex(ScoreSettings):
    """The answer matches a regular expression.

    1 if the pattern matches somewhere in the answer, or all of it with `full`. With `conversation`, all answers of a
    conversation are searched together.
    """

    pattern: str
    full: bool = False
    """Whether the pattern must match the whole answer."""
    ignore_case: bool = False
    conversation: bool = False
    """Whether to search all answers of a conversation together."""

    def __post_init__(self) -> None:
        require_bool(full=self.full, ignore_case=self.ignore_case, conversation=self.conversation)
        if not isinstance(self.pattern, str) or not self.pattern:
            raise ValueError("pattern must be a non-empty regular expression")
        try:
            check_pattern(self.pattern, ignore_case=self.ignore_case)
        except ValueError as error:
            raise ValueError(f"pattern {self.pattern!r} is not a regular expression: {error}") from None

    @property  # type: ignore[misc]
    def scope(self) -> str:  # type: ignore[override]
        return "case" if self.conversation else "turn"

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        text = conversation_text(evaluable) if self.conversation else as_text(evaluable.output)
        match = (fullmatch if self.full else search)(self.pattern, text, ignore_case=self.ignore_case)
        if match is None:
            manner = "does not match" if self.full else "has no match for"
            return Evaluation(0.0, f"the output {manner} /{self.pattern}/: {quote(text)}")
        return Evaluation(1.0, f"/{self.pattern}/ matches {quote(match.group())}", {"span": list(match.span())})


@evaluator(family="text")
@dataclass(frozen=True, slots=True)
class StartsWith(ScoreSettings):
    """The answer starts with a text.

    1 if the answer starts with `prefix` or, without one, with the expected output. Skipped if there is neither.
    """

    prefix: str | None = None
    ignore_case: bool = False

    def __post_init__(self) -> None:
        _check_affix("prefix", self.prefix)
        require_bool(ignore_case=self.ignore_case)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        prefix, text = _affix(self.prefix, evaluable, "StartsWith"), as_text(evaluable.output)
        fits = _fold(text, self.ignore_case).startswith(_fold(prefix, self.ignore_case))
        return Evaluation(
            float(fits), f"the output {'starts' if fits else 'does not start'} with {quote(prefix)}: {quote(text)}"
        )


@evaluator(family="text")
@dataclass(frozen=True, slots=True)
class EndsWith(ScoreSettings):
    """The answer ends with a text.

    1 if the answer ends with `suffix` or, without one, with the expected output. Skipped if there is neither.
    """

    suffix: str | None = None
    ignore_case: bool = False

    def __post_init__(self) -> None:
        _check_affix("suffix", self.suffix)
        require_bool(ignore_case=self.ignore_case)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        suffix, text = _affix(self.suffix, evaluable, "EndsWith"), as_text(evaluable.output)
        fits = _fold(text, self.ignore_case).endswith(_fold(suffix, self.ignore_case))
        end = text if len(text) <= 80 else f"…{text[-79:]}"
        return Evaluation(
            float(fits), f"the output {'ends' if fits else 'does not end'} with {quote(suffix)}: {quote(end)}"
        )


def _check_affix(name: str, affix: Any) -> None:
    if affix is not None and (not isinstance(affix, str) or not affix):
        raise ValueError(f"{name} must be a non-empty string")


def _affix(setting: str | None, evaluable: Evaluable, evaluator: str) -> str:
    affix = as_text(expected_value(evaluable, evaluator)) if setting is None else setting
    if not affix:
        raise NothingToCompare(f"{evaluator} needs a text, and the expected output is empty")
    return affix


def _fold(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text
