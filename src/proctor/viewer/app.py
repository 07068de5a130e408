"""The web application of the viewer: its routes, and how a request is answered."""

from __future__ import annotations

import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module, resources
from urllib.parse import parse_qsl, quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from proctor import viewer
from proctor.base.errors import ProctorError
from proctor.base.masking import mask
from proctor.reporting.html import environment
from proctor.version import __version__
from proctor.viewer.events import events
from proctor.viewer.grade_page import labels_text, save_grade
from proctor.viewer.pages import Page, PageRoute, Visit
from proctor.viewer.request_checks import Access, RequestChecks, same_token
from proctor.viewer.sources import NotFound, Sources

ASSETS = {
    "report.css": ("reporting/assets/report.css", "text/css"),
    "viewer.css": ("viewer/assets/viewer.css", "text/css"),
    "viewer.js": ("viewer/assets/viewer.js", "text/javascript"),
}
"""Every file that the viewer sends, by name: no address reaches the file system."""


def _declared_pages() -> tuple[PageRoute, ...]:
    """The pages that the modules of this folder declare; `pages.py` shows how."""
    names = [info.name for info in pkgutil.iter_modules(viewer.__path__) if info.name.endswith("_page")]
    return tuple(page for name in names for page in import_module(f"{viewer.__name__}.{name}").PAGES)


PAGES = _declared_pages()

MAX_QUERY = 100_000
GRADER_COOKIE = "proctor_grader"
"""The cookie with the name under which a person grades."""
MAX_FORM_BYTES = 1_000_000
"""Maximum size of a form."""


def make_app(sources: Sources, access: Access, person: str = "") -> RequestChecks:
    """The application, behind the checks of every request; `person` is the default name of the grader."""
    routes = [Route(page.path, _page_endpoint(page, access.token, person), methods=["GET"]) for page in PAGES]
    routes += [
        Route("/runs/{run}/grade", _grade_endpoint(access.token), methods=["POST"]),
        Route("/runs/{run}/labels.jsonl", _labels),
        Route("/events", _events_endpoint(sources)),
        Route("/assets/{name}", _asset),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, Exception: _server_error})
    app.state.sources = sources
    return RequestChecks(app, access)


def _page_endpoint(route: PageRoute, token: str, person: str) -> Callable[[Request], Response]:
    """The endpoint of a page; Starlette calls it in a thread, so that one slow page does not block the others."""

    def endpoint(request: Request) -> Response:
        grader = unquote(request.cookies.get(GRADER_COOKIE, "")) or person
        visit = Visit(request.app.state.sources, request.path_params, parse_query(request), token, grader)
        try:
            page = route.make(visit)
        except NotFound as error:
            return _message(404, "Not found", str(error))
        except ProctorError as error:
            return _message(400, "Cannot show this page", mask(str(error)))
        return html_response(page_text(page, route.section or route.path))

    return endpoint


def page_text(page: Page, section: str = "") -> str:
    """The whole page, with the menu around it."""
    return environment.render(
        f"viewer/templates/{page.template}",
        **page.values,
        title=page.title,
        outcome=page.outcome,
        live=page.live,
        menu=[(item.path, item.menu) for item in sorted(PAGES, key=lambda item: item.menu_place) if item.menu],
        section=section,
        version=__version__,
    )


def _grade_endpoint(token: str) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that saves a grade; it requires the token of the viewer's own form."""

    async def endpoint(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_FORM_BYTES:
                return _message(413, "Form too large", f"A form has at most {MAX_FORM_BYTES:,} bytes.")
        form = parse_fields(body.decode("latin-1"))
        if not same_token(form.get("token", ""), token):
            return _message(
                403, "Form expired", "This form is from an earlier viewer; reload the page and submit it again."
            )
        return await run_in_threadpool(_store_grade, request, form)

    return endpoint


def _store_grade(request: Request, form: Mapping[str, str]) -> Response:
    try:
        source, row = request.app.state.sources.find(request.path_params["run"])
        address = save_grade(source, row, form)
    except NotFound as error:
        return _message(404, "Not found", str(error))
    except ProctorError as error:
        return _message(409, "Not saved", mask(str(error)))
    response = RedirectResponse(address, 303)
    grader = quote(form.get("who", "").strip()[:100], errors="replace")
    response.set_cookie(GRADER_COOKIE, grader, max_age=31_536_000, samesite="strict", httponly=True)
    return response


def _labels(request: Request) -> Response:
    try:
        source, row = request.app.state.sources.find(request.path_params["run"])
        text = labels_text(source, row)
    except NotFound as error:
        return _message(404, "Not found", str(error))
    except ProctorError as error:
        return _message(400, "Cannot export the labels", mask(str(error)))
    headers = {"content-disposition": 'attachment; filename="labels.jsonl"', "cache-control": "no-store"}
    return Response(text, media_type="application/x-ndjson", headers=headers)


def html_response(text: str, status: int = 200) -> Response:
    """A page as a response; halves of surrogate pairs, which an agent may write, are escaped."""
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status, headers={"cache-control": "no-store"})


def parse_query(request: Request) -> dict[str, str]:
    """The query of a request, each name once; names of cases may hold halves of surrogate pairs."""
    return parse_fields(request.scope["query_string"].decode("latin-1"))


def parse_fields(text: str) -> dict[str, str]:
    """The fields of a query or a form."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass", max_num_fields=50)
    except ValueError:
        pairs = parse_qsl(text[:MAX_QUERY], keep_blank_values=True)
    return dict(pairs)


def _events_endpoint(sources: Sources) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return events(sources, parse_query(request), request)

    return endpoint


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return _message(404, "Not found", "This file does not exist.")
    path, kind = ASSETS[name]
    return Response(_asset_text(path), media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _asset_text(path: str) -> str:
    return resources.files("proctor").joinpath(*path.split("/")).read_text(encoding="utf-8")


def _message(status: int, title: str, text: str) -> Response:
    return html_response(page_text(Page("message.html", title, {"text": text})), status)


async def _not_found(request: Request, error: Exception) -> Response:
    return _message(404, "Not found", "This page does not exist.")


async def _server_error(request: Request, error: Exception) -> Response:
    return _message(500, "Viewer error", mask(f"{type(error).__name__}: {error}"))
