"""The retrieval context of an answer: what the suite's retrieval tools returned.

A turn that retrieves nothing gets the passages of the earlier turns of its conversation, because the agent still has
them. If the agent reports its own retrieval context, or the suite has no retrieval tools, replies stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import Json, parse_json_or_keep, to_text


def with_passages(replies: Sequence[Reply], retrieval_tools: Sequence[str]) -> tuple[Reply, ...]:
    """The replies of one conversation, each with its retrieval context."""
    if not retrieval_tools:
        return tuple(replies)
    earlier: list[str] = []
    replies_with_context = []
    for reply in replies:
        if reply.retrieval_context is None:
            passages = passages_in(reply.tool_calls, retrieval_tools)
            earlier += [passage for passage in passages if passage not in earlier]
            reply = replace(reply, retrieval_context=tuple(passages or earlier) or None)
        replies_with_context.append(reply)
    return tuple(replies_with_context)


def passages_in(calls: Iterable[ToolCall], retrieval_tools: Sequence[str]) -> list[str]:
    """The passages that retrieval tools returned: a string, each item of a list, the `text` of an item that has one."""
    passages: list[str] = []
    for call in calls:
        if call.error is None and any(fnmatchcase(call.name, pattern) for pattern in retrieval_tools):
            result = _as_data(call.result)
            items = result if isinstance(result, list) else [result]
            passages += [text for text in map(_as_passage, items) if text]
    return passages


def _as_data(result: Json) -> Json:
    """The result, parsed if it is a JSON list: some SDKs return only text."""
    return parse_json_or_keep(result) if isinstance(result, str) and result.startswith("[") else result


def _as_passage(item: Json) -> str:
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return str(item["text"])
    return "" if item is None else item if isinstance(item, str) else to_text(item)
