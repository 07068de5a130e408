"""Read pixie's datasets of every generation: entries with arguments for an application, and evaluators."""

from __future__ import annotations

from pathlib import Path

from proctor.base.documents import Document, Fields
from proctor.base.json_data import Json
from proctor.base.references import is_reference
from proctor.base.source import Pointer
from proctor.cases.evaluator_specs import INHERIT, read_specs
from proctor.cases.ids import UniqueIds, slug
from proctor.cases.suite import (
    NO_EXPECTATION,
    Case,
    EvaluatorSpec,
    Expected,
    NamedData,
    Suite,
    Turn,
    with_named_evaluators_only,
)

NAME = "pixie"
EXTENSION = "x-pixie"
"""The key of `Case.extra` with the output stored in the dataset."""

_ENTRY_KEYS = frozenset(
    "entry_kwargs input_data test_case eval_input expectation expected_output eval_metadata".split()
)
_DATASET_KEYS = frozenset("name runnable evaluators entries items".split())


def recognises(path: Path, data: Json) -> bool:
    """Whether the file is a dataset.

    It is if it has `entries` or `items` with keys that only a dataset has, or a `runnable` as `file.py:Name`. Either
    word alone occurs in many other files: `{"runnable": true}`, `{"entries": []}`.
    """
    if not isinstance(data, dict) or "cases" in data or "test_cases" in data:
        return False
    runnable, rows = data.get("runnable"), data.get("entries", data.get("items"))
    if isinstance(runnable, str) and (is_reference(runnable) or isinstance(rows, list)):
        return True
    if not isinstance(rows, list):
        return False
    if not rows:
        return "evaluators" in data and data.keys() <= _DATASET_KEYS
    return any(isinstance(row, dict) and not _ENTRY_KEYS.isdisjoint(row) for row in rows)


def read(document: Document) -> list[Suite]:
    """The suite of a dataset.

    The keys show the generation: `items` (0.4), `entries` with a nested `test_case` (0.5), with `entry_kwargs` (0.6),
    with `input_data` (0.7 and later).
    """
    fields = Fields(document, document.data)
    name = fields.text("name", document.path.stem, blank=False)
    runnable = fields.text("runnable", blank=False)
    evaluators = fields.take("evaluators")
    defaults = () if evaluators is None else read_specs(document, evaluators, fields.at("evaluators"), defaults=None)
    cases = _read_rows(fields, defaults)
    extra = fields.extensions()
    fields.report_unknown_keys()
    if not evaluators:
        _require_evaluators(document, cases)
    suite = with_named_evaluators_only(
        Suite(
            name=name,
            cases=tuple(case for case, _ in cases),
            evaluators=defaults,
            agent=runnable,
            path=document.path,
            format=NAME,
            warnings=tuple(document.warnings),
            extra=extra,
            key_positions=document.positions_below(("runnable",), "agent"),
        )
    )
    document.finish(suite)
    return [suite]


def _read_rows(fields: Fields, defaults: tuple[EvaluatorSpec, ...]) -> list[tuple[Case, Pointer]]:
    if fields.has("entries") and fields.has("items"):
        fields.problem("items", "cannot be used together with 'entries'; keep one of them")
    key = "items" if fields.has("items") and not fields.has("entries") else "entries"
    fields.take("items")
    rows = fields.items(key, required=True, least=1) or []
    ids = UniqueIds()
    pointers = [(*fields.at(key), index) for index in range(len(rows))]
    return [
        (_Row(fields.document, row, pointer, first_generation=key == "items").read(ids, defaults), pointer)
        for row, pointer in zip(rows, pointers, strict=True)
    ]


def _require_evaluators(document: Document, cases: list[tuple[Case, Pointer]]) -> None:
    """Report entries without evaluators, once if that is true of the whole dataset."""
    bare = [pointer for case, pointer in cases if case.evaluators is None]
    if bare and len(bare) == len(cases):
        document.problem((), "has no evaluators; list some under 'evaluators', for the dataset or for each entry")
        return
    for pointer in bare:
        document.problem(
            pointer, "has no evaluators, and the dataset has none to inherit; list some under 'evaluators'"
        )


