"""A loopback server that answers every request with an error of a model provider, in the shape of that provider."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """One answer of the server."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def openai_error(status: int, code: str | None, message: str, **headers: str) -> Refusal:
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return Refusal(status, body, _with_dashes(headers))


def anthropic_error(status: int, kind: str, message: str, **headers: str) -> Refusal:
    return Refusal(status, {"type": "error", "error": {"type": kind, "message": message}}, _with_dashes(headers))


def google_error(status: int, name: str, message: str, *details: Mapping[str, Any]) -> Refusal:
    return Refusal(status, {"error": {"code": status, "message": message, "status": name, "details": list(details)}})


def _with_dashes(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


OPENAI = {
    "wrong key": openai_error(401, "invalid_api_key", "Incorrect API key provided: sk-nope."),
    "no permission": openai_error(403, "unsupported_country_region_territory", "Country not supported"),
    "no quota": openai_error(429, "insufficient_quota", "You exceeded your current quota, please check your plan."),
    "payment": openai_error(402, None, "Insufficient Balance"),
    "busy": openai_error(429, "rate_limit_exceeded", "Rate limit reached for requests", retry_after="7"),
    "overloaded": openai_error(503, None, "The engine is currently overloaded"),
    "unknown model": openai_error(404, "model_not_found", "The model does not exist"),
    "bad request": openai_error(400, "invalid_request_error", "Unknown parameter"),
}
ANTHROPIC = {
    "wrong key": anthropic_error(401, "authentication_error", "invalid x-api-key"),
    "no permission": anthropic_error(403, "permission_error", "Your API key may not use this resource"),
    "no quota": anthropic_error(400, "invalid_request_error", "Your credit balance is too low to access the API."),
    "payment": anthropic_error(402, "billing_error", "Your payment method failed"),
    "busy": anthropic_error(429, "rate_limit_error", "This request would exceed your limit", retry_after="7"),
    "overloaded": anthropic_error(529, "overloaded_error", "Overloaded"),
    "unknown model": anthropic_error(404, "not_found_error", "model: nope"),
    "bad request": anthropic_error(400, "invalid_request_error", "max_tokens is required"),
}
GOOGLE = {
    "wrong key": google_error(
        *(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
    ),
    "no permission": google_error(403, "PERMISSION_DENIED", "The caller does not have permission"),
    "no quota": google_error(
        *(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
        },
    ),
    "busy": google_error(
        *(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"},
    ),
    "overloaded": google_error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "unknown model": google_error(404, "NOT_FOUND", "models/nope is not found"),
    "bad request": google_error(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
}


class RefusingProvider:
    """The server; `refusal` is its answer to every request."""

    def __init__(self) -> None:
        self.refusal = OPENAI["wrong key"]
        self.requests = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # a connection for each request: clients leave none open

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.answer()

            def do_GET(self) -> None:
                self.answer()

            def answer(self) -> None:
                provider.requests += 1
                refusal = provider.refusal
                body = json.dumps(refusal.body).encode()
                self.send_response(refusal.status)
                for name, value in {"content-type": "application/json", **refusal.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def refusing_provider() -> Iterator[RefusingProvider]:
    provider = RefusingProvider()
    threading.Thread(target=provider.server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
