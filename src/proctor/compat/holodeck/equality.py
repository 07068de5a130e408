"""HoloDeck's comparison of two texts."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.text.comparison import difference
from proctor.evaluators.values import expected_and_output, expected_but_got, quote, require_bool


@evaluator(family="text", needs="reference", variant_of="ExactMatch")
@dataclass(frozen=True, slots=True)
class Equality(ScoreSettings):
    """The answer is the expected text; case, white space or punctuation can be ignored.

    1 if both texts are the same, apart from what the flags ignore.
    """

    case_insensitive: bool = False
    strip_whitespace: bool = False
    strip_punctuation: bool = False

    def __post_init__(self) -> None:
        require_bool(
            case_insensitive=self.case_insensitive,
            strip_whitespace=self.strip_whitespace,
            strip_punctuation=self.strip_punctuation,
        )

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, output = expected_and_output(evaluable, "Equality")
        normal_expected, normal_output = self._normal(expected), self._normal(output)
        if normal_expected == normal_output and (normal_expected or (not expected.strip() and not output.strip())):
            return Evaluation(1.0, f"the output is as expected: {quote(expected)}")
        if normal_expected == normal_output:
            return self._nothing_left(expected, output)
        hint = difference(normal_expected, normal_output)
        return Evaluation(0.0, f"{expected_but_got(expected, output)}{f'; {hint}' if hint else ''}")

    def _normal(self, text: str) -> str:
        if self.case_insensitive:
            text = text.casefold()
        if self.strip_punctuation:
            text = text.translate(_PUNCTUATION)
        return " ".join(text.split()) if self.strip_whitespace else text

    def _nothing_left(self, expected: str, output: str) -> Evaluation:
        """Compare texts that are only punctuation as they are; they are not equal because all of it is ignored."""
        same = expected.split() == output.split() if self.strip_whitespace else expected == output
        return Evaluation(
            float(same), f"{expected_but_got(expected, output)}; both are only punctuation, compared as they are"
        )


class _Punctuation(dict[int, str | None]):
    """A table for `str.translate` that drops punctuation and symbols of every script; filled on demand."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        dropped = unicodedata.category(character).startswith("P") or character in "$+<=>^`|~"
        self[code] = replacement = None if dropped else character
        return replacement


_PUNCTUATION = _Punctuation()
