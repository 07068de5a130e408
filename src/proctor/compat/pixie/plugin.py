"""What pixie's part adds: its datasets."""

from __future__ import annotations

from proctor.cases.formats.pixie import NAME, recognises
from proctor.plugins import Format, Plugin

PLUGIN = Plugin(
    name="pixie",
    formats=[
        Format(
            name=NAME,
            summary="pixie's datasets of every generation: "
            "entries with arguments for an application and evaluators for its answers.",
            recognises=recognises,
            read="proctor.cases.formats.pixie:read",
            collect_names=("*dataset*.json", "datasets/*.json", "pixie/*.json", "pixie_qa/*.json"),
            keys=frozenset({"runnable"}),
            case_keys=frozenset({"entry_kwargs", "input_data", "eval_input"}),
            agent_hint='add "runnable": "app.py:App", or ',
        )
    ],
)
