"""`proctor runs`: what is kept here."""

from __future__ import annotations

import json
import time

import click

from proctor.cli.common import json_option, say, store_option
from proctor.cli.configuration import read_configuration
from proctor.results.store import RunRow, Store
from proctor.running.booking import status_of


@click.command("runs")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many.")
@json_option
@store_option
def command(limit: int, as_json: bool, store: str | None) -> int:
    """List runs, the latest first."""
    kept = Store(read_configuration().store(store), create=False)
    rows = kept.runs(limit)
    if as_json:
        say(json.dumps([_as_json(row, status_of(kept, row)) for row in rows], indent=2))
        return 0
    if not rows:
        say(f"no runs in {kept.folder}")
    for row in rows:
        say(_line(row, status_of(kept, row)))
    return 0


def _line(row: RunRow, status: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started_at))
    verdict = row.info.get("verdict", {}).get("outcome", status)
    counts = ", ".join(f"{count} {name}" for name, count in row.info.get("counts", {}).items() if count)
    suites = ", ".join(suite["name"] for suite in row.info.get("suites", []))
    origin = f" (rescored {row.info['rescored']})" if "rescored" in row.info else ""
    return f"{row.id}  {when}  {verdict:<11}  {counts or status}  {suites}{origin}"


def _as_json(row: RunRow, status: str) -> dict[str, object]:
    return {
        "id": row.id,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "status": status,
        **{name: row.info.get(name) for name in ("verdict", "counts", "planned", "suites", "rescored")},
    }
