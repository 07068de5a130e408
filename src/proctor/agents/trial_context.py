"""The trial that the current code belongs to: its number, its settings, its mocks and the recorder of its turn.

There is one object per trial in one context variable. A context variable follows tasks, `asyncio.to_thread` and thread
pools, so concurrent trials never see each other's. A raw thread starts with an empty context and does not know its
trial. Treating a call from such a thread as "no trial" would execute a tool that a running case mocks. So the process
also keeps a list of running trials: `check_stray_call` refuses a call of a tool that one of them mocks and marks those
trials, and it counts all other calls that cannot be attributed to a trial.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor.base.clock import Clock
from proctor.base.errors import ProctorError

if TYPE_CHECKING:
    from proctor.agents.tool_mocks import ToolMocks
    from proctor.agents.turn_recorder import TurnRecorder

MAX_REPLY_BYTES = 10 * 1024 * 1024
"""The default limit for the size of a reply."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of a run that code inside a trial may read.

    The object is sent as a whole to processes of trials and to workers, so a new field reaches the agent wherever it
    runs.
    """

    max_reply_bytes: int = MAX_REPLY_BYTES


DEFAULT_SETTINGS = AgentSettings()


@dataclass(slots=True)
class TrialContext:
    """One running trial; shared by all tasks and threads that work on it."""

    number: int = 1
    """The number of the trial among those of its case, from 1."""
    settings: AgentSettings = DEFAULT_SETTINGS
    mocks: ToolMocks | None = None
    """The mocks of its case, if the case has any."""
    turn: TurnRecorder | None = None
    """The recorder of the turn that is being answered, or of the last one."""
    excluded_seconds: float = 0.0
    """Time spent waiting for something other than the agent, such as a free worker."""
    waiting_since: float | None = None
    """When the current wait for something other than the agent began (`Clock.monotonic`), if there is one."""
    bypassed_mocks: list[str] = field(default_factory=list)
    """Mocked tools that were called from a thread outside the trial."""
    stray_calls: list[str] = field(default_factory=list)
    """Tools that were called from a thread outside every trial while this one was running."""

    @property
    def waited_seconds(self) -> float:
        """All time spent waiting for something other than the agent, up to now."""
        waiting = 0.0 if self.waiting_since is None else Clock.monotonic() - self.waiting_since
        return self.excluded_seconds + waiting


current_trial: ContextVar[TrialContext | None] = ContextVar("proctor_trial", default=None)


def current_turn() -> TurnRecorder | None:
    """The recorder of the turn that is being answered here; `None` outside a trial and after the answer."""
    trial = current_trial.get()
    turn = None if trial is None else trial.turn
    return None if turn is None or turn.closed else turn


def trial_number() -> int:
    """The number of the current trial among those of its case; 1 outside a trial."""
    trial = current_trial.get()
    return 1 if trial is None else trial.number


def agent_settings() -> AgentSettings:
    """The settings of the current trial; the defaults outside a trial."""
    trial = current_trial.get()
    return DEFAULT_SETTINGS if trial is None else trial.settings


def max_reply_bytes() -> int:
    """The limit for the size of a reply in the current trial."""
    return agent_settings().max_reply_bytes


class MockBypassed(ProctorError):
    """A tool that a running case mocks was called from a thread outside the trial."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool!r} is mocked by a running case, but was called from a thread that does not belong to the trial; "
            "it was not executed. Start the thread with contextvars.copy_context().run, or use a thread pool"
        )


_LOCK = threading.Lock()
_RUNNING: list[TrialContext] = []
_STRAY_CALLS: Counter[str] = Counter()


@contextmanager
def running_trial(trial: TrialContext) -> Iterator[TrialContext]:
    """Make `trial` the current one inside the block, and add it to the running trials of the process."""
    with _LOCK:
        _RUNNING.append(trial)
    token = current_trial.set(trial)
    try:
        yield trial
    finally:
        with suppress(ValueError):  # an abandoned conversation is closed in another context than it was opened in
            current_trial.reset(token)
        with _LOCK:
            _RUNNING[:] = [other for other in _RUNNING if other is not trial]


def check_stray_call(tool: str) -> None:
    """Check a tool call from outside a trial; raises `MockBypassed` if a running case mocks the tool.

    Without a mock the call goes ahead. It is counted if trials are running, since it may belong to one of them.
    """
    with _LOCK:
        mocking = [trial for trial in _RUNNING if trial.mocks is not None and tool in trial.mocks]
        for trial in mocking:
            trial.bypassed_mocks.append(tool)
        if _RUNNING and not mocking:
            _STRAY_CALLS[tool] += 1
            for trial in _RUNNING:
                trial.stray_calls.append(tool)
    if mocking:
        raise MockBypassed(tool)


def turns_in_progress() -> list[TurnRecorder]:
    """The recorders of all turns that are being answered in this process."""
    with _LOCK:
        turns = [trial.turn for trial in _RUNNING]
    return [turn for turn in turns if turn is not None and not turn.closed]


def take_stray_calls() -> dict[str, int]:
    """Return and reset the counts of calls outside a trial while trials were running, by tool."""
    with _LOCK:
        counts = dict(_STRAY_CALLS)
        _STRAY_CALLS.clear()
    return counts


def stray_call_warnings() -> list[str]:
    """A warning for each tool in `take_stray_calls`.

    It is unknown which trial such a call belongs to, so the warnings go to the trial that ends next.
    """
    return [
        f"{tool!r} was called {'once' if count == 1 else f'{count} times'} from a thread that belongs to no trial, so "
        "no trial has the call; start such threads with contextvars.copy_context().run, or use a thread pool"
        for tool, count in take_stray_calls().items()
    ]
