"""Reads and writes lists of evaluators in suite files.

An entry is `"ExactMatch"`, `"checks.py:fn"` or `{"Faithfulness": {"threshold": 0.8}}`; `"..."` stands for the
evaluators of the suite.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.documents import Document, Fields, json_type_name
from proctor.base.errors import RenamedWarning, UsageError
from proctor.base.fingerprints import code_fingerprint
from proctor.base.functions import reference_of, title_of
from proctor.base.json_data import Json, canonical, json_text, to_json, to_text
from proctor.base.passed_objects import PassedObjects
from proctor.base.source import Pointer
from proctor.cases.suite import INHERITED, EvaluatorSpec

INHERIT = INHERITED.name

SPEC_KEYS = ("threshold", "name", "report_only", "scope", "output", "timeout", "output_path", "retries", "optional")
"""The keys of an entry that say how its score counts; every other key is an argument of the evaluator."""

OLD_REPORT_ONLY = "gate"
"""The old name of `report_only`, with the opposite meaning."""


def read_specs(
    document: Document, value: Json, pointer: Pointer, *, defaults: tuple[EvaluatorSpec, ...] | None
) -> tuple[EvaluatorSpec, ...]:
    """The evaluators of a list, each once; `defaults` is what `"..."` stands for, `None` if it is not allowed here."""
    if not isinstance(value, list):
        document.problem(pointer, f"must be a list of evaluators, not {json_type_name(value)}")
        return ()
    specs: list[EvaluatorSpec] = []
    for index, entry in enumerate(value):
        for spec in _read_entry(document, entry, (*pointer, index), defaults):
            if spec not in specs:
                specs.append(spec)
    return tuple(specs)


def write_specs(specs: Sequence[EvaluatorSpec], *, defaults: Sequence[EvaluatorSpec]) -> list[Json]:
    """The list that `read_specs` reads as `specs`; it begins with `"..."` if `specs` begin with all of `defaults`."""
    inherits = bool(defaults) and tuple(specs[: len(defaults)]) == tuple(defaults)
    own = specs[len(defaults) :] if inherits else specs
    return [*([INHERIT] if inherits else []), *(_write_spec(spec) for spec in own)]


def unwritable_arguments(spec: EvaluatorSpec) -> list[str]:
    """Arguments that a file cannot pass, because their names are keys of an entry."""
    return [name for name in spec.arguments if name in (*SPEC_KEYS, OLD_REPORT_ONLY)]


def _read_entry(
    document: Document, entry: Json, pointer: Pointer, defaults: tuple[EvaluatorSpec, ...] | None
) -> tuple[EvaluatorSpec, ...]:
    if entry is not ... and entry != INHERIT:
        spec = _read_spec(document, entry, pointer)
        return () if spec is None else (spec,)
    if defaults is None:
        document.problem(
            pointer, '"..." stands for the evaluators of the suite, so the suite\'s own list cannot have it'
        )
        return ()
    return defaults


def _read_spec(document: Document, entry: Any, pointer: Pointer) -> EvaluatorSpec | None:
    if isinstance(entry, EvaluatorSpec):
        return entry
    if callable(entry):
        return spec_of(entry)
    if isinstance(entry, str):
        if entry.strip():
            return EvaluatorSpec(entry, position=document.position(pointer))
        document.problem(pointer, "must not be blank; name an evaluator")
        return None
    if not isinstance(entry, dict):
        document.problem(pointer, _not_an_evaluator(document, entry))
        return None
    if len(entry) != 1:
        document.problem(
            pointer, 'must have exactly one key, the name of an evaluator: {"Faithfulness": {"threshold": 0.8}}'
        )
        return None
    name, options = next(iter(entry.items()))
    if not name.strip() or name == INHERIT:
        document.problem(pointer, f"{name!r} is not the name of an evaluator")
        return None
    return _with_options(document, name, {} if options is None else options, (*pointer, name))


def _not_an_evaluator(document: Document, entry: Any) -> str:
    if document.is_python:
        return f'is {to_text(entry, 40)}; use a function, an instance such as Contains(any=["a"]), or a name'
    return f"must be an evaluator's name or an object, not {json_type_name(entry)}"


def _with_options(document: Document, name: str, options: Json, pointer: Pointer) -> EvaluatorSpec:
    fields = Fields(document, options, pointer)
    fields.accept_old_key(OLD_REPORT_ONLY, "report_only", inverted=True)
    threshold = fields.number("threshold", least=0, most=1)
    timeout = fields.number("timeout")
    if timeout is not None and timeout <= 0:
        fields.problem("timeout", "must be more than 0 seconds")
        timeout = None
    return EvaluatorSpec(
        name,
        threshold=None if threshold is None else float(threshold),
        label=fields.text("name", blank=False),
        report_only=fields.boolean("report_only", False),
        scope=fields.choice("scope", ("turn", "case")),
        output=fields.text("output", blank=False),
        timeout=timeout,
        output_path=fields.text("output_path", blank=False),
        retries=fields.integer("retries", 0, least=0),
        optional=fields.boolean("optional", False),
        arguments=fields.rest() or {},
        position=document.position(pointer),
        argument_positions=document.positions_below(pointer),
    )


def _write_spec(spec: EvaluatorSpec) -> Json:
    options: dict[str, Json] = {
        key: to_json(value) for key, value in spec.arguments.items() if key not in (*SPEC_KEYS, OLD_REPORT_ONLY)
    }
    settings = {
        "threshold": spec.threshold,
        "name": spec.label,
        "report_only": spec.report_only or None,
        "scope": spec.scope,
        "output": spec.output,
        "timeout": spec.timeout,
        "output_path": spec.output_path,
        "retries": spec.retries or None,
        "optional": spec.optional or None,
    }
    options |= {key: value for key, value in settings.items() if value is not None}
    return {spec.name: options} if options else spec.name


def write_option(spec: EvaluatorSpec) -> str:
    """The evaluator as `-e` takes it: `ExactMatch`, or `ROUGE={"variant":"rouge1"}`."""
    written = _write_spec(spec)
    return f"{spec.name}={canonical(written[spec.name])}" if isinstance(written, dict) else spec.name


def spec_key(spec: EvaluatorSpec) -> str:
    """A text that two specs share if they are equal, also if their arguments cannot be hashed."""
    return canonical(
        [
            spec.name,
            to_json(spec.arguments),
            spec.threshold,
            spec.label,
            spec.report_only,
            spec.scope,
            spec.output,
            spec.timeout,
            spec.output_path,
            spec.retries,
            spec.optional,
            spec.fingerprint,
        ]
    )


_TARGETS = PassedObjects()
"""Functions and objects that were passed as evaluators in this process, so that a run can be scored again."""


def spec_of(target: Any) -> EvaluatorSpec:
    """The entry of a function, class or object that was passed from Python.

    What has a method `as_spec` knows its entry: instances of shipped evaluators are entries with a name and arguments.
    """
    as_spec = getattr(target, "as_spec", None)
    if callable(as_spec):
        spec: EvaluatorSpec = as_spec() if not isinstance(target, type) else as_spec(target)
        return spec
    return spec_of_code(target)


def spec_of_code(target: Any, code: Any = None, **settings: Any) -> EvaluatorSpec:
    """The entry of code without a name in files; `code` is what counts, if `target` is a wrapper around it."""
    code = target if code is None else code
    title, reference, mark = title_of(code), reference_of(code), code_fingerprint(code)
    label = settings.pop("label", None) or (title if reference is None and ":" in title else None)
    spec = EvaluatorSpec(reference or title, label=label, fingerprint=mark, target=target, **settings)
    _TARGETS.add(spec_key(spec), target)
    return spec


def target_of(spec: EvaluatorSpec) -> Any:
    """The function or object of an entry, if this process has it: also of an entry that comes from the store."""
    return spec.target if spec.target is not None or not spec.fingerprint else _TARGETS.get(spec_key(spec))


def read_evaluators(entries: Sequence[Any]) -> tuple[EvaluatorSpec, ...]:
    """Entries as in files, passed from Python or the command line; raises `UsageError` for one that is invalid."""
    if isinstance(entries, (str, Mapping, EvaluatorSpec)) or callable(entries):
        entries = [entries]
    specs: list[EvaluatorSpec] = []
    for item in entries:
        if isinstance(item, EvaluatorSpec) or callable(item):
            specs.append(item if isinstance(item, EvaluatorSpec) else spec_of(item))
            continue
        entry = to_json(item)
        document = Document(Path("evaluators"), json_text([entry]), [entry])
        specs.extend(read_specs(document, [entry], (), defaults=None))
        if document.problems:
            raise UsageError(f"evaluator {to_text(entry, 80)}: {document.problems[0].message}")
        for warning in document.warnings:
            warnings.warn(f"{warning.where} {warning.message}", RenamedWarning, stacklevel=2)
    return tuple(specs)
