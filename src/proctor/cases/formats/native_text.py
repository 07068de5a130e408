"""Puts native suites into a file: YAML for people, JSON and JSON Lines for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from proctor.cases.evaluator_specs import unwritable_arguments
from proctor.cases.formats.ids import UniqueIds
from proctor.cases.formats.model import Written
from proctor.cases.formats.native_lines import LINES
from proctor.cases.formats.native_writer import suite_to_json, write_case
from proctor.cases.formats.unsaid import json_text
from proctor.cases.model import Suite
from proctor.plain import Json, plain

OF_A_SUITE = ("description", "agent", "judge", "reexecute", "criteria", "settings", "extra")


def write_text(suites: Sequence[Suite], ending: str = ".yaml") -> Written:
    """One document of the kind the file's ending asks for; several suites become one, with ids made unique."""
    losses = [loss for suite in suites for loss in _unwritable(suite)]
    data = plain(_joined(suites, losses))
    write: dict[str, Callable[[Json, list[str]], str]] = {".json": _json, **dict.fromkeys(LINES, _json_lines)}
    return Written(write.get(ending, _yaml)(data, losses), tuple(losses))


def expressible(text: str, losses: list[str]) -> str:
    """The text as UTF-8 can hold it, where the format has no way to escape what it cannot."""
    whole = re.sub("[\\ud800-\\udfff]", "\ufffd", text)
    if whole != text:
        losses.append("halves of surrogate pairs cannot be expressed; U+FFFD stands for each")
    return whole


def _joined(suites: Sequence[Suite], losses: list[str]) -> dict[str, Json]:
    head = suites[0]
    data = suite_to_json(head)
    ids = UniqueIds()
    for case in head.cases:
        ids.claim(case.id)
    for other in suites[1:]:
        unkept = ["name", *(name for name in OF_A_SUITE if getattr(other, name) != getattr(head, name))]
        losses.append(f"suite {other.name!r}: joined to {head.name!r}, so its {', '.join(unkept)} cannot be expressed")
        for case in other.cases:
            given = ids.claim(case.id)
            if given != case.id:
                losses.append(f"suite {other.name!r}: case {case.id!r} is called {given!r}, since its id is taken")
            data["cases"].append(write_case(replace(case, id=given, evaluators=other.evaluators_of(case))))
    return data


def _unwritable(suite: Suite) -> Iterable[str]:
    """An evaluator's argument whose name means something else in a file."""
    lists = [suite.evaluators]
    for case in suite.cases:
        lists += [case.evaluators or (), *(turn.evaluators or () for turn in case.turns)]
    specs = {id(spec): spec for specs in lists for spec in specs}
    sentences = (
        f"suite {suite.name!r}: argument {name!r} of evaluator {spec.title!r} cannot be expressed"
        for spec in specs.values()
        for name in unwritable_arguments(spec)
    )
    return dict.fromkeys(sentences)


def _json(data: Json, losses: list[str]) -> str:
    return json_text(data)


def _json_lines(data: Json, losses: list[str]) -> str:
    cases = data.pop("cases")
    return "".join(json.dumps(row) + "\n" for row in ({"suite": data}, *cases))


def _yaml(data: Json, losses: list[str]) -> str:
    import yaml

    text = yaml.dump(_clean(data, losses), Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=120)
    return str(text)


def _clean(data: Json, losses: list[str]) -> Json:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.loads(expressible(json.dumps(data, ensure_ascii=False), losses))
    return data


def _dumper() -> Any:
    """The safe dumper, which also quotes text that YAML 1.2 takes for a number and YAML 1.1 does not: `1e5`."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Has a resolver more than the one it is made from."""

    number = re.compile(r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789."))
    Dumper.add_representer(str, _represent_text)
    return Dumper


def _represent_text(dumper: Any, text: str) -> Any:
    """Lines as lines; other characters that cannot be seen as escapes, some of which the dumper would let through."""
    seen = text.replace("\n", "").isprintable()
    style = None if text.isprintable() else "|" if seen else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
