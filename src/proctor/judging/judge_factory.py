"""Where judges are made from their names, each once: what they share (memory, pace, budget) lives here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import canonical
from proctor.judging.judge import Endpoint, Judge, JudgeCallStore
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.judge_specs import JudgeSpec, PanelSpec, read_panel, wrong_kind
from proctor.judging.limits import Budget, Limits, RateLimiter
from proctor.judging.local_model import LocalEndpoint, LocalSpec
from proctor.judging.model_judge import ModelJudge, Shape, Wording
from proctor.judging.panel import Panel
from proctor.judging.prompts import prompt_of, schema_of
from proctor.judging.providers import ProviderEndpoint
from proctor.judging.small_model_prompts import brief_prompt_of, counted_schema_of, reasoned_prompt_of


class SharedJudges:
    """Gives the same judge for the same name, so that all who ask it keep to one pace and one budget."""

    def __init__(self, call_store: JudgeCallStore | None = None, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._cache = JudgeCache(call_store)
        self._panels: dict[str, Panel] = {}
        self._judges: dict[JudgeSpec, Judge] = {}
        self._rate_limiters: dict[tuple[str, Limits], RateLimiter] = {}

    def panel(self, named: Any) -> Panel:
        """Whoever `named` means. Nothing is asked yet, but what can be known to be missing is complained about."""
        if isinstance(named, Panel):
            return named
        if not isinstance(named, (str, Mapping)):
            if callable(getattr(named, "ask", None)) and isinstance(getattr(named, "name", None), str):
                return Panel((named,))
            raise wrong_kind(named)
        key = canonical(named)
        panel = self._panels.get(key)
        if panel is None:
            spec = read_panel(named)
            if not spec.members:
                return self._usual(spec)
            panel = self._panels[key] = self._made(spec)
        return panel

    def _made(self, spec: PanelSpec) -> Panel:
        panel = Panel(tuple(self._judge(member) for member in spec.members), spec.samples, spec.mode)
        return panel if spec.band is None else replace(panel, band=spec.band)

    def _usual(self, spec: PanelSpec) -> Panel:
        """Options that name nobody are for whoever judges anyhow."""
        from proctor.judging.context import current_judge_context

        judge = current_judge_context().judge
        if isinstance(judge, Mapping) and not read_panel(judge).members:
            raise UsageError("the judge has options and no model; write for example {model: openai:gpt-5-mini}")
        return replace(self.panel(judge), samples=spec.samples)

    def _judge(self, spec: JudgeSpec) -> Judge:
        judge = self._judges.get(spec)
        if judge is None:
            judge = self._judges[spec] = self._appointed(spec)
        return judge

    def _appointed(self, spec: JudgeSpec) -> Judge:
        if isinstance(spec.who, str):
            from proctor.judging.rule_judge.rule_judge import EmbeddedJudge

            return EmbeddedJudge()
        free = spec.who.temperature is None
        if isinstance(spec.who, LocalSpec):
            elsewise = LocalEndpoint(spec.who, varied=True) if free else None
            wording = reasoned_prompt_of if spec.who.reasons == "before" else brief_prompt_of
            return self._model_judge(spec, LocalEndpoint(spec.who), elsewise, wording, counted_schema_of)
        varied = ProviderEndpoint(spec.who, varied=True) if free else None
        return self._model_judge(spec, ProviderEndpoint(spec.who), varied)

    def _model_judge(
        self,
        spec: JudgeSpec,
        endpoint: Endpoint,
        varied: Endpoint | None,
        wording: Wording = prompt_of,
        shape: Shape = schema_of,
    ) -> Judge:
        place = (endpoint.address, spec.limits)
        return ModelJudge(
            endpoint,
            varied=varied,
            wording=wording,
            shape=shape,
            cache=self._cache,
            rate_limiter=self._rate_limiters.setdefault(place, RateLimiter(spec.limits)),
            budget=self.budget,
            timeout=spec.timeout,
        )
