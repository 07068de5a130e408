"""`proctor export RUN` and `proctor import FILE`: a whole run as one file, here and elsewhere."""

from __future__ import annotations

import click

from proctor.base.errors import UsageError
from proctor.cli.configuration import read_configuration
from proctor.cli.options_and_output import json_option, say, say_json, store_option
from proctor.results.run_files import export_run, import_run, open_lines, open_run, place_of
from proctor.results.store import Store


@click.command("export")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("-o", "--output", metavar="FILE", default="-", help="Write to this file instead of standard output.")
@store_option
def command(run_id: str, output: str, store: str | None) -> int:
    """Write a run as JSON Lines: its cases, answers, tool calls, scores and traces, and where it was made.

    The file can be named wherever a run can, and `proctor import` keeps it in another store.
    """
    from proctor.reporting.report_files import write_document

    if not output.strip():
        raise UsageError("-o must name a file, or - for standard output")
    source, row = open_run(read_configuration().store(store), run_id)
    write_document(output, lambda out: export_run(source, row, out))
    if output != "-":
        say(f"exported run {row.id} to {output}", err=True)
    return 0


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@json_option
@store_option
def import_command(files: tuple[str, ...], as_json: bool, store: str | None) -> int:
    """Keep runs that `proctor export` wrote; - is standard input. A run that is here already is left as it is."""
    configuration = read_configuration()
    kept = Store(configuration.store(store))
    keep_secrets = configuration.values.get("keep_secrets", False)
    told = []
    for name in files:
        with open_lines(name) as lines:
            row, is_new = import_run(kept, lines, place_of(name), keep_secrets=keep_secrets)
        told.append({"run": row.id, "name": row.name, "imported": is_new})
        if not as_json:
            say(f"imported run {row.id}" if is_new else f"run {row.id} is here already")
    if as_json:
        say_json("import-row", told)
    return 0
