"""Writes suites as pixie datasets, and says what a dataset has no word for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from proctor.cases.evaluator_specs import unwritable_arguments, write_specs
from proctor.cases.formats.ids import UniqueIds, slug
from proctor.cases.formats.model import Written
from proctor.cases.model import UNSET, Case, Criteria, EvaluatorSpec, Settings, Suite, Turn
from proctor.errors import UsageError
from proctor.plain import Json, plain


def write(suites: Sequence[Suite]) -> Written:
    """One dataset per suite: the first is the text, the others stand beside it."""
    if not suites:
        raise UsageError("there is no suite to write")
    losses: list[str] = []
    texts = [_text(_dataset(suite, losses)) for suite in suites]
    names = UniqueIds()
    files = [f"{names.claim(slug(suite.name) or 'dataset')}.json" for suite in suites]
    return Written(texts[0], tuple(losses), tuple(zip(files[1:], texts[1:], strict=True)))


def _text(data: Json) -> str:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(data, indent=2) + "\n"
    return text


def _dataset(suite: Suite, losses: list[str]) -> dict[str, Json]:
    where = f"suite {suite.name!r}"
    data: dict[str, Json] = {"name": suite.name}
    if isinstance(suite.agent, str):
        data["runnable"] = suite.agent
    unsaid = {
        "description": suite.description,
        "agent": suite.agent if not isinstance(suite.agent, str) else None,
        "criteria": suite.criteria != Criteria(),
        "settings": suite.settings != Settings(),
        "judge": suite.judge is not None,
    }
    losses.extend(f"{where}: its {name} cannot be expressed" for name, given in unsaid.items() if given)
    if suite.evaluators:
        data["evaluators"] = write_specs(suite.evaluators, defaults=())
        _note_options(where, suite.evaluators, losses)
    data |= _extensions(where, suite.extra, losses)
    single = [case for case in suite.cases if len(case.turns) == 1]
    losses.extend(
        f"case {case.id!r}: a conversation of {len(case.turns)} turns cannot be expressed; it is left out"
        for case in suite.cases
        if len(case.turns) != 1
    )
    # 0.6 demands named inputs with every entry; later generations, which say input_data, do not.
    key = "entry_kwargs" if single and all(case.inputs for case in single) else "input_data"
    ids = UniqueIds()
    data["entries"] = [_entry(suite, case, key, ids, losses) for case in single]
    return data


def _entry(suite: Suite, case: Case, key: str, ids: UniqueIds, losses: list[str]) -> dict[str, Json]:
    where, turn = f"case {case.id!r}", case.turns[0]
    description = case.description if case.description.strip() else case.id
    entry: dict[str, Json] = {key: _arguments(where, turn, losses), "description": description}
    if case.inputs:
        entry["eval_input"] = [{"name": item.name, "value": plain(item.value)} for item in case.inputs]
    if turn.expected.output is not UNSET:
        entry["expectation"] = plain(turn.expected.output)
    if case.metadata:
        entry["eval_metadata"] = plain(case.metadata)
    specs = case.evaluators if turn.evaluators is None else turn.evaluators
    if specs:
        entry["evaluators"] = write_specs(specs, defaults=suite.evaluators)
        _note_options(where, [spec for spec in specs if spec not in suite.evaluators], losses)
    elif specs is not None and suite.evaluators:
        losses.append(f"{where}: having no evaluators cannot be expressed; it inherits the dataset's")
    entry |= _extensions(where, case.extra, losses)
    derived = ids.claim(slug(description) or "entry")
    if derived != case.id:
        losses.append(f"{where}: its id cannot be expressed; it will be read as {derived!r}")
    losses.extend(f"{where}: {name} cannot be expressed" for name in _unsaid(case, turn))
    return entry


def _arguments(where: str, turn: Turn, losses: list[str]) -> Json:
    if isinstance(turn.input, Mapping):
        return plain(turn.input)
    losses.append(f"{where}: its input is not an object; it is written as the argument 'input'")
    return {"input": plain(turn.input)}


def _unsaid(case: Case, turn: Turn) -> list[str]:
    """What is given and has no place in an entry."""
    given = {
        "expected keywords": turn.expected.keywords is not None,
        "expected tool calls": turn.expected.tool_calls is not None,
        "expected context": turn.expected.context is not None,
        "retrieval context": turn.retrieval_context is not None,
        "attachments": bool(turn.attachments),
        "metadata of the turn": bool(turn.metadata),
        "what another format said of the turn": bool(turn.extra),
        "tags": bool(case.tags),
        "state": bool(case.state),
        "final state": case.final_state is not None,
        "repeat": case.repeat is not None,
        "timeout": case.timeout is not None,
        "skip": case.skip is not None,
        "doubles of tools": bool(case.doubles),
        "scenario": case.scenario is not None,
    }
    return [name for name, is_given in given.items() if is_given]


def _extensions(where: str, extra: Mapping[str, Json], losses: list[str]) -> dict[str, Json]:
    losses.extend(f"{where}: {key!r} cannot be expressed" for key in extra if not key.startswith("x-"))
    return {key: plain(value) for key, value in extra.items() if key.startswith("x-")}


def _note_options(where: str, specs: Sequence[EvaluatorSpec], losses: list[str]) -> None:
    for spec in specs:
        if spec != EvaluatorSpec(spec.name):
            losses.append(f"{where}: the settings of evaluator {spec.title!r} are written in a form only Proctor reads")
        losses.extend(
            f"{where}: argument {name!r} of evaluator {spec.title!r} cannot be expressed"
            for name in unwritable_arguments(spec)
        )
