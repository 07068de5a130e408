"""Which passages an answer rests on: what the suite's retrieval tools returned.

A turn that retrieves nothing rests on what earlier turns of the same conversation retrieved, because the agent still
has it. What an agent says itself about its passages is left alone, and so is a reply of a suite without such tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from proctor.agents.reply import Reply, ToolCall
from proctor.base.json_data import Json, parse_json_or_keep, to_text


def with_passages(replies: Sequence[Reply], retrieval_tools: Sequence[str]) -> tuple[Reply, ...]:
    """The replies of one conversation, each with the passages that its answer may rest on."""
    if not retrieval_tools:
        return tuple(replies)
    earlier: list[str] = []
    found = []
    for reply in replies:
        if reply.retrieval_context is None:
            passages = passages_in(reply.tool_calls, retrieval_tools)
            earlier += [passage for passage in passages if passage not in earlier]
            reply = replace(reply, retrieval_context=tuple(passages or earlier) or None)
        found.append(reply)
    return tuple(found)


def passages_in(calls: Iterable[ToolCall], retrieval_tools: Sequence[str]) -> list[str]:
    """What retrieval tools returned: a text as it is, each item of a list, the `text` of an item that has one."""
    found: list[str] = []
    for call in calls:
        if call.error is None and any(fnmatchcase(call.name, pattern) for pattern in retrieval_tools):
            result = _as_data(call.result)
            items = result if isinstance(result, list) else [result]
            found += [text for text in map(_as_passage, items) if text]
    return found


def _as_data(result: Json) -> Json:
    """Some SDKs pass on nothing but text, in which a list of passages is JSON."""
    return parse_json_or_keep(result) if isinstance(result, str) and result.startswith("[") else result


def _as_passage(item: Json) -> str:
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return str(item["text"])
    return "" if item is None else item if isinstance(item, str) else to_text(item)
