"""The loan desk with the OpenAI Agents SDK; a real one names a model such as `gpt-5` instead of `Rules`."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Agent, Model, ModelResponse, Usage, function_tool

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, next_step

_NUMBERS = itertools.count(1)


class Rules(Model):
    """Stands in for a model."""

    async def get_response(self, system_instructions: Any, input: Any, *given: Any, **named: Any) -> ModelResponse:  # noqa: A002
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        questions = [item["content"] for item in items if item.get("role") == "user"]
        step = next_step(questions, items[-1].get("output"))
        return ModelResponse(output=[_item(step)], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def _item(step: Any) -> Any:
    number = next(_NUMBERS)
    if isinstance(step, str):
        text = ResponseOutputText(text=step, type="output_text", annotations=[])
        return ResponseOutputMessage(
            id=f"m{number}", content=[text], role="assistant", status="completed", type="message"
        )
    return ResponseFunctionToolCall(
        call_id=f"c{number}", name=step.name, arguments=json.dumps(step.arguments), type="function_call"
    )


agent = Agent(name="loan desk", instructions=INSTRUCTIONS, model=Rules(), tools=[function_tool(t) for t in TOOLS])
