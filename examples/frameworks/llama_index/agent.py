"""The loan desk as a LlamaIndex agent; a real one names a model such as `OpenAI("gpt-5")` instead of `Rules`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolSelection

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, TOOLS, Call, next_step

_NUMBERS = itertools.count(1)


class Rules(FunctionCallingLLM):
    """Stands in for a model."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="rules", is_function_calling_model=True)

    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        questions = [message.content for message in messages if message.role == MessageRole.USER]
        latest = messages[-1]
        step = next_step(questions, latest.content if latest.role == MessageRole.TOOL else None)
        told = {"call": step} if isinstance(step, Call) else {}
        text = "" if isinstance(step, Call) else step
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text, additional_kwargs=told))

    def get_tool_calls_from_response(self, response: ChatResponse, **_: Any) -> list[ToolSelection]:
        call = response.message.additional_kwargs.get("call")
        if call is None:
            return []
        return [ToolSelection(tool_id=f"c{next(_NUMBERS)}", tool_name=call.name, tool_kwargs=call.arguments)]

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": chat_history or []}

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    complete = stream_chat = stream_complete = acomplete = astream_chat = astream_complete = chat


def _as_tool(function: Any) -> FunctionTool:
    """LlamaIndex turns results into text with `str`; as JSON, a model reads them better."""

    def tool(**arguments: Any) -> str:
        return json.dumps(function(**arguments))

    described = FunctionTool.from_defaults(function).metadata
    return FunctionTool.from_defaults(tool, tool_metadata=described)


agent = FunctionAgent(
    name="loan_desk",
    llm=Rules(),
    system_prompt=INSTRUCTIONS,
    tools=[_as_tool(function) for function in TOOLS],
    streaming=False,
)
