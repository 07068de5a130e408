"""A picture of what a run looks like on a terminal, for a README or a page."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from proctor.reporting.terminal.narration import tell_start, tell_summary
from proctor.reporting.terminal.progress import RichScreen, TrialTeller
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict

_REMOTE_FONT = re.compile(r"@font-face\s*{{.*?}}", re.DOTALL)


def terminal_svg(run: Run, verdict: RunVerdict, *, title: str, command: str = "", width: int = 100) -> str:
    """The run as a terminal shows it, as an SVG that is the same for the same run and loads nothing from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    screen = RichScreen(console)
    if command:
        screen.line(("$ ", "dim"), (command, "bold"))
        screen.line()
    tell_start(screen, run, sum(info.planned for info in run.suites), 0)
    teller = TrialTeller(screen, verbose=False, every=True)
    teller.start(replace(run, summaries=[]))
    for trial in run.trials:
        teller.tell(trial)
    teller.finish()
    tell_summary(screen, run, verdict)
    screen.flush()
    return console.export_svg(
        title=title, code_format=_REMOTE_FONT.sub("", CONSOLE_SVG_FORMAT), unique_id="proctor-terminal"
    )
