"""inspect_ai against the loopback provider, through its own client. Argument: default or tuned.

By default its adaptive connections start at 20 and end at 100. Tuned, they start higher, and a sample that ended in an
error is tried again and does not end the run, as its page on errors advises.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate
from inspect_ai.util import AdaptiveConcurrency

TUNED = {
    "adaptive_connections": AdaptiveConcurrency(min=10, start=50, max=200),
    "fail_on_error": False,
    "retry_on_error": 3,
}


def main(kind: str) -> None:
    os.environ["LOOPBACK_BASE_URL"] = os.environ["OPENAI_BASE_URL"]
    os.environ["LOOPBACK_API_KEY"] = "loopback"
    rows = json.loads(Path("cases.json").read_text(encoding="utf-8"))
    samples = [Sample(id=row["id"], input=row["input"], target=row["expected"]) for row in rows]
    task = Task(dataset=samples, solver=generate(), scorer=exact())
    options = TUNED if kind == "tuned" else {}
    (log,) = eval(task, model="openai-api/loopback/loopback-agent", display="none", log_dir="logs", **options)
    outcomes = {}
    for sample in log.samples or []:
        if sample.error is not None or not sample.scores:
            outcomes[str(sample.id)] = "error"
        else:
            outcomes[str(sample.id)] = "passed" if sample.scores["exact"].value == "C" else "failed"
    Path("outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
