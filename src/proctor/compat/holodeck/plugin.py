"""What Proctor knows of HoloDeck. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.cases.formats.holodeck.declaration import recognises, refusal
from proctor.cases.formats.holodeck.keys import NAME
from proctor.compat.holodeck._index import EVALUATORS
from proctor.plugins import Format, ImportName, JudgeSpelling, Plugin

PLUGIN = Plugin(
    name="holodeck",
    formats=[
        Format(
            name=NAME,
            summary="HoloDeck's `agent.yaml`: an agent, the metrics it is measured by, and its tests.",
            recognises=recognises,
            read="proctor.cases.formats.holodeck.agent_file:read_document",
            suffixes=(".yaml", ".yml", ".json"),
            file_names=("agent.*",),
            keys=frozenset({"test_cases", "test_cases_file"}),
            agent_hint="describe one with `model` and `instructions`, add `agent: app.py:agent`, or ",
            refusal=refusal,
        )
    ],
    judge_spellings=[
        JudgeSpelling(
            keys=frozenset({"provider"}),
            naming_keys=frozenset({"provider"}),
            read="proctor.compat.holodeck.judge_model:read_judge",
        )
    ],
    evaluators=EVALUATORS,
    evaluator_aliases={
        "geval": "GEval",
        "bleu": "BLEU",
        "rouge": "ROUGE",
        "meteor": "METEOR",
        "equality": "Equality",
        "numeric": "Numeric",
        "groundedness": "Groundedness",
        "relevance": "Relevance",
        "coherence": "Coherence",
        "fluency": "Fluency",
        "faithfulness": "Faithfulness",
        "contextual_relevancy": "ContextualRelevancy",
        "contextual_precision": "ContextualPrecision",
        "contextual_recall": "ContextualRecall",
        "answer_relevancy": "AnswerRelevancy",
    },
    import_names={
        "holodeck": ImportName(
            home="proctor.compat.holodeck",
            modules="proctor.compat.holodeck.import_paths:IMPORT_PATHS",
            page="docs/holodeck.md",
        )
    },
)
