"""What Proctor knows of pixie. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.base.json_data import Json
from proctor.compat.pixie._index import EVALUATORS
from proctor.compat.pixie.reader import NAME, recognises
from proctor.plugins import Format, ImportName, Plugin, TraceFormat

TRACE_RECORDS = ("kwargs", "wrap", "llm_span", "llm_span_trace")
"""The types of the records in a pixie trace; the last two are model calls."""


def is_trace_record(document: Json) -> bool:
    return isinstance(document, dict) and document.get("type") in TRACE_RECORDS


PLUGIN = Plugin(
    name="pixie",
    formats=[
        Format(
            name=NAME,
            summary="pixie's datasets of every generation: "
            "entries with arguments for an application and evaluators for its answers.",
            recognises=recognises,
            read="proctor.compat.pixie.reader:read",
            collect_names=("*dataset*.json", "datasets/*.json", "pixie/*.json", "pixie_qa/*.json"),
            keys=frozenset({"runnable"}),
            case_keys=frozenset({"entry_kwargs", "input_data", "eval_input"}),
            agent_hint='add "runnable": "app.py:App", or ',
        )
    ],
    evaluators=EVALUATORS,
    exports={
        "Dataset": "proctor.compat.pixie.datasets:Dataset",
        "DatasetStore": "proctor.compat.pixie.datasets:DatasetStore",
        "add_handler": "proctor.compat.pixie.span_handlers:add_handler",
        "assert_dataset_pass": "proctor.compat.pixie.dataset_assertions:assert_dataset_pass",
        "assert_dataset_pass_sync": "proctor.compat.pixie.dataset_assertions:assert_dataset_pass_sync",
        "flush": "proctor.compat.pixie.span_handlers:flush",
        "remove_handler": "proctor.compat.pixie.span_handlers:remove_handler",
    },
    trace_formats=[
        TraceFormat(
            name="pixie",
            recognises=is_trace_record,
            read="proctor.compat.pixie.trace_lines:from_records",
            write="proctor.compat.pixie.trace_lines:to_lines",
        )
    ],
    import_names={
        "pixie": ImportName(
            home="proctor.compat.pixie",
            modules="proctor.compat.pixie.import_paths:IMPORT_PATHS",
            page="docs/pixie.md",
        )
    },
)
