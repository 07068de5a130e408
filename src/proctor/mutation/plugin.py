"""The command that mutation testing adds."""

from __future__ import annotations

from proctor.plugins import Command, Plugin

PLUGIN = Plugin(
    name="mutation",
    commands=[
        Command(
            name="mutate",
            help="Test the tests: alter good answers and see what the suites notice.",
            target="proctor.mutation.command:command",
            section="scoring",
        )
    ],
)
