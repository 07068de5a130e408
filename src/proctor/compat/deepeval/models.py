"""DeepEval's base class for custom models, and a judge that uses such a model."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any

from proctor.agents.reply import Usage
from proctor.base.errors import one_line
from proctor.base.infrastructure import diagnose
from proctor.base.json_data import Json, to_json
from proctor.base.threads import run_in_thread
from proctor.judging.judge import Completion, EndpointFailed, Prompt, Question
from proctor.judging.model_judge import ModelJudge
from proctor.judging.prompts import schema_of

__all__ = ["DeepEvalBaseLLM"]


class DeepEvalBaseLLM:
    """The base of custom models: `generate` or `a_generate` returns the reply to a prompt."""

    def __init__(self, model: str | None = None, *args: Any, **kwargs: Any) -> None:
        self.name: str | None = model
        self.model = self.load_model(*args, **kwargs)

    def load_model(self, *args: Any, **kwargs: Any) -> Any:
        return None

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method generate")

    async def a_generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method a_generate")

    def get_model_name(self, *args: Any, **kwargs: Any) -> str:
        return str(getattr(self, "name", None) or type(self).__name__)


DeepEvalBaseModel = DeepEvalBaseLLM


def is_model(value: Any) -> bool:
    """Whether it is a custom model, from this class or from DeepEval's own."""
    return (
        not isinstance(value, type) and callable(getattr(value, "get_model_name", None)) and hasattr(value, "generate")
    )


def model_judge(model: Any) -> ModelJudge:
    """A judge that uses the model: its replies are checked, and an unusable one is sent back once."""
    return ModelJudge(_CustomModelEndpoint(model), schema_builder=_Schema)


_BASE = DeepEvalBaseLLM.__name__


class _Schema(dict[str, Json]):
    """The JSON Schema of a reply with the pydantic class it comes from, which custom models receive."""

    def __init__(self, question: Question[Any]) -> None:
        super().__init__(schema_of(question))
        self.reply = question.reply


class _CustomModelEndpoint:
    """Sends prompts to a user's model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = str(model.get_model_name() or type(model).__name__)
        self.address = f"{self.name} {id(model)}"
        self.parameters: Mapping[str, Json] = {}

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        try:
            async with asyncio.timeout(timeout):
                return _completion(await self._generate(_as_text(prompt), getattr(schema, "reply", None)), self.name)
        except TimeoutError:
            message = f"{self.name} did not answer within {timeout:g} s"
            raise EndpointFailed(message, transient=True, timed_out=True) from None
        except Exception as error:
            raise EndpointFailed(f"{self.name} failed: {one_line(error)}", diagnosis=diagnose(error)) from error

    async def _generate(self, text: str, reply: Any) -> Any:
        if any("a_generate" in vars(kind) for kind in type(self._model).__mro__ if kind.__name__ != _BASE):
            return await self._model.a_generate(text, **_schema_for(self._model.a_generate, reply))
        return await run_in_thread(self._model.generate, text, **_schema_for(self._model.generate, reply))


def _schema_for(method: Any, reply: Any) -> dict[str, Any]:
    """`schema=`, if the method has that parameter."""
    parameters = inspect.signature(method).parameters
    takes_schema = "schema" in parameters or any(
        one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()
    )
    return {"schema": reply} if takes_schema and reply is not None else {}


def _as_text(prompt: Prompt) -> str:
    """The prompt as one text, which is all that custom models accept."""
    corrections = [f"{reply}\n\n{complaint}" for reply, complaint in prompt.corrections]
    return "\n\n".join([prompt.system, prompt.user, *corrections])


def _completion(output: Any, name: str) -> Completion:
    """The reply: a string, an instance of the schema, data, or a pair of one of these and its cost."""
    reply, cost = output if isinstance(output, tuple) and len(output) == 2 else (output, None)
    usage = Usage(cost_usd=float(cost)) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else Usage()
    if isinstance(reply, str):
        return Completion(reply, usage, name)
    return Completion(json.dumps(to_json(reply), ensure_ascii=False), usage, name)
