"""The JSON that programs and services exchange with Proctor: what a turn is sent as, and how an answer is read.

A turn is sent with everything a program may need: the conversation so far, and the state, user and app of the case. An
answer is JSON of any shape that `reply_reader` knows. An answer with `error` says that there is none, and why:

    {"error": "no flights found"}                                           the agent failed
    {"error": {"message": "quota used up", "infrastructure": true}}         not the agent's fault
    {"error": {"message": "try again", "retry_after": 5}}                   not its fault, and worth a retry

An answer says which tools were called in `tool_calls`, which is `[]` if none were. Without it, nobody knows. With
`"from_cache": true` it says that it repeats an earlier answer, which the gate then does not count.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from proctor.agents.conversation import Conversation
from proctor.agents.reply import HiddenCalls, Reply
from proctor.agents.reply_reader import to_reply
from proctor.agents.trial_context import trial_number
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.infrastructure import diagnose_code, diagnose_status
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import Turn

REPORT_CALLS = 'add "tool_calls" to each reply, with [] for none'
"""What to do about a reply that does not say which tools were called."""
_JSON_START = re.compile(r'\{\s*("|\Z)|\[\s*([\[{"\d-]|true|false|null|\Z)')
"""How a JSON object or list begins, unlike a text in brackets: `[see below]`."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def turn_values(conversation: Conversation, turn: Turn) -> dict[str, Json]:
    """The turn and its conversation as JSON. The user and the app are only present if the case names them."""
    case, history, turn_input = conversation.case, conversation.messages(), to_json(turn.input)
    return {
        "input": turn_input,
        "history": history,
        "messages": [*history, {"role": "user", "content": turn_input}],
        "state": to_json(conversation.state),
        "session_id": conversation.id,
        "turn": len(conversation.history),
        "trial": trial_number(),
        "case": {
            "id": case.id,
            "description": case.description,
            "tags": list(case.tags),
            "metadata": to_json(case.metadata),
        },
        **conversation.names,
    }


def turn_line(conversation: Conversation, turn: Turn, number: int) -> bytes:
    """The turn as the line that a program reads; `number` is the `id` of the request."""
    values = turn_values(conversation, turn)
    keys = ("input", "history", "state", "session_id", "turn", "trial", "user_id", "app_name")
    message = {"id": number, **{key: values.get(key) for key in keys}, "case_id": conversation.case.id}
    return json.dumps(message).encode() + b"\n"


def read_answer(data: Json) -> Reply:
    """The reply that the answer of a program means; raises `AgentFailed` if it reports an error."""
    check_error(data)
    reply = to_reply(to_json(data))
    if isinstance(data, Mapping) and data.get("from_cache") is True:
        reply = dataclasses.replace(reply, from_cache=True)
    return with_unreported_calls(reply, REPORT_CALLS)


def with_unreported_calls(reply: Reply, fix: str) -> Reply:
    """The reply of a program or service, marked as incomplete if it does not say which tools were called."""
    if reply.reports_calls or reply.tool_calls:
        return reply
    reason = "the agent's reply does not say which tools were called"
    return dataclasses.replace(reply, hidden_calls=HiddenCalls(reason, fix))


def check_error(data: Json) -> None:
    """Raise `AgentFailed` if a JSON answer reports an error; an `error` that is null, false or empty is none."""
    error = data.get("error") if isinstance(data, Mapping) else None
    if not error:
        return
    if not isinstance(error, Mapping):
        raise AgentFailed("the agent reports an error" if error is True else to_text(error))
    message = error.get("message")
    retry_after = error.get("retry_after")
    is_number = isinstance(retry_after, (int, float)) and not isinstance(retry_after, bool)
    reason = message if isinstance(message, str) and message.strip() else to_text(dict(error))
    status = next((error[key] for key in ("status", "code") if isinstance(error.get(key), int)), None)
    diagnosis = diagnose_status(status, to_json(error))
    if status is None:
        codes = [diagnose_code(error.get(key)) for key in ("code", "type")]
        diagnosis = next((known for known in codes if not known.is_agent), diagnosis)
    if not is_number and not diagnosis.is_agent:
        raise AgentFailed(reason, diagnosis=diagnosis)
    raise AgentFailed(
        reason,
        infrastructure=error.get("infrastructure") is True,
        transient=is_number,
        retry_after=retry_after if is_number else None,
    )


def parse_answer(text: str) -> Any:
    """The JSON of an answer, or the text itself if it is not JSON; raises `UnreadableReply` if JSON breaks off."""
    if not text.startswith(("{", "[", '"')):
        return text
    try:
        return json.loads(text)
    except RecursionError:
        raise UnreadableReply("the answer is nested too deeply to be read") from None
    except ValueError:
        if breaks_off(text):
            raise UnreadableReply(f"the answer breaks off in the middle of its JSON: {to_text(text, 300)}") from None
        return text


def breaks_off(text: str) -> bool:
    """Whether the text is the beginning of a JSON object or list whose end is missing."""
    if _JSON_START.match(text) is None:
        return False
    rest = _STRING.sub("", text)
    return '"' in rest or sum(rest.count(open_) - rest.count(close) for open_, close in ("{}", "[]")) > 0
