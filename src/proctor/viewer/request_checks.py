"""Refuses requests that do not come from the viewer's own pages, and gives every answer its safe headers."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script but the viewer's own file, and no request to anywhere else, whatever text of an agent a page shows."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # without any, a browser would not say where a form comes from
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
COOKIE = "proctor_view"
SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: the names under which the viewer is reached, and the token."""

    hosts: frozenset[str] | None
    """Names in `Host` headers that are answered; `None` for all, safe only where every request shows the token."""
    token: str
    everywhere: bool = False
    """Whether reading needs the token as well as writing."""


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine for itself, whatever the port: a tunnel may change that. Any other name in a request comes
from a page elsewhere that lets its own name point here."""


class RequestChecks:
    """An ASGI layer around the application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = _headers(scope["headers"])
        if (refusal := self._refusal(scope["method"], headers)) is not None:
            await _respond(send, *refusal)
        elif self._access.everywhere and not self._knows_token(headers):
            await self._ask_for_token(scope, send)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._access.hosts is not None and _host_name(host) not in self._access.hosts:
            return 421, "This address is not one of the viewer's own."
        if method in SAFE_METHODS:
            return None
        if method != "POST":
            return 405, "The viewer does not know this method."
        origin = urlsplit(headers.get("origin", ""))
        if origin.scheme not in ("http", "https") or origin.netloc.lower() != host.lower():
            return 403, "This request does not come from a page of the viewer."
        return None

    def _knows_token(self, headers: dict[str, str]) -> bool:
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return kept is not None and same_token(kept.value, self._access.token)

    async def _ask_for_token(self, scope: Scope, send: Send) -> None:
        """The first address carries the token; it moves into a cookie and leaves the address."""
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = query.pop("token", [""])
        if scope["method"] not in SAFE_METHODS or not same_token(given[0], self._access.token):
            await _respond(send, 403, "Open the address that `proctor view` printed: it carries the token.")
            return
        rest = urlencode([(name, value) for name, values in query.items() for value in values])
        place = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{rest}" if rest else "")
        cookie = f"{COOKIE}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"
        await _respond(send, 303, "", [(b"location", place.encode()), (b"set-cookie", cookie.encode())])


def same_token(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def _host_name(host: str) -> str:
    """The name in a `Host` header, without its port."""
    try:
        return "" if "@" in host else urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}


async def _respond(send: Send, status: int, text: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *(more or [])]})
    await send({"type": "http.response.body", "body": text.encode()})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *HEADERS]
        await send(message)

    return sending
