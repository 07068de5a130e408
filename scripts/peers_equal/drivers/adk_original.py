"""Runs google-adk's own evaluators: `python adk_original.py INPUTS OUTPUTS`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from adk_projects import means, module_of, write_folders, write_project
from google.adk.evaluation._eval_set_results_manager_utils import create_eval_set_result
from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.final_response_match_v1 import RougeEvaluator
from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.adk.models import BaseLlm, LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types


def trajectories(inputs: list[dict[str, Any]]) -> dict[str, float | None]:
    return {item["name"]: trajectory_score(item) for item in inputs}


def trajectory_score(item: dict[str, Any]) -> float | None:
    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=item["match_type"], ignore_args=item["ignore_args"])
    metric = EvalMetric(metric_name="tool_trajectory_avg_score", threshold=1.0, criterion=criterion)
    actual, expected = invocation(item["actual"]), invocation(item["expected"])
    return TrajectoryEvaluator(eval_metric=metric).evaluate_invocations([actual], [expected]).overall_score


def invocation(calls: list[dict[str, Any]], answer: str = "") -> Invocation:
    user, model = ({"role": role, "parts": [{"text": text}]} for role, text in (("user", "Hello"), ("model", answer)))
    data = {"user_content": user, "final_response": model, "intermediate_data": {"tool_uses": calls}}
    return Invocation.model_validate(data)


class Results:
    """Keeps the results of one evaluation."""

    def __init__(self) -> None:
        self.cases: list[Any] = []

    def save_eval_set_result(self, app_name: str, eval_set_id: str, eval_case_results: list[Any]) -> None:
        self.cases += eval_case_results

    def scores(self) -> dict[str, list[float]]:
        scores: dict[str, list[float]] = {}
        for case in self.cases:
            for invocation in case.eval_metric_result_per_invocation:
                for result in invocation.eval_metric_results:
                    scores.setdefault(result.metric_name, []).extend([] if result.score is None else [result.score])
        return scores


def texts(inputs: list[dict[str, Any]]) -> dict[str, float | None]:
    metric = EvalMetric(metric_name="response_match_score", threshold=0.8, criterion=BaseCriterion(threshold=0.8))
    scores: dict[str, float | None] = {}
    for item in inputs:
        actual, expected = invocation([], item["answer"]), invocation([], item["expected"])
        score = RougeEvaluator(metric).evaluate_invocations([actual], [expected]).overall_score
        scores[item["name"]] = None if score is None else round(score, 9)
    return scores


def agents(cases: dict[str, Any]) -> dict[str, Any]:
    """The verdict on each case, and the mean of each metric."""
    files = write_project(cases)
    return {name: asyncio.run(evaluate(case, files[name], Results())) for name, case in cases.items()}


def folders(inputs: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """How many cases of each folder were evaluated."""
    paths = write_folders(inputs)
    counts = {}
    for name, cases in inputs.items():
        results = Results()
        asyncio.run(evaluate(cases[0], paths[name], results))
        counts[name] = len(results.cases)
    return counts


def histories(cases: dict[str, Any]) -> dict[str, Any]:
    """The text of the result file of each case that has scores, and what it says."""
    files = write_project(cases)
    texts, verdicts = {}, {}
    for name, case in cases.items():
        results = Results()
        verdict = asyncio.run(evaluate(case, files[name], results))
        if any(results.scores().values()):
            result = create_eval_set_result("peers", "peers", results.cases)
            texts[name] = {"text": result.model_dump_json(), "case": case}
            verdicts[name] = verdict
    return {"files": texts, "results": verdicts}


class ScriptedJudge(BaseLlm):
    """A judge that says the next of `REPLIES`."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["scripted-judge"]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        part = types.Part(text=REPLIES.pop(0))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


REPLIES: list[str] = []


def judged(inputs: dict[str, Any]) -> dict[str, float | None]:
    """The score of each metric if the judge replies as the input says."""
    LLMRegistry.register(ScriptedJudge)
    return {name: asyncio.run(judged_score(item)) for name, item in inputs.items()}


async def judged_score(item: dict[str, Any]) -> float | None:
    name, replies = item["metric"], item["replies"]
    count = item.get("items", len(replies[0]))
    options = {"judge_model": "scripted-judge", "num_samples": len(replies)}
    criterion: dict[str, Any] = {"threshold": 0.5, "judge_model_options": options}
    answer = "The answer."
    if name == "final_response_match_v2":
        words = {True: "valid", False: "invalid"}
        REPLIES[:] = [json.dumps({"is_the_agent_response_valid": words[reply[0]]}) for reply in replies]
    elif name == "hallucinations_v1":
        sentences = [f"Fact number {number} is here." for number in range(count)]
        answer = " ".join(sentences)
        blocks = [
            f"sentence: {sentence}\nlabel: {label}\nrationale: r\nsupporting_excerpt: null\ncontradicting_excerpt: null"
            for sentence, label in zip(sentences, replies[0], strict=True)
        ]
        REPLIES[:] = ["".join(f"<sentence>{sentence}</sentence>" for sentence in sentences), "\n\n".join(blocks)]
    else:
        criterion["rubrics"] = [
            {"rubric_id": f"r{number}", "rubric_content": {"text_property": f"Property {number} holds."}}
            for number in range(count)
        ]
        REPLIES[:] = ["\n\n".join(rubric_blocks(reply)) for reply in replies]
    metric = EvalMetric(metric_name=name, threshold=0.5, criterion=BaseCriterion.model_validate(criterion))
    calls = [{"name": "look", "args": {}}]
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric)
    result = await evaluator.evaluate_invocations([invocation(calls, answer)], [invocation(calls, "The answer.")])
    return None if result.overall_score is None else round(result.overall_score, 9)


VERDICTS = {True: "yes", False: "no"}


def rubric_blocks(reply: list[bool]) -> list[str]:
    return [
        f"ID: r{number}\nProperty: Property {number} holds.\nRationale: because.\nVerdict: {VERDICTS.get(met, met)}"
        for number, met in enumerate(reply)
    ]


def loaded(inputs: dict[str, str]) -> dict[str, int | str]:
    """How many invocations google-adk finds in each file."""
    counts: dict[str, int | str] = {}
    for number, (name, text) in enumerate(inputs.items()):
        file = Path(f"migrated_{number}.test.json")
        file.write_text(text, encoding="utf-8")
        eval_set = load_eval_set_from_file(str(file), "migrated")
        counts[name] = sum(len(case.conversation or ()) for case in eval_set.eval_cases)
    return counts


async def evaluate(case: dict[str, Any], file: Path, results: Results) -> dict[str, Any]:
    try:
        await AgentEvaluator.evaluate(
            module_of(case),
            str(file),
            num_runs=case["num_runs"],
            agent_name=case.get("agent_name"),
            print_detailed_results=False,
            app_name="peers",
            eval_set_results_manager=results,
        )
        verdict = "passed"
    except AssertionError as error:
        verdict = "not evaluated" if "was not evaluated" in str(error) else "failed"
    except Exception as error:
        print(file, repr(error)[:300])
        verdict = "refused"
    return {"verdict": verdict, "scores": means(results.scores(), case)}


TASKS = {
    "trajectories": trajectories,
    "texts": texts,
    "agents": agents,
    "folders": folders,
    "histories": histories,
    "judged": judged,
    "loaded": loaded,
}

if __name__ == "__main__":
    inputs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    outputs = {name: TASKS[name](data) for name, data in inputs.items()}
    Path(sys.argv[2]).write_text(json.dumps(outputs), encoding="utf-8")
