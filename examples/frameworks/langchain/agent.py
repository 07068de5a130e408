"""The loan desk as a LangChain agent; a real one names a model such as `openai:gpt-5` instead of `Rules`."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, next_step


class Rules(BaseChatModel):
    """Stands in for a model."""

    @property
    def _llm_type(self) -> str:
        return "rules"

    def bind_tools(self, tools: Any, **named: Any) -> Rules:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        questions = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
        step = next_step(questions, messages[-1].content if isinstance(messages[-1], ToolMessage) else None)
        if isinstance(step, str):
            message = AIMessage(step)
        else:
            call = {"name": step.name, "args": step.arguments, "id": uuid.uuid4().hex}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


agent = create_agent(Rules(), list(TOOLS), system_prompt=INSTRUCTIONS, checkpointer=InMemorySaver())
