"""The command that mutation testing adds."""

from __future__ import annotations

from proctor.plugins import Command, Plugin

PLUGIN = Plugin(
    name="mutation",
    commands=[
        Command(
            name="mutate",
            help="Test the tests: say what suites notice of answers made wrong.",
            target="proctor.mutation.command:command",
            section="scoring",
        )
    ],
)
