"""The stream of events that tells open pages that the store has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from proctor.base.json_data import fingerprint
from proctor.viewer.sources import NotFound, Sources

POLL_SECONDS = 0.4
KEEP_ALIVE_POLLS = 30


def live_address(sources: Sources, run_id: str | None = None) -> str:
    """The address at which a page that is being rendered can listen for changes from now on."""
    run = "" if run_id is None else f"run={quote(run_id, safe='')}&"
    return f"/events?{run}seen={_state_hash(_state(sources, run_id)[0])}"


def events(sources: Sources, query: Mapping[str, str], request: Request) -> Response:
    """A stream with an event `change` whenever the store, or one run, changes; it ends when the page is closed."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _changes(sources, query.get("run"), query.get("seen", ""), request),
        media_type="text/event-stream",
        headers=headers,
    )


async def _changes(sources: Sources, run_id: str | None, seen: str, request: Request) -> AsyncIterator[str]:
    last = seen
    quiet = 0
    yield "retry: 2000\n\n"
    while not sources.is_closing and not await request.is_disconnected():
        try:
            state = await run_in_threadpool(_state, sources, run_id)
        except NotFound:
            return
        current = _state_hash(state[0])
        if last and current != last:
            yield f"event: change\ndata: {json.dumps(state[1])}\n\n"
            quiet = 0
        elif quiet >= KEEP_ALIVE_POLLS:
            yield ": still here\n\n"
            quiet = 0
        last = current
        quiet += 1
        await asyncio.sleep(POLL_SECONDS)


def _state_hash(state: Any) -> str:
    return fingerprint(repr(state))[:16]


def _state(sources: Sources, run_id: str | None) -> tuple[Any, dict[str, Any]]:
    """A value that differs after each change, and the data of the event.

    A run that is killed writes nothing, so its status is part of the value.
    """
    if run_id is None:
        latest = [(row.id, row.status) for source in sources.all for row in source.page(None, 5)]
        return (latest, [source.version() for source in sources.all]), {}
    source, row = sources.find(run_id)
    trials, status = source.count_trials(row), row.status
    return (trials, status, row.finished_at, row.counts), {"trials": trials, "status": status}
