"""What Proctor knows of pixie. Light to import: it is looked at whenever a file is loaded."""

from __future__ import annotations

from proctor.plugins import ImportName, Plugin

PLUGIN = Plugin(
    name="pixie",
    import_names={
        "pixie": ImportName(
            home="proctor.compat.pixie",
            modules="proctor.compat.pixie.import_paths:IMPORT_PATHS",
            page="docs/pixie.md",
        )
    },
)