class _Row:
    """One entry; its fields may be at its top level or inside `test_case`."""

    def __init__(self, document: Document, data: Json, pointer: Pointer, *, first_generation: bool) -> None:
        self._document = document
        self._outer = Fields(document, data, pointer)
        self._inner = self._outer.inside("test_case")
        self._first_generation = first_generation

    def read(self, ids: UniqueIds, defaults: tuple[EvaluatorSpec, ...]) -> Case:
        if not self._outer.valid or (self._inner is not None and not self._inner.valid):
            return Case(id="", turns=(), evaluators=())
        described = self._holder("description")
        description = described.text("description", required=True, blank=False) or ""
        turn_input, inputs = self._input()
        metadata = self._holder("eval_metadata").mapping("eval_metadata")
        case = Case(
            id=ids.claim(slug(description) or "entry"),
            turns=(Turn(turn_input, self._expected()),),
            description=description,
            evaluators=self._evaluators(defaults),
            inputs=inputs,
            metadata=metadata or {},
            extra=self._extra() or {},
            position=described.position("description"),
        )
        for fields in (self._outer, self._inner):
            if fields is not None:
                fields.report_unknown_keys()
        return case

    def _holder(self, name: str) -> Fields:
        """The object that has a field; a field in both places is a problem."""
        if self._inner is None:
            return self._outer
        if self._outer.has(name) and self._inner.has(name):
            self._outer.problem(name, "is set twice, here and in test_case")
            self._inner.take(name)
        return self._outer if self._outer.has(name) else self._inner

    def _either(self, *names: str) -> tuple[Fields, str] | None:
        """The object that has a field with two names, and the name it uses."""
        places = [(self._holder(name), name) for name in names]
        fields = [(holder, name) for holder, name in places if holder.has(name)]
        for holder, name in places:
            holder.take(name)
        if len(fields) > 1:
            self._document.problem(self._outer.pointer, f"has both {' and '.join(names)}; keep one of them")
        return fields[0] if fields else None

    def _input(self) -> tuple[Json, tuple[NamedData, ...]]:
        if field := self._either("entry_kwargs", "input_data"):
            holder, name = field
            inputs = self._named_inputs()
            if name == "entry_kwargs" and self._must_have_inputs() and not inputs:
                self._document.problem(
                    self._outer.pointer,
                    'needs \'eval_input\' with at least one item, such as [{"name": "input", "value": "Hello"}]; '
                    "only entries with 'input_data' may omit it",
                )
            return holder.mapping(name, {}), inputs
        if not self._first_generation:
            self._document.problem(self._outer.pointer, "needs 'entry_kwargs' or 'input_data' (an object)")
            return {}, self._named_inputs()
        holder = self._holder("eval_input")
        if not holder.has("eval_input"):
            self._document.problem(holder.pointer, "needs 'eval_input' (the input of the application)")
        return holder.take("eval_input"), ()

    def _must_have_inputs(self) -> bool:
        """Whether this generation (0.6) requires inputs; a value of the wrong type is reported elsewhere."""
        value = self._holder("eval_input").take("eval_input")
        is_flat = self._inner is None and not self._outer.has("input_data")
        return is_flat and (value is None or isinstance(value, list))

    def _named_inputs(self) -> tuple[NamedData, ...]:
        items = self._holder("eval_input").each("eval_input", self._named_input)
        names: set[str] = set()
        for index, item in enumerate(items):
            if item.name and item.name in names:
                place = (*self._holder("eval_input").at("eval_input"), index, "name")
                self._document.problem(place, f"{item.name!r} occurs twice; names must be unique")
            names.add(item.name)
        return tuple(items)

    def _named_input(self, data: Json, pointer: Pointer) -> NamedData:
        fields = Fields(self._document, data, pointer)
        if not fields.valid:
            return NamedData("", None)
        name = fields.text("name", required=True, blank=False) or ""
        if not fields.has("value"):
            self._document.problem(pointer, "needs 'value'")
        value = fields.take("value")
        fields.report_unknown_keys()
        return NamedData(name, value)

    def _expected(self) -> Expected:
        field = self._either("expectation", "expected_output")
        return Expected(output=field[0].take(field[1])) if field else NO_EXPECTATION

    def _evaluators(self, defaults: tuple[EvaluatorSpec, ...]) -> tuple[EvaluatorSpec, ...] | None:
        holder = self._holder("evaluators")
        value = holder.take("evaluators")
        inherits = isinstance(value, list) and all(entry == INHERIT for entry in value) and not defaults
        if value is None or value == [] or inherits:
            return None
        return read_specs(self._document, value, holder.at("evaluators"), defaults=defaults)

    def _extra(self) -> dict[str, Json]:
        extra = self._outer.extensions()
        holder = self._holder("eval_output")
        recorded = holder.take("eval_output") if self._first_generation else None
        if recorded is not None:
            extra[EXTENSION] = {"eval_output": recorded}
            self._document.warn(holder.at("eval_output"), "is stored, but the agent runs anyway")
        return extra
