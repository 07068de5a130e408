"""What Proctor knows of ADK. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.compat.adk._index import EVALUATORS
from proctor.compat.adk.keys import CONFIG_NAME, NAME, ROW_KEYS, SET_KEYS, SUITE_NAMES
from proctor.compat.adk.recognition import recognises
from proctor.plugins import Format, JudgeSpelling, Plugin

PLUGIN = Plugin(
    name="adk",
    formats=[
        Format(
            name=NAME,
            summary="ADK's EvalSets, as ADK-TS and adk-python write them, and the flat arrays before EvalSets.",
            recognises=recognises,
            read="proctor.compat.adk.eval_set:read_document",
            file_names=SUITE_NAMES,
            keys=SET_KEYS,
            case_keys=ROW_KEYS - {"reference"} | {"expected_intermediate_agent_responses"},
            companions=(CONFIG_NAME,),
        )
    ],
    judge_spellings=[
        JudgeSpelling(
            keys=frozenset("judge_model judgeModel num_samples numSamples judge_model_config judgeModelConfig".split()),
            naming_keys=frozenset({"judge_model", "judgeModel"}),
            read="proctor.compat.adk.judge_options:read_judge",
            camel=True,
        )
    ],
    evaluators=EVALUATORS,
    exports={"AgentEvaluator": "proctor.compat.adk.agent_evaluator:AgentEvaluator"},
    evaluator_aliases={
        "tool_trajectory_avg_score": "ToolTrajectory",
        "response_match_score": "ROUGE",
        "response_evaluation_score": "ResponseEvaluation",
        "safety_v1": "Safety",
        "final_response_match_v2": "FinalResponseMatch",
        "rubric_based_final_response_quality_v1": "FinalResponseQuality",
        "rubric_based_tool_use_quality_v1": "ToolUseQuality",
        "rubric_based_multi_turn_trajectory_quality_v1": "TrajectoryQuality",
        "hallucinations_v1": "Hallucinations",
        "per_turn_user_simulator_quality_v1": "UserSimulatorQuality",
    },
)
