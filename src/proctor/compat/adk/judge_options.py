"""ADK's spelling of a judge: the `judge_model_options` of a test_config.json."""

from __future__ import annotations

from typing import Any

from proctor.base.documents import Fields
from proctor.judging.provider_table import PROVIDERS, parse_model_name
from proctor.judging.providers import ModelSpec
from proctor.judging.specs import JudgeSpec, PanelSpec, rate_limits


def read_judge(fields: Fields) -> PanelSpec | None:
    """Read `{judge_model, num_samples, judge_model_config, parallelism_limit}`."""
    judge_model, samples = fields.text("judge_model", blank=False), fields.integer("num_samples", 1, least=1)
    limits = rate_limits(fields.integer("parallelism_limit", least=1))
    config = fields.inside("judge_model_config")
    settings: dict[str, Any] = {}
    if config is not None:
        settings["temperature"] = config.number("temperature", least=0, most=2)
        settings["top_p"] = config.number("top_p", least=0, most=1)
        settings["max_tokens"] = config.integer("max_output_tokens", least=1)
        config.report_unknown_keys()
    if judge_model is None:
        return PanelSpec(samples=samples)
    provider, model = parse_model_name(model_name(judge_model))
    return PanelSpec((JudgeSpec(ModelSpec(provider, model, **settings), limits=limits),), samples)


def model_name(judge_model: str) -> str:
    """`provider:model` for a model name in ADK's spelling; a bare `gemini-...` is Google's."""
    if ":" in judge_model:
        return judge_model
    provider, slash, model = judge_model.partition("/")
    if slash and provider in PROVIDERS:
        return f"{provider}:{model}"
    return f"google:{judge_model}" if judge_model.startswith("gemini") else judge_model
