"""Talks to a Dask scheduler and its workers without unpickling anything that they send.

Dask's own `Client` unpickles in many places: results and exceptions, the type of a finished task, a warning that a
worker sends to all clients, and any message with a part that is marked as a pickle. Someone who controls one worker can
run code in the process of such a client. The obvious remedy, `Client(deserializers=["msgpack"])`, closes only the first
of these.

So this uses what is below the client, Dask's connections and remote calls, and reads the messages itself. A message
consists of frames. The first is msgpack, which is data; in it, objects refer to other frames with
`{"__Serialized__": number}` or `{"__Pickled__": number}`. `read_frames` reads only serialized objects that are msgpack
too, which is what a worker is asked for. Everything else becomes `UNREADABLE`. A message that is too large is not
read at all.

Functions and their arguments are pickled on their way to a worker; Dask is made for that, see docs/scale.md.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgpack
from distributed.comm.core import CommClosedError
from distributed.comm.registry import backends
from distributed.comm.tcp import TCP, TLS, TCPBackend, TCPConnector, TLSBackend, TLSConnector
from distributed.core import ConnectionPool
from distributed.protocol.utils import unpack_frames
from tornado.iostream import StreamClosedError

from proctor.base.errors import ProctorError, one_line
from proctor.running.messages import InvalidMessage

MAX_CONNECTIONS = 10_000
OVERHEAD = 10_000_000
"""How many bytes a message of Dask may have around one of ours, or with the list of all workers."""
MAX_NAME_LENGTH = 100
_SIZE = struct.Struct("<Q")
_SERIALIZERS = ["msgpack"]

UNREADABLE = object()
"""A part of a message that is not data."""


class _DataComm:
    """A connection that reads data only."""

    message_limit = OVERHEAD

    async def read(self, deserializers: object = None) -> Any:
        stream: Any = self.stream  # type: ignore[attr-defined]
        if stream is None:
            raise CommClosedError("the connection is closed")
        try:
            return read_frames(await self._read_frames(stream))
        except StreamClosedError as error:
            self.abort()  # type: ignore[attr-defined]
            raise CommClosedError(f"the connection was closed: {one_line(error)}") from error
        except BaseException:
            self.abort()  # type: ignore[attr-defined]
            raise

    async def _read_frames(self, stream: Any) -> list[Any]:
        [size] = _SIZE.unpack(await stream.read_bytes(_SIZE.size))
        self._check_size(size)
        head = await stream.read_bytes(size)
        try:
            frames, missing = unpack_frames(head, partial=True)
        except (struct.error, AssertionError, OverflowError, MemoryError) as error:
            raise InvalidMessage(f"frames that cannot be read ({one_line(error)})") from None
        self._check_size(size + sum(missing))
        return [*frames, *[await stream.read_bytes(length) for length in missing]]

    def _check_size(self, size: int) -> None:
        if size > self.message_limit:
            raise InvalidMessage(f"a message of {size:,} bytes, and the limit is {self.message_limit:,}")


class _DataTCP(_DataComm, TCP):
    pass


class _DataTLS(_DataComm, TLS):
    pass


class _DataConnector:
    async def connect(self, address: str, deserialize: bool = True, **options: Any) -> Any:
        comm = await super().connect(address, deserialize, **options)  # type: ignore[misc]
        comm.message_limit = options["message_limit"]
        return comm


class _DataTCPConnector(_DataConnector, TCPConnector):
    comm_class = _DataTCP


class _DataTLSConnector(_DataConnector, TLSConnector):
    comm_class = _DataTLS


class _DataTCPBackend(TCPBackend):
    _connector_class = _DataTCPConnector


class _DataTLSBackend(TLSBackend):
    _connector_class = _DataTLSConnector


PREFIX = "data+"
"""In front of the scheme of an address, it makes Dask connect with one of the classes above."""
backends[f"{PREFIX}tcp"] = _DataTCPBackend()
backends[f"{PREFIX}tls"] = _DataTLSBackend()


def read_frames(frames: Sequence[Any]) -> Any:
    """The message that frames contain; raises `InvalidMessage` if they contain none."""

    def convert(item: dict[Any, Any]) -> Any:
        if "__Pickled__" in item:
            return UNREADABLE
        return _read_serialized(frames, item["__Serialized__"]) if "__Serialized__" in item else item

    try:
        return _unpack(frames[0], convert)
    except Exception as error:  # msgpack has several, and some do not have a common base class
        raise InvalidMessage(f"a message that is not msgpack ({one_line(error)})") from None


def _read_serialized(frames: Sequence[Any], number: Any) -> Any:
    if type(number) is not int or not 0 < number < len(frames):
        return UNREADABLE
    header = _unpack(frames[number])
    count = header["num-sub-frames"]
    parts = frames[number + 1 : number + 1 + count]
    is_compressed = any(header.get("compression") or ())
    if header.get("serializer") not in _SERIALIZERS or is_compressed or header.get("is-collection"):
        return UNREADABLE
    return _unpack(b"".join(parts))


def _unpack(data: Any, convert: Callable[[dict[Any, Any]], Any] | None = None) -> Any:
    return msgpack.unpackb(data, object_hook=convert, use_list=False, strict_map_key=False, raw=False)


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker, as the scheduler knows it."""

    name: str
    has_nanny: bool
    """Whether a process watches it that can start it again."""


