"""What Proctor knows of HoloDeck. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.compat.holodeck._index import EVALUATORS
from proctor.plugins import ImportName, Plugin

PLUGIN = Plugin(
    name="holodeck",
    evaluators=EVALUATORS,
    import_names={
        "holodeck": ImportName(
            home="proctor.compat.holodeck",
            modules="proctor.compat.holodeck.import_paths:IMPORT_PATHS",
            page="docs/holodeck.md",
        )
    },
)
