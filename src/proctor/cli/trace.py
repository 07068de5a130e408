"""`proctor trace`: lists, shows, imports and exports traces, and runs an application once to get one."""

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
from proctor.cli.help_pages import DocumentedGroup
from proctor.cli.options import json_option, store_option
from proctor.cli.output import reserve_stdout, say, say_json
from proctor.cli.selection import run_argument
from proctor.cli.suite_files import write_file
from proctor.cli.trace_to_case import command as to_case
from proctor.config import read_configuration
from proctor.results.store.run_files import open_run
from proctor.results.store.store import Store
from proctor.results.store.trace_encoding import span_to_json
from proctor.results.store.traces import TraceRow
from proctor.running.assertions.observed_call import trace_application
from proctor.tracing.instrumentation import missing_instrumentation
from proctor.tracing.otlp import read_trace_file, trace_text, trial_resource
from proctor.tracing.spans import MAX_VALUE_CHARS, Span, build_tree, tool_calls_of, usage_of


@click.group(
    "trace",
    invoke_without_command=True,
    cls=DocumentedGroup,
    examples=("proctor trace list --errors", "proctor trace to-case --trace last"),
)
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
        raise UsageError(
            "name what to do: list, show, last, import, export, to-case, or --runnable F:NAME with --input FILE"
        )
    return make_trace(runnable, given, **options)


command.add_command(to_case)


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
        say_json("trace-row", [_as_json(row) for row in rows])
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
    kept = import_traces(Store(read_configuration().store(store)), paths)
    new = sum(is_new for _, is_new in kept)
    if as_json:
        ids = [trace_id for trace_id, _ in kept]
        say_json("trace-import", {"imported": new, "known": len(kept) - new, "ids": ids})
        return 0
    known = f"; {len(kept) - new} there already" if new < len(kept) else ""
    say(f"imported {_counted(new, 'trace')}{known}")
    return 0


@command.command("export")
@run_argument
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of the terminal.")
@store_option
def export(run_id: str, output: str | None, store: str | None) -> int:
    """Write the traces of a run as one document of OTLP JSON."""
    if output is not None and not output.strip():
        raise UsageError("-o must name a file, or - for the terminal")
    kept, row = open_run(read_configuration().store(store), run_id)
    run, count = export_traces(kept, row.id, output)
    target = "" if output in (None, "-") else f" to {output}"
    say(f"wrote {_counted(count, 'trace')} of run {run}{target}", err=True)
    return 0


def _opened(store: str | None) -> Store:
    return Store(read_configuration().store(store), create=False)


def _show(kept: Store, trace_id: str, verbose: bool, as_json: bool) -> int:
    row = kept.traces.find(trace_id)
    spans = kept.traces.spans(row.no)
    if as_json:
        document = {**_as_json(row), "spans": [to_json(span_to_json(span)) for span in spans]}
        say_json("trace", document)
        return 0
    say(f"trace {row.id}  {row.title}" + (f"  (run {row.run})" if row.run else ""))
    say(f"{_when(row)}, {row.duration_ms:,.0f} ms, {_counted(row.spans, 'span')}{_failed(row)}{_summary(spans)}")
    for name in ("problem", "cut"):
        if row.info.get(name):
            say(f"note: {row.info[name]}")
    for root in build_tree(spans):
        say(root.to_text(max_chars=None if verbose else MAX_VALUE_CHARS))
    return 0


def _summary(spans: tuple[Span, ...]) -> str:
    """The tokens and tools of a trace, where it has any."""
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


def make_trace(runnable: str, given: str, *, output: str | None, as_json: bool, store: str | None) -> int:
    """0 if the application answered, 1 if it did not; its trace is kept in both cases."""
    arguments = read_arguments(given)
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    kept = Store(read_configuration().store(store))
    with reserve_stdout(as_json):
        once = run_sync(trace_application(resolve_agent(runnable), arguments))
    problem = {} if once.problem is None else {"problem": mask(once.problem)}
    row = kept.traces.add(once.spans, {"runnable": runnable, **problem})
    if output is not None:
        write_file(Path(output), trace_text(kept.traces.spans(row.no)))
    if as_json:
        say_json("trace-made", {"id": row.id, "spans": row.spans, "problem": once.problem})
    else:
        wrote = "" if output is None else f", written to {output}"
        say(f"kept trace {row.id} ({row.spans} span{'' if row.spans == 1 else 's'}){wrote}")
    if missing := missing_instrumentation():
        say(f"note: {missing}", err=True)
    if once.problem is not None:
        say(f"error: {once.problem}", err=True)
    return 0 if once.problem is None else 1


def read_arguments(given: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input."""
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8-sig")
        arguments = json.loads(text)
    except OSError as error:
        raise UsageError(f"--input {given} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input {given} is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UsageError(f"--input {given} must hold an object with the application's arguments")
    return arguments


def import_traces(store: Store, paths: Sequence[str]) -> list[tuple[str, bool]]:
    """The id of each trace of all files, and whether it was new; nothing is kept if a file cannot be read."""
    problems: list[Problem] = []
    found: list[tuple[tuple[Span, ...], Mapping[str, Json]]] = []
    for path in paths:
        try:
            traces = read_trace_file(Path(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        found += [(trace.spans, {**trace.trial, "file": Path(path).name}) for trace in traces]
    if problems:
        raise InvalidSuite(problems)
    return store.traces.add_all(found)


def export_traces(store: Store, run_id: str, output: str | None) -> tuple[str, int]:
    """The run that was meant, and how many of its trials had a trace; one trial after the other is in memory."""
    run = store.find_run(run_id)
    entries = _entries(store, run.no, run.id)
    if output in (None, "-"):
        return run.id, _write_trace_files(entries, sys.stdout)
    path = Path(str(output))
    try:
        with atomic_write(path) as draft, draft.open("w", encoding="ascii", newline="\n") as file:
            return run.id, _write_trace_files(entries, file)
    except OSError as error:
        raise StoreError(f"the traces could not be written to {path}: {error.strerror or error}") from None


def _entries(store: Store, no: int, run_id: str) -> Iterator[dict[str, Json]]:
    for trial in store.trials(no):
        if trial.spans:
            yield trial_resource(trial.spans, run=run_id, suite=trial.suite, case=trial.case.id, number=trial.number)


def _write_trace_files(entries: Iterator[dict[str, Json]], out: TextIO) -> int:
    """One document, an entry a line."""
    count = 0
    out.write('{"resourceSpans": [')
    for entry in entries:
        out.write(("\n" if count == 0 else ",\n") + json.dumps(entry))
        count += 1
    out.write("\n]}\n")
    return count
