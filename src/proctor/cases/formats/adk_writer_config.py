"""Writes the evaluators of suites as ADK criteria: one set of them for all cases, which is all that ADK knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from proctor.cases.formats.adk_config import DEFAULTS, FILE_NAME
from proctor.cases.formats.adk_content import is_literal
from proctor.cases.formats.adk_custom import described
from proctor.cases.formats.adk_metrics import INFORMING, METRICS, metric_of
from proctor.cases.formats.adk_suite import evaluators_for
from proctor.cases.formats.unsaid import json_text, unsaid
from proctor.cases.model import Case, EvaluatorSpec, ExpectedCall, Suite
from proctor.plain import Json

SPEC_SAID = {"name", "arguments", "threshold", "label", "scope"}


def write_config(suites: Sequence[Suite], notes: Mapping[str, Json]) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The config as (name, text), none where ADK's defaults say the same, and what it could not say.

    `notes` are what the first suite's own config said of custom metrics and simulated users.
    """
    simulated = [case for suite in suites for case in suite.cases if case.scenario is not None]
    if all(_is_default(suite) for suite in suites) and not simulated:
        return (), []
    draft = _Draft(suites, notes.get("customMetrics") or {})
    for spec in _distinct(suites):
        draft.add(spec)
    draft.losses += [
        f"case {case.id!r}: is scored by fewer evaluators than others; ADK applies all criteria to every case"
        for suite in suites
        for case in suite.cases
        if {draft.name_of(spec) for spec in _in_force(suite, case)} - {None} != draft.criteria.keys()
    ]
    config: dict[str, Json] = {"criteria": draft.criteria}
    if draft.custom:
        config["custom_metrics"] = draft.custom
    if simulated:
        from proctor.cases.formats.adk_scenario import write_simulator

        simulator = write_simulator(simulated, notes.get("userSimulatorConfig"), draft.losses)
        config |= {"user_simulator_config": simulator} if simulator else {}
    if not draft.criteria:
        return (), [*draft.losses, "no evaluator has an ADK metric; ADK's default criteria will apply"]
    return ((FILE_NAME, json_text(config)),), draft.losses


class _Draft:
    """Criteria as they come together, and what they could not say."""

    def __init__(self, suites: Sequence[Suite], kept: Mapping[str, Json]) -> None:
        self.criteria: dict[str, Json] = {}
        self.custom: dict[str, Json] = {}
        self.losses: list[str] = []
        self._suites = suites
        self._kept = kept

    def add(self, spec: EvaluatorSpec) -> None:
        found = described(spec, self._kept)
        if found is None:
            metric, criterion = _criterion(_as_trajectory(spec, self._suites), self.losses)
        else:
            metric, custom, data = found
            criterion = custom.criterion(spec)
            self.losses += unsaid(spec, SPEC_SAID, f"evaluator {spec.title!r}")
            self.custom[metric] = data
        if metric is None:
            return
        if metric in self.criteria:
            self.losses.append(f"evaluator {spec.title!r}: {metric} can be given only once")
        self.criteria.setdefault(metric, criterion)

    def name_of(self, spec: EvaluatorSpec) -> str | None:
        found = described(spec, self._kept)
        return metric_of(_as_trajectory(spec, self._suites)) if found is None else found[0]


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
    if metric in INFORMING:
        return metric, {}
    losses += unsaid(spec, SPEC_SAID, owner)
    if spec.threshold is None:
        spec = replace(spec, threshold=METRICS[metric].usual)
    criterion = METRICS[metric].criterion(spec)
    if criterion is None:
        losses.append(f"{owner}: {metric} cannot express its arguments")
        return None, None
    return metric, criterion
