"""Runs the inputs of `adk_original.py` through Proctor: `python adk_ours.py INPUTS OUTPUTS`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from proctor import Reply, ToolCall
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator


def trajectories(inputs: list[dict[str, Any]]) -> dict[str, float | None]:
    """The scores of whole EvalSets, one for each way to compare, whose agent makes the calls of the input."""
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
    for item in inputs:
        groups[item["match_type"], item["ignore_args"]].append(item)
    scores: dict[str, float | None] = {}
    for (match_type, ignore_args), items in groups.items():
        criterion = {"threshold": 1.0, "match_type": match_type, "ignore_args": ignore_args}
        calls = {item["name"]: item["actual"] for item in items}

        def agent(question: str, calls: dict[str, Any] = calls) -> Reply:
            return Reply("Done.", tuple(ToolCall(call["name"], call["args"]) for call in calls[question]))

        eval_set = {"evalSetId": match_type, "evalCases": [trajectory_case(item) for item in items]}
        scores |= scores_of(agent, eval_set, {"tool_trajectory_avg_score": criterion})
    return scores


def trajectory_case(item: dict[str, Any]) -> dict[str, Any]:
    user = {"role": "user", "parts": [{"text": item["name"]}]}
    turn = {"userContent": user, "intermediateData": {"toolUses": item["expected"]}}
    return {"evalId": item["name"], "conversation": [turn]}


def scores_of(agent: Any, eval_set: dict[str, Any], criteria: dict[str, Any]) -> dict[str, float | None]:
    """The value of the only score of each case."""
    try:
        run = AgentEvaluator.evaluate_eval_set_sync(agent, eval_set, criteria, num_runs=1)
    except AgentEvaluationFailed as failed:
        run = failed.run
    return {trial.case.id: trial.scores[0].value for trial in run.trials}


TASKS = {"trajectories": trajectories}

if __name__ == "__main__":
    inputs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    outputs = {name: TASKS[name](data) for name, data in inputs.items()}
    Path(sys.argv[2]).write_text(json.dumps(outputs), encoding="utf-8")
