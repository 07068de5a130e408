"""The callback handler that a run is given: it notes what the model asked for, what it cost, and what tools did."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proctor.agents.frameworks.sessions import CallLog
from proctor.agents.model import ToolCall, Usage
from proctor.cases.model import NOTHING
from proctor.plain import Json, plain


class Noted:
    """A tool call while it lasts."""

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments if isinstance(arguments, dict) else {}
        self.result: Any = None


@functools.cache
def watcher_class() -> type[Any]:
    """Made when LangChain is there. It is told of model calls by the framework, and of tools by those who run them."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Watcher(BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True

        def __init__(self) -> None:
            self.log = CallLog()
            self.asked: dict[str, Any] = {}
            """By id: what the model wrote, which a graph may have filled up with things of its own before it is run."""

        def on_llm_end(self, response: Any, **_: Any) -> None:
            message = getattr(response.generations[0][0], "message", None)
            spent = getattr(message, "usage_metadata", None)
            if spent:
                self.log.spend(Usage(spent["input_tokens"], spent["output_tokens"], model_calls=1))
            else:
                self.log.spend(Usage(model_calls=1))
            for call in _requests(message):
                self.asked.setdefault(str(call["id"]), call)

        @contextmanager
        def noting(self, name: str, given: Any, call_id: str | None) -> Iterator[Noted]:
            asked = self.asked.get(str(call_id))
            call = Noted(given if asked is None else asked["args"])
            key = self.log.begin(call_id, name, given if asked is None else asked["args"])
            try:
                yield call
            except BaseException as error:
                self.log.end(key, error=error)
                raise
            failed = getattr(call.result, "status", None) == "error"
            told = tool_result(call.result)
            self.log.end(key, None if failed else told, str(told) if failed else None)

        def all_calls(self, messages: list[Any], structured: Json = None) -> tuple[ToolCall, ...]:
            """The calls that tools were run for, then those that only the model and the messages know of."""
            seen = {call.id for call in self.log.calls}
            answers = {m.tool_call_id: m for m in messages if getattr(m, "type", "") == "tool"}
            unseen = [call for key, call in self.asked.items() if key not in seen]
            # An answer with a schema comes as a call of the schema; it is the answer and no use of a tool.
            unseen = [call for call in unseen if structured is None or call["args"] != structured]
            return (*self.log.calls, *(_unrun(call, answers.get(call["id"])) for call in unseen))

    return Watcher


def _requests(message: Any) -> list[Any]:
    """Calls in good order, and calls whose arguments are no JSON."""
    return [*(getattr(message, "tool_calls", None) or ()), *(getattr(message, "invalid_tool_calls", None) or ())]


def _unrun(call: Any, answer: Any) -> ToolCall:
    told = None if answer is None else tool_result(answer)
    failed = call.get("error") or (str(told) if getattr(answer, "status", None) == "error" else None)
    arguments = plain(call["args"]) or NOTHING
    return ToolCall.parse(call["name"], arguments, result=None if failed else told, error=failed, id=call["id"])


def tool_result(value: Any) -> Json:
    """What a tool gave. The framework makes text of data for the model; where that text is JSON, it is read again."""
    content = getattr(value, "content", value)
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return plain(json.loads(content))
        except (ValueError, RecursionError):
            return content
    return plain(getattr(value, "update", content) if type(value).__name__ == "Command" else content)
