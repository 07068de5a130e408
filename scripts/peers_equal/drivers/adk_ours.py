"""Runs the inputs of `adk_original.py` through Proctor: `python adk_ours.py INPUTS OUTPUTS`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from adk_projects import means, module_of, write_folders, write_project
from pydantic import ValidationError

import proctor
from proctor import Reply, ToolCall
from proctor.base.errors import JudgeFailed, ProctorError
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator
from proctor.results.store.run_files import import_file
from proctor.results.store.store import Store


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


def texts(inputs: list[dict[str, Any]]) -> dict[str, float | None]:
    answers = {item["name"]: item["answer"] for item in inputs}
    eval_set = {"evalSetId": "texts", "evalCases": [text_case(item) for item in inputs]}
    scores = scores_of(lambda question: answers[question], eval_set, {"response_match_score": 0.8})
    return {name: None if score is None else round(score, 9) for name, score in scores.items()}


def text_case(item: dict[str, Any]) -> dict[str, Any]:
    user, model = (
        {"role": role, "parts": [{"text": item[key]}]} for role, key in (("user", "name"), ("model", "expected"))
    )
    return {"evalId": item["name"], "conversation": [{"userContent": user, "finalResponse": model}]}


def folders(inputs: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """How many cases of each folder were evaluated."""
    paths = write_folders(inputs)
    counts = {}
    for name, cases in inputs.items():
        try:
            run = AgentEvaluator.evaluate_sync(module_of(cases[0]), paths[name], 1)
        except AgentEvaluationFailed as failed:
            run = failed.run
        counts[name] = len(list(run.trials))
    return counts


def histories(files: dict[str, Any]) -> dict[str, Any]:
    """What the result files say after `proctor runs import`."""
    store = Store(Path("imported"))
    results = {}
    for number, (name, item) in enumerate(files.items()):
        data = json.loads(item["text"])
        data["eval_set_result_id"] = f"peers_{number}"
        path = Path(f"{number}.evalset_result.json")
        path.write_text(json.dumps(data), encoding="utf-8")
        run, _ = import_file(store, str(path))
        outcome = proctor.verdict(run).outcome.value
        verdict = "not evaluated" if outcome == "error" else outcome
        results[name] = {"verdict": verdict, "scores": means(score_lists(run), item["case"])}
    return results


class ScriptedJudge:
    """A judge that replies in full as the input says: one reply per sample."""

    name = "scripted"

    def __init__(self, replies: list[list[Any]]) -> None:
        self.replies = replies

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        reply = self.replies[sample]
        if question.kind == "response-match":
            return question.reply.model_validate({"reason": "because", "verdict": "yes" if reply[0] else "no"})
        key = "label" if question.kind == "sentence-labels" else "verdict"
        values = [value if isinstance(value, str) else "yes" if value else "no" for value in reply]
        verdicts = [{"number": number, "reason": "because", key: value} for number, value in enumerate(values, 1)]
        try:
            answer = question.reply.model_validate({"verdicts": verdicts})
        except ValidationError as error:
            raise JudgeFailed(str(error)) from None
        if complaint := question.check(answer) if question.check else None:
            raise JudgeFailed(complaint)
        return answer


def judged(inputs: dict[str, Any]) -> dict[str, float | None]:
    """The score of each metric if the judge replies as the input says."""
    return {name: judged_score(item) for name, item in inputs.items()}


def judged_score(item: dict[str, Any]) -> float | None:
    name, replies = item["metric"], item["replies"]
    criterion: dict[str, Any] = {"threshold": 0.5, "judge_model_options": {"num_samples": len(replies)}}
    answer = "The answer."
    if name == "hallucinations_v1":
        answer = " ".join(f"Fact number {number} is here." for number in range(len(replies[0])))
    elif name.startswith("rubric"):
        criterion["rubrics"] = [
            {"rubric_id": f"r{number}", "rubric_content": {"text_property": f"Property {number} holds."}}
            for number in range(item.get("items", len(replies[0])))
        ]
    eval_set = {"evalSetId": "judged", "evalCases": [text_case({"name": "Hello", "expected": "The answer."})]}
    reply = Reply(answer, (ToolCall("look", {}, {"fact": "here"}),))
    try:
        run = AgentEvaluator.evaluate_eval_set_sync(
            lambda question: reply, eval_set, {name: criterion}, num_runs=1, judge=ScriptedJudge(replies)
        )
    except AgentEvaluationFailed as failed:
        run = failed.run
    [trial] = run.trials
    value = trial.scores[0].value
    return None if value is None else round(value, 9)


def migrated(inputs: dict[str, Any]) -> dict[str, str]:
    """The text of each file after `migrate_eval_data_to_new_schema`."""
    texts = {}
    for number, (name, rows) in enumerate(inputs.items()):
        old, new = Path(f"old_{number}.test.json"), Path(f"new_{number}.test.json")
        old.write_text(json.dumps(rows), encoding="utf-8")
        AgentEvaluator.migrate_eval_data_to_new_schema_sync(old, new)
        texts[name] = new.read_text(encoding="utf-8")
    return texts


def agents(cases: dict[str, Any]) -> dict[str, Any]:
    """The verdict on each case, and the mean of each metric."""
    files = write_project(cases)
    return {name: evaluate(case, files[name]) for name, case in cases.items()}


def evaluate(case: dict[str, Any], file: Path) -> dict[str, Any]:
    try:
        run = AgentEvaluator.evaluate_sync(module_of(case), file, case["num_runs"], agent_name=case.get("agent_name"))
        verdict = "passed"
    except AgentEvaluationFailed as failed:
        run = failed.run
        verdict = "failed" if failed.failures else "not evaluated"
    except ProctorError as error:
        print(file, str(error)[:300])
        return {"verdict": "refused", "scores": {}}
    return {"verdict": verdict, "scores": means(score_lists(run), case)}


def score_lists(run: proctor.Run) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for trial in run.trials:
        for score in trial.scores:
            scores.setdefault(score.evaluator, []).extend([] if score.value is None else [score.value])
    return scores


TASKS = {
    "trajectories": trajectories,
    "texts": texts,
    "agents": agents,
    "folders": folders,
    "histories": histories,
    "judged": judged,
    "migrated": migrated,
}

if __name__ == "__main__":
    inputs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    outputs = {name: TASKS[name](data) for name, data in inputs.items()}
    Path(sys.argv[2]).write_text(json.dumps(outputs), encoding="utf-8")
