"""What pixie adds to Proctor. Every command that loads files imports this module, so it must stay light."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.base.json_data import Json
from proctor.compat.pixie._index import EVALUATORS
from proctor.compat.pixie.reader import NAME, recognises
from proctor.plugins import Command, Format, ImportName, Plugin, TraceFormat

TRACE_RECORDS = ("kwargs", "wrap", "llm_span", "llm_span_trace")
"""The types of the records in a pixie trace; the last two are model calls."""


def is_trace_record(document: Json) -> bool:
    """Whether the data is a record of a pixie trace."""
    return isinstance(document, dict) and document.get("type") in TRACE_RECORDS


def dataset_folder() -> Path | None:
    """The folder that pixie's variables name, if it is outside of the working folder."""
    root, folder = os.environ.get("PIXIE_ROOT"), os.environ.get("PIXIE_DATASET_DIR")
    path = Path(folder) if folder else Path(root, "datasets") if root else None
    return None if path is None or path.resolve().is_relative_to(Path.cwd().resolve()) else path


PLUGIN = Plugin(
    name="pixie",
    formats=[
        Format(
            name=NAME,
            summary="pixie's datasets of every generation: "
            "entries with arguments for an application and evaluators for its output.",
            recognises=recognises,
            read="proctor.compat.pixie.reader:read",
            collect_names=("*dataset*.json", "datasets/*.json", "pixie/*.json", "pixie_qa/*.json"),
            keys=frozenset({"runnable"}),
            case_keys=frozenset({"entry_kwargs", "input_data", "eval_input"}),
            unfinished="proctor.compat.pixie.datasets:unfinished_datasets",
            default_folder=dataset_folder,
            case_text="proctor.compat.pixie.datasets:entry_text",
            agent_hint='add "runnable": "app.py:App", or ',
        )
    ],
    evaluators=EVALUATORS,
    scorers={"autoevals": "proctor.compat.pixie.autoevals:AutoevalsAdapter"},
    exports={
        "AutoevalsAdapter": "proctor.compat.pixie.autoevals:AutoevalsAdapter",
        "Dataset": "proctor.compat.pixie.datasets:Dataset",
        "DatasetEntryResult": "proctor.compat.pixie.scorecard:DatasetEntryResult",
        "DatasetScorecard": "proctor.compat.pixie.scorecard:DatasetScorecard",
        "DatasetStore": "proctor.compat.pixie.datasets:DatasetStore",
        "add_handler": "proctor.compat.pixie.span_handlers:add_handler",
        "assert_dataset_pass": "proctor.compat.pixie.dataset_assertions:assert_dataset_pass",
        "assert_dataset_pass_sync": "proctor.compat.pixie.dataset_assertions:assert_dataset_pass_sync",
        "generate_dataset_scorecard_html": "proctor.compat.pixie.scorecard:generate_dataset_scorecard_html",
        "save_dataset_scorecard": "proctor.compat.pixie.scorecard:save_dataset_scorecard",
        "scorecards_of": "proctor.compat.pixie.scorecard:scorecards_of",
        "flush": "proctor.compat.pixie.span_handlers:flush",
        "remove_handler": "proctor.compat.pixie.span_handlers:remove_handler",
    },
    commands=[
        Command(
            name="dataset create",
            help="Create an empty pixie dataset.",
            target="proctor.compat.pixie.commands:create",
            runs_user_code=False,
        ),
        Command(
            name="dataset save",
            help="Add an entry to a pixie dataset, made from a stored trace.",
            target="proctor.compat.pixie.commands:save",
        ),
    ],
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
