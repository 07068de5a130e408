"""The pages of the viewer by their addresses, and the events that tell open pages of changes to the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from proctor.base.errors import ProctorError
from proctor.base.json_data import fingerprint
from proctor.base.masking import mask
from proctor.viewer.case_page import case_page
from proctor.viewer.case_query import read_query
from proctor.viewer.compare_page import compare_page
from proctor.viewer.grade_page import grade_page, graded_runs_page, labels_text, read_position, take_grade
from proctor.viewer.layout import message_page
from proctor.viewer.library import Library, NotFound
from proctor.viewer.request_checks import Access, RequestChecks, same_token
from proctor.viewer.run_page import run_page
from proctor.viewer.runs_page import baselines_page, runs_page

ASSETS = {
    "report.css": ("reporting/assets/report.css", "text/css"),
    "viewer.css": ("viewer/assets/viewer.css", "text/css"),
    "viewer.js": ("viewer/assets/viewer.js", "text/javascript"),
}
"""Every file that is ever sent, by its name: no address reaches the file system."""

Page = Callable[[Library, Mapping[str, str], Mapping[str, str]], str]
"""Takes the library, the parts of the path and the query; gives HTML."""


def make_app(library: Library, access: Access, person: str = "") -> RequestChecks:
    """The application, behind the checks of every request; `person` grades under this name unless another is given."""
    routes = [
        Route("/", _page(_runs)),
        Route("/runs/{run}", _page(_run)),
        Route("/runs/{run}/case", _page(_case)),
        Route("/compare", _page(lambda shown, _, query: compare_page(shown, query))),
        Route("/baselines", _page(lambda shown, _, __: baselines_page(shown))),
        Route("/grade", _page(lambda shown, _, __: graded_runs_page(shown))),
        Route("/runs/{run}/grade", _grade(access.token, person), methods=["GET"]),
        Route("/runs/{run}/grade", _take_grade(access.token), methods=["POST"]),
        Route("/runs/{run}/labels.jsonl", _labels),
        Route("/events", _events(library)),
        Route("/assets/{name}", _asset),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, Exception: _broken})
    app.state.library = library
    return RequestChecks(app, access)


def _runs(library: Library, _: Mapping[str, str], query: Mapping[str, str]) -> str:
    live = live_address(library)
    return runs_page(library, _number(query.get("before")), _number(query.get("source")), live)


def _run(library: Library, path: Mapping[str, str], query: Mapping[str, str]) -> str:
    live = live_address(library, path["run"])
    source, row = library.find(path["run"])
    return run_page(source, row, read_query(query), live)


def _case(library: Library, path: Mapping[str, str], query: Mapping[str, str]) -> str:
    live = live_address(library, path["run"])
    source, row = library.find(path["run"])
    wanted = _number(query.get("trial"))
    return case_page(source, row, query.get("suite", ""), query.get("case", ""), wanted, live)


LONGEST = 100_000
GRADER = "proctor_grader"
"""The cookie that remembers under what name a person grades."""
MOST_BYTES = 1_000_000
"""Of a form."""


def _grade(token: str, person: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        who = unquote(request.cookies.get(GRADER, "")) or person

        def made(library: Library, path: Mapping[str, str], query: Mapping[str, str]) -> str:
            source, row = library.find(path["run"])
            return grade_page(source, row, read_position(query, who), token)

        return _page(made)(request)

    return endpoint


def _take_grade(token: str) -> Callable[[Request], Awaitable[Response]]:
    """Writes: only with the token that the viewer's own form carries."""

    async def endpoint(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return _message(413, "Too much", "The form is too large.")
        form = parsed(body.decode("latin-1"))
        if not same_token(form.get("token", ""), token):
            return _message(403, "Refused", "The form is not of this viewer: load the page anew.")
        return await run_in_threadpool(_kept_grade, request, form)

    return endpoint


def _kept_grade(request: Request, form: Mapping[str, str]) -> Response:
    try:
        source, row = request.app.state.library.find(request.path_params["run"])
        place = take_grade(source, row, form)
    except NotFound as error:
        return _message(404, "Not found", str(error))
    except ProctorError as error:
        return _message(409, "This was not kept", mask(str(error)))
    answer = RedirectResponse(place, 303)
    who = quote(form.get("who", "").strip()[:100], errors="replace")
    answer.set_cookie(GRADER, who, max_age=31_536_000, samesite="strict", httponly=True)
    return answer


def _labels(request: Request) -> Response:
    try:
        source, row = request.app.state.library.find(request.path_params["run"])
        text = labels_text(source, row)
    except NotFound as error:
        return _message(404, "Not found", str(error))
    except ProctorError as error:
        return _message(400, "This cannot be shown", mask(str(error)))
    headers = {"content-disposition": 'attachment; filename="labels.jsonl"', "cache-control": "no-store"}
    return Response(text, media_type="application/x-ndjson", headers=headers)


def _page(made: Page) -> Callable[[Request], Response]:
    """An endpoint; Starlette calls it in a thread of its own, so that one slow page does not hold up the others."""

    def endpoint(request: Request) -> Response:
        library = request.app.state.library
        try:
            text = made(library, request.path_params, query_of(request))
        except NotFound as error:
            return _message(404, "Not found", str(error))
        except ProctorError as error:
            return _message(400, "This cannot be shown", mask(str(error)))
        return html_response(text)

    return endpoint


def html_response(text: str, status: int = 200) -> Response:
    """What an agent wrote may hold halves of surrogate pairs; pages spell them out, and this is the last line."""
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status, headers={"cache-control": "no-store"})


