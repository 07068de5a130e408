"""The program that runs in the process of an arm: holds its agents and answers the run over standard input and output.

The run starts it with the interpreter of the arm and sends a `HostSetup` first, then calls of an `AgentHost`, which
holds the agents as on a worker. Several calls may be in progress at once; each answer has the number of its call. When
the run ends, also by being killed, standard input ends, and this process ends with everything it started.

For an arm that was checked out, code of the repository must come from its worktree only. `sys.path` alone does not
ensure that: a package that is installed in development mode is found by its own import hook, or by a `.pth` file, in
the user's working folder. So a finder in front of all others looks at where a module was found, and replaces a place in
the working folder by the same place in the worktree.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.abc
import importlib.machinery
import os
import struct
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from proctor.base.process_tree import adopt_orphans, kill_children
from proctor.running.cluster.agent_host import AgentHost
from proctor.running.remote_agent import unpack

LENGTH = struct.Struct("<Q")
ANSWER = struct.Struct("<QQ")
"""What is in front of the message that answers a call: the number of the call, and the length of the message."""
ARM_VARIABLE = "PROCTOR_ARM"
"""Set in the process of an arm to the arm's name."""


@dataclass(frozen=True, slots=True)
class HostSetup:
    """What the process needs to know before it loads any code of the user."""

    order: bytes
    """The order of the `AgentHost`, packed."""
    path: tuple[str, ...]
    """The module search path of the run."""
    repository: str = ""
    """The top of the working folder, if the arm was checked out."""
    worktree: str = ""
    """The folder into which the version was checked out."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a method of the host."""

    number: int
    method: str
    arguments: tuple[Any, ...]


class VersionFinder(importlib.abc.MetaPathFinder):
    """Finds modules of the user's working folder in the worktree instead."""

    def __init__(self, repository: Path, worktree: Path) -> None:
        self._repository = repository
        self._worktree = worktree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module in the worktree; `None` if it is not from the working folder. Raises `ModuleNotFoundError`."""
        if path is not None or fullname == "proctor":  # a package in the worktree finds its modules there
            return None
        spec = next((found for finder in self._others() if (found := finder.find_spec(fullname, path, target))), None)
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
        if not any(self._is_in_working_folder(place) for place in places):
            return None
        folders = [str(Path(self.moved(place)).parent) for place in places]
        found = importlib.machinery.PathFinder.find_spec(fullname, folders)
        if found is None:
            raise ModuleNotFoundError(f"No module named {fullname!r} in this version", name=fullname)
        return found

    def moved(self, place: str) -> str:
        """The place in the worktree of a place in the working folder; another place as it is."""
        if not self._is_in_working_folder(place):
            return place
        return str(self._worktree / Path(os.path.realpath(place)).relative_to(self._repository))

    def _is_in_working_folder(self, place: str) -> bool:
        """Whether code is in the user's working folder; an environment inside that folder does not count."""
        if not Path(place).is_absolute():
            return False
        path = Path(os.path.realpath(place))
        return (
            path.is_relative_to(self._repository)
            and not path.is_relative_to(self._worktree)
            and not {"site-packages", "dist-packages"} & set(path.parts)
            and not any((folder / "pyvenv.cfg").is_file() for folder in (path, *path.parents))
        )

    def _others(self) -> list[Any]:
        return [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]


def prepare_imports(setup: HostSetup) -> None:
    """Let imports find what the run finds, with the code of the repository from the worktree."""
    for place in setup.path:
        if place and place not in sys.path:
            sys.path.append(place)
    if setup.worktree:
        finder = VersionFinder(Path(setup.repository), Path(setup.worktree))
        sys.path[:] = dict.fromkeys(finder.moved(place) for place in sys.path)
        sys.meta_path.insert(0, finder)


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message, or `None` at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    [length] = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


class Host:
    """Answers the calls of the run."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers
        self._sending = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        first = await asyncio.to_thread(read_message, self._requests)
        if first is None:
            return
        setup: HostSetup = unpack(first)
        prepare_imports(setup)
        host = AgentHost(setup.order)
        threading.Thread(target=self._read_calls, args=(loop, host), daemon=True).start()
        await asyncio.Event().wait()  # the thread ends this process

    def _read_calls(self, loop: asyncio.AbstractEventLoop, host: AgentHost) -> None:
        while (data := read_message(self._requests)) is not None:
            call: Call = unpack(data)
            loop.call_soon_threadsafe(self._start, host, call)
        end_process()

    def _start(self, host: AgentHost, call: Call) -> None:
        task = asyncio.ensure_future(self._answer(host, call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, host: AgentHost, call: Call) -> None:
        data = await host.call(call.number, call.method, call.arguments)
        with self._sending, contextlib.suppress(OSError):  # the run has ended
            self._answers.write(ANSWER.pack(call.number, len(data)) + data)
            self._answers.flush()


def end_process() -> None:
    """End this process and everything that it started."""
    with contextlib.suppress(OSError):  # a system without /proc
        kill_children(os.getpid())
    os._exit(0)


def main() -> None:
    """Serve the run that started this process."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what the agent prints does not belong to the messages
    adopt_orphans()
    try:
        asyncio.run(Host(requests, answers).serve())
    finally:
        end_process()
