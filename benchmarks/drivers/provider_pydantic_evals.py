"""pydantic-evals against the loopback provider. Argument: default or tuned.

By default all cases run at once and none is tried again. Tuned, the number of cases at a time is limited and the task
is retried with growing waits, as its pages on concurrency and retries advise, with more attempts than they show.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from provider_agent import answer
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
from tenacity import stop_after_attempt, wait_random_exponential

TUNED = {
    "max_concurrency": 32,
    "retry_task": {"stop": stop_after_attempt(8), "wait": wait_random_exponential(multiplier=1, max=10)},
}


def main(kind: str) -> None:
    rows = json.loads(Path("cases.json").read_text(encoding="utf-8"))
    dataset = Dataset(
        name="provider",
        cases=[Case(name=row["id"], inputs=row["input"], expected_output=row["expected"]) for row in rows],
        evaluators=[EqualsExpected()],
    )
    report = dataset.evaluate_sync(answer, progress=False, **(TUNED if kind == "tuned" else {}))
    outcomes = {
        case.name: "passed" if all(item.value for item in case.assertions.values()) else "failed"
        for case in report.cases
    }
    outcomes |= {failure.name: "error" for failure in report.failures}
    Path("outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