def query_of(request: Request) -> dict[str, str]:
    """The query with each name once; names of cases may hold halves of surrogate pairs."""
    return parsed(request.scope["query_string"].decode("latin-1"))


def parsed(text: str) -> dict[str, str]:
    """The fields of an address or a form."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass", max_num_fields=50)
    except ValueError:
        pairs = parse_qsl(text[:LONGEST], keep_blank_values=True)
    return dict(pairs)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _events(library: Library) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return events(library, query_of(request), request)

    return endpoint


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return _message(404, "Not found", "There is no such file.")
    place, kind = ASSETS[name]
    return Response(_asset_text(place), media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _asset_text(place: str) -> str:
    return resources.files("proctor").joinpath(*place.split("/")).read_text(encoding="utf-8")


def _message(status: int, title: str, text: str) -> Response:
    return html_response(message_page(title, text), status)


async def _not_found(request: Request, error: Exception) -> Response:
    return _message(404, "Not found", "There is no such page.")


async def _broken(request: Request, error: Exception) -> Response:
    return _message(500, "The viewer made a mistake", mask(f"{type(error).__name__}: {error}"))


POLL_SECONDS = 0.4
KEEP_ALIVE_POLLS = 30


def live_address(library: Library, run_id: str | None = None) -> str:
    """Where a page that is about to be made hears of what changes from now on."""
    run = "" if run_id is None else f"run={quote(run_id, safe='')}&"
    return f"/events?{run}seen={_mark(_state(library, run_id)[0])}"


def events(library: Library, query: Mapping[str, str], request: Request) -> Response:
    """A stream that says `change` whenever the store, or one run, is not as it was; it ends with the page."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _changes(library, query.get("run"), query.get("seen", ""), request),
        media_type="text/event-stream",
        headers=headers,
    )


async def _changes(library: Library, run_id: str | None, seen: str, request: Request) -> AsyncIterator[str]:
    known = seen
    quiet = 0
    yield "retry: 2000\n\n"
    while not library.ending and not await request.is_disconnected():
        try:
            state = await run_in_threadpool(_state, library, run_id)
        except NotFound:
            return
        mark = _mark(state[0])
        if known and mark != known:
            yield f"event: change\ndata: {json.dumps(state[1])}\n\n"
            quiet = 0
        elif quiet >= KEEP_ALIVE_POLLS:
            yield ": still here\n\n"
            quiet = 0
        known = mark
        quiet += 1
        await asyncio.sleep(POLL_SECONDS)


def _mark(state: Any) -> str:
    return fingerprint(repr(state))[:16]


def _state(library: Library, run_id: str | None) -> tuple[Any, dict[str, Any]]:
    """Something that differs after each change, and what is told of it.

    A run that is killed writes nothing, so its state is asked for as well.
    """
    if run_id is None:
        going = [(row.id, row.status) for source in library.sources for row in source.page(None, 5)]
        return (going, [source.index.version() for source in library.sources]), {}
    source, row = library.find(run_id)
    made, status = source.index.count(row.no), row.status
    return (made, status, row.finished_at, row.counts), {"trials": made, "status": status}
