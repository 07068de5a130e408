"""Real agents of google-adk whose model follows a script: `SCRIPTS` has what it says and calls.

The script of a message is a list of steps; a step is a list of parts: a text, `{"thought": text}`, or
`{"call": name, "args": {...}}`. The model takes the next step whenever the results of its calls arrive. A script may
have one list of steps for each agent, by name.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import BaseModel

SCRIPTS: dict[str, Any] = {}
"""By the text of a user's message."""


class Scripted(BaseLlm):
    """A model that follows the script of the user's last message."""

    model: str = "scripted"
    agent: str = ""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        steps, number = self._script(llm_request.contents)
        parts = [as_part(part) for part in steps[min(number, len(steps) - 1)]]
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=11, candidates_token_count=7)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)

    def _script(self, contents: list[Any]) -> tuple[list[Any], int]:
        """The steps of this agent, and how many of them are done."""
        number = 0
        for content in reversed(contents):
            for part in reversed(content.parts or ()):
                if part.text in SCRIPTS:
                    script = SCRIPTS[part.text]
                    return script[self.agent] if isinstance(script, dict) else script, number
            number += any(part.function_response for part in content.parts or ())
        raise LookupError(f"{self.agent} has no script for {contents}")


def as_part(part: Any) -> types.Part:
    if isinstance(part, str):
        return types.Part(text=part)
    if "thought" in part:
        return types.Part(text=part["thought"], thought=True)
    return types.Part(function_call=types.FunctionCall(name=part["call"], args=part.get("args", {})))


def get_rate(city: str) -> dict[str, Any]:
    """The rate in a city."""
    return {"rate": f"rate of {city}"}


def book(city: str, nights: Any = 1, options: Any = None) -> dict[str, Any]:
    """Book a room."""
    return {"booked": city}


def fail(city: str) -> dict[str, Any]:
    """Never works."""
    raise ValueError(f"no rates in {city}")


def refuse(city: str) -> dict[str, Any]:
    """Returns an error."""
    return {"error": f"no rates in {city}"}


def remember(key: str, value: Any, tool_context: ToolContext) -> dict[str, Any]:
    """Store a value in the session."""
    tool_context.state[key] = value
    return {"known": sorted(name for name in tool_context.state.to_dict() if not name.startswith("__"))}


def make(name: str, **more: Any) -> LlmAgent:
    settings: dict[str, Any] = {
        "name": name,
        "model": Scripted(agent=name),
        "description": f"the {name}",
        "instruction": "Follow the script.",
        "tools": [get_rate, book, fail, refuse, remember],
    }
    return LlmAgent(**settings | more)


class Quiet(BasePlugin):
    """A plugin of the application, which answers calls of `refuse`."""

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        return {"rate": "from a cache"} if tool.name == "refuse" else None


class Weather(BaseModel):
    """The answer of an agent that answers with data."""

    city: str
    degrees: float


def skip(callback_context: Any) -> types.Content:
    """Answers for the agent, which does not run."""
    return types.Content(role="model", parts=[types.Part(text="Closed today.")])


AGENTS = {
    "data": lambda: make("data", tools=[], output_schema=Weather, output_key="weather"),
    "loop": lambda: LoopAgent(name="loop", max_iterations=2, sub_agents=[make("first")]),
    "nested": lambda: SequentialAgent(
        name="nested", sub_agents=[SequentialAgent(name="inner", sub_agents=[make("first")]), make("second")]
    ),
    "closed": lambda: make("closed", before_agent_callback=skip),
    "desk": lambda: make(
        "desk",
        tools=[get_rate, book, fail, refuse, remember, AgentTool(make("helper"))],
        sub_agents=[make("billing")],
    ),
    "flow": lambda: SequentialAgent(name="flow", sub_agents=[make("first"), make("second")]),
}


def module_text(name: str) -> str:
    """The text of a module with the agent, as a user writes one."""
    if name == "app":
        return (
            "import adk_agents\nfrom google.adk.apps import App\n"
            "root_agent = adk_agents.make('desk')\n"
            "app = App(name='app_agent', root_agent=root_agent, plugins=[adk_agents.Quiet(name='quiet')])\n"
        )
    if name == "factory":
        return (
            "import adk_agents\nfrom contextlib import AsyncExitStack\n"
            "async def get_agent_async():\n    return adk_agents.make('desk'), AsyncExitStack()\n"
        )
    return f"import adk_agents\nroot_agent = adk_agents.AGENTS[{name!r}]()\n"
