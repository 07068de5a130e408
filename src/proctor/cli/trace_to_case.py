"""`proctor trace to-case`: turn traces from a file or the store into a suite, or into a dataset entry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cases.formats import formats
from proctor.cases.formats.native.writer import write_text
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import store_option
from proctor.cli.output import say
from proctor.cli.suite_files import write_file
from proctor.config import read_configuration
from proctor.plugins import load
from proctor.results.store.store import Store
from proctor.results.trace_cases import EntryProposal, proposal_from_spans, proposal_from_trial, suite_from_traces
from proctor.tracing.otlp import FileTrace, read_trace_file
from proctor.tracing.spans import Span


@click.command(
    "to-case",
    cls=DocumentedCommand,
    examples=("proctor trace to-case --input trace.json --output entry.json",),
)
@click.option("--input", "source", metavar="FILE", help="Read traces from FILE: OTLP JSON, or JSON Lines.")
@click.option("--trace", "trace_id", metavar="ID", help="Use this stored trace (default: the latest).")
@click.option("--output", metavar="FILE", help="Write to this file instead of the terminal.")
@click.option(
    "--to",
    "kind",
    type=click.Choice(("suite", "entry")),
    help="What to write: a suite with one case per trace, or a dataset entry (default: a suite if --output ends in "
    ".yaml, .yml or .jsonl, otherwise an entry).",
)
@click.option("--force", is_flag=True, help="Overwrite the file of --output if it exists.")
@click.option("--agent", metavar="REF", help="Agent to name in the suite: file.py:name, a URL or cmd:COMMAND.")
@store_option
def command(
    source: str | None, trace_id: str | None, output: str | None, kind: str | None, force: bool, **options: str | None
) -> int:
    """Turn traces into a suite, or one trace into a dataset entry.

    In a suite, the input of a trace becomes the input of a case, and its answer and tool calls become what the case
    expects. Review them: a trace shows what happened, not what is right. In an entry, the answer is under `x-pixie`,
    and you write the `expectation`.
    """
    if source is not None and trace_id is not None:
        raise UsageError("--input and --trace cannot be combined")
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    if output not in (None, "-") and Path(str(output)).exists() and not force:
        raise UsageError(f"{output} exists; name another file, or add --force to overwrite it")
    ending = Path(output or "").suffix
    if kind == "suite" or (kind is None and ending in (".yaml", ".yml", ".jsonl")):
        return _suite(source, trace_id or "last", output, **options)
    if options["agent"] is not None:
        raise UsageError("--agent needs a suite: add --to suite, or an --output that ends in .yaml")
    return _entry(source, trace_id, output, options["store"])


def _suite(source: str | None, trace_id: str, output: str | None, *, agent: str | None, store: str | None) -> int:
    if source is not None:
        traces, path = read_trace_file(Path(source)), Path(source)
    else:
        spans = tuple(spans_of(trace_id, store))
        traces, path = [FileTrace(spans, {})], Path(f"trace-{spans[0].trace_id[:8]}" if spans else "trace")
    if not any(trace.spans for trace in traces):
        raise UsageError("the trace has no spans")
    converted = suite_from_traces(traces, path, agent)
    ending = "" if output in (None, "-") else Path(str(output)).suffix
    _write(write_text([converted.suite], ending or ".yaml").text.rstrip("\n"), output, "suite")
    for note in converted.notes:
        say(f"note: {note}", err=True)
    say("note: the expectations are what the trace shows; review them before you rely on them", err=True)
    if agent is None:
        say("note: the suite has no agent; use `proctor test --agent`, or add `agent:` to it", err=True)
    return 0


def _entry(source: str | None, trace_id: str | None, output: str | None, store: str | None) -> int:
    proposal = proposal_from_store(trace_id or "last", store) if source is None else proposal_from_file(source)
    writer = next((known.case_text for known in formats() if known.case_text is not None), None)
    if writer is None:
        raise UsageError("no installed plugin writes entries; use --to suite")
    text = load(writer)(proposal.evaluable, proposal.entry_kwargs)
    _write(text, output, "entry")
    for note in proposal.notes:
        say(f"note: {note}", err=True)
    if proposal.evaluable.expectation is UNSET:
        say("note: fill in 'expectation' with what a right answer is; the traced answer is under 'x-pixie'", err=True)
    return 0


def _write(text: str, output: str | None, noun: str) -> None:
    if output in (None, "-"):
        say(text)
        return
    path = Path(str(output))
    write_file(path, f"{text}\n")
    say(f"{noun}: {path}", err=True)


def proposal_from_file(path: str) -> EntryProposal:
    """An entry from the only trace of a file."""
    traces = [trace.spans for trace in read_trace_file(Path(path))]
    if len(traces) > 1:
        raise UsageError(f"{path} has {len(traces)} traces; import it with `proctor trace import`, then use --trace ID")
    return proposal_from_spans(traces[0] if traces else ())


def proposal_from_store(trace_id: str, store: str | None) -> EntryProposal:
    """An entry from a stored trace: from its trial if it has one, otherwise from its spans."""
    stored = Store(read_configuration().store(store), create=False)
    row = stored.traces.find(trace_id)
    trial = stored.trial_for_trace(row)
    return proposal_from_spans(stored.traces.spans(row.no)) if trial is None else proposal_from_trial(trial)


def spans_of(trace_id: str, store: str | None) -> Sequence[Span]:
    stored = Store(read_configuration().store(store), create=False)
    return stored.traces.spans(stored.traces.find(trace_id).no)
