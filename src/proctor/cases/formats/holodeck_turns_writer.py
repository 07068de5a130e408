"""Writes one turn as HoloDeck says it, and says what it has no word for."""

from __future__ import annotations

from proctor.cases.formats.holodeck_turns import FILE_TYPES, MATCHER_KEYS, MOST_FILES
from proctor.cases.matchers import Equals, Fuzzy, Matcher, Regex
from proctor.cases.model import UNSET, Attachment, ExpectedCall, Turn
from proctor.plain import Json, plain, show


def write_turn(where: str, turn: Turn, losses: list[str]) -> dict[str, Json]:
    """Everything of a turn but what scores it."""
    data: dict[str, Json] = {"input": _text(where, "input", turn.input, losses)}
    if turn.expected.output is None:
        losses.append(f"{where}: that no answer is expected cannot be expressed")
    elif turn.expected.output is not UNSET:
        data["ground_truth"] = _text(where, "ground_truth", turn.expected.output, losses)
    if turn.expected.tool_calls:
        data["expected_tools"] = [_expected_call(where, call, losses) for call in turn.expected.tool_calls]
    elif turn.expected.tool_calls is not None:
        losses.append(f"{where}: that no tool is expected cannot be expressed")
    if turn.retrieval_context:
        data["retrieval_context"] = list(turn.retrieval_context)
    files = [_file(where, attachment, losses) for attachment in turn.attachments]
    if files:
        data["files"] = files
    if len(files) > MOST_FILES:
        losses.append(f"{where}: HoloDeck takes at most {MOST_FILES} files")
    unsaid = {"expected keywords": turn.expected.keywords, "expected context": turn.expected.context}
    losses.extend(f"{where}: {name} cannot be expressed" for name, value in unsaid.items() if value is not None)
    data |= {key: plain(value) for key, value in turn.extra.items() if key.startswith("x-")}
    losses.extend(f"{where}: {key!r} cannot be expressed" for key in turn.extra if not key.startswith("x-"))
    return data


def _text(where: str, name: str, value: Json, losses: list[str]) -> str:
    text = show(plain(value))
    if not isinstance(value, str):
        losses.append(f"{where}: its {name} is not text; it is written as JSON text")
    elif not text.strip():
        losses.append(f"{where}: a blank {name} cannot be expressed; the file is not valid until it is filled in")
    return text


def _expected_call(where: str, call: ExpectedCall, losses: list[str]) -> Json:
    place = f"{where}: expected tool {call.name!r}"
    unsaid = {
        "that its name must match in full": not call.substring,
        "that there be no other arguments": call.arguments is not None and not call.extra_arguments,
        "its result": call.result is not UNSET,
    }
    losses.extend(f"{place}: {what} cannot be expressed" for what, given in unsaid.items() if given)
    if call.arguments is None and call.count == 1:
        return call.name
    data: dict[str, Json] = {"name": call.name}
    if call.arguments is not None:
        written = {name: _matcher(matcher) for name, matcher in call.arguments.items()}
        losses.extend(f"{place}: argument {name!r} cannot be expressed" for name, form in written.items() if not form)
        data["args"] = {name: form[0] for name, form in written.items() if form}
    if call.count != 1:
        data["count"] = call.count
    return data


def _matcher(matcher: Matcher) -> tuple[Json, ...]:
    """The one form of a matcher, or none."""
    match matcher:
        case Regex(pattern=pattern):
            return ({"regex": pattern},)
        case Fuzzy(value=value) if value is not None and not isinstance(value, (dict, list)):
            return ({"fuzzy": plain(value)},)
        case Equals(value=value) if not isinstance(value, dict) or MATCHER_KEYS.isdisjoint(value):
            return (plain(value),)
        case _:
            return ()


def _file(where: str, attachment: Attachment, losses: list[str]) -> dict[str, Json]:
    name = attachment.path or attachment.url
    if attachment.kind not in FILE_TYPES:
        losses.append(f"{where}: file {name!r} is of no type HoloDeck knows; 'text' is written")
    data: dict[str, Json] = {
        "path": attachment.path,
        "url": attachment.url,
        "type": attachment.kind if attachment.kind in FILE_TYPES else "text",
        "description": attachment.description,
    }
    known = {key: plain(attachment.options[key]) for key in _OPTIONS if key in attachment.options}
    losses.extend(
        f"{where}: option {key!r} of file {name!r} cannot be expressed"
        for key in attachment.options
        if key not in known
    )
    return {key: value for key, value in (data | known).items() if value is not None}


_OPTIONS = ("pages", "sheet", "range", "cache")
