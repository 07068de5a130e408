"""What DeepEval adds to Proctor. Every command that loads files imports this module, so it must stay light."""

from __future__ import annotations

from proctor.compat.deepeval._index import EVALUATORS
from proctor.plugins import Command, ImportName, Plugin

PLUGIN = Plugin(
    name="deepeval",
    evaluators=EVALUATORS,
    exports={
        name: f"proctor.compat.deepeval.dag:{name}"
        for name in ("BinaryJudgement", "NonBinaryJudgement", "TaskNode", "Verdict")
    },
    commands=[
        Command(
            name="deepeval",
            help="Run a test file as `deepeval test run` does: `proctor deepeval test run FILE`.",
            target="proctor.compat.deepeval.commands:deepeval",
            section="",
        )
    ],
    import_names={
        "deepeval": ImportName(
            home="proctor.compat.deepeval",
            modules="proctor.compat.deepeval.import_paths:IMPORT_PATHS",
            own_modules=("metrics", "test_case", "dataset", "models", "tracing"),
            page="docs/deepeval.md",
        )
    },
)
