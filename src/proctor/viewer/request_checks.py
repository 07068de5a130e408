"""Rejects requests that do not come from the viewer's own pages, and adds security headers to every response."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from proctor.base.json_data import fingerprint

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script but the viewer's own file, and no request to other servers, whatever an agent wrote."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # without any, a browser would not say where a form comes from
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use the viewer: the host names it answers to, and the token."""

    hosts: frozenset[str] | None
    """Accepted names in `Host` headers; `None` for any, which is safe only if every request needs the token."""
    token: str
    """What every request needs, also on this machine: other users of it can connect to the loopback address too."""

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token. Browsers send cookies to all ports of a host, so viewers that run at
        the same time need different names."""
        return f"proctor_view_{fingerprint(self.token)[:8]}"


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine for itself, with any port, since a tunnel may change the port. Another name in a request
means that a page elsewhere has let its own name point here (DNS rebinding)."""


class RequestChecks:
    """ASGI middleware around the application."""

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
        elif not self._has_token(headers):
            await self._exchange_token(scope, send)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._access.hosts is not None and _host_name(host) not in self._access.hosts:
            return 421, "The viewer does not answer to this host name."
        if method in SAFE_METHODS:
            return None
        if method != "POST":
            return 405, "The viewer accepts only GET, HEAD and POST."
        origin = urlsplit(headers.get("origin", ""))
        if origin.scheme not in ("http", "https") or origin.netloc.lower() != host.lower():
            return 403, "This request does not come from a page of the viewer."
        return None

    def _has_token(self, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._access.cookie)
        except CookieError:
            return False
        return cookie is not None and same_token(cookie.value, self._access.token)

    async def _exchange_token(self, scope: Scope, send: Send) -> None:
        """Take the token from the address into a cookie and redirect to the address without it, or reject."""
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = query.pop("token", [""])[0]
        if scope["method"] not in SAFE_METHODS or not same_token(token, self._access.token):
            await _respond(send, 403, "Open the address that `proctor view` printed; it contains the token.")
            return
        rest = urlencode([(name, value) for name, values in query.items() for value in values])
        address = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{rest}" if rest else "")
        cookie = f"{self._access.cookie}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"
        await _respond(send, 303, "", [(b"location", address.encode()), (b"set-cookie", cookie.encode())])


def same_token(value: str, token: str) -> bool:
    """Whether a value from a request is the token, in constant time."""
    return secrets.compare_digest(value.encode("utf-8", "surrogatepass"), token.encode())


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
