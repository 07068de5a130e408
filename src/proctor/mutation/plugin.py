"""The command that mutation testing adds."""

from __future__ import annotations

from proctor.plugins import Command, Plugin

PLUGIN = Plugin(
    name="mutation",
    commands=[
        Command(
            name="mutate",
            help="Mutation-test suites: find wrong outputs they would pass.",
            target="proctor.mutation.command:command",
            section="scoring",
        )
    ],
)
