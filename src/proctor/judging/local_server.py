"""Serves a model file in this process: llama.cpp's own server, on loopback only, once for each model."""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.util
import os
import threading
from pathlib import Path
from typing import Any

from proctor.errors import UsageError
from proctor.judging.model import EndpointFailed

PACKAGE = "xllamacpp"
THREADS = "PROCTOR_LOCAL_THREADS"
CONTEXT = 8192
"""Tokens of prompt and reply together, unless somebody says otherwise."""
BATCH = 128
"""Tokens that are read at once; between two lots the server notices that nobody waits for it any more."""
MAGIC = b"GGUF"

_STARTING = threading.Lock()


def require_model(path: Path) -> None:
    """Raise `UsageError` with what is missing, before anything is asked."""
    if not path.exists():
        raise UsageError(f"the judge's model file {path} does not exist")
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"the judge's model file {path} cannot be read: {error.strerror or error}") from None
    if begins != MAGIC:
        raise UsageError(f"the judge's model file {path} is not a GGUF file")
    if importlib.util.find_spec(PACKAGE) is None:
        raise UsageError("asking a model file as a judge needs more packages: pip install 'proctor[local]'")


def content_hash(path: Path) -> str:
    """What tells one model file from another, whatever it is called; read once while the file stays as it is."""
    stat = path.stat()
    return _content_hash(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _content_hash(path: Path, size: int, changed: int) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def usual_threads() -> int:
    """One for each core that this process may use. On a build server it is one: who spins there waits for others."""
    given = os.environ.get(THREADS, "").strip()
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise UsageError(f"{THREADS} must be a number of threads from 1 on, not {given!r}")
        return int(given)
    return 1 if os.environ.get("CI") else _cores()


def _cores() -> int:
    """Physical ones where that can be seen: two threads on one core hinder each other in arithmetic."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    siblings = [Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") for number in usable]
    try:
        return max(1, len({path.read_text() for path in siblings}))
    except OSError:
        return max(1, len(usable))


def serve(path: Path, threads: int, context: int, slots: int) -> str:
    """The address of the server for a model, started if there is none yet. Takes seconds: call it in a thread."""
    with _STARTING:
        address: str = _served(path, threads, context, slots).listening_address
        return address


@functools.cache
def _served(path: Path, threads: int, context: int, slots: int) -> Any:
    xllamacpp: Any = importlib.import_module(PACKAGE)
    options = xllamacpp.CommonParams()
    options.model.path = str(path)
    options.hostnames = ["127.0.0.1"]
    options.port = 0
    options.offline = True
    options.ui = False
    options.endpoint_slots = False
    options.verbosity = -1
    options.n_ctx = context * slots
    options.n_parallel = slots
    options.n_batch = options.n_ubatch = BATCH
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(options)
    except Exception as error:
        raise EndpointFailed(f"cannot be loaded: {error} The file may be damaged, or not a model of words.") from None
    atexit.register(stop)
    return server


def stop() -> None:
    """End every server of this process; its threads must not outlive the interpreter."""
    _served.cache_clear()
