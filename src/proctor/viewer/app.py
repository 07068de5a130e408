"""The pages of the viewer by their addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from proctor.base.errors import ProctorError
from proctor.base.secrets import mask
from proctor.viewer.case_page import case_page
from proctor.viewer.case_query import read_query
from proctor.viewer.compare_page import compare_page
from proctor.viewer.layout import message_page
from proctor.viewer.library import Library, NotFound
from proctor.viewer.live import events
from proctor.viewer.request_checks import Access, RequestChecks
from proctor.viewer.run_page import run_page
from proctor.viewer.runs_page import runs_page

ASSETS = {
    "report.css": ("reporting/assets/report.css", "text/css"),
    "viewer.css": ("viewer/assets/viewer.css", "text/css"),
    "viewer.js": ("viewer/assets/viewer.js", "text/javascript"),
}
"""Every file that is ever sent, by its name: no address reaches the file system."""

Page = Callable[[Library, Mapping[str, str], Mapping[str, str]], str]
"""Takes the library, the parts of the path and the query; gives HTML."""


def make_app(library: Library, access: Access) -> RequestChecks:
    """The application, behind the checks of every request."""
    routes = [
        Route("/", _page(lambda shown, _, query: runs_page(shown, _number(query.get("before"))))),
        Route("/runs/{run}", _page(_run)),
        Route("/runs/{run}/case", _page(_case)),
        Route("/compare", _page(lambda shown, _, query: compare_page(shown, query))),
        Route("/events", _events(library)),
        Route("/assets/{name}", _asset),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, Exception: _broken})
    app.state.library = library
    return RequestChecks(app, access)


def _run(library: Library, path: Mapping[str, str], query: Mapping[str, str]) -> str:
    source, row = library.find(path["run"])
    return run_page(source, row, read_query(query))


def _case(library: Library, path: Mapping[str, str], query: Mapping[str, str]) -> str:
    source, row = library.find(path["run"])
    return case_page(source, row, query.get("suite", ""), query.get("case", ""), _number(query.get("trial")))


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
    text = request.scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass", max_num_fields=50)
    except ValueError:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=1000)
    return dict(pairs)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _events(library: Library) -> Callable[[Request], Response]:
    async def endpoint(request: Request) -> Response:
        return events(library, query_of(request).get("run"), request)

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
