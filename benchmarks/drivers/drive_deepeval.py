"""DeepEval on the same cases, with two metrics that need no model. Argument: FILE (JSON Lines).

The agent is called in a plain loop first, because DeepEval takes answers. Its display and its cache are off, which is
the fastest setting; it still writes the results of the run to a file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from deepeval import evaluate
from deepeval.evaluate.configs import CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from rapidfuzz.distance import Levenshtein


class _Metric(BaseMetric):
    """The attributes that DeepEval expects of a metric; subclasses compute the score."""

    def __init__(self) -> None:
        self.threshold = 0.5
        self.score = 0.0
        self.reason = ""
        self.success = False

    def of(self, answer: str, expected: str) -> float:
        raise NotImplementedError

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        self.score = self.of(str(test_case.actual_output), str(test_case.expected_output))
        self.success = self.score >= self.threshold
        self.reason = f"scored {self.score:g}"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success


class Exact(_Metric):
    def of(self, answer: str, expected: str) -> float:
        return float(answer == expected)

    @property
    def __name__(self) -> str:
        return "Exact"


class EditDistance(_Metric):
    def of(self, answer: str, expected: str) -> float:
        return Levenshtein.normalized_similarity(answer, expected)

    @property
    def __name__(self) -> str:
        return "EditDistance"


def main(path: str) -> None:
    from agents import echo

    rows = (json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines())
    questions = [row["input"] for row in rows if "input" in row]
    tests = [LLMTestCase(input=text, actual_output=echo(text), expected_output=text) for text in questions]
    result = evaluate(
        tests,
        [Exact(), EditDistance()],
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
    )
    passed = sum(bool(test.success) for test in result.test_results)
    if passed != len(questions):
        sys.exit(f"only {passed} of {len(questions)} passed")


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main(*sys.argv[1:])
