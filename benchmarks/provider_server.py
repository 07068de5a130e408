"""A loopback provider with the OpenAI chat API, in its own process: `python provider_server.py SETTING CASES`.

It prints its port, then answers until it is ended. `POST .../chat/completions` is answered as `provider_schedule` plans
it; the number of the case is read from the last message. Requests for another model than `MODEL` are judge requests:
they share the limits, and take as long as the case they are about. `GET /log` returns every request with its times, in
seconds after the first one, and the time of the first one on the clock of the machine.

The HTTP is written by hand, because the provider shares the machine with the tools it measures: a request costs it less
than a millisecond.
"""

from __future__ import annotations

import asyncio
import email.utils
import itertools
import json
import math
import re
import sys
import time
from dataclasses import asdict, dataclass

from provider_schedule import (
    FAULT_SECONDS,
    REFUSAL_SECONDS,
    SETTINGS,
    Setting,
    answer,
    outage_start,
    plan_cases,
)

MODEL = "loopback-agent"
NUMBER = re.compile(r"Question (\d+):")
REASONS = {
    200: "OK",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(slots=True)
class Entry:
    """One request: when it came, when it was answered and how; status 0 is a closed connection."""

    case: int
    model: str
    arrived: float
    ended: float = -1.0
    status: int = 0


class Refused(Exception):
    """A request that is not answered; the connection is closed if the status is 0."""

    def __init__(self, status: int, seconds: float = REFUSAL_SECONDS, headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.seconds = seconds
        self.headers = headers or {}


class Provider:
    """The state of a provider: its places, its tokens, and what was requested so far."""

    def __init__(self, setting: Setting, cases: int) -> None:
        self.setting = setting
        self.log: list[Entry] = []
        self._plans = plan_cases(setting, cases)
        self._down_from = outage_start(setting, cases)
        self._places = asyncio.Semaphore(setting.places)
        self._tokens = float(setting.burst)
        self._filled_at = 0.0
        self._started_at = 0.0
        self._faults: set[tuple[int, str]] = set()
        self._slow: set[tuple[int, str]] = set()
        self._outage_requests = itertools.count()

    def now(self) -> float:
        """Seconds since the first request."""
        if not self._started_at:
            self._started_at = time.monotonic()
        return time.monotonic() - self._started_at

    async def complete(self, document: dict[str, object], entry: Entry) -> str:
        """The answer to a request; raises `Refused`."""
        self._check_outage()
        self._take_token()
        if self.setting.refuses_above_places and self._places.locked():
            raise Refused(429)
        async with self._places:
            self._check_outage()  # what waited in the queue is lost too
            await self._work(entry)
        return answer(entry.case) if entry.model == MODEL else _judgement(document)

    def _check_outage(self) -> None:
        if self._down_from <= self.now() < self._down_from + self.setting.outage_seconds:
            raise Refused(503 if next(self._outage_requests) % 2 == 0 else 0)

    def _take_token(self) -> None:
        setting = self.setting
        if not setting.rate:
            return
        now = self.now()
        self._tokens = min(setting.burst, self._tokens + (now - self._filled_at) * setting.rate)
        self._filled_at = now
        if self._tokens < 1:
            wait = (1 - self._tokens) / setting.rate
            headers = {
                "Retry-After": str(math.ceil(wait)),
                "x-ratelimit-limit-requests": f"{setting.rate:g}",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": f"{math.ceil(1000 * wait)}ms",
            }
            raise Refused(429, headers=headers)
        self._tokens -= 1

    async def _work(self, entry: Entry) -> None:
        plan, key = self._plans[entry.case], (entry.case, entry.model)
        if plan.is_faulty and entry.model == MODEL and key not in self._faults:
            self._faults.add(key)
            raise Refused(500, FAULT_SECONDS)
        is_slow = plan.is_slow and entry.model == MODEL and key not in self._slow
        self._slow.add(key)
        await asyncio.sleep(self.setting.slow_seconds if is_slow else plan.seconds)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after another."""
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self._answer(head, reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection stays open."""
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        method, path = head.split(None, 2)[:2]
        if method == b"GET" and path == b"/log":
            entries = [asdict(entry) for entry in self.log]
            _write(writer, 200, {"started_at": self._started_at, "requests": entries})
        elif method == b"POST" and path.endswith(b"/chat/completions"):
            return await self._chat(json.loads(body), writer)
        else:
            _write(writer, 404, {"error": {"message": f"no {path.decode()} here", "type": "not_found"}})
        return True

    async def _chat(self, document: dict[str, object], writer: asyncio.StreamWriter) -> bool:
        numbers = NUMBER.findall(json.dumps(document["messages"]))
        entry = Entry(int(numbers[-1]) if numbers else 0, str(document["model"]), self.now())
        self.log.append(entry)
        try:
            text = await self.complete(document, entry)
        except Refused as refusal:
            await asyncio.sleep(refusal.seconds)
            entry.ended, entry.status = self.now(), refusal.status
            if not refusal.status:
                return False
            error = {"message": f"{REASONS[refusal.status]}, case {entry.case}", "type": "refused", "code": None}
            _write(writer, refusal.status, {"error": error}, refusal.headers)
            return True
        entry.ended, entry.status = self.now(), 200
        _write(writer, 200, _completion(text, entry))
        return True


def _judgement(document: dict[str, object]) -> str:
    """The reply of a judge: whether the answer in its prompt is the right one."""
    is_wrong = "I do not know." in json.dumps(document["messages"])
    return json.dumps({"reason": "It is the answer.", "verdict": "no" if is_wrong else "yes"})


def _completion(text: str, entry: Entry) -> dict[str, object]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, "logprobs": None}
    return {
        "id": f"chat-{entry.case}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": entry.model,
        "choices": [choice],
        "usage": {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26},
    }


def _write(writer: asyncio.StreamWriter, status: int, content: object, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(content).encode()
    lines = {
        "Date": email.utils.formatdate(usegmt=True),
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(head.encode() + b"\r\n" + body)


async def main(setting: str, cases: str) -> None:
    provider = Provider(SETTINGS[setting], int(cases))
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, backlog=1024, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
