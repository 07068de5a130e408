"""ADK's way to write a judge."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.judging.choosing import EVALUATOR, JudgeSources, WrittenJudge, choose_judge
from proctor.judging.providers import ModelSpec
from proctor.judging.specs import PanelSpec, read_panel


@pytest.mark.parametrize(
    ("written", "provider", "name", "samples"),
    [
        ({"judge_model": "gemini-2.5-flash"}, "google", "gemini-2.5-flash", 1),
        ({"judgeModel": "openai/gpt-4o", "numSamples": 3}, "openai", "gpt-4o", 3),
        ({"judge_model": "anthropic:claude-sonnet-5"}, "anthropic", "claude-sonnet-5", 1),
    ],
)
def test_a_model_is_named_as_adk_names_it(written: Any, provider: str, name: str, samples: int) -> None:
    panel = read_panel(written)
    assert (panel.members[0].model, panel.samples) == (ModelSpec(provider, name), samples)


def test_every_option_reaches_the_model() -> None:
    config = {"temperature": 0.5, "maxOutputTokens": 77}
    panel = read_panel(
        {"judge_model": "gemini-2.5-flash", "num_samples": 5, "parallelism_limit": 2, "judge_model_config": config}
    )
    assert panel.samples == 5
    assert panel.members[0].limits.maximum == 2
    assert panel.members[0].model == ModelSpec("google", "gemini-2.5-flash", temperature=0.5, max_tokens=77)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"judge_model": "gemini-2.5-flash", "judge_model_config": {"tools": []}}, "judge.judge_model_config.tools"),
        ({"judge_model": "llama-3"}, "provider:model"),
    ],
)
def test_what_is_wrong_is_said(written: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_panel(written)
    assert said in str(caught.value)


def test_options_without_a_model_apply_to_anyone_who_judges() -> None:
    assert read_panel({"num_samples": 5}) == PanelSpec(samples=5)
    choice = choose_judge(JudgeSources(), WrittenJudge({"num_samples": 5}, EVALUATOR))
    assert (choice.origin, choice.panel.samples) == ("default", 5)
