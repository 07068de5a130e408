"""Converts cases of store versions 1 and 2 to the encoding of version 3.

Those versions stored a case in the native file format of their time. This code uses no current classes, so that its
result stays the same however they change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Json = Any

_CASE_KEYS = frozenset(
    (
        "id description tags skip inputs metadata state final_state scenario turns input expected retrieval_context"
        " files evaluators repeat timeout doubles"
    ).split()
)
_TURN_KEYS = frozenset(("input", "expected", "retrieval_context", "files", "evaluators", "metadata"))
_ATTACHMENT_KEYS = {"path": "path", "url": "url", "type": "kind", "description": "description"}
_SPEC_KEYS = {
    "threshold": "threshold",
    "name": "label",
    "gate": "gates",
    "scope": "scope",
    "output": "output",
    "timeout": "timeout",
    "output_path": "path",
    "retries": "retries",
    "optional": "optional",
}
_SPEC_DEFAULTS = {"gates": True, "retries": 0, "optional": False}

_dumps = json.JSONEncoder(separators=(",", ":")).encode


def encode_version_2_case(content: str) -> tuple[str, str, str]:
    """The encoding of a case in version 3: its text, its key, and the key of the case as it was planned."""
    case = case_of_version_2(json.loads(content))
    text = _dumps(case)
    planned = case
    if "scenario" in case:  # its turns are those of the simulated conversation
        planned = {**case, "turns": [{"input": case["scenario"]["start"]}]}
    return text, _key(text), _key(_dumps(planned))


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def case_of_version_2(data: Mapping[str, Json]) -> dict[str, Json]:
    """The case as version 3 encodes it: keys in this order, without defaults."""
    scenario = _scenario(data["scenario"]) if "scenario" in data else None
    final_state = data.get("final_state")
    return {
        "v": 1,
        "id": data["id"],
        "turns": _turns(data, scenario),
        **_set("description", data.get("description")),
        **_set("tags", data.get("tags")),
        **_specs(data.get("evaluators")),
        **_set("inputs", [[name, value] for name, value in data.get("inputs", {}).items()]),
        **_set("metadata", data.get("metadata")),
        **_set("state", data.get("state")),
        **({} if final_state is None else {"final_state": final_state}),
        **{name: data[name] for name in ("repeat", "timeout", "skip") if data.get(name) is not None},
        **_set("extra", {name: value for name, value in data.items() if name not in _CASE_KEYS}),
        **_set("doubles", {tool: _doubles(items) for tool, items in data.get("doubles", {}).items()}),
        **({} if scenario is None else {"scenario": scenario}),
    }


def _set(name: str, value: Json) -> dict[str, Json]:
    """The entry, unless the value is empty."""
    return {name: value} if value else {}


def _scenario(data: Mapping[str, Json]) -> dict[str, Json]:
    first = {"start": data["start"], "plan": data["plan"]}
    limits = {"max_turns": data.get("max_turns", 20), "stop": data.get("stop", "</finished>")}
    rest = {name: data[name] for name in ("persona", "model") if data.get(name) is not None}
    return first | limits | rest | _set("instructions", data.get("instructions")) | _flag(data, "show_tools")


def _flag(data: Mapping[str, Json], name: str, stored: str = "") -> dict[str, Json]:
    return {stored or name: True} if data.get(name) else {}


def _turns(data: Mapping[str, Json], scenario: Mapping[str, Json] | None) -> list[dict[str, Json]]:
    if "turns" in data:
        return [_turn(turn) for turn in data["turns"]]
    if scenario is not None:
        return [{"input": scenario["start"]}]
    own = {name: data[name] for name in ("input", "expected", "retrieval_context", "files") if name in data}
    return [_turn(own)]


def _turn(data: Mapping[str, Json]) -> dict[str, Json]:
    context = data.get("retrieval_context")
    return {
        "input": data["input"],
        **_set("expected", _expected(data["expected"]) if "expected" in data else {}),
        **_specs(data.get("evaluators")),
        **({} if context is None else {"retrieval_context": context}),
        **_set("attachments", [_attachment(item) for item in data.get("files", ())]),
        **_set("metadata", data.get("metadata")),
        **_set("extra", {name: value for name, value in data.items() if name not in _TURN_KEYS}),
    }


def _expected(data: Json) -> dict[str, Json]:
    if not isinstance(data, Mapping):
        return {"output": data}
    words, tools, context = data.get("contains"), data.get("tools"), data.get("context")
    keywords = (
        {} if words is None else {"keywords": _set("any_of", words.get("any")) | _set("all_of", words.get("all"))}
    )
    return {
        **({"output": data["output"]} if "output" in data else {}),
        **keywords,
        **({} if tools is None else {"tool_calls": [_call(tool) for tool in tools]}),
        **({} if context is None else {"context": context}),
    }


def _call(data: Json) -> dict[str, Json]:
    if isinstance(data, str):
        return {"name": data}
    return {
        "name": data["name"],
        **_arguments(data.get("args")),
        **({"count": data["count"]} if data.get("count", 1) != 1 else {}),
        **_flag(data, "substring"),
        **_flag(data, "extra_args", "extra_arguments"),
        **({"result": data["result"]} if "result" in data else {}),
    }


def _arguments(data: Mapping[str, Json] | None) -> dict[str, Json]:
    return {} if data is None else {"arguments": {name: _matcher(value) for name, value in data.items()}}


def _matcher(value: Json) -> list[Json]:
    """The kind of a matcher and its operands; those versions had matchers only on the first level."""
    match value:
        case {"$equals": operand, **rest} if not rest:
            return ["equals", operand]
        case {"$regex": str(pattern), **rest} if not rest:
            return ["regex", pattern]
        case {"$fuzzy": operand, **rest} if not rest:
            return ["fuzzy", operand]
        case {"$approx": int() | float() as number, **rest} if rest.keys() <= {"tolerance", "relative"}:
            options: dict[Any, Any] = {"tolerance": 1e-6, "relative": 0.0} | rest
            return ["approx", float(number), float(options["tolerance"]), float(options["relative"])]
        case {"$one_of": list(operands), **rest} if not rest:
            return ["one_of", operands]
        case {"$subset": operand, **rest} if not rest:
            return ["subset", operand]
        case {"$ignore": True, **rest} if not rest:
            return ["ignore"]
        case {"$predicate": str(reference), **rest} if not rest:
            return ["predicate", reference]
    return ["equals", value]


def _attachment(data: Mapping[str, Json]) -> dict[str, Json]:
    known = {stored: data[name] for name, stored in _ATTACHMENT_KEYS.items() if data.get(name) is not None}
    return known | _set("options", {name: value for name, value in data.items() if name not in _ATTACHMENT_KEYS})


def _doubles(data: Json) -> list[dict[str, Json]]:
    items = data if isinstance(data, list) else [data]
    return [
        {
            **_arguments(item.get("args")),
            **{name: item[name] for name in ("result", "error") if item.get(name) is not None},
            **_set("delay", item.get("delay")),
            **({"times": item["times"]} if item.get("times") is not None else {}),
        }
        for item in items
    ]


def _specs(data: list[Json] | None) -> dict[str, Json]:
    """The evaluators; `["..."]` stands for a case that inherits them."""
    return {} if data is None or data == ["..."] else {"evaluators": [_spec(item) for item in data]}


def _spec(data: Json) -> dict[str, Json]:
    if isinstance(data, str):
        return {"name": data}
    [(name, options)] = data.items()
    known = {stored: options[key] for key, stored in _SPEC_KEYS.items() if options.get(key) is not None}
    known = {key: value for key, value in known.items() if _SPEC_DEFAULTS.get(key) != value}
    order = ("threshold", "label", "gates", "scope", "output", "timeout", "path", "retries", "optional")
    rest = {key: value for key, value in options.items() if key not in _SPEC_KEYS}
    return {"name": name, **_set("arguments", rest), **{key: known[key] for key in order if key in known}}
