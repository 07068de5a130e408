"""Records what happens in one turn: tool calls, model calls, named outputs, and the answer as far as it has arrived.

Everything that acts during a turn writes into the same recorder: `@proctor.tool`, `proctor.wrap`, the framework
adapters and the chat agent. `call_tool` is the one place that runs a tool or its mock and records the call with its
time, error, parent and id.

Three things are less simple than they look:

- *Ids.* Some model services number their tool calls from zero in every response. A dict by the vendor's id would lose
  the first of two calls with the same id. So calls are stored by a key that the recorder assigns, and the second call
  with an id gets a new one.
- *Two reports of one call.* A function marked with `@tool` may also be a tool of a framework whose adapter reports it.
  If a framework reports calls, those are the calls of the turn, and those of `@tool` are left out.
- *Unfinished calls.* A turn can break off inside a call, and a thread can outlive its turn. Calls are recorded when
  they begin, and a closed recorder records nothing more. Mocks still replace tools then.

The recorder may be in another process than the engine. `listener` gets every change as an event that can be sent,
and `apply` repeats an event in the recorder on the other side.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from proctor.agents.reply import UNFINISHED_CALL, Reply, ToolCall, Usage
from proctor.agents.streams import follow_async_stream, follow_stream, join_stream
from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.trial_context import TrialContext, current_turn, running_trial
from proctor.base.deprecation import renamed_attributes
from proctor.base.errors import one_line
from proctor.base.json_data import Json, to_json
from proctor.cases.suite import NamedData

_PARENT_CALL: ContextVar[tuple[TurnRecorder, str] | None] = ContextVar("proctor_parent_call", default=None)
"""The tool call that the current code runs inside: its recorder and its id. The concurrent tasks of one trial differ in
it, so it cannot be a field of `TrialContext`, which they share."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a language model that left the process during a turn."""

    sent_at: float
    """Seconds since the epoch."""
    client: str
    """The module of the client that sent it, such as `openai`; empty if it is unknown."""
    address: str
    """Where it went: `api.openai.com/v1/chat/completions`."""
    tools: tuple[str, ...] | None = None
    """The tools that it offers the model; `None` if they are unknown."""
    is_stray: bool = False
    """Whether it was sent from a thread that belongs to no trial, so that it may belong to another one."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A tool call began, or ended if `ended`. Both events have the same `key`; `marked` calls come from `@tool`."""

    key: int
    call: ToolCall
    ended: bool
    marked: bool


@dataclass(frozen=True, slots=True)
class OutputEvent:
    """The application named an output."""

    output: NamedData


@dataclass(frozen=True, slots=True)
class InputEvent:
    """The application used one of the inputs of the case."""

    name: str


@dataclass(frozen=True, slots=True)
class ChunkEvent:
    """Another piece of a streamed answer arrived."""

    text: str


@dataclass(frozen=True, slots=True)
class PartialEvent:
    """The whole answer as far as it has arrived."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The usage of the turn up to now."""

    usage: Usage | None


@dataclass(frozen=True, slots=True)
class NoteEvent:
    """Something happened that people should know of; it becomes a warning of the trial."""

    text: str


TurnEvent = CallEvent | OutputEvent | InputEvent | ChunkEvent | PartialEvent | UsageEvent | NoteEvent


