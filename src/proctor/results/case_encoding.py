"""Cases as the store keeps them, and the keys by which it knows them again.

This is the store's own encoding, apart from every file format: a format can change without the database, and what was
valid once is read back without being checked again. What is at its default is left out, unknown keys are ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from proctor.base.json_data import UNSET, Json, fingerprint, plain
from proctor.cases.files import contents_of, kind_said
from proctor.cases.matchers import Approx, Equals, Fuzzy, Ignore, Matcher, OneOf, Predicate, Regex, Subset, parse
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    NO_EXPECTATION,
    Attachment,
    Case,
    Double,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    Quarantine,
    Turn,
)
from proctor.results.case_version_2 import case_of_version_2

VERSION = 1
"""Of this encoding. A change that this reader would misread needs a new number and a migration of the database."""

dumps = json.JSONEncoder(separators=(",", ":"), default=plain).encode
"""Compact JSON in ASCII: every text survives it, lone surrogates included."""

Convert = Callable[[Any], Any]

_NO_DEFAULT = object()


class _Codec:
    """How one kind of record is written and read.

    The defaults are the encoding's own: if a class changes one of its own, what is stored still means what it meant.
    """

    def __init__(
        self,
        made: Callable[..., Any],
        required: tuple[str, ...] = (),
        optional: Mapping[str, Any] = MappingProxyType({}),
        inner: Mapping[str, tuple[Convert, Convert]] = MappingProxyType({}),
    ) -> None:
        self._made = made
        self._optional = optional
        self._decoders = {name: decode for name, (_, decode) in inner.items()}
        names = (*required, *optional)
        self._names = frozenset(names)
        self._values = attrgetter(*names)
        self._fields = [(name, optional.get(name, _NO_DEFAULT), inner.get(name, (None,))[0]) for name in names]

    def encode(self, value: Any) -> dict[str, Json]:
        data: dict[str, Json] = {}
        for (name, default, encode), given in zip(self._fields, self._values(value), strict=True):
            if given is not default and given != default:
                data[name] = given if encode is None or given is None else encode(given)
        return data

    def decode(self, data: Mapping[str, Json]) -> Any:
        given = {name: {} if default == {} else default for name, default in self._optional.items()}
        given |= {name: value for name, value in data.items() if name in self._names}
        for name, decode in self._decoders.items():
            if data.get(name) is not None:
                given[name] = decode(data[name])
        return self._made(**given)

    @property
    def both(self) -> tuple[Convert, Convert]:
        return self.encode, self.decode

    @property
    def each(self) -> tuple[Convert, Convert]:
        """For a tuple of such records."""
        return _each(self.encode), lambda items: tuple([self.decode(item) for item in items])


def _each(encode: Convert) -> Convert:
    return lambda items: [encode(item) for item in items]


TEXTS: tuple[Convert, Convert] = (list, tuple)
MAPPING: tuple[Convert, Convert] = (dict, lambda data: data)


def encode_matcher(matcher: Matcher) -> list[Json]:
    """The kind and its operands; others, also of a user's own class, as the form that they have in a file."""
    match matcher:
        case Equals():
            return ["equals", matcher.value]
        case Regex():
            return ["regex", matcher.pattern]
        case Fuzzy(ignore_punctuation=False):
            return ["fuzzy", matcher.value]
        case Approx():
            return ["approx", matcher.value, matcher.tolerance, matcher.relative]
        case Subset():
            return ["subset", matcher.value]
        case OneOf():
            return ["one_of", list(matcher.values)]
        case Ignore():
            return ["ignore"]
        case Predicate():
            return ["predicate", matcher.reference]
    return ["form", plain(matcher.to_json())]


_MATCHERS: Mapping[str, Callable[..., Matcher]] = {
    "equals": Equals,
    "regex": Regex,
    "fuzzy": Fuzzy,
    "approx": Approx,
    "subset": Subset,
    "one_of": lambda values: OneOf(tuple(values)),
    "ignore": Ignore,
    "predicate": Predicate,
    "form": parse,
}


def decode_matcher(data: list[Json]) -> Matcher:
    """The folder that a reference starts from is not kept: it names a machine. The working folder is taken."""
    kind, *operands = data
    return _MATCHERS[kind](*operands)


