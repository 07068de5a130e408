"""`proctor trace`: what happened inside applications, kept, shown, brought in and taken out."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, say, store_option
from proctor.cli.configuration import read_configuration
from proctor.errors import UsageError
from proctor.results.store import Store
from proctor.results.traces import TraceRow

if TYPE_CHECKING:
    from proctor.tracing.spans import Span


@click.group("trace", invoke_without_command=True)
@click.option("--runnable", metavar="F:NAME", help="Run this application once and keep its trace.")
@click.option("--input", "given", metavar="FILE", help="Its arguments: a JSON object, or - for standard input.")
@click.option("--output", metavar="FILE", help="Also write the trace as JSON Lines.")
@json_option
@store_option
@click.pass_context
def command(context: click.Context, /, runnable: str | None, given: str | None, **options: Any) -> int | None:
    """List, show, import and export traces, or make one: proctor trace --runnable app.py:App --input kwargs.json"""
    if context.invoked_subcommand is not None:
        if runnable or given or any(options.values()):
            raise UsageError(f"options stand after the command: proctor trace {context.invoked_subcommand} ...")
        return None
    if runnable is None or given is None:
        raise UsageError("name what to do: list, show, last, import, export, or --runnable F:NAME with --input FILE")
    from proctor.cli.trace_once import make_trace

    return make_trace(runnable, given, **options)


@command.command("list")
@click.option(
    "-n", "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many."
)
@click.option("--errors", is_flag=True, help="Only those in which something failed.")
@json_option
@store_option
def list_(limit: int, errors: bool, as_json: bool, store: str | None) -> int:
    """List traces, the latest first."""
    kept = _opened(store)
    rows = kept.traces.rows(limit, errors=errors)
    if as_json:
        say(json.dumps([_as_json(row) for row in rows], indent=2))
        return 0
    if not rows:
        say(f"no traces in {kept.folder}")
    for row in rows:
        say(_line(row))
    return 0


@command.command("show", short_help="Show one trace as a tree.")
@click.argument("trace_id", metavar="ID")
@click.option("-v", "--verbose", is_flag=True, help="Whole texts.")
@json_option
@store_option
def show(trace_id: str, verbose: bool, as_json: bool, store: str | None) -> int:
    """Show one trace as a tree: its id, the beginning of one, or `last`."""
    return _show(_opened(store), trace_id, verbose, as_json)


@command.command("last")
@click.option("-v", "--verbose", is_flag=True, help="Whole texts.")
@json_option
@store_option
def last(verbose: bool, as_json: bool, store: str | None) -> int:
    """Show the latest trace."""
    return _show(_opened(store), "last", verbose, as_json)


@command.command("import", short_help="Keep the traces of files of OTLP JSON.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@json_option
@store_option
def import_(paths: tuple[str, ...], as_json: bool, store: str | None) -> int:
    """Keep the traces of files: OTLP JSON, one document or one a line, or pixie's JSON Lines; gzip is unpacked.

    What is kept already is not kept twice.
    """
    from proctor.cli.trace_files import import_traces

    kept = import_traces(Store(read_configuration().store(store)), paths)
    new = sum(is_new for _, is_new in kept)
    if as_json:
        say(json.dumps({"imported": new, "known": len(kept) - new, "ids": [trace_id for trace_id, _ in kept]}))
        return 0
    known = f"; {len(kept) - new} there already" if new < len(kept) else ""
    say(f"imported {_counted(new, 'trace')}{known}")
    return 0


@command.command("export")
@click.argument("run_id", metavar="[RUN]", default="last")
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@store_option
def export(run_id: str, output: str | None, store: str | None) -> int:
    """Write the traces of a run as one document of OTLP JSON."""
    from proctor.cli.trace_files import export_traces

    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    run, count = export_traces(_opened(store), run_id, output)
    target = "" if output in (None, "-") else f" to {output}"
    say(f"wrote {_counted(count, 'trace')} of run {run}{target}", err=True)
    return 0


def _opened(store: str | None) -> Store:
    return Store(read_configuration().store(store), create=False)


def _show(kept: Store, trace_id: str, verbose: bool, as_json: bool) -> int:
    row = kept.traces.find(trace_id)
    spans = kept.traces.spans(row.no)
    if as_json:
        from proctor.plain import plain
        from proctor.tracing.span_json import span_to_json

        document = {**_as_json(row), "spans": [plain(span_to_json(span)) for span in spans]}
        say(json.dumps(document, indent=2))
        return 0
    say(f"trace {row.id}  {row.title}" + (f"  (run {row.run})" if row.run else ""))
    say(f"{_when(row)}, {row.duration_ms:,.0f} ms, {_counted(row.spans, 'span')}{_failed(row)}{_summary(spans)}")
    for name in ("problem", "cut"):
        if row.info.get(name):
            say(f"note: {row.info[name]}")
    from proctor.tracing.spans import SHOWN, build_tree

    for root in build_tree(spans):
        say(root.to_text(shown=None if verbose else SHOWN))
    return 0


def _summary(spans: tuple[Span, ...]) -> str:
    """The tokens and tools of a trace, where it has any."""
    from proctor.tracing.summary import tool_calls_of, usage_of

    usage, calls = usage_of(spans), tool_calls_of(spans)
    said = []
    if usage is not None:
        tokens = [("?" if count is None else f"{count:,}") for count in (usage.input_tokens, usage.output_tokens)]
        said.append(f"{_counted(usage.model_calls or 0, 'model call')} with {tokens[0]} tokens in, {tokens[1]} out")
    if calls:
        names = [call.name for call in calls]
        said.append("tools: " + ", ".join(f"{n} ({names.count(n)})" for n in dict.fromkeys(names)))
    return "".join(f"; {part}" for part in said)


def _line(row: TraceRow) -> str:
    return (
        f"{row.id}  {_when(row)}  {row.duration_ms:>9,.0f} ms  {_counted(row.spans, 'span'):>9}{_failed(row)}"
        f"  {row.title}"
    )


def _when(row: TraceRow) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started_at))


def _failed(row: TraceRow) -> str:
    return f", {row.errors} failed" if row.errors else ""


def _as_json(row: TraceRow) -> dict[str, object]:
    return {
        "id": row.id,
        "trace_id": row.trace_id,
        "run": row.run,
        "started_at": row.started_at,
        "duration_ms": row.duration_ms,
        "span_count": row.spans,
        "errors": row.errors,
        "title": row.title,
        "info": dict(row.info),
    }


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
