"""An agent that is a chat model with instructions and tools: the loop that every such agent has, with nothing added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from proctor.agents.chat_model import Answer, ChatLine, ChatModel, Request
from proctor.agents.chat_tools import ChatTool
from proctor.agents.doubles import answer_async, is_doubled
from proctor.agents.frameworks.sessions import CallLog, text_of
from proctor.agents.model import Reply
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed
from proctor.plain import Json, fingerprint, plain, show
from proctor.records import record
from proctor.references import describe

MAX_TURNS = 10


@record
class ChatCharacter:
    """What a model is told and given, the same in every conversation."""

    instructions: str = ""
    tools: tuple[ChatTool, ...] = ()
    max_turns: int = MAX_TURNS
    """How often the model may be asked before it has answered one turn."""
    answers_data: bool = False
    """Whether the model was asked to answer in JSON."""


class ChatAgent:
    """A model with a character."""

    takes_files = False

    def __init__(self, model: ChatModel, character: ChatCharacter, name: str = "") -> None:
        self.model = model
        self.character = character
        self.tools = character.tools
        self.name = name or model.name
        tools = [[tool.name, tool.description, tool.parameters, tool.fingerprint] for tool in character.tools]
        self.fingerprint = fingerprint(model.fingerprint, character.instructions, tools, character.max_turns)

    def __repr__(self) -> str:
        return f"ChatAgent({self.name})"

    async def start(self) -> None:
        await self.model.start()

    async def stop(self) -> None:
        await self.model.stop()

    def session(self, case: Case) -> ChatSession:
        return ChatSession(self, case)


class ChatSession:
    """One conversation, of which the model is told everything each time."""

    def __init__(self, agent: ChatAgent, case: Case) -> None:
        self._character = agent.character
        self._opening = agent.model.line(case)
        self._tools = {tool.name: tool for tool in agent.character.tools}
        told = agent.character.instructions
        self._messages: list[Json] = [{"role": "system", "content": told}] if told else []

    async def __aenter__(self) -> ChatSession:
        self._line: ChatLine = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._opening.__aexit__(*problem)  # type: ignore[arg-type]

    async def send(self, turn: Turn) -> Reply:
        log = CallLog()
        self._messages.append({"role": "user", "content": text_of(turn)})
        for _ in range(self._character.max_turns):
            answer = await self._line.complete(self._messages, self._character.tools)
            log.spend(answer.usage)
            self._messages.append(answer.message)
            if not answer.requests:
                return Reply(answer.text, log.calls, log.usage, structured=self._data(answer))
            self._messages += [await self._serve(request, log) for request in answer.requests]
        names = ", ".join(sorted({call.name for call in log.calls}))
        limit = self._character.max_turns
        raise AgentFailed(
            f"gave no answer after {limit} model calls (max_turns), all of which asked for tools: {names}"
        )

    async def _serve(self, request: Request, log: CallLog) -> Json:
        """Call a tool; what goes wrong is told to the model, which may know better next time."""
        taken = any(call.id == request.id for call in log.calls)  # some services begin to count anew each time
        key = log.begin(None if taken else request.id, request.name, request.arguments)
        try:
            result = plain(await self._call(request))
        except Exception as error:
            log.end(key, error=error)
            result = {"error": describe(error)}
        else:
            log.end(key, result)
        return {"role": "tool", "tool_call_id": request.id, "content": show(result)}

    async def _call(self, request: Request) -> Json:
        arguments = _object(request.arguments)
        if is_doubled(request.name):
            return await answer_async(request.name, arguments)
        tool = self._tools.get(request.name)
        if tool is None:
            raise LookupError(f"there is no tool {request.name}; there is {_names(self._character.tools)}")
        return await tool.call(arguments)

    def _data(self, answer: Answer) -> Json:
        if not self._character.answers_data:
            return None
        try:
            return plain(json.loads(answer.text))
        except (ValueError, RecursionError):
            return None


def _names(tools: Sequence[ChatTool]) -> str:
    return ", ".join(tool.name for tool in tools) or "none at all"


def _object(written: Json) -> Mapping[str, Json]:
    try:
        arguments = json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON: {error}") from None
    if not isinstance(arguments, Mapping):
        raise ValueError("the arguments are not a JSON object")
    return arguments
