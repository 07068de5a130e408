"""The loan desk as a Pydantic AI agent; a real one names a model such as `openai:gpt-5` instead of `FunctionModel`."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, next_step


def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a model."""
    parts = [part for message in messages for part in message.parts]
    questions = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    latest = parts[-1]
    step = next_step(questions, latest.content if isinstance(latest, ToolReturnPart) else None)
    part = TextPart(step) if isinstance(step, str) else ToolCallPart(step.name, step.arguments)
    return ModelResponse(parts=[part])


agent = Agent(FunctionModel(think), instructions=INSTRUCTIONS, tools=TOOLS)
