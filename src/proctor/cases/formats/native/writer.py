"""Writes suites in the native format, as YAML, JSON or JSON Lines, without values that are defaults."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from inspect import isfunction
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.functions import LAMBDA, reference_of
from proctor.base.json_data import UNSET, Json, json_text, to_json
from proctor.cases.evaluator_specs import unwritable_arguments, write_specs
from proctor.cases.formats import JSON_LINES
from proctor.cases.formats.native.parts import write_mocks, write_scenario
from proctor.cases.ids import UniqueIds
from proctor.cases.matchers import PythonMatcher
from proctor.cases.suite import (
    NO_EXPECTATION,
    Case,
    Criteria,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Quarantine,
    Settings,
    Suite,
    Turn,
    Waiver,
    complete_evaluators,
    with_complete_evaluators,
)

_Simple: TypeAlias = Criteria | Settings | Quarantine | Waiver
SUITE_FIELDS = (
    *("description", "agent", "arms", "judge", "rerun_tools", "depends_on", "allow_files_from"),
    *("criteria", "settings", "waivers", "extra"),
)


@dataclass(frozen=True, slots=True)
class SuiteText:
    """Suites as the text of a file, and everything that the format cannot express."""

    text: str
    losses: tuple[str, ...] = ()
    """A sentence per missing part: `case 'refund': tags cannot be expressed`."""


def write_text(suites: Sequence[Suite], ending: str = ".yaml") -> SuiteText:
    """The text of one file with this suffix (`ending`); several suites become one, with unique ids."""
    losses = [loss for suite in suites for loss in _unwritable_arguments(suite)]
    data = to_json(_join(suites, losses))
    write: dict[str, Callable[[Json, list[str]], str]] = {".json": _json, **dict.fromkeys(JSON_LINES, _json_lines)}
    return SuiteText(write.get(ending, _yaml)(data, losses), tuple(losses))


def _join(suites: Sequence[Suite], losses: list[str]) -> dict[str, Json]:
    head = suites[0]
    data = suite_to_json(head)
    ids = UniqueIds()
    for case in head.cases:
        ids.claim(case.id)
    for other in map(with_complete_evaluators, suites[1:]):
        lost = ["name", *(name for name in SUITE_FIELDS if getattr(other, name) != getattr(head, name))]
        losses.append(f"suite {other.name!r}: joined to {head.name!r}, so its {', '.join(lost)} cannot be expressed")
        for case in other.cases:
            case_id = ids.claim(case.id)
            if case_id != case.id:
                losses.append(f"suite {other.name!r}: case {case.id!r} is renamed to {case_id!r}; its id is taken")
            data["cases"].append(write_case(replace(case, id=case_id, evaluators=other.evaluators_of(case))))
    return data


def _unwritable_arguments(suite: Suite) -> Iterable[str]:
    """A sentence per argument of an evaluator whose name is a key of an entry."""
    lists = [suite.evaluators]
    for case in suite.cases:
        lists += [case.evaluators or (), *(turn.evaluators or () for turn in case.turns)]
    sentences = (
        f"suite {suite.name!r}: argument {name!r} of evaluator {spec.title!r} cannot be expressed"
        for specs in lists
        for spec in specs
        for name in unwritable_arguments(spec)
    )
    return dict.fromkeys(sentences)


def _json(data: Json, losses: list[str]) -> str:
    return json_text(data)


def _json_lines(data: Json, losses: list[str]) -> str:
    cases = data.pop("cases")
    return "".join(json.dumps(row) + "\n" for row in ({"suite": data}, *cases))


def yaml_lines(data: Mapping[str, Json]) -> str:
    """Keys of a native file as people write them: short lists and objects on one line."""
    lines = []
    for key, value in to_json(data).items():
        if key == "expected" and isinstance(value, dict):
            lines.append(f"{key}:\n" + textwrap.indent(yaml_lines(value), "  "))
            continue
        flow = None if isinstance(value, (dict, list)) else False
        options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 64, "default_flow_style": flow}
        lines.append(str(yaml.dump({key: value}, Dumper=yaml_dumper(), **options)))
    return "".join(lines)


def _yaml(data: Json, losses: list[str]) -> str:
    text = yaml.dump(
        _replace_lone_surrogates_in(data, losses), Dumper=yaml_dumper(), sort_keys=False, allow_unicode=True, width=120
    )
    return str(text)


def _replace_lone_surrogates_in(data: Json, losses: list[str]) -> Json:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.loads(replace_lone_surrogates(json.dumps(data, ensure_ascii=False), losses))
    return data


def replace_lone_surrogates(text: str, losses: list[str]) -> str:
    """The text without lone surrogates, which UTF-8 cannot encode, for formats that cannot escape them."""
    clean = re.sub("[\\ud800-\\udfff]", "\ufffd", text)
    if clean != text:
        losses.append("lone surrogates cannot be expressed; each is replaced by U+FFFD")
    return clean


def yaml_dumper() -> Any:
    """The safe dumper; it also quotes text that is a number in YAML 1.2 but not in YAML 1.1: `1e5`."""

    class Dumper(yaml.SafeDumper):
        """A copy of the safe dumper with its own resolvers."""

    number = re.compile(r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789."))
    Dumper.add_representer(str, _represent_text)
    return Dumper


def _represent_text(dumper: Any, text: str) -> Any:
    """Several lines as a block; other unprintable characters as escapes, some of which the dumper would not escape."""
    has_lines_only = text.replace("\n", "").isprintable()
    style = None if text.isprintable() else "|" if has_lines_only else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def suite_to_json(suite: Suite) -> dict[str, Json]:
    """The suite as the data of a native file."""
    data: dict[str, Json] = {"name": suite.name}
    _set_if_any(data, "description", suite.description)
    _set_if_any(data, "agent", suite.agent)
    _set_if_any(data, "arms", dict(suite.arms))
    if suite.judge is not None:
        data["judge"] = suite.judge
    if suite.rerun_tools is not None:
        data["rerun_tools"] = suite.rerun_tools
    _set_if_any(data, "depends_on", list(suite.depends_on))
    _set_if_any(data, "allow_files_from", list(suite.allow_files_from))
    _set_if_any(data, "evaluators", write_specs(suite.evaluators, defaults=()))
    _set_if_any(data, "criteria", _non_defaults(suite.criteria, Criteria()))
    _set_if_any(data, "settings", _non_defaults(suite.settings, Settings()))
    _set_if_any(data, "waivers", [_non_defaults(waiver, Waiver("", "")) for waiver in suite.waivers])
    data.update(suite.extra)
    data["cases"] = [write_case(case, suite.evaluators) for case in suite.cases]
    return data


def suite_to_data(suite: Suite, method: str) -> Any:
    """The suite as data for its own file; raises `InvalidSuite` if it has code that a file cannot name."""
    unnamed = [f"Suite({suite.name!r}).{method}: {reason}" for reason in _unnamed_code(suite)]
    if unnamed:
        raise InvalidSuite([Problem(reason) for reason in unnamed])
    arms = {name: _code_name(agent) for name, agent in suite.arms.items()}
    written = replace(suite, agent=_code_name(suite.agent), arms=arms, judge=_code_name(suite.judge))
    return to_json(suite_to_json(written))


def save_suite(suite: Suite, path: Path) -> None:
    """Write the suite to a file of the native format."""
    data, losses = suite_to_data(suite, "save"), list[str]()
    write = {".json": _json, **dict.fromkeys(JSON_LINES, _json_lines)}.get(path.suffix, _yaml)
    path.write_text(write(data, losses), encoding="utf-8")


def _code_name(value: Any) -> Any:
    """How a file names a function or object: `file.py:name`; data as it is."""
    return reference_of(value) if callable(value) else value


def _unnamed_code(suite: Suite) -> Iterable[str]:
    """A sentence for each agent, evaluator or matcher that is code without a name in a file."""
    hint = "which a file cannot name; move it to a module"
    for place, value in (("agent", suite.agent), ("judge", suite.judge), *suite.arms.items()):
        is_data = value is None or isinstance(value, (str, Mapping))
        if not is_data and (not callable(value) or reference_of(value) is None):
            yield f"{place} is {_code_kind(value)}, {hint}: 'app.py:agent'"
    lists = [("evaluators", suite.evaluators)]
    for index, case in enumerate(suite.cases):
        lists.append((f"cases[{index}].evaluators", case.evaluators or ()))
        for at, turn in enumerate(case.turns):
            lists.append((f"cases[{index}].turns[{at}].evaluators", turn.evaluators or ()))
        calls = [call for turn in case.turns for call in turn.expected.tools or ()]
        for matcher in (matcher for call in calls for matcher in (call.args or {}).values()):
            if isinstance(matcher, PythonMatcher) and not matcher.reference:
                yield f"cases[{index}] has the matcher {matcher.text}, {hint}: 'checks.py:accepts'"
    for place, specs in lists:
        for at, spec in enumerate(specs):
            if spec.fingerprint and ":" not in spec.name.rpartition("/")[2]:
                is_name = spec.title.isidentifier() and not iskeyword(spec.title)
                name = spec.title if is_name else "polite"
                yield f"{place}[{at}] is {_code_kind(spec.target)}, {hint}: 'checks.py:{name}'"


def _code_kind(value: Any) -> str:
    is_lambda = getattr(value, "__name__", "") == LAMBDA
    return "a lambda" if is_lambda else "a function" if isfunction(value) else f"an object ({type(value).__name__})"


def write_case(case: Case, defaults: tuple[EvaluatorSpec, ...] = ()) -> dict[str, Json]:
    """The case as data; without `defaults`, its evaluators are written in full."""
    data: dict[str, Json] = {"id": case.id}
    _set_if_any(data, "description", case.description)
    _set_if_any(data, "tags", list(case.tags))
    _set_if_any(data, "skip", case.skip)
    if case.quarantine is not None:
        data["quarantine"] = _non_defaults(case.quarantine, Quarantine("", ""))
    _set_if_any(data, "inputs", {item.name: item.value for item in case.inputs})
    _set_if_any(data, "metadata", dict(case.metadata))
    _set_if_any(data, "state", dict(case.state))
    if case.final_state is not None:
        data["final_state"] = dict(case.final_state)
    _add_turns(data, case)
    if case.evaluators is not None:
        data["evaluators"] = write_specs(case.evaluators, defaults=defaults)
    if _skips_implied_evaluators(case, defaults):
        data["implied"] = False
    _set_if_any(data, "repeat", case.repeat)
    _set_if_any(data, "timeout", case.timeout)
    if case.mocks:
        data["mocks"] = write_mocks(case)
    data.update(case.extra)
    return data


def _skips_implied_evaluators(case: Case, defaults: tuple[EvaluatorSpec, ...]) -> bool:
    """Whether the case, or a turn with its own evaluators, has an expectation that no evaluator checks."""
    if case.implied:
        return False
    implying = replace(case, implied=True)
    return any(
        complete_evaluators(case, defaults, turn) != complete_evaluators(implying, defaults, turn)
        for turn in (None, *case.turns)
    )


def _add_turns(data: dict[str, Json], case: Case) -> None:
    """Add the turns: one as keys of the case, several as a list, none for a simulated user."""
    if case.scenario is not None:
        data["scenario"] = write_scenario(case.scenario)
        if case.turns == case.before_simulation.turns:
            return
    elif len(case.turns) == 1 and _needs_no_turns_key(case.turns[0]):
        _add_turn(data, case.turns[0])
        return
    data["turns"] = [_turn(turn) for turn in case.turns]


def _needs_no_turns_key(turn: Turn) -> bool:
    """Whether a turn can be written as keys of the case, without `turns`."""
    return turn.evaluators is None and not turn.metadata and not turn.extra


def _turn(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {}
    _add_turn(data, turn)
    if turn.evaluators is not None:
        data["evaluators"] = write_specs(turn.evaluators, defaults=())
    _set_if_any(data, "metadata", dict(turn.metadata))
    data.update(turn.extra)
    return data


def _add_turn(data: dict[str, Json], turn: Turn) -> None:
    data["input"] = turn.input
    if turn.expected != NO_EXPECTATION:
        data["expected"] = write_expected(turn.expected)
    if turn.retrieval_context is not None:
        data["retrieval_context"] = list(turn.retrieval_context)
    if turn.files:
        data["files"] = [
            {
                name: value
                for name, value in {
                    "path": item.path,
                    "url": item.url,
                    "type": item.kind,
                    "description": item.description,
                    **item.options,
                }.items()
                if value is not None
            }
            for item in turn.files
        ]


def write_expected(expected: Expected) -> Json:
    """The expectation of a turn as data; just the answer if there is nothing else."""
    only_output = expected == Expected(output=expected.output)
    if only_output and not isinstance(expected.output, dict):
        return expected.output
    data: dict[str, Json] = {}
    if expected.output is not UNSET:
        data["output"] = expected.output
    if expected.contains is not None:
        words: dict[str, Json] = {}
        _set_if_any(words, "any", list(expected.contains.any))
        _set_if_any(words, "all", list(expected.contains.all))
        data["contains"] = words
    if expected.tools is not None:
        data["tools"] = [_call(call) for call in expected.tools]
    if expected.context is not None:
        data["context"] = list(expected.context)
    if expected.state is not None:
        data["state"] = dict(expected.state)
    return data


def _call(call: ExpectedCall) -> Json:
    if call == ExpectedCall(call.name):
        return call.name
    data: dict[str, Json] = {"name": call.name}
    if call.args is not None:
        data["args"] = {name: matcher.to_json() for name, matcher in call.args.items()}
    if call.count != 1:
        data["count"] = call.count
    _set_if_any(data, "substring", call.substring)
    _set_if_any(data, "extra_args", call.extra_args)
    if call.result is not UNSET:
        data["result"] = call.result
    _set_if_any(data, "or_earlier", call.or_earlier)
    return data


def _set_if_any(data: dict[str, Json], name: str, value: Json) -> None:
    """Set a key, unless its value is empty, which means the same as no key."""
    if value or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        data[name] = value


def _non_defaults(value: _Simple, default: _Simple) -> dict[str, Json]:
    names = (field.name for field in fields_of(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}