class RemoteError(ProctorError):
    """A scheduler or worker could not do what was requested; the message has its exception."""


class Scheduler:
    """A Dask scheduler and its workers."""

    def __init__(self, pool: Any, address: str, *, is_direct: bool) -> None:
        """`is_direct`: connect to the workers, and not through the scheduler."""
        self._pool = pool
        self._address = PREFIX + address
        self._is_direct = is_direct

    async def workers(self) -> dict[str, WorkerEntry]:
        """The workers, by address."""
        identity = await self._request(self._address, "identity")
        entries = identity.get("workers") if isinstance(identity, dict) else None
        if not isinstance(entries, dict):
            raise InvalidMessage("a list of workers that cannot be read")
        return {
            address: WorkerEntry(_shown_name(entry.get("name", address)), entry.get("nanny") is not None)
            for address, entry in entries.items()
            if isinstance(address, str) and isinstance(entry, dict)
        }

    async def run(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the process of a worker; returns its result, which must be bytes or simple.

        Raises `InvalidMessage` if the result is anything else, `RemoteError` if the function raises an exception, and
        `OSError` if the worker cannot be reached.
        """
        call = {"function": pickle.dumps(function), "args": pickle.dumps(arguments)}
        if self._is_direct:
            response = await self._request(PREFIX + worker, "run", **call)
        else:
            response = await self._request(self._address, "proxy", worker=worker, msg={"op": "run", **call})
        if not isinstance(response, dict) or response.get("status") not in ("OK", "error"):
            raise InvalidMessage("an answer that is not one to a call")
        if response["status"] == "error":
            raise RemoteError(_shown_text(response.get("exception_text")))
        if response.get("result", UNREADABLE) is UNREADABLE:
            raise InvalidMessage("a result that is not data")
        return response["result"]

    async def restart(self, worker: str, seconds: float) -> None:
        """End the process of a worker; its nanny, if it has one, starts a new one."""
        entry = (await self.workers()).get(worker)
        reason = f"proctor-{os.urandom(4).hex()}"
        about: dict[str, Any] = {"workers": [worker], "stimulus_id": reason}
        if entry is not None and entry.has_nanny:
            await self._request(self._address, "restart_workers", **about, timeout=seconds, on_error="return")
        elif entry is not None:
            await self._request(self._address, "retire_workers", **about, close_workers=True)

    async def _request(self, address: str, operation: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._pool(address), operation)(**arguments)
        except (OSError, InvalidMessage):
            raise
        except Exception as error:  # Dask raises plain exceptions, also for a handshake that is none
            raise RemoteError(one_line(error)) from None


def _shown_text(value: object) -> str:
    return value[:1000] if isinstance(value, str) else "an exception"


def _shown_name(value: object) -> str:
    """The name of a worker, which may be a number, and anything if the worker is in bad hands."""
    text = str(value) if isinstance(value, (str, int)) else "?"
    return "".join(character if character.isprintable() else "?" for character in text[:MAX_NAME_LENGTH])


@asynccontextmanager
async def connected(
    address: str, options: Mapping[str, Any], message_limit: int, seconds: float, *, is_direct: bool = False
) -> AsyncIterator[Scheduler]:
    """A connection to a scheduler; `options` are Dask's for connections, `seconds` the time limit for connecting.

    Raises `OSError`, `InvalidMessage` or `RemoteError`.
    """
    pool = ConnectionPool(
        limit=MAX_CONNECTIONS,
        deserialize=False,
        serializers=_SERIALIZERS,
        timeout=seconds,
        connection_args={**options, "message_limit": message_limit + OVERHEAD},
    )
    async with pool:
        scheduler = Scheduler(pool, address, is_direct=is_direct)
        await scheduler.workers()
        yield scheduler
