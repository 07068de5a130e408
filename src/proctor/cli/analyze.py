"""`proctor analyze RUN`: a second look at a run, without asking an agent or a judge."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import click

from proctor.base.errors import UsageError
from proctor.cli.configuration import read_configuration
from proctor.cli.options_and_output import json_option, say, store_option, write_documents
from proctor.reporting.terminal.screen import Outlet, is_terminal, is_unicode, visible
from proctor.results.run_files import read_named_run
from proctor.results.verdict import judge

SCHEMA = "proctor.analysis/1"


@click.command("analyze")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@json_option
@store_option
def command(run_id: str, output: str | None, as_json: bool, store: str | None) -> int:
    """Analyse a run: what failures have in common, how scores spread, what varies and what costs most.

    On a terminal it is laid out; in a pipe or a file it is Markdown. RUN is an id, the beginning of one, a name,
    `last`, `last~1`, or an exported file. Exits 0 whatever the verdict was.
    """
    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    text = _as_text(read_configuration().store(store), run_id, as_json)
    if output is None or output == "-":
        if as_json or not show_markdown(text, sys.stdout):
            say(text)
        return 0
    write_documents({"md": output}, {"md": lambda out: out.write(f"{text}\n")}, "the analysis", told_as="analysis")
    return 0


def show_markdown(text: str, stream: TextIO) -> bool:
    """Lay Markdown out on a terminal; False where the stream is none that can show it."""
    if not (is_terminal(stream) and is_unicode(stream)) or os.environ.get("TERM") == "dumb":
        return False
    from rich.console import Console
    from rich.markdown import Markdown

    outlet: Any = Outlet(stream)
    console = Console(file=outlet, force_terminal=True, highlight=False, markup=False, emoji=False)
    console.print(Markdown(visible(text), hyperlinks=False))
    return True


def _as_text(folder: Path, run_id: str, as_json: bool) -> str:
    from proctor.base.json_data import plain
    from proctor.reporting.analysis import analyse, write_markdown

    _, run = read_named_run(folder, run_id)
    analysis = analyse(run, judge(run))
    if as_json:
        return json.dumps({"schema": SCHEMA, **plain(analysis)}, indent=2)
    out = io.StringIO()
    write_markdown(analysis, out)
    return out.getvalue().rstrip("\n")
