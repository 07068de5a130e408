"""Runs with the real google-adk in an environment of its own: `make frameworks`."""

from __future__ import annotations

from typing import Any

import pytest
from framework_contract import FrameworkContract

pytest.importorskip("google.adk", reason="google-adk has an environment of its own: make frameworks")

from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from scripted_adk import Scripted, agent, get_rate, get_rate_with_state, part

pytestmark = pytest.mark.filterwarnings("ignore")


class Broken(Scripted):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        raise RuntimeError("the model is on strike")
        yield


class OneId(Scripted):
    """Calls two tools one after the other, both with the id `call_0`."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts]
        made = sum(part.function_response is not None for part in parts)
        if made == 2:
            yield part("done")
        else:
            response = part(call=(("get_rate", "other")[made], {"city": "Oslo"}))
            response.content.parts[0].function_call.id = "call_0"
            yield response


def other(city: str) -> dict[str, str]:
    "Another tool."
    return {"city": city}


class TestGoogleAdk(FrameworkContract):
    folder = "google_adk"
    source = "from google.adk.agents import LlmAgent\nagent = LlmAgent(name='rates', model='gemini-2.5-flash')\n"
    raising_tool_fails_the_run = True
    outer_tool = "rate_agent"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return agent(model=Broken())

    def other_agents(self) -> list[Any]:
        return [agent(instruction="Be brief."), agent(get_rate_with_state)]

    def visiting_agent(self) -> Any:
        return agent(get_rate_with_state)

    def agent_with_one_id(self) -> Any:
        return LlmAgent(name="rates", model=OneId(), tools=[get_rate, other])

    def nested_agent(self) -> Any:
        inner = agent(name="rate_agent", description="rates")
        return agent(AgentTool(inner), name="desk", model=Scripted(tool="rate_agent"), instruction="Delegate.")
