"""Reads the body of an HTTP answer as a Reply, by the selectors that were given or in the usual places."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from proctor.agents.http_options import HttpOptions
from proctor.agents.model import Reply, ToolCall, Usage
from proctor.agents.replies import WORDS, read_envelope, read_words, to_reply
from proctor.agents.selectors import Selector
from proctor.agents.tool_calls import is_list, to_tool_call, to_usage
from proctor.cases.fields import kind
from proctor.cases.model import UNSET, Unset
from proctor.errors import UnreadableReply
from proctor.plain import Json, plain, show


def read_body(body: str, options: HttpOptions) -> Reply:
    """The reply in `body`; raises `UnreadableReply` that says what was looked for and what is there."""
    try:
        data = plain(json.loads(body))
    except RecursionError:
        raise UnreadableReply("the answer is nested too deeply to be read") from None
    except ValueError:
        return _read_text(body, options)
    reply = _read_default(data) if options.text is None else read_envelope(data) or Reply(raw=data)
    if options.text is not None:
        text, structured = read_words(_select(options.text, data, "text"))
        reply = dataclasses.replace(reply, text=text, structured=structured)
    if options.tool_calls is not None:
        reply = dataclasses.replace(reply, tool_calls=_tool_calls(data, options.tool_calls, options.call_fields))
    if options.usage is not None:
        reply = dataclasses.replace(reply, usage=_usage(data, options.usage))
    if options.state is not None:
        reply = dataclasses.replace(reply, state=_state(data, options.state))
    return reply


def _read_text(body: str, options: HttpOptions) -> Reply:
    """A body that is no JSON is the answer itself, unless somebody said where in the JSON the answer is."""
    wanted = [s for s in (options.text, options.tool_calls, options.state) if s is not None and not s.optional]
    if wanted:
        raise UnreadableReply(f"looked for {wanted[0].text} but the answer is not JSON: {show(body.strip(), 300)}")
    return Reply(body)


def _read_default(data: Json) -> Reply:
    if not isinstance(data, Mapping):
        return to_reply(data)
    reply = read_envelope(data)
    if reply is None:
        places = ", ".join((*WORDS, "choices[0].message.content"))
        raise UnreadableReply(f"looked for {places} but there is {_shape(data)}; say where the words are with 'text'")
    return reply


def _select(selector: Selector, data: Json, what: str) -> Json:
    found = selector.find(data)
    if isinstance(found, Unset):
        if selector.optional:
            return None
        hint = f"; write {selector.text}? if it may be missing"
        raise UnreadableReply(f"looked for {what} at {selector.text} but there is {_shape(data)}{hint}")
    return found


def _shape(data: Json) -> str:
    if isinstance(data, Mapping):
        return f"only {', '.join(str(key) for key in list(data)[:20])}" if data else "an empty object"
    return kind(data)


def _tool_calls(data: Json, selector: Selector, fields: Mapping[str, Selector]) -> tuple[ToolCall, ...]:
    found = _select(selector, data, "tool calls")
    if found is None:
        return ()
    if not is_list(found):
        raise UnreadableReply(f"looked for a list of tool calls at {selector.text} but there is {kind(found)}")
    calls = []
    for index, item in enumerate(found, 1):
        values = {name: inner.find(item) for name, inner in fields.items()}
        if values.get("name", "") is UNSET:
            looked = fields["name"].text
            raise UnreadableReply(f"looked for the name of tool call {index} at {looked} but there is {_shape(item)}")
        known = {name: None if value is UNSET else value for name, value in values.items()}
        calls.append(to_tool_call(item, f"tool call {index}", known))
    return tuple(calls)


def _usage(data: Json, usage: Selector | Mapping[str, Selector]) -> Usage | None:
    """Token counts that are not there are not known; they never make an answer unreadable."""
    if isinstance(usage, Selector):
        found = usage.find(data)
    else:
        found = {name: selector.find(data) for name, selector in usage.items()}
    return None if found is UNSET else to_usage(found)


def _state(data: Json, selector: Selector) -> Mapping[str, Json] | None:
    found = _select(selector, data, "the state")
    if found is None or isinstance(found, Mapping):
        return found
    raise UnreadableReply(f"looked for the state at {selector.text} but there is {kind(found)} instead of an object")
