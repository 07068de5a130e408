"""How often the rule-based judge is right: a table of labelled rows, one line for each file.

    python benchmarks/rule_judge.py tests/judging/rule_judge/labelled_rows.jsonl more_rows.jsonl
    python benchmarks/rule_judge.py rows.jsonl --by category

Each row has an `answer` and a `label`. With `context` it is judged by Faithfulness, with `reference` by Factuality,
with `question` alone by AnswerRelevancy. Intervals are Wilson's at 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import Evaluable, EvaluationPending, NothingToCompare
from proctor.evaluators.reference import Factuality
from proctor.evaluators.retrieval import AnswerRelevancy, Faithfulness
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession, judge_session
from proctor.results.statistics import wilson

Row = Mapping[str, Any]
Result = tuple[bool, bool | None]
"""Whether the row is good, and whether the judge passed it; `None` if it could not tell."""
GOOD_LABELS = ("supported", "correct", "relevant")
JUDGES = Judges()


def judge(row: Row) -> bool | None:
    """Whether the judge passes the row; `None` if it cannot tell or there is nothing to judge."""
    question = row.get("input") or row.get("question") or ""
    context = row.get("context")
    evaluator: Any = Faithfulness() if context else Factuality() if "reference" in row else AnswerRelevancy()
    evaluable = Evaluable(
        eval_input=(NamedData("input", question),) if question else (),
        eval_output=(NamedData("output", row["answer"]),),
        expectation=row.get("reference", UNSET),
        retrieval_context=tuple([context] if isinstance(context, str) else context) if context else None,
    )
    threshold = evaluator.default_threshold
    with judge_session(JudgeSession(JUDGES, threshold=threshold)):
        try:
            evaluation = asyncio.run(evaluator(evaluable))
        except (EvaluationPending, NothingToCompare):
            return None
    return passes(evaluation.score, threshold, evaluation.passed)


def share(right: int, count: int) -> str:
    if not count:
        return "-"
    low, high = wilson(right / count, count)
    return f"{right} of {count} = {right / count:.0%} [{low * 100:.0f}, {high * 100:.0f}]"


def print_row(title: str, results: Sequence[Result]) -> None:
    passed = [good for good, verdict in results if verdict is True]
    failed = [not good for good, verdict in results if verdict is False]
    answered = (len(passed) + len(failed)) / len(results)
    cells = [
        title,
        str(len(results)),
        f"{answered:.0%}",
        share(sum(passed), len(passed)),
        share(sum(failed), len(failed)),
    ]
    print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+", help="JSONL files of labelled rows")
    parser.add_argument("--by", help="a field of the rows; adds a line for each of its values")
    options = parser.parse_args()
    print("| rows | count | answered | passes that are right | fails that are right |")
    print("|---|---|---|---|---|")
    for path in options.paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        results = [(row["label"] in GOOD_LABELS, judge(row)) for row in rows]
        print_row(path.stem, results)
        groups: dict[str, list[Result]] = defaultdict(list)
        for row, result in zip(rows, results, strict=True):
            groups[str(row.get(options.by, ""))].append(result)
        for name in sorted(groups) if options.by else ():
            print_row(f"{path.stem}: {name}", groups[name])


if __name__ == "__main__":
    main()
