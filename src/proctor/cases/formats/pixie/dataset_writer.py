"""Writes suites as pixie datasets, and says what a dataset cannot express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proctor.base.json_data import UNSET, Json, json_text, plain
from proctor.cases.evaluator_specs import unwritable_arguments, write_specs
from proctor.cases.formats.format_spec import (
    UniqueIds,
    Written,
    cannot_express,
    given_names,
    one_file_each,
    slug,
    unwritten_case_parts,
    written_extensions,
)
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Settings, Suite, Turn


def write_datasets(suites: Sequence[Suite]) -> Written:
    """One dataset per suite."""
    return one_file_each(
        suites, lambda suite, losses: json_text(_dataset(suite, losses)), name="dataset", ending=".json"
    )


def _dataset(suite: Suite, losses: list[str]) -> dict[str, Json]:
    where = f"suite {suite.name!r}"
    data: dict[str, Json] = {"name": suite.name}
    if isinstance(suite.agent, str):
        data["runnable"] = suite.agent
    unwritten = {
        "its description": suite.description,
        "its agent": suite.agent if not isinstance(suite.agent, str) else None,
        "its criteria": suite.criteria != Criteria(),
        "its settings": suite.settings != Settings(),
        "its judge": suite.judge is not None,
    }
    losses += cannot_express(where, given_names(unwritten))
    if suite.evaluators:
        data["evaluators"] = write_specs(suite.evaluators, defaults=())
        _note_options(where, suite.evaluators, losses)
    data |= written_extensions(where, suite.extra, losses)
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
    entry |= written_extensions(where, case.extra, losses)
    derived = ids.claim(slug(description) or "entry")
    if derived != case.id:
        losses.append(f"{where}: its id cannot be expressed; it will be read as {derived!r}")
    losses += cannot_express(where, [*_unwritten_turn_parts(turn), *unwritten_case_parts(case)])
    return entry


def _arguments(where: str, turn: Turn, losses: list[str]) -> Json:
    if isinstance(turn.input, Mapping):
        return plain(turn.input)
    losses.append(f"{where}: its input is not an object; it is written as the argument 'input'")
    return {"input": plain(turn.input)}


def _unwritten_turn_parts(turn: Turn) -> list[str]:
    return given_names(
        {
            "expected keywords": turn.expected.keywords is not None,
            "expected tool calls": turn.expected.tool_calls is not None,
            "expected context": turn.expected.context is not None,
            "retrieval context": turn.retrieval_context is not None,
            "attachments": turn.attachments,
            "metadata of the turn": turn.metadata,
            "what another format said of the turn": turn.extra,
        }
    )


def _note_options(where: str, specs: Sequence[EvaluatorSpec], losses: list[str]) -> None:
    for spec in specs:
        if spec != EvaluatorSpec(spec.name):
            losses.append(f"{where}: the settings of evaluator {spec.title!r} are written in a form only Proctor reads")
        losses.extend(
            f"{where}: argument {name!r} of evaluator {spec.title!r} cannot be expressed"
            for name in unwritable_arguments(spec)
        )
