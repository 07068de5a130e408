"""Evaluators that compare the answer as data: numbers, JSON, lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, to_text
from proctor.base.keywords import read_number
from proctor.cases.suite import NamedData
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import UNREADABLE, Evaluation, NothingToCompare
from proctor.evaluators.json_diff import (
    NUMBER_SCORERS,
    STRING_SCORERS,
    JsonComparison,
    as_items,
    number_score,
    pair_items,
)
from proctor.evaluators.values import (
    as_plain_data,
    expected_but_got,
    expected_value,
    parse_json,
    quote,
    require_bool,
    require_choice,
    require_number,
)

_MAX_DIFFERENCES = 20


@evaluator(family="data", needs="reference")
@dataclass(frozen=True, slots=True)
class NumericDiff(ScoreSettings):
    """How close the answer is to the expected number.

    1 minus the difference divided by the sum of both absolute values; 1 for two zeros. Separators, percent and currency
    signs are understood. An answer that is not a number scores 0. Skipped if the expected output is not a number.
    """

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expectation, output = expected_value(evaluable, "NumericDiff"), evaluable.output
        expected = read_number(expectation)
        if expected is None:
            raise NothingToCompare(f"NumericDiff needs an expected number, not {quote(expectation)}")
        actual = read_number(output)
        if actual is None:
            return Evaluation(0.0, f"{expected_but_got(expectation, output)}, which is not a number")
        details = {"expected": expected, "got": actual, "difference": actual - expected}
        return Evaluation(number_score(expected, actual), expected_but_got(expectation, output), details)


@evaluator(family="data", needs="reference")
@dataclass(frozen=True, slots=True)
class Numeric(ScoreSettings):
    """The answer is the expected number, within a tolerance.

    1 if the whole answer is a number and within the larger of both tolerances. Skipped if the expected output is not a
    number.
    """

    absolute_tolerance: float = 1e-6
    relative_tolerance: float = 0.0
    """A share of the expected number."""
    accept_percent: bool = False
    """Whether the answer may be written as `12%`. The expected number always may."""
    accept_thousands_separators: bool = False
    """Whether the answer may be written as `1,498`. The expected number always may."""

    def __post_init__(self) -> None:
        require_number("absolute_tolerance", self.absolute_tolerance)
        require_number("relative_tolerance", self.relative_tolerance)
        require_bool(accept_percent=self.accept_percent, accept_thousands_separators=self.accept_thousands_separators)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expectation, output = expected_value(evaluable, "Numeric"), evaluable.output
        expected = read_number(expectation, separators=True, percent=True, currency=False)
        if expected is None:
            raise NothingToCompare(f"Numeric needs an expected number, not {quote(expectation)}")
        actual = read_number(
            output, separators=self.accept_thousands_separators, percent=self.accept_percent, currency=False
        )
        if actual is None:
            reason = f"{expected_but_got(expectation, output)}, which is not a number{self._hint(output)}"
            return Evaluation(0.0, reason, {UNREADABLE: True})
        allowed = max(self.absolute_tolerance, self.relative_tolerance * abs(expected))
        off = abs(actual - expected)
        # Rounding noise does not count: 0.3 - 0.2 is a little more than 0.1.
        fits = off <= allowed or off - allowed <= 1e-12 * max(abs(expected), abs(actual), allowed)
        relation = "within" if fits else "not within"
        reasoning = f"{expected_but_got(expectation, output)}, {relation} {allowed:g} of it"
        return Evaluation(
            float(fits), reasoning, {"expected": expected, "got": actual, "off_by": off, "allowed": allowed}
        )

    def _hint(self, output: Json) -> str:
        if read_number(output, currency=False) is None:
            return ""
        flag = "accept_percent" if "%" in output and not self.accept_percent else "accept_thousands_separators"
        return f" unless {flag} is set"


@evaluator(family="data", needs="reference")
@dataclass(frozen=True, slots=True)
class JSONDiff(ScoreSettings):
    """How much of the expected data the answer has, part by part.

    The mean over keys and items at every level. Objects are compared by the keys of both, where a missing key is null.
    Lists are compared by position, over the longer one. Texts score by `levenshtein` or `exact`, numbers by `numeric`
    (as in `NumericDiff`), `exact` or `levenshtein`, and booleans must be equal. Text that holds JSON is parsed.
    """

    string_scorer: Any = "levenshtein"
    """`levenshtein` or `exact`. From Python also an evaluator, an autoevals scorer, or a function of two texts."""
    number_scorer: str = "numeric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "string_scorer", self.string_scorer or "levenshtein")
        if not callable(self.string_scorer):
            require_choice("string_scorer", self.string_scorer, tuple(STRING_SCORERS))
        require_choice("number_scorer", self.number_scorer, tuple(NUMBER_SCORERS))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expectation, output = expected_value(evaluable, "JSONDiff"), evaluable.output
        strings = self.string_scorer if isinstance(self.string_scorer, str) else pair_scorer(self.string_scorer)
        comparison = JsonComparison(strings, self.number_scorer)
        score = min(1.0, max(0.0, comparison.score(as_plain_data(expectation), as_plain_data(output))))
        worst = sorted(comparison.differences, key=lambda difference: difference.score)[:_MAX_DIFFERENCES]
        if not worst and score == 1.0:
            return Evaluation(1.0, f"the data is as expected: {quote(expectation)}")
        lines = [
            f"{d.place or 'the value'} is {quote(d.actual, 40)} instead of {quote(d.expected, 40)}" for d in worst[:3]
        ]
        more = len(comparison.differences) - len(lines)
        reasoning = "; ".join(lines) + (f"; and {more} more" if more > 0 else "")
        listed = [{"place": d.place, "expected": d.expected, "got": d.actual, "score": d.score} for d in worst]
        return Evaluation(score, reasoning or expected_but_got(expectation, output), {"differences": listed})


@evaluator(family="data")
@dataclass(frozen=True, slots=True)
class ValidJSON(ScoreSettings):
    """The answer is valid JSON.

    1 if the answer is a JSON object or list or, with a `schema`, if it is any JSON that matches it. The expected output
    is not used.
    """

    schema: dict[str, Any] | None = None
    """A JSON Schema."""
    _validator: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.schema is not None:
            object.__setattr__(self, "_validator", _validator(self.schema))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        output = evaluable.output
        if output is None:
            return Evaluation(0.0, "there is no output")
        try:
            data = parse_json(output) if isinstance(output, str) else as_plain_data(output)
        except ValueError as error:
            fenced = "; it is inside a code fence" if output.lstrip().startswith("```") else ""
            return Evaluation(0.0, f"the output is not JSON ({error}){fenced}: {quote(output)}")
        if self._validator is not None:
            return self._match_schema(data)
        if isinstance(data, (dict, list)):
            return Evaluation(1.0, f"the output is a JSON {'object' if isinstance(data, dict) else 'list'}")
        return Evaluation(0.0, f"the output is JSON but neither an object nor a list: {quote(output)}")

    def _match_schema(self, data: Json) -> Evaluation:
        errors = []
        for error in self._validator.iter_errors(data):
            errors.append({"place": "/".join(map(str, error.instance_path)), "message": error.message})
            if len(errors) == _MAX_DIFFERENCES:
                break
        if not errors:
            return Evaluation(1.0, "the output matches the schema")
        first = "; ".join(f"{e['place'] or 'the document'}: {e['message']}" for e in errors[:3])
        return Evaluation(
            0.0, f"the output does not match the schema: {' '.join(to_text(first, 300).split())}", {"errors": errors}
        )


def _validator(schema: Any) -> Any:
    if not isinstance(schema, dict):
        raise ValueError(f"schema must be a JSON Schema object, not {quote(schema)}")
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, retriever=_no_retrieval)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"schema is not a JSON Schema: {reason}") from None


def _no_retrieval(uri: str) -> Any:
    raise ValueError(f"{uri} is outside the schema; only references inside it work")


@evaluator(family="data", needs="reference")
@dataclass(frozen=True, slots=True)
class ListContains(ScoreSettings):
    """How many of the expected items the answer has, in any order.

    Each expected item is paired with at most one item of the answer, for the greatest total similarity. The score is
    the total divided by the longer list, or by the expected list if extra items are allowed. A list may be JSON text;
    anything else is a list of one. Skipped if no item is expected and extra items are allowed.
    """

    allow_extra_entities: bool = False
    """Whether the answer may have items that are not expected."""
    pairwise: str = "levenshtein"
    """How two items are compared: `levenshtein` or `exact`."""
    pairwise_scorer: Any = field(default=None, repr=False)
    """From Python, instead of `pairwise`: an evaluator, an autoevals scorer, or a function of two items."""

    def __post_init__(self) -> None:
        if isinstance(self.pairwise_scorer, str):
            object.__setattr__(self, "pairwise", self.pairwise_scorer)
            object.__setattr__(self, "pairwise_scorer", None)
        elif self.pairwise_scorer is not None and not callable(self.pairwise_scorer):
            raise UsageError(f"ListContains: pairwise_scorer must be callable, not {self.pairwise_scorer!r:.80}")
        require_bool(allow_extra_entities=self.allow_extra_entities)
        require_choice("pairwise", self.pairwise, ("levenshtein", "exact"))

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = as_items(expected_value(evaluable, "ListContains"))
        actual = as_items(evaluable.output)
        if not expected and self.allow_extra_entities:
            raise NothingToCompare("no item is expected, and extra items are allowed")
        if not expected and not actual:
            return Evaluation(1.0, "no items are expected, and there are none")
        scorer = None if self.pairwise_scorer is None else pair_scorer(self.pairwise_scorer)
        pairing = pair_items(expected, actual, exact=self.pairwise == "exact", scorer=scorer)
        size = len(expected) if self.allow_extra_entities else max(len(expected), len(actual))
        score = min(1.0, sum(pair.score for pair in pairing.pairs) / size)
        exact = {pair.expected for pair in pairing.pairs if pair.score == 1.0}
        others = [item for index, item in enumerate(expected) if index not in exact]
        reasoning = f"{len(exact)} of {len(expected)} expected items found exactly among {len(actual)}"
        if others:
            reasoning += f"; without an exact match: {quote(others, 160)}"
        pairs = [
            {"expected": expected[p.expected], "got": actual[p.actual], "score": p.score} for p in pairing.pairs[:100]
        ]
        return Evaluation(score, reasoning, {"pairs": pairs, "approximate": pairing.approximate})


def pair_scorer(scorer: Any) -> Callable[[Any, Any], float]:
    """A function that scores an expected and an actual value with an evaluator, an autoevals scorer or any callable."""
    scorer = scorer() if isinstance(scorer, type) else scorer

    def score(expected: Any, actual: Any) -> float:
        if callable(getattr(scorer, "eval", None)):
            result = scorer.eval(output=actual, expected=expected)
        elif _takes_evaluable(scorer):
            result = scorer(Evaluable(eval_output=(NamedData("output", actual),), expectation=expected))
        else:
            result = scorer(actual, expected)
        if inspect.isawaitable(result):
            getattr(result, "close", lambda: None)()
            raise UsageError(f"{type(scorer).__name__} is asynchronous; comparing pairs needs a synchronous scorer")
        value = getattr(result, "score", result)
        return min(1.0, max(0.0, float(value or 0.0)))

    return score


def _takes_evaluable(scorer: Any) -> bool:
    """Whether it is an evaluator, which takes one `Evaluable`, and not a function of two values."""
    try:
        parameters = inspect.signature(scorer).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(each.kind is not each.KEYWORD_ONLY and each.default is each.empty for each in parameters) == 1
