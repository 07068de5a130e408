"""Which trace an entry is to be made of: one of a file, or one of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.cli.configuration import read_configuration
from proctor.errors import UsageError
from proctor.results.proposals import Proposal, proposal_of_spans, proposal_of_trial
from proctor.results.store import Store

if TYPE_CHECKING:
    from proctor.tracing.spans import Span


def proposal_from_file(path: str) -> Proposal:
    """From the only trace that a file holds."""
    from proctor.tracing.files import find_traces

    traces = [found.spans for found in find_traces(Path(path))]
    if len(traces) > 1:
        raise UsageError(f"{path} holds {len(traces)} traces; import it and name one: --trace ID")
    return proposal_of_spans(traces[0] if traces else ())


def proposal_from_store(trace_id: str, store: str | None) -> Proposal:
    """From a kept trace: what its trial asked and heard, or what was seen, where it is of no trial."""
    kept = Store(read_configuration().store(store), create=False)
    row = kept.traces.find(trace_id)
    trial = kept.trial_of(row)
    return proposal_of_spans(kept.traces.spans(row.no)) if trial is None else proposal_of_trial(trial)


def spans_of(trace_id: str, store: str | None) -> Sequence[Span]:
    kept = Store(read_configuration().store(store), create=False)
    return kept.traces.spans(kept.traces.find(trace_id).no)
