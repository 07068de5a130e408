"""An agent of the real google-adk with a model that calls one tool with the user's words, then says its result."""

from __future__ import annotations

from typing import Any

from framework_contract import PROMPTS, rate_of
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def part(text: str = "", call: tuple[str, dict[str, Any]] | None = None) -> LlmResponse:
    content = (
        types.Part(text=text)
        if call is None
        else types.Part(function_call=types.FunctionCall(name=call[0], args=call[1]))
    )
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=11, candidates_token_count=7)
    return LlmResponse(content=types.Content(role="model", parts=[content]), usage_metadata=usage)


def user_texts(request: Any) -> list[str]:
    """What the user said so far."""
    return [part.text for content in request.contents if content.role == "user" for part in content.parts if part.text]


class Scripted(BaseLlm):
    """Calls one tool with the user's words, then tells its result."""

    model: str = "scripted"
    tool: str = "get_rate"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        said = user_texts(llm_request)
        PROMPTS.append(said)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            yield part(call=(self.tool, {"request" if self.tool.endswith("agent") else "city": said[-1]}))
        else:
            yield part(f"It says {last.function_response.response}")


def get_rate(city: str, tool_context: Any = None) -> dict[str, Any]:
    "The rate in a city."
    return {"rate": rate_of(city)}


def get_rate_with_state(city: str, tool_context) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    "The rate in a city."
    seen = tool_context.state.get("seen", [])
    tool_context.state["seen"] = [*seen, city]
    return {"rate": f"rate of {city} for {tool_context.state.get('customer')}"}


get_rate_with_state.__name__ = "get_rate"


def agent(tool: Any = get_rate, **more: Any) -> LlmAgent:
    settings = {"name": "rates", "model": Scripted(), "instruction": "Use tools.", **more}
    return LlmAgent(tools=[tool], **settings)
