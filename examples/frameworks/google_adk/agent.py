"""The loan desk as an agent of Google's ADK; a real one names a model such as `gemini-3-pro` instead of `Rules`."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, next_step


class Rules(BaseLlm):
    """Stands in for a model."""

    model: str = "rules"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents if content.role == "user" for part in content.parts]
        used = parts[-1].function_response
        step = next_step([part.text for part in parts if part.text], None if used is None else used.response)
        if isinstance(step, str):
            said = types.Part(text=step)
        else:
            said = types.Part(function_call=types.FunctionCall(name=step.name, args=step.arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


agent = LlmAgent(name="loan_desk", model=Rules(), instruction=INSTRUCTIONS, tools=list(TOOLS))