_ARGUMENTS: tuple[Convert, Convert] = (
    lambda arguments: {name: encode_matcher(matcher) for name, matcher in arguments.items()},
    lambda data: {name: decode_matcher(item) for name, item in data.items()},
)
_KEYWORDS = _Codec(Keywords, optional={"any_of": (), "all_of": ()}, inner={"any_of": TEXTS, "all_of": TEXTS})
_CALL = _Codec(
    ExpectedCall,
    ("name",),
    {"arguments": None, "count": 1, "substring": False, "extra_arguments": False, "result": UNSET},
    {"arguments": _ARGUMENTS},
)
_EXPECTED = _Codec(
    Expected,
    optional={"output": UNSET, "keywords": None, "tool_calls": None, "context": None},
    inner={"keywords": _KEYWORDS.both, "tool_calls": _CALL.each, "context": TEXTS},
)
_SPEC = _Codec(
    EvaluatorSpec,
    ("name",),
    {
        "arguments": {},
        "threshold": None,
        "label": None,
        "gates": True,
        "scope": None,
        "output": None,
        "timeout": None,
        "path": None,
        "retries": 0,
        "optional": False,
    },
    {"arguments": MAPPING},
)
_ATTACHMENT = _Codec(
    Attachment,
    optional={"path": None, "url": None, "kind": None, "description": None, "options": {}},
    inner={"options": MAPPING},
)
_DOUBLE = _Codec(
    Double,
    optional={"arguments": None, "result": None, "error": None, "delay": 0.0, "times": None},
    inner={"arguments": _ARGUMENTS},
)
_SCENARIO = _Codec(
    Scenario,
    ("start", "plan", "max_turns", "stop"),
    {"persona": None, "model": None, "instructions": "", "show_tools": False},
)
_QUARANTINE = _Codec(Quarantine, ("reason", "until"), {"owner": None})
_TURN = _Codec(
    Turn,
    ("input",),
    {
        "expected": NO_EXPECTATION,
        "evaluators": None,
        "retrieval_context": None,
        "attachments": (),
        "metadata": {},
        "extra": {},
    },
    {
        "expected": _EXPECTED.both,
        "evaluators": _SPEC.each,
        "retrieval_context": TEXTS,
        "attachments": _ATTACHMENT.each,
        "metadata": MAPPING,
        "extra": MAPPING,
    },
)
_ENCODE_DOUBLES, _DECODE_DOUBLES = _DOUBLE.each
_CASE = _Codec(
    Case,
    ("id", "turns"),
    {
        "description": "",
        "tags": (),
        "evaluators": None,
        "inputs": (),
        "metadata": {},
        "state": {},
        "final_state": None,
        "repeat": None,
        "timeout": None,
        "skip": None,
        "extra": {},
        "doubles": {},
        "scenario": None,
        "quarantine": None,
    },  # not `position`: a case that moved in its file is the same case
    {
        "turns": _TURN.each,
        "tags": TEXTS,
        "evaluators": _SPEC.each,
        "inputs": (
            _each(lambda item: [item.name, item.value]),
            lambda pairs: tuple([NamedData(name, value) for name, value in pairs]),
        ),
        "metadata": MAPPING,
        "state": MAPPING,
        "final_state": MAPPING,
        "extra": MAPPING,
        "doubles": (
            lambda doubles: {tool: _ENCODE_DOUBLES(items) for tool, items in doubles.items()},
            lambda data: {tool: _DECODE_DOUBLES(items) for tool, items in data.items()},
        ),
        "scenario": _SCENARIO.both,
        "quarantine": _QUARANTINE.both,
    },
)


def encode_case(case: Case) -> str:
    """The whole case as text, in the order its author gave it."""
    return dumps({"v": VERSION, **_CASE.encode(case)})


def decode_case(content: str) -> Case:
    """The case that was kept; also one that a program older than this encoding added to an open database."""
    data = json.loads(content)
    if "v" not in data:
        return case_of_version_2(data)
    case: Case = _CASE.decode(data)
    return case


def case_key(content: str) -> str:
    """The address of a case's content: changes whenever anything in the case changes."""
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def planned_key(case: Case) -> str:
    """The key of a case as it was planned, before a simulated user made a conversation of it."""
    return case_key(encode_case(case.as_planned))


CONTENT = ("inputs", "metadata", "state", "final_state", "extra", "doubles", "scenario")
"""What beside the turns makes a case the same case: not its name, its tags, nor how often and by what it is scored."""


def content_key(case: Case) -> str:
    """Changes when the agent is asked something else or something else is expected of it; a new name is no change."""
    data = _CASE.encode(case.as_planned)
    turns = [{name: value for name, value in turn.items() if name not in _NOT_ASKED} for turn in data["turns"]]
    return fingerprint(question_key(case), plain(turns), {name: plain(data[name]) for name in CONTENT if name in data})


_NOT_ASKED = frozenset({"evaluators", "attachments"})
"""Of a turn: evaluators have a key of their own, and the question's key knows files by their content."""


def question_key(case: Case) -> str:
    """Changes only when the agent would be asked something else: expectations and evaluators do not count."""
    planned = case.as_planned
    turns = [[turn.input, _files(turn)] for turn in planned.turns]
    asked: list[Json] = [turns, [[item.name, item.value] for item in case.inputs], dict(case.state)]
    if case.doubles:
        asked.append({tool: _ENCODE_DOUBLES(items) for tool, items in case.doubles.items()})
    if case.scenario is not None:
        asked.append(_SCENARIO.encode(case.scenario))
    return fingerprint(*asked)


def _files(turn: Turn) -> list[Json]:
    """Files by their content, not their place; by their address where the content is not known."""
    if not turn.attachments:
        return []
    return [
        [
            item.path if content is None else f"content:{content}",
            item.url,
            kind_said(item),
            item.description,
            plain(item.options),
        ]
        for item, content in zip(turn.attachments, contents_of(turn), strict=True)
    ]
