"""`proctor trace --runnable`: one run of an application, kept as a trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from proctor.agents.resolving import resolve_agent
from proctor.cli.common import say, stdout_kept_clear
from proctor.cli.configuration import read_configuration
from proctor.errors import StoreError, UsageError
from proctor.results.store import Store
from proctor.running.loop import run_sync
from proctor.running.once import run_once
from proctor.tracing.secrets import without_secrets


def make_trace(runnable: str, given: str, *, output: str | None, as_json: bool, store: str | None) -> int:
    """0 if the application answered, 1 if it did not; its trace is kept in both cases."""
    arguments = read_arguments(given)
    if output is not None and not output.strip():
        raise UsageError("--output must name a file")
    kept = Store(read_configuration().store(store))
    with stdout_kept_clear(as_json):
        once = run_sync(run_once(resolve_agent(runnable), arguments))
    problem = {} if once.problem is None else {"problem": without_secrets(once.problem)}
    row = kept.traces.add(once.spans, {"runnable": runnable, **problem})
    if output is not None:
        from proctor.tracing.pixie_records import to_lines

        _write(Path(output), to_lines(kept.traces.spans(row.no)))
    if as_json:
        say(json.dumps({"id": row.id, "spans": row.spans, "problem": once.problem}))
    else:
        wrote = "" if output is None else f", written to {output}"
        say(f"kept trace {row.id} ({row.spans} span{'' if row.spans == 1 else 's'}){wrote}")
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


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None
