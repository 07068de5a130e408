"""`proctor trace`: list, show, import and export traces, and run an application once to record one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from proctor.agents.resolve import resolve_agent
from proctor.base.atomic_write import atomic_write
from proctor.base.errors import InvalidSuite, Problem, StoreError, UsageError
from proctor.base.event_loops import run_sync
from proctor.base.json_data import Json, to_json
from proctor.base.masking import mask
from proctor.cli.help_pages import DocumentedGroup, option
from proctor.cli.options import json_option, store_option
from proctor.cli.output import reserve_stdout, say, say_json
from proctor.cli.selection import run_argument
from proctor.cli.suite_files import write_file
from proctor.cli.trace_to_case import command as to_case
from proctor.config import read_configuration
from proctor.reporting.output import refuse_foreign_file
from proctor.reporting.wording import plural
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.results.store.trace_encoding import span_to_json
from proctor.results.store.traces import TraceRow
from proctor.running.assertions.observed_call import trace_application
from proctor.tracing.instrumentation import missing_instrumentation
from proctor.tracing.otlp import is_otlp, read_trace_file, trace_text, trial_resource
from proctor.tracing.spans import MAX_VALUE_CHARS, Span, build_tree, tool_calls_of, usage_of


@click.group(
    "trace",
    invoke_without_command=True,
    cls=DocumentedGroup,
    examples=("proctor trace list --errors", "proctor trace to-case --trace last"),
)
@click.option("--runnable", metavar="F:NAME", help="Run this application once and store its trace.")
@click.option("--input", "source", metavar="FILE", help="JSON object with the arguments for --runnable; - is stdin.")
@click.option("--output", metavar="FILE", help="With --runnable: also write the trace to FILE as JSON Lines.")
@json_option
@store_option
@click.pass_context
def command(context: click.Context, /, runnable: str | None, source: str | None, **options: Any) -> int | None:
    """List, show, import and export traces, or record one: proctor trace --runnable app.py:App --input kwargs.json"""
    if context.invoked_subcommand is not None:
        if runnable or source or any(options.values()):
            raise UsageError(f"put options after the command: proctor trace {context.invoked_subcommand} ...")
        return None
    if runnable is None or source is None:
        raise UsageError(
            "missing command: list, show, last, import, export or to-case; or use --runnable F:NAME with --input FILE"
        )
    return record_trace(runnable, source, **options)


command.add_command(to_case)


@command.command("list")
@option(
    "-n",
    "--limit",
    group="",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    help="List at most N traces (default: 20).",
)
@click.option("--errors", is_flag=True, help="List only traces with an error.")
@json_option
@store_option
def list_(limit: int, errors: bool, as_json: bool, store: str | None) -> int:
    """List traces, the latest first."""
    stored = _open_store(store)
    rows = stored.traces.rows(limit, errors=errors)
    if as_json:
        say_json("trace-row", [_as_json(row) for row in rows])
        return 0
    if not rows:
        say(f"no traces in {stored.folder}")
    for row in rows:
        say(_line(row))
    return 0


@command.command("show", short_help="Show one trace as a tree.")
@click.argument("trace_id", metavar="ID")
@click.option("-v", "--verbose", is_flag=True, help="Show the full text of inputs and outputs.")
@json_option
@store_option
def show(trace_id: str, verbose: bool, as_json: bool, store: str | None) -> int:
    """Show one trace as a tree. ID is its id, the beginning of one, or `last`."""
    return _show(_open_store(store), trace_id, verbose, as_json)


@command.command("last")
@click.option("-v", "--verbose", is_flag=True, help="Show the full text of inputs and outputs.")
@json_option
@store_option
def last(verbose: bool, as_json: bool, store: str | None) -> int:
    """Show the latest trace."""
    return _show(_open_store(store), "last", verbose, as_json)


@command.command("import", short_help="Add traces from files to the store.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@json_option
@store_option
def import_(paths: tuple[str, ...], as_json: bool, store: str | None) -> int:
    """Add traces from files to the store: OTLP JSON, as one document or one per line, or pixie's JSON Lines.

    Files may be compressed with gzip. A trace that is already stored is not added again.
    """
    imported = import_traces(Store(read_configuration().store(store)), paths)
    new = sum(is_new for _, is_new in imported)
    if as_json:
        ids = [trace_id for trace_id, _ in imported]
        say_json("trace-import", {"imported": new, "known": len(imported) - new, "ids": ids})
        return 0
    known = f"; {len(imported) - new} already stored" if new < len(imported) else ""
    say(f"imported {plural(new, 'trace')}{known}")
    return 0


@command.command("export")
@run_argument
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@store_option
def export(run_id: str, output: str | None, store: str | None) -> int:
    """Write the traces of RUN as one document of OTLP JSON."""
    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    stored, row = open_run(read_configuration().store(store), run_id)
    run, count = export_traces(stored, row.id, output)
    target = "" if output in (None, "-") else f" to {output}"
    say(f"wrote {plural(count, 'trace')} of run {run}{target}", err=True)
    return 0


def _open_store(store: str | None) -> Store:
    return Store(read_configuration().store(store), create=False)


def _show(stored: Store, trace_id: str, verbose: bool, as_json: bool) -> int:
    row = stored.traces.find(trace_id)
    spans = stored.traces.spans(row.no)
    if as_json:
        document = {**_as_json(row), "spans": [to_json(span_to_json(span)) for span in spans]}
        say_json("trace", document)
        return 0
    say(f"trace {row.id}  {row.title}" + (f"  (run {row.run})" if row.run else ""))
    say(f"{_when(row)}, {row.duration_ms:,.0f} ms, {plural(row.spans, 'span')}{_errors_text(row)}{_summary(spans)}")
    for name in ("problem", "cut"):
        if row.info.get(name):
            say(f"note: {row.info[name]}")
    for root in build_tree(spans):
        say(root.to_text(max_chars=None if verbose else MAX_VALUE_CHARS))
    return 0


def _summary(spans: tuple[Span, ...]) -> str:
    """The tokens and tools of a trace, if it has any."""
    usage, calls = usage_of(spans), tool_calls_of(spans)
    parts = []
    if usage is not None:
        tokens = [("?" if count is None else f"{count:,}") for count in (usage.input_tokens, usage.output_tokens)]
        parts.append(f"{plural(usage.model_calls or 0, 'model call')} with {tokens[0]} tokens in, {tokens[1]} out")
    if calls:
        names = [call.name for call in calls]
        parts.append("tools: " + ", ".join(f"{n} ({names.count(n)})" for n in dict.fromkeys(names)))
    return "".join(f"; {part}" for part in parts)


def _line(row: TraceRow) -> str:
    return (
        f"{row.id}  {_when(row)}  {row.duration_ms:>9,.0f} ms  {plural(row.spans, 'span'):>9}{_errors_text(row)}"
        f"  {row.title}"
    )


def _when(row: TraceRow) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started_at))


def _errors_text(row: TraceRow) -> str:
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


def record_trace(runnable: str, source: str, *, output: str | None, as_json: bool, store: str | None) -> int:
    """Run an application once and store its trace; returns 0 if the application answered, otherwise 1."""
    arguments = read_arguments(source)
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    if output is not None:
        refuse_foreign_file(f"--output {output}", output, _is_trace_file)
    stored = Store(read_configuration().store(store))
    with reserve_stdout(as_json):
        once = run_sync(trace_application(resolve_agent(runnable), arguments))
    problem = {} if once.problem is None else {"problem": mask(once.problem)}
    row = stored.traces.add(once.spans, {"runnable": runnable, **problem})
    if output is not None:
        write_file(Path(output), trace_text(stored.traces.spans(row.no)))
    if as_json:
        say_json("trace-made", {"id": row.id, "spans": row.spans, "problem": once.problem})
    else:
        wrote = "" if output is None else f", written to {output}"
        say(f"stored trace {row.id} ({row.spans} span{'' if row.spans == 1 else 's'}){wrote}")
    if missing := missing_instrumentation():
        say(f"note: {missing}", err=True)
    if once.problem is not None:
        say(f"error: {once.problem}", err=True)
    return 0 if once.problem is None else 1


def _is_trace_file(path: Path) -> bool:
    try:
        read_trace_file(path)
    except InvalidSuite:
        return False
    return True


def read_arguments(source: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
        arguments = json.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read --input {source}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input {source} is not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UsageError(f"--input {source} must be a JSON object with the arguments of the application")
    return arguments


def import_traces(store: Store, paths: Sequence[str]) -> list[tuple[str, bool]]:
    """Store the traces of all files, or none if a file cannot be read; returns each id and whether it is new."""
    problems: list[Problem] = []
    traces_with_info: list[tuple[tuple[Span, ...], Mapping[str, Json]]] = []
    for path in paths:
        try:
            traces = read_trace_file(Path(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        traces_with_info += [(trace.spans, {**trace.trial, "file": Path(path).name}) for trace in traces]
    if problems:
        raise InvalidSuite(problems)
    return store.traces.add_all(traces_with_info)


def export_traces(store: Store, run_id: str, output: str | None) -> tuple[str, int]:
    """Write the traces of a run, trial by trial; returns the id of the run and the number of traces."""
    run = store.find_run(run_id)
    entries = _entries(store, run.no, run.id)
    if output in (None, "-"):
        return run.id, _write_trace_files(entries, sys.stdout)
    path = Path(str(output))
    refuse_foreign_file(f"-o {path}", str(path), is_otlp)
    try:
        with atomic_write(path) as draft, draft.open("w", encoding="ascii", newline="\n") as file:
            return run.id, _write_trace_files(entries, file)
    except OSError as error:
        raise StoreError(f"cannot write the traces to {path}: {error.strerror or error}") from None


def _entries(store: Store, no: int, run_id: str) -> Iterator[dict[str, Json]]:
    for trial in store.trials(no):
        if trial.spans:
            yield trial_resource(trial.spans, run=run_id, suite=trial.suite, case=trial.case.id, number=trial.number)


def _write_trace_files(entries: Iterator[dict[str, Json]], out: TextIO) -> int:
    """Write one JSON document with one line per entry; returns the number of entries."""
    count = 0
    out.write('{"resourceSpans": [')
    for entry in entries:
        out.write(("\n" if count == 0 else ",\n") + json.dumps(entry))
        count += 1
    out.write("\n]}\n")
    return count
