"""An agent behind an HTTP endpoint: one JSON request per turn; the reply is read from the body of the response.

A body of the type `text/event-stream` is read as a stream (`event_stream.py`), anything else as JSON or text.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.conversation import Conversation
from proctor.agents.event_stream import StreamedReply, StreamSelectors
from proctor.agents.http_config import HttpOptions, MissingTemplateValue
from proctor.agents.messages import is_list, to_tool_call, to_usage
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.reply_limits import ReplyTooLarge, read_limited
from proctor.agents.reply_reader import TEXT_KEYS, read_envelope, text_and_data, to_reply
from proctor.agents.trial_context import current_turn
from proctor.agents.wire_format import REPORT_CALLS, breaks_off, check_error, turn_values, with_unreported_calls
from proctor.base.diagnosis import AGENT, Diagnosis
from proctor.base.documents import json_type_name
from proctor.base.errors import AgentFailed, UnreadableReply, one_line
from proctor.base.infrastructure import diagnose, diagnose_status
from proctor.base.json_data import UNSET, Json, Unset, fingerprint, to_json, to_text
from proctor.base.masking import mask_values
from proctor.base.selectors import Selector
from proctor.cases.suite import Case, Turn


def read_body(body: str, options: HttpOptions) -> Reply:
    """The reply in `body`; raises `UnreadableReply` with what was expected and what the body has."""
    try:
        data = to_json(json.loads(body))
    except RecursionError:
        raise UnreadableReply("the answer is nested too deeply to be read") from None
    except ValueError:
        return _read_text(body, options)
    if options.text is None or options.text.steps[:1] != ("error",):
        check_error(data)
    reply = _read_default(data) if options.text is None else read_envelope(data) or Reply(raw=data)
    if options.text is not None:
        text, structured = text_and_data(_select(options.text, data, "text"))
        reply = dataclasses.replace(reply, text=text, structured=structured)
    if options.tool_calls is not None:
        reply = dataclasses.replace(reply, tool_calls=_tool_calls(data, options.tool_calls, options.call_fields))
    if options.usage is not None:
        reply = dataclasses.replace(reply, usage=_usage(data, options.usage))
    if options.state is not None:
        reply = dataclasses.replace(reply, state=_state(data, options.state))
    return reply


def stream_selectors(options: HttpOptions) -> StreamSelectors:
    """The configured paths, for the events of a stream; none of them has to be in every event."""
    calls, usage = options.tool_calls, options.usage

    def tool_calls(data: Json) -> tuple[ToolCall, ...]:
        present = calls is not None and calls.find(data) is not UNSET
        return _tool_calls(data, calls, options.call_fields) if calls is not None and present else ()

    return StreamSelectors(
        options.text,
        None if calls is None else tool_calls,
        None if usage is None else lambda data: _usage(data, usage),
        options.state,
    )


def _read_text(body: str, options: HttpOptions) -> Reply:
    """Read a body that is not JSON: it is the answer itself, unless the options say where in the JSON the answer is."""
    required = [s for s in (options.text, options.tool_calls, options.state) if s is not None and not s.optional]
    if required:
        raise UnreadableReply(f"expected JSON with {required[0].text}, but the body is {to_text(body.strip(), 300)}")
    if breaks_off(body.strip()):
        raise UnreadableReply(f"the body breaks off in the middle of its JSON: {to_text(body.strip(), 300)}")
    return Reply(body)


def _read_default(data: Json) -> Reply:
    if not isinstance(data, Mapping):
        return to_reply(data)
    reply = read_envelope(data)
    if reply is None:
        places = ", ".join((*TEXT_KEYS, "choices[0].message.content"))
        raise UnreadableReply(
            f"no text found at {places}; the body has {_keys_or_type(data)}; set 'text' to the path of the answer"
        )
    return reply


def _select(selector: Selector, data: Json, what: str) -> Json:
    """The value at a selector; raises `UnreadableReply` if it is missing and the selector does not end in `?`."""
    value = selector.find(data)
    if isinstance(value, Unset):
        if selector.optional:
            return None
        hint = f"write {selector.text}? if it may be missing"
        raise UnreadableReply(f"no {what} at {selector.text}; the body has {_keys_or_type(data)}; {hint}")
    return value


def _keys_or_type(data: Json) -> str:
    if isinstance(data, Mapping):
        return f"only {', '.join(str(key) for key in list(data)[:20])}" if data else "an empty object"
    return json_type_name(data)


def _tool_calls(data: Json, selector: Selector, fields: Mapping[str, Selector]) -> tuple[ToolCall, ...]:
    items = _select(selector, data, "tool calls")
    if items is None:
        return ()
    if not is_list(items):
        raise UnreadableReply(f"the tool calls at {selector.text} must be a list, not {json_type_name(items)}")
    calls = []
    for index, item in enumerate(items, 1):
        values = {name: inner.find(item) for name, inner in fields.items()}
        if values.get("name", "") is UNSET:
            path = fields["name"].text
            raise UnreadableReply(f"tool call {index} has no name at {path}; it has {_keys_or_type(item)}")
        parts = {name: None if value is UNSET else value for name, value in values.items()}
        calls.append(to_tool_call(item, f"tool call {index}", parts))
    return tuple(calls)


def _usage(data: Json, usage: Selector | Mapping[str, Selector]) -> Usage | None:
    """The token counts and the cost. Missing ones are unknown; they never make an answer unreadable."""
    if isinstance(usage, Selector):
        counts = usage.find(data)
    else:
        counts = {name: selector.find(data) for name, selector in usage.items()}
    return None if counts is UNSET else to_usage(counts)


def _state(data: Json, selector: Selector) -> Mapping[str, Json] | None:
    state = _select(selector, data, "state")
    if state is None or isinstance(state, Mapping):
        return state
    raise UnreadableReply(f"the state at {selector.text} is {json_type_name(state)} instead of an object")


_MAX_REDIRECTS = 5
_MAX_BODY_CHARS = 300


class HttpAgent(BaseAgent):
    """Sends turns to one URL; all sessions share one connection pool."""

    reads_files = False
    runs_here = False

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self.endpoint = options.host
        self.name = options.title
        self.fingerprint = fingerprint(
            options.url, options.method, sorted(options.headers), options.request.data, _selectors(options)
        )
        self.client: Any = None

    def __repr__(self) -> str:
        return f"HttpAgent({self.options.method} {self.options.safe_url})"

    async def start(self) -> None:
        if self.client is None:
            self.client = self.connect()

    async def stop(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            await client.aclose()

    def connect(self) -> Any:
        import httpx2

        seconds = self.options.timeout
        return httpx2.AsyncClient(
            headers=self.options.expanded_headers(),
            timeout=httpx2.Timeout(seconds, connect=min(seconds, 10.0)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
        )

    def session(self, case: Case) -> HttpSession:
        return HttpSession(self, case)

    def check(self, case: Case) -> str | None:
        """Why there is no request for a turn of this case, or None if there is one for each."""
        for index, turn in enumerate(case.turns):
            try:
                # After the first turn, the service may have added to the state.
                self.options.request.render(turn_values(Conversation(case), turn), state_is_known=index == 0)
            except MissingTemplateValue as error:
                return str(error)
        return None


class HttpSession(BaseSession):
    """One conversation; it opens its own connection pool only if the agent was not started."""

    def __init__(self, agent: HttpAgent, case: Case) -> None:
        super().__init__(case)
        self._agent = agent
        self._options = agent.options
        self._conversation = Conversation(case)
        self._own_client: Any = None
        self._received = bytearray()
        self._stream: StreamedReply | None = None
        """The answer to the current turn, if it arrives as a stream."""

    async def open(self) -> None:
        if self._agent.client is None:
            self._own_client = self._agent.connect()

    async def close(self) -> None:
        client, self._own_client = self._own_client, None
        if client is not None:
            await client.aclose()

    async def send(self, turn: Turn) -> Reply:
        self._received, self._stream = bytearray(), None
        if (recorder := current_turn()) is not None:
            recorder.is_own_client = True
        try:
            reply = await self._request_reply(turn)
        except BaseException:  # also if the turn is cancelled because it takes too long
            self._report_partial_answer()
            raise
        if self._options.tool_calls is None:
            reply = with_unreported_calls(reply, f"{REPORT_CALLS}, or set 'tool_calls' of the agent to their path")
        return self._conversation.record(turn, reply)

    async def _request_reply(self, turn: Turn) -> Reply:
        try:
            body = self._options.request.render(turn_values(self._conversation, turn))
        except MissingTemplateValue as error:
            raise AgentFailed(str(error), infrastructure=True) from None
        try:
            response = await self._exchange(to_json(body))
            reply = read_body(response.text, self._options) if self._stream is None else self._stream.reply()
            return dataclasses.replace(reply, from_cache=True) if _is_from_cache(response.headers) else reply
        except ReplyTooLarge as error:
            error.head = self._mask_secrets(error.head)
            raise
        except UnreadableReply as error:
            raise UnreadableReply(self._mask_secrets(f"{self._agent.name}: {error}")) from None
        except AgentFailed as error:
            error.args = (self._mask_secrets(str(error)),)
            raise

    def _report_partial_answer(self) -> None:
        """Record the part of the body that arrived, also of an answer that could not be read."""
        recorder = current_turn()
        if recorder is None:
            return
        if self._stream is not None:
            part = self._stream.partial()
            recorder.set_partial(dataclasses.replace(part, text=self._mask_secrets(part.text)))
            return
        text = self._mask_secrets(self._received.decode("utf-8", "replace"))
        try:
            recorder.set_partial(read_body(text, self._options))
        except AgentFailed:  # an answer that reports an error is the reason of the failure
            recorder.set_partial("")
        except UnreadableReply:
            recorder.set_partial(text)

    async def _exchange(self, body: Json) -> HttpResponse:
        import httpx2

        try:
            response = await self._follow(self._request(body))
        except httpx2.TimeoutException as error:
            raise self._failed(f"did not answer in time ({type(error).__name__})", diagnose(error)) from None
        except httpx2.DecodingError as error:
            raise UnreadableReply(f"the body cannot be decoded: {one_line(error)}") from None
        except (httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            raise self._failed(f"cannot be called: {one_line(error)}") from None
        except httpx2.TransportError as error:
            if self._stream is not None:
                raise self._failed(f"cut its stream off: {one_line(error)}", diagnose(error)) from None
            raise self._failed(f"could not be reached: {one_line(error)}", diagnose(error)) from None
        if response.status_code >= 400:
            # The body goes into the reason and is not part of an answer.
            self._received, self._stream = bytearray(), None
            raise self._http_error(response)
        return response

    def _request(self, body: Json) -> Any:
        client = self._own_client or self._agent.client
        if self._options.method == "GET":
            query = {name: to_text(value) for name, value in body.items() if value is not None}
            return client.build_request("GET", self._options.url, params=query)
        headers = {} if _has_header(self._options.headers, "content-type") else {"content-type": "application/json"}
        # Escaped to ASCII, because text may contain lone surrogates, which UTF-8 cannot encode.
        return client.build_request(
            self._options.method, self._options.url, content=json.dumps(body).encode(), headers=headers
        )

    async def _follow(self, request: Any) -> HttpResponse:
        """Send a request and follow redirects on the same host: no other host may see the headers with their keys."""
        client = self._own_client or self._agent.client
        for _ in range(1 + _MAX_REDIRECTS):
            response = await client.send(request, stream=True)
            try:
                following = response.next_request
                if following is None:
                    return HttpResponse(response, await self._body(response))
            finally:
                await response.aclose()
            if not _is_same_origin(request.url, following.url):
                host = following.url.host
                raise self._failed(f"redirects to another host, {host}; use that URL if you trust it")
            request = following
        raise self._failed(f"redirects more than {_MAX_REDIRECTS} times")

    async def _body(self, response: Any) -> bytes:
        self._received, self._stream = bytearray(), None
        if response.status_code >= 400 or not _is_event_stream(response.headers.get("content-type", "")):
            return await read_limited(response.aiter_bytes(), "the body", self._received)
        stream = self._stream = StreamedReply(stream_selectors(self._options))
        return await read_limited(_until_finished(response.aiter_bytes(), stream), "the stream", self._received)

    def _http_error(self, response: HttpResponse) -> AgentFailed:
        status = response.status_code
        body = to_text(response.text.strip(), _MAX_BODY_CHARS + 1)
        return self._failed(
            f"answered {status} {response.reason_phrase}".rstrip() + (f": {body}" if body else ""),
            diagnose_status(status, response.text, response.headers),
        )

    def _failed(self, message: str, diagnosis: Diagnosis = AGENT) -> AgentFailed:
        return AgentFailed(self._mask_secrets(f"{self._options.safe_url} {message}"), diagnosis=diagnosis)

    def _mask_secrets(self, text: str) -> str:
        return mask_values(text, self._options.secrets(), min_length=4)


def _is_event_stream(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


async def _until_finished(chunks: AsyncIterator[bytes], stream: StreamedReply) -> AsyncIterator[bytes]:
    """The chunks up to the one that marks the end of the answer; the service may leave the connection open."""
    async for chunk in chunks:
        yield chunk
        stream.feed(chunk)
        if stream.is_finished:
            return


def _selectors(options: HttpOptions) -> Json:
    parts = [options.text, options.tool_calls, options.call_fields, options.usage, options.state]
    return [repr(part) for part in parts]


def _has_header(headers: Mapping[str, str], name: str) -> bool:
    return any(header.lower() == name for header in headers)


_CACHE_HEADERS = ("x-cache", "cf-cache-status", "cf-aig-cache-status", "helicone-cache", "x-portkey-cache-status")
"""Headers in which caches and gateways for models say whether they repeat an earlier answer."""


def _is_from_cache(headers: Mapping[str, str]) -> bool:
    return any("hit" in headers.get(name, "").lower() for name in _CACHE_HEADERS)


def _is_same_origin(url: Any, target: Any) -> bool:
    """Whether a redirect stays on the same host and port; an upgrade from http to https does."""
    if url.host != target.host:
        return False
    if url.scheme == "http" and target.scheme == "https":
        return True
    return bool(url.scheme == target.scheme and url.port == target.port)


class HttpResponse:
    """A response with its whole body, which is within the limit of a reply."""

    def __init__(self, response: Any, body: bytes) -> None:
        self.status_code: int = response.status_code
        self.reason_phrase: str = response.reason_phrase
        self.headers: Mapping[str, str] = response.headers
        try:
            self.text = body.decode(response.charset_encoding or "utf-8", "replace")
        except (LookupError, ValueError):
            self.text = body.decode("utf-8", "replace")
