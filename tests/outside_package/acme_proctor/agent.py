"""Acme's agent, which a suite describes: it greets, and repeats the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor import UsageError
from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import resolve_agent


def build(settings: Any, base: Path | None) -> BaseAgent:
    """The agent of `agent: {acme: {greeting: ...}}`."""
    if not isinstance(settings, dict) or "greeting" not in settings:
        raise UsageError("an agent of Acme needs a 'greeting'")

    def answer(question: str) -> str:
        return f"{settings['greeting']}! {question}"

    return resolve_agent(answer)
