"""The command that calibration adds."""

from __future__ import annotations

from proctor.plugins import Command, Plugin

PLUGIN = Plugin(
    name="calibration",
    commands=[
        Command(
            name="calibrate",
            help="Measure how well a judge agrees with people.",
            target="proctor.calibration.command:command",
            section="scoring",
        )
    ],
)
