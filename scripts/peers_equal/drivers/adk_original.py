"""Runs google-adk's own evaluators: `python adk_original.py INPUTS OUTPUTS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator


def trajectories(inputs: list[dict[str, Any]]) -> dict[str, float | None]:
    return {item["name"]: trajectory_score(item) for item in inputs}


def trajectory_score(item: dict[str, Any]) -> float | None:
    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=item["match_type"], ignore_args=item["ignore_args"])
    metric = EvalMetric(metric_name="tool_trajectory_avg_score", threshold=1.0, criterion=criterion)
    actual, expected = invocation(item["actual"]), invocation(item["expected"])
    return TrajectoryEvaluator(eval_metric=metric).evaluate_invocations([actual], [expected]).overall_score


def invocation(calls: list[dict[str, Any]]) -> Invocation:
    user = {"role": "user", "parts": [{"text": "Hello"}]}
    return Invocation.model_validate({"user_content": user, "intermediate_data": {"tool_uses": calls}})


TASKS = {"trajectories": trajectories}

if __name__ == "__main__":
    inputs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    outputs = {name: TASKS[name](data) for name, data in inputs.items()}
    Path(sys.argv[2]).write_text(json.dumps(outputs), encoding="utf-8")