@renamed_attributes(
    {
        "model_call": "add_model_call",
        "partial": "set_partial",
        "hand_over": "record_handoff",
        "not_called": "record_unexecuted_call",
    }
)
class TurnRecorder:
    """The record of one turn while it is being answered."""

    def __init__(
        self,
        inputs: Mapping[str, Json] | None = None,
        *,
        mocks: ToolMocks | None = None,
        trace_wraps: bool = False,
        listener: Callable[[TurnEvent], None] | None = None,
    ) -> None:
        """Start a record.

        `inputs` are the case's values for `wrap`; with `None` the application uses its own. `mocks` are the mocks of
        the case. `trace_wraps` adds each `wrap` to the trace. `listener` is called for every change, possibly from
        several threads.
        """
        self.inputs = inputs
        self.used_inputs: set[str] = set()
        self.outputs: list[NamedData] = []
        self.usage: Usage | None = None
        self.notes: list[str] = []
        """Warnings about this turn for the people who read the results."""
        self.closed = False
        """Whether the turn is over; nothing is recorded after that."""
        self.model_requests: list[ModelRequest] = []
        self.recorded_tools: set[str] = set()
        """Functions whose calls are recorded although they are not marked with `@tool`."""
        self.is_own_client = False
        """Whether Proctor itself sends the requests of this turn, as for an HTTP agent."""
        self.trace_wraps = trace_wraps
        self.listener = listener
        self._mocks = mocks
        self._partial = Reply()
        self._chunks: list[str] = []
        self._handoff: str | None = None
        self._keys = itertools.count(1)
        self._calls: dict[int, CallEvent] = {}
        self._clocks: dict[int, float] = {}
        self._outer: dict[int, tuple[TurnRecorder, str] | None] = {}
        """By key of a call: the call that surrounds it."""
        self._lock = threading.Lock()

    # Tool calls

    async def call_tool(
        self,
        name: str,
        arguments: Any,
        run: Callable[[], Any],
        *,
        id: str | None = None,  # noqa: A002
        read: Callable[[Any], Any] = lambda result: result,
        read_error: Callable[[BaseException], str] = one_line,
        marked: bool = False,
    ) -> Any:
        """Run a tool, or its mock if the case has one, and record the call; returns what the tool returns.

        `run` takes no arguments and may be sync or async. `arguments` is an object or JSON text, `id` the vendor's id
        of the call. `read` converts the tool's result to the value that is recorded, and `read_error` an exception to
        its text, for frameworks that wrap them.
        `marked` is for calls that `@proctor.tool` reports.
        """
        key = self.begin_call(name, arguments, id=id, marked=marked)
        try:
            if self._mocks is not None and name in self._mocks:
                result: Any = await self._mocks.result_async(name, self._arguments(key, arguments))
                self.end_call(key, result)
                return result
            result = run()
            if inspect.isawaitable(result):
                result = await result
        except BaseException as error:
            self.end_call(key, error=read_error(error))
            raise
        return self._follow(key, result, read)

    def call_tool_sync(
        self,
        name: str,
        arguments: Any,
        run: Callable[[], Any],
        *,
        id: str | None = None,  # noqa: A002
        read: Callable[[Any], Any] = lambda result: result,
        marked: bool = False,
    ) -> Any:
        """Like `call_tool`, for tools that are called without an event loop.

        An awaitable or a generator is returned as one, and the call ends when it has been awaited or drained.
        """
        key = self.begin_call(name, arguments, id=id, marked=marked)
        try:
            if self._mocks is not None and name in self._mocks:
                result: Any = self._mocks.result(name, self._arguments(key, arguments))
                self.end_call(key, result)
                return result
            result = run()
        except BaseException as error:
            self.end_call(key, error=error)
            raise
        return self._follow(key, result, read)

    def _follow(self, key: int, result: Any, read: Callable[[Any], Any]) -> Any:
        """End the call and return the result. A stream or an awaitable is wrapped, and the call ends with it."""

        def finish(chunks: list[Any], error: BaseException | None) -> None:
            self.end_call(key, join_stream([read(chunk) for chunk in chunks]), error)

        if inspect.isgenerator(result):
            self._leave(key)
            return follow_stream(result, finish, functools.partial(self._inside, key))
        if inspect.isasyncgen(result):
            self._leave(key)
            return follow_async_stream(result, finish, functools.partial(self._inside, key))
        if inspect.isawaitable(result):
            self._leave(key)
            return self._await(key, result, read)
        self.end_call(key, read(result))
        return result

    async def _await(self, key: int, pending: Awaitable[Any], read: Callable[[Any], Any]) -> Any:
        try:
            with self._inside(key):
                result = await pending
        except BaseException as error:
            self.end_call(key, error=error)
            raise
        return self._follow(key, result, read)

    @contextmanager
    def _inside(self, key: int) -> Iterator[None]:
        """Make this call the parent of calls that begin in the block, in whatever task or thread the block runs."""
        outer = _PARENT_CALL.get()
        self.enter_call(key)
        try:
            yield
        finally:
            _PARENT_CALL.set(outer)

    def enter_call(self, key: int) -> None:
        """Continue a call in this task or thread: it is the parent of calls that begin here from now on."""
        event = self._calls.get(key)
        if event is not None and event.call.id is not None and not event.marked:
            self._outer.setdefault(key, _PARENT_CALL.get())
            _PARENT_CALL.set((self, event.call.id))

    def _leave(self, key: int) -> None:
        if key in self._outer:
            _PARENT_CALL.set(self._outer[key])

    def _parent_id(self) -> str | None:
        """The surrounding call, if it belongs to this turn: a call of an earlier turn may never have ended."""
        parent = _PARENT_CALL.get()
        return self._handoff if parent is None or parent[0] is not self else parent[1]

    def _arguments(self, key: int, arguments: Any) -> Mapping[str, Json]:
        """The arguments by name, however the vendor writes them."""
        event = self._calls.get(key)
        return ToolCall.parse("", to_json(arguments)).arguments if event is None else event.call.arguments

    def begin_call(
        self,
        name: str,
        arguments: Any,
        *,
        id: str | None = None,  # noqa: A002
        marked: bool = False,
    ) -> int:
        """Record that a call begins, and return its key for `end_call`.

        For frameworks that report the beginning and the end of a call separately; everything else uses `call_tool`.
        """
        key = next(self._keys)
        if self.closed:
            return key
        self._clocks[key] = time.perf_counter()
        with self._lock:
            if marked:
                call = ToolCall.parse(name, to_json(arguments), started_at=time.time())
            else:
                call_id = self._unique_id(id or f"{name}-{len(self._calls) + 1}")
                parent = self._parent_id()
                call = ToolCall.parse(name, to_json(arguments), id=call_id, started_at=time.time(), parent=parent)
            event = CallEvent(key, call, ended=False, marked=marked)
            self._calls[key] = event
        self.enter_call(key)
        self._announce(event)
        return key

    def _unique_id(self, preferred: str) -> str:
        existing = {event.call.id for event in self._calls.values()}
        candidates = itertools.chain([preferred], (f"{preferred}-{number}" for number in itertools.count(2)))
        return next(candidate for candidate in candidates if candidate not in existing)

    def end_call(self, key: int, result: Any = None, error: BaseException | str | None = None) -> None:
        """Record the end of a call. Its surrounding call is the parent of calls that begin here afterwards."""
        event = self._calls.get(key)
        if event is None:
            return
        self._leave(key)
        if self.closed:
            return
        reason = error if error is None or isinstance(error, str) else one_line(error)
        duration_ms = (time.perf_counter() - self._clocks[key]) * 1000
        call = replace(event.call, result=to_json(result), error=reason, duration_ms=duration_ms)
        self._update_call(replace(event, call=call, ended=True))

    def record_unexecuted_call(self, name: str, arguments: Any, reason: str, *, id: str | None = None) -> None:  # noqa: A002
        """Record a call that the model requested but that was not executed, such as a call of an unknown tool."""
        self.end_call(self.begin_call(name, arguments, id=id), error=reason)

    def add_call(self, call: ToolCall) -> None:
        """Record a call that happened elsewhere, such as a tool that the model service ran itself."""
        if self.closed:
            return
        with self._lock:
            call_id = self._unique_id(call.id or f"{call.name}-{len(self._calls) + 1}")
            key = next(self._keys)
            self._calls[key] = event = CallEvent(key, replace(call, id=call_id), ended=True, marked=False)
        self._announce(event)

    def record_handoff(self, name: str, arguments: Any, agent: str, *, id: str | None = None) -> None:  # noqa: A002
        """Record that another agent takes over. This call is the parent of the calls that it makes."""
        key = self.begin_call(name, arguments, id=id)
        event = self._calls.get(key)
        if event is not None:
            self._calls[key] = replace(event, call=replace(event.call, handoff=True))
            self._handoff = event.call.id
        self.end_call(key, {"agent": agent})

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of an answered turn, in the order in which they began."""
        return tuple(event.call for event in self._reported_calls() if event.ended or not event.marked)

    @property
    def partial_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of a turn that broke off. A call that did not end has the error `UNFINISHED_CALL`."""
        return tuple(
            event.call if event.ended else replace(event.call, error=UNFINISHED_CALL)
            for event in self._reported_calls()
        )

    def _reported_calls(self) -> list[CallEvent]:
        events = list(self._calls.values())
        return [event for event in events if not event.marked] or events

    # Model calls

    def add_model_call(self, input_tokens: int | None, output_tokens: int | None, model: str | None = None) -> None:
        """Record one model call. Zero input and zero output tokens mean unknown: that is how libraries report it."""
        if input_tokens or output_tokens:
            self.add_usage(Usage(input_tokens, output_tokens, model_calls=1, model=model))
        else:
            self.add_usage(Usage(model_calls=1))

    def add_usage(self, usage: Usage | None) -> None:
        """Add the usage of a part of the turn."""
        if usage is None or self.closed:
            return
        with self._lock:
            self.usage = usage if self.usage is None else self.usage + usage
        self._announce(UsageEvent(self.usage))

    def add_model_request(self, request: ModelRequest) -> None:
        """Record that the agent called a model, whether or not anything observes the call."""
        if not self.closed and not self.is_own_client:
            self.model_requests.append(request)

    # The answer while it arrives

    def set_partial(self, answer: str | Reply) -> None:
        """Replace the partial answer: its text, or a `Reply` if more than the text is known."""
        if self.closed:
            return
        self._partial = Reply(answer) if isinstance(answer, str) else replace(answer, raw=None)
        self._announce(PartialEvent(self._partial))

    def append_text(self, chunk: str) -> None:
        """Add a piece of a streamed answer."""
        if self.closed:
            return
        self._chunks.append(chunk)
        self._announce(ChunkEvent(chunk))

    @property
    def partial_text(self) -> str:
        """The text of the answer as far as it has arrived."""
        return self._partial.text or "".join(self._chunks)

    @property
    def partial_reply(self) -> Reply:
        """The answer as far as it has arrived; an empty reply if nothing has."""
        return replace(self._partial, text=self.partial_text)

    def add_note(self, text: str) -> None:
        """Add a warning about this turn to the trial."""
        if self.closed:
            return
        self.notes.append(text)
        self._announce(NoteEvent(text))

    # Values that the application names with `wrap`

    def use_input(self, name: str) -> Json:
        """Return the case's value of an input and mark it as used; raises `KeyError` if the case does not have it."""
        value = (self.inputs or {})[name]
        self.used_inputs.add(name)
        self._announce(InputEvent(name))
        return value

    def add_output(self, name: str, value: Json) -> None:
        """Record a value under a name that the application chose."""
        if self.closed:
            return
        output = NamedData(name, value)
        self.outputs.append(output)
        self._announce(OutputEvent(output))

    def unused_inputs(self) -> list[str]:
        """Inputs of the case that the application did not use although it used others."""
        return [name for name in self.inputs or () if name not in self.used_inputs] if self.used_inputs else []

    # The same record in another process

    def apply(self, event: TurnEvent) -> None:
        """Repeat a change that the recorder in another process announced to its listener."""
        if self.closed:
            return
        if isinstance(event, CallEvent):
            self._update_call(event)
        elif isinstance(event, OutputEvent):
            self.add_output(event.output.name, event.output.value)
        elif isinstance(event, InputEvent):
            self.used_inputs.add(event.name)
        elif isinstance(event, UsageEvent):
            self.usage = event.usage
        elif isinstance(event, ChunkEvent):
            self.append_text(event.text)
        elif isinstance(event, NoteEvent):
            self.add_note(event.text)
        else:
            self.set_partial(event.reply)

    def _update_call(self, event: CallEvent) -> None:
        self._calls[event.key] = event
        self._announce(event)

    def _announce(self, event: TurnEvent) -> None:
        if self.listener is not None:
            self.listener(event)


@contextmanager
def recorded_turn() -> Iterator[TurnRecorder]:
    """The recorder of the turn that is being answered here, or a new one if a session is used outside a run."""
    recorder = current_turn()
    if recorder is not None:
        yield recorder
        return
    recorder = TurnRecorder()
    with running_trial(TrialContext(turn=recorder)):
        yield recorder


_PATCHED: set[tuple[type, str]] = set()


def patch_once(owner: type, method: str, wrapper: Callable[..., Any]) -> None:
    """Patch a method of a vendor's class: during a turn, `wrapper(original, self, *args, **kwargs)` is called instead.

    Outside a turn the original is called. The patch is never removed. The method is looked up with `getattr`: another
    library may have put a descriptor in the class, which has to be bound.
    """
    if (owner, method) in _PATCHED:
        return
    _PATCHED.add((owner, method))
    original = getattr(owner, method)

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def patched_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            if current_turn() is None:
                return await original(self, *args, **kwargs)
            return await wrapper(original, self, *args, **kwargs)

        setattr(owner, method, patched_async)
    else:

        @functools.wraps(original)
        def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
            run = original if current_turn() is None else functools.partial(wrapper, original)
            return run(self, *args, **kwargs)

        setattr(owner, method, patched)
