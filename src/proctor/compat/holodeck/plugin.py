"""What Proctor knows of HoloDeck. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.plugins import ImportName, Plugin

PLUGIN = Plugin(
    name="holodeck",
    import_names={
        "holodeck": ImportName(
            home="proctor.compat.holodeck",
            modules="proctor.compat.holodeck.import_paths:IMPORT_PATHS",
            page="docs/holodeck.md",
        )
    },
)
