"""pydantic-evals on the same cases, with its own equality and an edit distance; the report is then written as JSON.

Argument: FILE (JSON Lines).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected, Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter
from rapidfuzz.distance import Levenshtein


@dataclass
class EditDistance(Evaluator[str, str, None]):
    def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> float:
        return Levenshtein.normalized_similarity(ctx.output, ctx.expected_output or "")


def main(path: str) -> None:
    from agents import echo

    rows = (json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines())
    questions = [row["input"] for row in rows if "input" in row]
    dataset = Dataset(
        name="trivial",
        cases=[Case(name=f"case-{n}", inputs=text, expected_output=text) for n, text in enumerate(questions)],
        evaluators=[EqualsExpected(), EditDistance()],
    )
    report = dataset.evaluate_sync(echo, progress=False, max_concurrency=8)
    passed = sum(all(assertion.value for assertion in case.assertions.values()) for case in report.cases)
    if passed != len(questions):
        sys.exit(f"only {passed} of {len(questions)} passed")
    Path("report.json").write_bytes(EvaluationReportAdapter.dump_json(report))


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main(*sys.argv[1:])
