"""The loan desk as an Agno agent; a real one names a model such as `OpenAIChat("gpt-5")` instead of `Rules`."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, Call, next_step

_NUMBERS = itertools.count(1)


@dataclass
class Rules(Model):
    """Stands in for a model."""

    id: str = "rules"

    async def ainvoke(self, messages: Any, **_: Any) -> ModelResponse:
        questions = [message.content for message in messages if message.role == "user"]
        step = next_step(questions, messages[-1].content if messages[-1].role == "tool" else None)
        if isinstance(step, Call):
            function = {"name": step.name, "arguments": json.dumps(step.arguments)}
            call = {"id": f"c{next(_NUMBERS)}", "type": "function", "function": function}
            return ModelResponse(role="assistant", tool_calls=[call])
        return ModelResponse(role="assistant", content=step)

    def invoke(self, *_: Any, **__: Any) -> ModelResponse:
        raise NotImplementedError

    def invoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def ainvoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def _as_tool(function: Any) -> Any:
    """Agno turns results into text with `str`; as JSON, a model reads them better."""

    def tool(**arguments: Any) -> str:
        return json.dumps(function(**arguments))

    tool.__name__, tool.__doc__ = function.__name__, function.__doc__
    tool.__wrapped__, tool.__annotations__ = function, function.__annotations__  # type: ignore[attr-defined]
    return tool


agent = Agent(
    name="loan desk",
    model=Rules(),
    instructions=INSTRUCTIONS,
    tools=[_as_tool(function) for function in TOOLS],
    db=InMemoryDb(),
    add_history_to_context=True,
    telemetry=False,
)
