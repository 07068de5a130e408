"""Cases as JSON text, as the store and exported runs have them.

This encoding is independent of the file formats, so that a format can change without the store, and a stored case is
read back without being validated again. The keys of a case (`identity.py`) are computed from this text: a test pins the
text of every class in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from proctor.base.dataclass_json import DataclassCodec, Hook
from proctor.base.json_data import Json, to_json
from proctor.cases.matchers import (
    Approx,
    Equals,
    Fuzzy,
    Ignore,
    Matcher,
    OneOf,
    Predicate,
    PythonMatcher,
    Regex,
    Subset,
    parse,
)
from proctor.cases.scenario import Scenario
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, NamedData, ToolMock, Turn

VERSION = 1
"""The version of this encoding. A change that `decode_case` would misread needs a new one and a migration."""

dumps = json.JSONEncoder(separators=(",", ":"), default=to_json).encode
"""Compact JSON in ASCII, which can represent any string, even one with lone surrogates."""


def encode_matcher(matcher: Matcher) -> list[Json]:
    """The kind of a matcher and its operands; for other kinds, and classes of users, the form used in files."""
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
        case PythonMatcher():
            return ["python", matcher.text, matcher.fingerprint, matcher.reference]
    return ["form", to_json(matcher.to_json())]


_MATCHERS: Mapping[str, Callable[..., Matcher]] = {
    "equals": Equals,
    "regex": Regex,
    "fuzzy": Fuzzy,
    "approx": Approx,
    "subset": Subset,
    "one_of": lambda values: OneOf(tuple(values)),
    "ignore": Ignore,
    "predicate": Predicate,
    "python": PythonMatcher,
    "form": parse,
}


def decode_matcher(data: list[Json]) -> Matcher:
    """The matcher. Its references are relative to the working folder, because the suite's folder is not stored."""
    kind, *operands = data
    return _MATCHERS[kind](*operands)


def _encode_scenario(scenario: Scenario) -> dict[str, Json]:
    """All limits of the conversation, also defaults, in this order: the keys of cases depend on it."""
    first = {name: getattr(scenario, name) for name in ("start", "plan", "max_turns", "stop")}
    return first | _SCENARIO.encode(scenario)


_SCENARIO = DataclassCodec()


def _evaluator_codec(*, strict: bool) -> DataclassCodec:
    return DataclassCodec(
        skip={EvaluatorSpec: ["position", "argument_positions"]},
        stored_names={EvaluatorSpec: {"output_path": "path"}},
        strict=strict,
    )


_EVALUATOR = _evaluator_codec(strict=False)


def _encode_evaluator(spec: EvaluatorSpec) -> dict[str, Json]:
    """Stored with `gates`, the opposite of `report_only`, as before that field was renamed."""
    data = _EVALUATOR.encode(spec)
    return dict(("gates", not value) if name == "report_only" else (name, value) for name, value in data.items())


def _decode_evaluator(data: Mapping[str, Json], codec: DataclassCodec | None = None) -> EvaluatorSpec:
    return (codec or _EVALUATOR).decode(EvaluatorSpec, {**data, "report_only": not data.get("gates", True)})


HOOKS = {
    Matcher: Hook(encode_matcher, decode_matcher),
    NamedData: Hook(lambda item: [item.name, item.value], lambda pair: NamedData(*pair)),
    EvaluatorSpec: Hook(_encode_evaluator, _decode_evaluator),
    Scenario: Hook(_encode_scenario, lambda data: _SCENARIO.decode(Scenario, data)),
}

STORED_NAMES: Mapping[type, Mapping[str, str]] = {
    Keywords: {"any": "any_of", "all": "all_of"},
    ExpectedCall: {"args": "arguments", "extra_args": "extra_arguments"},
    Expected: {"contains": "keywords", "tools": "tool_calls"},
    ToolMock: {"args": "arguments"},
    Turn: {"files": "attachments"},
    Case: {"mocks": "doubles"},
}
"""Renamed fields are stored under their first names, so that stored cases can be read, and a case keeps the keys by
which baselines and stored answers are found."""

CODEC = DataclassCodec(hooks=HOOKS, skip={Case: ["position"]}, stored_names=STORED_NAMES)
"""Positions are not written: a case that moved in its file is the same case."""
CODEC.prepare(Case)


def encode_case(case: Case) -> str:
    """The case as text. Its keys are in the order of the fields, and users' data in its own order."""
    return dumps({"v": VERSION, **CODEC.encode(case)})


def decode_case(content: str) -> Case:
    """The case that `encode_case` wrote, with complete lists of evaluators; raises `ValueError` for anything else."""
    return _decode_case(json.loads(content), CODEC)


def decode_foreign_case(data: Json) -> Case:
    """A case in a file that may come from anywhere: the types of all values are checked.

    Raises `ValueError` or `TypeError` if it is not a case.
    """
    case = _decode_case(data, _STRICT_CODEC)
    if not case.turns:
        raise ValueError(f"the case {case.id!r} has no turns")
    return case


def _decode_case(data: Json, codec: DataclassCodec) -> Case:
    if "v" not in data:
        raise ValueError("this is not a stored case")
    return codec.decode(Case, data, implied=False)


def _decode_foreign_matcher(data: list[Json]) -> Matcher:
    """The matcher, read like one in a file if its operands have types."""
    matcher = decode_matcher(data)
    return parse(to_json(matcher.to_json())) if isinstance(matcher, (Approx, Regex, Fuzzy)) else matcher


_STRICT_EVALUATOR = _evaluator_codec(strict=True)
_STRICT_HOOKS = HOOKS | {
    Matcher: Hook(encode_matcher, _decode_foreign_matcher),
    EvaluatorSpec: Hook(_encode_evaluator, lambda data: _decode_evaluator(data, _STRICT_EVALUATOR)),
}
_STRICT_CODEC = DataclassCodec(hooks=_STRICT_HOOKS, skip={Case: ["position"]}, stored_names=STORED_NAMES, strict=True)
