"""Writes the evaluators of suites as ADK criteria: one set of them for all cases, which is all that ADK knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from proctor.cases.formats.adk_config import DEFAULTS, FILE_NAME
from proctor.cases.formats.adk_content import is_literal
from proctor.cases.formats.adk_metrics import METRICS, metric_of
from proctor.cases.formats.adk_suite import evaluators_for
from proctor.cases.formats.unsaid import json_text, unsaid
from proctor.cases.model import Case, EvaluatorSpec, ExpectedCall, Suite
from proctor.plain import Json

SPEC_SAID = {"name", "arguments", "threshold", "label", "scope"}


def write_config(suites: Sequence[Suite]) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The config as (name, text), none where ADK's defaults say the same, and what it could not say."""
    if all(_is_default(suite) for suite in suites):
        return (), []
    losses: list[str] = []
    criteria: dict[str, Json] = {}
    for spec in _distinct(suites):
        metric, criterion = _criterion(_as_trajectory(spec, suites), losses)
        if metric is None:
            continue
        if metric in criteria:
            losses.append(f"evaluator {spec.title!r}: {metric} can be given only once")
        criteria.setdefault(metric, criterion)
    losses += [
        f"case {case.id!r}: is scored by fewer evaluators than others; ADK applies all criteria to every case"
        for suite in suites
        for case in suite.cases
        if {metric_of(_as_trajectory(spec, suites)) for spec in _in_force(suite, case)} - {None} != criteria.keys()
    ]
    if not criteria:
        return (), [*losses, "no evaluator has an ADK metric; ADK's default criteria will apply"]
    return ((FILE_NAME, json_text({"criteria": criteria})),), losses


def _as_trajectory(spec: EvaluatorSpec, suites: Sequence[Suite]) -> EvaluatorSpec:
    """Expected tools are a trajectory in any order; arguments that an EvalSet cannot write are not compared at all."""
    if spec.name == "ExpectedTools":
        spec = replace(spec, name="ToolTrajectory", arguments={"match": "ANY_ORDER"})
    if spec.name != "ToolTrajectory" or all(map(is_literal, _expected_calls(suites))):
        return spec
    return replace(spec, arguments={**spec.arguments, "ignore_args": True})


def _expected_calls(suites: Sequence[Suite]) -> Iterator[ExpectedCall]:
    for suite in suites:
        for case in suite.cases:
            for turn in case.turns:
                yield from turn.expected.tool_calls or ()


def _is_default(suite: Suite) -> bool:
    return suite.evaluators == DEFAULTS.specs and all(
        suite.evaluators_of(case) == evaluators_for(case, DEFAULTS) for case in suite.cases
    )


def _distinct(suites: Sequence[Suite]) -> list[EvaluatorSpec]:
    specs: list[EvaluatorSpec] = []
    for suite in suites:
        for case in suite.cases:
            specs.extend(spec for spec in _in_force(suite, case) if spec not in specs)
    return specs


def _in_force(suite: Suite, case: Case) -> list[EvaluatorSpec]:
    """The specs of a case but for the one that an EvalSet implies by its final session state."""
    implied = case.final_state is not None
    return [spec for spec in suite.evaluators_of(case) if not (implied and spec.name == "FinalState")]


def _criterion(spec: EvaluatorSpec, losses: list[str]) -> tuple[str | None, Json]:
    owner = f"evaluator {spec.title!r}"
    metric = metric_of(spec)
    if metric is None:
        losses.append(f"{owner}: has no ADK metric")
        return None, None
    losses += unsaid(spec, SPEC_SAID, owner)
    if spec.threshold is None:
        spec = replace(spec, threshold=METRICS[metric].usual)
    criterion = METRICS[metric].criterion(spec)
    if criterion is None:
        losses.append(f"{owner}: {metric} cannot express its arguments")
        return None, None
    return metric, criterion
