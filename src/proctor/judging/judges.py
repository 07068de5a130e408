"""The judges of a run: one per spec, with the cache, the rate limits and the budget that they share."""

from __future__ import annotations

from typing import Any

from proctor.base.errors import UsageError
from proctor.base.rate_limit import RateLimiter, RateLimits
from proctor.judging.budget import Budget
from proctor.judging.cache import JudgeCache
from proctor.judging.client import ClientEndpoint
from proctor.judging.judge import Endpoint, Judge, JudgeCallStore
from proctor.judging.model_judge import ModelJudge
from proctor.judging.panel import Panel
from proctor.judging.providers import ModelSpec, ProviderEndpoint
from proctor.judging.specs import JudgeSpec, read_panel


class Judges:
    """Creates one judge per spec, so that all its callers share one rate limit and one budget.

    `call_store` stores prompts and replies beyond the process; without it, they are in memory only.
    """

    def __init__(self, call_store: JudgeCallStore | None = None, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self.cache = JudgeCache(call_store)
        self._is_stored = call_store is not None
        self._judges: dict[JudgeSpec, Judge] = {}
        self._rate_limiters: dict[tuple[str, RateLimits], RateLimiter] = {}

    def panel(self, written: Any) -> Panel:
        """The judges for a `PanelSpec`, or for anything else that `read_panel` reads.

        Raises `UsageError` for an invalid name or a missing package, address or key. Sends nothing.
        """
        spec = read_panel(written)
        if not spec.members:
            raise UsageError("the judge has options but no model; write for example {model: openai:gpt-5-mini}")
        members = tuple(self._judge(member) for member in spec.members)
        panel = Panel(members, spec.samples, spec.mode)
        return panel if spec.band is None else Panel(members, spec.samples, spec.mode, spec.band)

    def _judge(self, spec: JudgeSpec) -> Judge:
        model = spec.model
        if not isinstance(model, (str, ModelSpec, ClientEndpoint)):
            return model  # a Judge object; it may not be hashable
        if spec not in self._judges:
            self._judges[spec] = self._new_judge(spec, model)
        return self._judges[spec]

    def _new_judge(self, spec: JudgeSpec, model: str | ModelSpec | ClientEndpoint) -> Judge:
        if isinstance(model, str):
            # Heavy (word lists and patterns), and most runs ask no judge.
            from proctor.judging.rule_judge.judge import RuleJudge

            return RuleJudge()
        if isinstance(model, ClientEndpoint):
            # Class and address identify a client well enough for the store of a project. In memory, where tests create
            # many clients of one class, each has its own answers.
            return self._model_judge(spec, model, None, self.cache if self._is_stored else JudgeCache())
        # Samples after the first use the model's default temperature, unless the user set one.
        sampling = ProviderEndpoint(model, for_sampling=True) if model.temperature is None else None
        return self._model_judge(spec, ProviderEndpoint(model), sampling, self.cache)

    def _model_judge(self, spec: JudgeSpec, endpoint: Endpoint, sampling: Endpoint | None, cache: JudgeCache) -> Judge:
        limiter_key = (endpoint.address, spec.limits)
        return ModelJudge(
            endpoint,
            sampling_endpoint=sampling,
            cache=cache,
            rate_limiter=self._rate_limiters.setdefault(limiter_key, RateLimiter(spec.limits)),
            budget=self.budget,
            timeout=spec.timeout,
        )
