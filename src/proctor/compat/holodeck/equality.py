"""HoloDeck's comparison of two texts."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation
from proctor.evaluators.text.comparison import difference
from proctor.evaluators.values import expected_and_output, expected_but_got, quote, require_bool


@evaluator(family="text", needs="reference", variant_of="ExactMatch")
@dataclass(frozen=True, slots=True)
class Equality:
    """The answer is the expected text, but for case, white space or punctuation where asked.

    1 if both are the same text, but for what the flags let pass.
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
        wanted, got = self._normal(expected), self._normal(output)
        if wanted == got and (wanted or (not expected.strip() and not output.strip())):
            return Evaluation(1.0, f"the output is as expected: {quote(expected)}")
        if wanted == got:
            return self._nothing_left(expected, output)
        hint = difference(wanted, got)
        return Evaluation(0.0, f"{expected_but_got(expected, output)}{f'; {hint}' if hint else ''}")

    def _normal(self, text: str) -> str:
        if self.case_insensitive:
            text = text.casefold()
        if self.strip_punctuation:
            text = text.translate(_PUNCTUATION)
        return " ".join(text.split()) if self.strip_whitespace else text

    def _nothing_left(self, expected: str, output: str) -> Evaluation:
        """Texts of punctuation alone are not equal because nothing is left of them."""
        same = expected.split() == output.split() if self.strip_whitespace else expected == output
        return Evaluation(
            float(same), f"{expected_but_got(expected, output)}; both are punctuation alone, compared as it is"
        )


class _Punctuation(dict[int, str | None]):
    """For `str.translate`: drops punctuation and symbols of every script. Fills itself on demand."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        dropped = unicodedata.category(character).startswith("P") or character in "$+<=>^`|~"
        self[code] = kept = None if dropped else character
        return kept


_PUNCTUATION = _Punctuation()
