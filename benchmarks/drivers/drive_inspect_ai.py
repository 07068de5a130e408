"""inspect_ai on the same cases, with its own `exact` and an edit distance; its log is written to disk.

The solver calls the agent, so that no model is called. Its display is off. Argument: FILE (JSON Lines).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, exact, mean, scorer
from inspect_ai.solver import solver
from rapidfuzz.distance import Levenshtein


@solver
def agent():
    from agents import echo

    async def solve(state, generate):
        state.output = ModelOutput.from_content("echo", echo(state.input_text))
        return state

    return solve


@scorer(metrics=[mean()])
def edit_distance():
    async def score(state, target):
        return Score(value=Levenshtein.normalized_similarity(state.output.completion, target.text))

    return score


def main(path: str) -> None:
    rows = (json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines())
    questions = [row["input"] for row in rows if "input" in row]
    samples = [Sample(id=f"case-{n}", input=question, target=question) for n, question in enumerate(questions)]
    task = Task(dataset=samples, solver=agent(), scorer=[exact(), edit_distance()])
    (log,) = eval(task, model="mockllm/model", display="none", log_dir="logs", max_samples=8)
    if log.status != "success" or log.results is None or log.results.completed_samples != len(questions):
        sys.exit(f"inspect_ai ended with {log.status}: {log.error}")
    (right,) = (item.metrics["mean"].value for item in log.results.scores if item.name == "exact")
    if right != 1:
        sys.exit(f"only {right:.0%} passed")


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main(*sys.argv[1:])
