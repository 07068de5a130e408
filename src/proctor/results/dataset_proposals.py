"""Proposes an entry of a dataset from a trace or a trial; what should have come out, a person adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import as_evaluable
from proctor.results.run import TrialResult
from proctor.results.trace_cases import said_text
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span, build_tree

LONGEST_DESCRIPTION = 80


@record
class Proposal:
    """A proposed entry: what evaluators would see, what the application is given, and notes on what was left out."""

    evaluable: Evaluable
    entry_kwargs: Mapping[str, Json]
    notes: tuple[str, ...] = ()


def proposal_of_spans(spans: Sequence[Span]) -> Proposal:
    """From the outermost step, and from what the application wrapped, where it wrapped anything."""
    wraps = [span for span in spans if isinstance(span, ObserveSpan) and span.kind == "wrap"]
    steps = [span for span in spans if span not in wraps]
    if not spans:
        raise UsageError("the trace has no spans, so that nothing can be made of it")
    root = build_tree(steps or spans)[0].span
    seen = as_evaluable(root)
    given = seen.eval_input[0].value if steps else {}
    if isinstance(root, LLMSpan):
        given = said_text(given, "user")
    kwargs = given if isinstance(given, Mapping) else {"input": given}
    inputs, notes = _once_each([span for span in wraps if _purpose(span) == "input"])
    outputs = [NamedData(span.name, span.output) for span in wraps if _purpose(span) != "input"]
    evaluable = replace(
        seen,
        eval_input=tuple(inputs) or (NamedData("input", dict(kwargs)),),
        eval_output=tuple(outputs) or _answered(seen),
        eval_metadata=None,
        description=_described(kwargs),
    )
    return Proposal(evaluable, dict(kwargs), tuple(notes))


def proposal_of_trial(trial: TrialResult) -> Proposal:
    """From what the trial asked and was answered, with what its case already expects."""
    if len(trial.case.turns) != 1:
        raise UsageError(f"case {trial.case.id!r} is a conversation of {len(trial.case.turns)} turns; an entry has one")
    [turn] = trial.case.turns
    notes = []
    kwargs = turn.input
    if not isinstance(kwargs, Mapping):
        notes.append("the input is not an object; it is written as the argument 'input'")
        kwargs = {"input": kwargs}
    outputs: tuple[NamedData, ...] = ()
    for reply in trial.replies[:1]:
        answer = reply.text if reply.structured is None else reply.structured
        outputs = reply.outputs or (NamedData("output", answer),)
    evaluable = Evaluable(
        eval_input=trial.case.inputs or (NamedData("input", turn.input),),
        eval_output=outputs,
        expectation=turn.expected.output,
        eval_metadata=trial.case.told or None,
        description=trial.case.description or _described(kwargs),
    )
    return Proposal(evaluable, dict(kwargs), tuple(notes))


def _answered(seen: Evaluable) -> tuple[NamedData, ...]:
    """The answer as text, also where the step kept the whole reply of a model client."""
    return () if seen.output is None else (NamedData("output", said_text(seen.output, "assistant")),)


def _purpose(span: ObserveSpan) -> Json:
    return span.metadata.get("purpose")


def _once_each(wraps: Sequence[ObserveSpan]) -> tuple[list[NamedData], list[str]]:
    """A case has one value for each name: the first that the application saw is taken."""
    first: dict[str, Json] = {}
    notes = []
    for span in wraps:
        if span.name in first and first[span.name] != span.input:
            notes.append(f"the input {span.name!r} had several values; only the first is kept")
        first.setdefault(span.name, span.input)
    return [NamedData(name, value) for name, value in first.items()], list(dict.fromkeys(notes))


def _described(kwargs: Mapping[str, Json]) -> str | None:
    """The only text among the arguments, which best describes the entry; `None` if there are several or none."""
    texts = [text for value in kwargs.values() if isinstance(value, str) and (text := " ".join(value.split()))]
    if len(texts) != 1:
        return None
    return texts[0] if len(texts[0]) <= LONGEST_DESCRIPTION else f"{texts[0][: LONGEST_DESCRIPTION - 1]}…"
