"""`proctor format`: a trace as an entry for a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import click

from proctor.cli.common import say, store_option
from proctor.errors import StoreError, UsageError


@click.command("format")
@click.option("--input", "given", metavar="FILE", help="The trace: OTLP JSON, or JSON Lines of `proctor trace`.")
@click.option("--trace", "trace_id", metavar="ID", help="A kept trace instead (default: the latest).")
@click.option("--output", metavar="FILE", help="Write to this file instead of the terminal.")
@store_option
def command(given: str | None, trace_id: str | None, output: str | None, store: str | None) -> int:
    """Make an entry for a dataset of a trace.

    What the application was given and had wrapped becomes the entry's; what it answered stands under `x-pixie`, to look
    at. What a right answer is like, under `expectation`, is for a person to say.
    """
    from proctor.cases.model import UNSET
    from proctor.cli.proposing import proposal_from_file, proposal_from_store
    from proctor.evaluators.datasets.files import make_entry

    if given is not None and trace_id is not None:
        raise UsageError("give --input or --trace, not both")
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    proposal = proposal_from_store(trace_id or "last", store) if given is None else proposal_from_file(given)
    text = json.dumps(make_entry(proposal.evaluable, "entry_kwargs", proposal.entry_kwargs), indent=2)
    _put(text, output)
    for note in proposal.notes:
        say(f"note: {note}", err=True)
    if proposal.evaluable.expectation is UNSET:
        say("note: say under 'expectation' what a right answer is like; what was answered is under 'x-pixie'", err=True)
    return 0


def _put(text: str, output: str | None) -> None:
    if output in (None, "-"):
        say(text)
        return
    path = Path(str(output))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None
    say(f"entry: {path}", err=True)
