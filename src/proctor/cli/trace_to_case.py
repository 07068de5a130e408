"""`proctor trace to-case`: makes cases, or an entry for a dataset, of traces from a file or from the store."""

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
@click.option("--input", "given", metavar="FILE", help="The trace: OTLP JSON, or JSON Lines of `proctor trace`.")
@click.option("--trace", "trace_id", metavar="ID", help="A kept trace instead (default: the latest).")
@click.option("--output", metavar="FILE", help="Write to this file instead of the terminal.")
@click.option(
    "--to",
    "kind",
    type=click.Choice(("suite", "entry")),
    help="A suite that `proctor test` takes, with a case for each trace, or an entry of a dataset (default: a suite for"
    " .yaml, .yml and .jsonl, else an entry).",
)
@click.option("--agent", metavar="REF", help="The agent that the suite names: file.py:name, a URL, cmd:...")
@store_option
def command(given: str | None, trace_id: str | None, output: str | None, kind: str | None, **more: str | None) -> int:
    """Make a suite of traces, or an entry for a dataset of one.

    In a suite, what was asked becomes the input, and what was answered and called is proposed as what is expected: look
    at it. In an entry, what the application was given and had wrapped becomes the entry's, and what it answered stands
    under `x-pixie`; what a right answer is like, under `expectation`, is for a person to say.
    """
    if given is not None and trace_id is not None:
        raise UsageError("give --input or --trace, not both")
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    ending = Path(output or "").suffix
    if kind == "suite" or (kind is None and ending in (".yaml", ".yml", ".jsonl")):
        return _suite(given, trace_id or "last", output, **more)
    if more["agent"] is not None:
        raise UsageError("--agent belongs to a suite: say --to suite, or name a file.yaml with --output")
    return _entry(given, trace_id, output, more["store"])


def _suite(given: str | None, trace_id: str, output: str | None, *, agent: str | None, store: str | None) -> int:
    if given is not None:
        traces, path = read_trace_file(Path(given)), Path(given)
    else:
        spans = tuple(spans_of(trace_id, store))
        traces, path = [FileTrace(spans, {})], Path(f"trace-{spans[0].trace_id[:8]}" if spans else "trace")
    if not any(trace.spans for trace in traces):
        raise UsageError("the trace has no spans, so that nothing can be made of it")
    made = suite_from_traces(traces, path, agent)
    ending = "" if output in (None, "-") else Path(str(output)).suffix
    _put(write_text([made.suite], ending or ".yaml").text.rstrip("\n"), output, "suite")
    for note in made.notes:
        say(f"note: {note}", err=True)
    say("note: what is expected is what was seen; look at it before you rely on it", err=True)
    if agent is None:
        say("note: the suite names no agent yet; tell `proctor test` the --agent, or add `agent:`", err=True)
    return 0


def _entry(given: str | None, trace_id: str | None, output: str | None, store: str | None) -> int:
    proposal = proposal_from_store(trace_id or "last", store) if given is None else proposal_from_file(given)
    writer = next((known.case_text for known in formats() if known.case_text is not None), None)
    if writer is None:
        raise UsageError("no installed tool has entries; say --to suite")
    text = load(writer)(proposal.evaluable, proposal.entry_kwargs)
    _put(text, output, "entry")
    for note in proposal.notes:
        say(f"note: {note}", err=True)
    if proposal.evaluable.expectation is UNSET:
        say("note: say under 'expectation' what a right answer is like; what was answered is under 'x-pixie'", err=True)
    return 0


def _put(text: str, output: str | None, noun: str) -> None:
    if output in (None, "-"):
        say(text)
        return
    path = Path(str(output))
    write_file(path, f"{text}\n")
    say(f"{noun}: {path}", err=True)


def proposal_from_file(path: str) -> EntryProposal:
    """From the only trace that a file holds."""
    traces = [found.spans for found in read_trace_file(Path(path))]
    if len(traces) > 1:
        raise UsageError(f"{path} holds {len(traces)} traces; import it and name one: --trace ID")
    return proposal_from_spans(traces[0] if traces else ())


def proposal_from_store(trace_id: str, store: str | None) -> EntryProposal:
    """From a kept trace: what its trial asked and heard, or what was seen, where it is of no trial."""
    kept = Store(read_configuration().store(store), create=False)
    row = kept.traces.find(trace_id)
    trial = kept.trial_for_trace(row)
    return proposal_from_spans(kept.traces.spans(row.no)) if trial is None else proposal_from_trial(trial)


def spans_of(trace_id: str, store: str | None) -> Sequence[Span]:
    kept = Store(read_configuration().store(store), create=False)
    return kept.traces.spans(kept.traces.find(trace_id).no)
