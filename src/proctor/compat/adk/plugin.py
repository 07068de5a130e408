"""What ADK adds to Proctor. Every command that loads files imports this module, so it must stay light."""

from __future__ import annotations

from proctor.compat.adk._index import EVALUATORS
from proctor.compat.adk.criteria import METRICS
from proctor.compat.adk.keys import CONFIG_NAME, NAME, ROW_KEYS, SET_KEYS, SUITE_NAMES
from proctor.compat.adk.recognition import recognises, recognises_result, refuse_result
from proctor.plugins import Format, JudgeSpelling, Plugin, RunFormat, Template

PLUGIN = Plugin(
    name="adk",
    formats=[
        Format(
            name=NAME,
            summary="ADK's EvalSets, from ADK-TS and adk-python, and the older flat arrays.",
            recognises=recognises,
            read="proctor.compat.adk.eval_set:read_document",
            read_with_config="proctor.compat.adk.eval_set:read_with_config",
            file_names=SUITE_NAMES,
            keys=SET_KEYS,
            case_keys=ROW_KEYS - {"reference"} | {"expected_intermediate_agent_responses"},
            companions=(CONFIG_NAME,),
            with_session="proctor.compat.adk.evaluation_inputs:with_session_file",
            refusal=refuse_result,
        )
    ],
    run_formats=[
        RunFormat(
            name="adk",
            recognises=recognises_result,
            read="proctor.compat.adk.eval_history:read_eval_result",
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
    evaluator_aliases={name: metric.evaluator for name, metric in METRICS.items()},
    templates=[
        Template(
            name="adk",
            summary="an EvalSet and a test_config.json",
            folder="proctor.compat.adk:template",
            test_arguments=("@evaluation", "--agent", "@agent.py:agent"),
            shares=("agent.py",),
        ),
        Template(
            name="adk_ts",
            summary="an ADK agent in TypeScript, with Vitest",
            folder="proctor.compat.adk:template_ts",
            test_arguments=("@evaluation",),
            install="npm install",
        ),
    ],
)
