"""Makes judges from their names, each once, and holds what they share: cache, rate limits, budget."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import canonical
from proctor.judging.context import JudgeContext, engine_judge_context, judge_in_force
from proctor.judging.judge import Endpoint, Judge, JudgeCallStore
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.judge_specs import JudgeSpec, PanelSpec, read_panel, wrong_kind
from proctor.judging.limits import Budget, Limits, RateLimiter
from proctor.judging.model_judge import ModelJudge
from proctor.judging.panel import Panel
from proctor.judging.providers import ProviderEndpoint


class SharedJudges:
    """Gives the same judge for the same name, so that all its callers share one rate limit and one budget."""

    def __init__(self, call_store: JudgeCallStore | None = None, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._cache = JudgeCache(call_store)
        self._panels: dict[str, Panel] = {}
        self._judges: dict[JudgeSpec, Judge] = {}
        self._rate_limiters: dict[tuple[str, Limits], RateLimiter] = {}

    def panel(self, named: Any) -> Panel:
        """The judges that `named` means; raises `UsageError`, also for a missing package or key. Sends nothing yet."""
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
                return self._current_judge_with(spec)
            members = tuple(self._judge(member) for member in spec.members)
            panel = Panel(members, spec.samples, spec.mode)
            panel = self._panels[key] = panel if spec.band is None else replace(panel, band=spec.band)
        return panel

    def _current_judge_with(self, spec: PanelSpec) -> Panel:
        """Options without a model apply to the judge of the current context."""
        judge = judge_in_force()
        if isinstance(judge, Mapping) and not read_panel(judge).members:
            raise UsageError("the judge has options and no model; write for example {model: openai:gpt-5-mini}")
        return replace(self.panel(judge), samples=spec.samples)

    def _judge(self, spec: JudgeSpec) -> Judge:
        judge = self._judges.get(spec)
        if judge is None:
            judge = self._judges[spec] = self._new_judge(spec)
        return judge

    def _new_judge(self, spec: JudgeSpec) -> Judge:
        model = spec.model
        if isinstance(model, str):
            # Heavy (word lists and patterns), and most runs ask no judge.
            from proctor.judging.rule_judge.rule_judge import EmbeddedJudge

            return EmbeddedJudge()
        # Samples after the first are asked at the model's own temperature, unless the user fixed one.
        is_free = model.temperature is None
        varied = ProviderEndpoint(model, varied=True) if is_free else None
        return self._model_judge(spec, ProviderEndpoint(model), varied)

    def _model_judge(self, spec: JudgeSpec, endpoint: Endpoint, varied: Endpoint | None) -> Judge:
        limited = (endpoint.address, spec.limits)
        return ModelJudge(
            endpoint,
            varied=varied,
            cache=self._cache,
            rate_limiter=self._rate_limiters.setdefault(limited, RateLimiter(spec.limits)),
            budget=self.budget,
            timeout=spec.timeout,
        )


def current_judge_context() -> JudgeContext:
    """The engine's context; for an evaluator that a user calls directly, one with the judges of this process."""
    return engine_judge_context() or JudgeContext(_judges_of_process(), judge_in_force())


@functools.cache
def _judges_of_process() -> SharedJudges:
    return SharedJudges()
