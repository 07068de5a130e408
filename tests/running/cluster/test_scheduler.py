"""What a scheduler or a worker sends in Dask's own protocol is read as data, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("distributed")

import msgpack
from distributed.protocol import dumps, to_serialize
from distributed.protocol.serialize import ToPickle
from distributed.protocol.utils import pack_frames

from proctor.running.cluster.scheduler import UNREADABLE, RemoteError, connected, read_frames
from proctor.running.messages import InvalidMessage

RAN: list[str] = []


class Hostile:
    """Writes down that it was unpickled."""

    def __reduce__(self) -> Any:
        return (RAN.append, ("code of the sender",))


def sent(message: Any, serializers: list[str] | None = None) -> Any:
    frames = dumps(message, serializers=serializers)  # type: ignore[no-untyped-call]
    return read_frames([bytes(frame) for frame in frames])


def test_data_arrives_and_whatever_would_be_unpickled_does_not() -> None:
    RAN.clear()
    assert sent({"status": "OK", "result": to_serialize(b"data")}, ["msgpack"]) == {"status": "OK", "result": b"data"}
    for part in (Hostile(), b"data", [Hostile()], {"a": Hostile()}):
        assert sent({"result": to_serialize(part)}) == {"result": UNREADABLE}
    assert sent({"result": ToPickle(Hostile())}) == {"result": UNREADABLE}
    assert sent({"x": {"__Serialized__": 99}, "y": {"__Serialized__": "1"}}) == {"x": UNREADABLE, "y": UNREADABLE}
    assert RAN == []


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\xc1"],
        [b"\xdd\xff\xff\xff\xff"],
        [msgpack.packb({"__Serialized__": 1}), b"\xc1"],
        [msgpack.packb({"__Serialized__": 1}), msgpack.packb(["not", "a", "header"])],
        [msgpack.packb({"__Serialized__": 1}), msgpack.packb({"serializer": "msgpack"})],
    ],
)
def test_frames_that_are_no_message_are_refused(frames: list[bytes]) -> None:
    with pytest.raises(InvalidMessage):
        read_frames(frames)


def message(data: Any) -> bytes:
    """A message as Dask writes it to a connection."""
    packed = pack_frames([bytes(frame) for frame in dumps(data)])  # type: ignore[no-untyped-call]
    return struct.pack("<Q", len(packed)) + packed


HANDSHAKE = message({"compression": None, "python": (3, 11, 0), "pickle-protocol": 5})


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack("<Q", 2**62) + b"x",
        struct.pack("<QQ", 8, 2**63),
        struct.pack("<QQQ", 16, 1, 2**60),
        struct.pack("<QQ", 8, 0),
        b"HTTP/1.1 200 OK\r\n\r\n",
        message(5),
        message({"workers": Hostile()}),
        message({"workers": [1, 2]}),
        message({"status": "uncaught-error", "exception_text": "x" * 1000, "exception": ToPickle(Hostile())}),
        b"",
    ],
    ids=[
        *("too large", "too many frames", "a huge frame", "no frames", "http"),
        *("a number", "an object", "a list", "an error", "nothing"),
    ],
)
def test_a_scheduler_that_sends_anything_else_is_refused(answer: bytes) -> None:
    RAN.clear()

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(HANDSHAKE)
            connection.recv(100_000)
            connection.sendall(answer)

    async def connect(port: int) -> None:
        async with asyncio.timeout(10), connected(f"tcp://127.0.0.1:{port}", {}, 1_000_000, 5.0):
            pass

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        threads.submit(serve, server)
        with pytest.raises((OSError, InvalidMessage, RemoteError)) as refused:
            asyncio.run(connect(server.getsockname()[1]))
    assert not isinstance(refused.value, TimeoutError)
    assert len(str(refused.value)) < 2000
    assert RAN == []
