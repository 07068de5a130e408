"""What ADK's judged criteria have in common: `judge_model_options`, and a majority of independent samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from proctor.cases.model import NOTHING
from proctor.evaluators.adk.votes import Ballot, Tally, take_votes
from proctor.evaluators.judged import Judged
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.judging.model import Judge, Question
from proctor.plain import Json

OPTIONS = ("judge_model", "judge_model_config", "num_samples", "parallelism_limit")

SETTINGS: Final = ("temperature", "top_p", "topP", "max_output_tokens", "maxOutputTokens")
"""What of a `judge_model_config` a judge can be told."""


@dataclass(frozen=True, kw_only=True)
class AdkJudged(Judged):
    """The base of ADK's judged metrics; each item of a reply is decided by the majority of the samples."""

    judge_model_options: Mapping[str, Json] = NOTHING
    """ADK's: `judge_model`, `judge_model_config`, `num_samples`, `parallelism_limit`."""

    usual_samples: ClassVar[int] = 5

    def __post_init__(self) -> None:
        options = self.judge_model_options
        if not isinstance(options, Mapping):
            raise ValueError(f"judge_model_options must be an object, not {options!r:.80}")
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise ValueError(f"judge_model_options has no {unknown[0]!r}; it has {', '.join(OPTIONS)}")
        for name in ("num_samples", "parallelism_limit"):
            _require_count(f"judge_model_options.{name}", options.get(name))
        _require_count("samples", self.samples)
        if self.model is None:
            object.__setattr__(self, "model", judge_named(options))

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        # The samples are taken item by item in `assess`, so the panel is to ask each of its judges for one opinion.
        options = {**self.judge_model_options, "num_samples": self.votes}
        return await Judged.__call__(replace(self, samples=1, judge_model_options=options), evaluable)

    @property
    def votes(self) -> int:
        """How often the judge is asked."""
        given: int | None = self.judge_model_options.get("num_samples") or self.samples
        return given or self.usual_samples

    @property
    def at_once(self) -> int | None:
        """How many samples may be under way at the same time, where the options say."""
        limit: int | None = self.judge_model_options.get("parallelism_limit")
        return limit

    async def vote(self, judge: Judge, question: Question[Any], read: Callable[[Any], Ballot]) -> list[Tally]:
        """What most samples say of each item."""
        return await take_votes(judge, question, read, samples=self.votes, at_once=self.at_once)


def judge_named(options: Mapping[str, Json]) -> Json:
    """The part of ADK's options that says who judges; `None` where they name nobody."""
    model = options.get("judge_model")
    if not isinstance(model, str) or not model:
        return None
    given = options.get("judge_model_config") or {}
    settings = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    return {"judge_model": model, **({"judge_model_config": settings} if settings else {})}


def _require_count(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
