"""DeepEval's base class for models of one's own, and such a model as a judge."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any

from proctor.agents.reply import Usage
from proctor.base.errors import one_line
from proctor.base.json_data import Json, to_json
from proctor.base.threads import run_in_thread
from proctor.base.transient import is_transient_status
from proctor.judging.judge import Completion, EndpointFailed, Prompt, Question
from proctor.judging.model_judge import ModelJudge
from proctor.judging.prompts import schema_of

__all__ = ["DeepEvalBaseLLM"]


class DeepEvalBaseLLM:
    """The base of models of one's own: `generate` or `a_generate` writes the reply to a prompt."""

    def __init__(self, model: str | None = None, *args: Any, **kwargs: Any) -> None:
        self.name = model
        self.model = self.load_model(*args, **kwargs)

    def load_model(self, *args: Any, **kwargs: Any) -> Any:
        return None

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no generate")

    async def a_generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no a_generate")

    def get_model_name(self, *args: Any, **kwargs: Any) -> str:
        return str(getattr(self, "name", None) or type(self).__name__)


def is_model(given: Any) -> bool:
    """Whether it is such a model; one derived from DeepEval's own class will do."""
    return (
        not isinstance(given, type) and callable(getattr(given, "get_model_name", None)) and hasattr(given, "generate")
    )


def judge_of_model(model: Any) -> ModelJudge:
    """The model as a judge: its replies are checked, and an unusable one is sent back once."""
    return ModelJudge(_OwnEndpoint(model), schema_builder=_Schema)


_BASE = DeepEvalBaseLLM.__name__


class _Schema(dict[str, Json]):
    """The JSON Schema of a reply, and the class that it comes from, which such models are given."""

    def __init__(self, question: Question[Any]) -> None:
        super().__init__(schema_of(question))
        self.reply = question.reply


class _OwnEndpoint:
    """Sends prompts to a model of the user's."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = str(model.get_model_name() or type(model).__name__)
        self.address = f"{self.name} {id(model)}"
        self.parameters: Mapping[str, Json] = {}

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        try:
            async with asyncio.timeout(timeout):
                return _completion(await self._written(_as_text(prompt), getattr(schema, "reply", None)), self.name)
        except TimeoutError:
            words = f"{self.name} did not answer within {timeout:g} s"
            raise EndpointFailed(words, transient=True, timed_out=True) from None
        except Exception as error:
            status = getattr(error, "status_code", None)
            busy = isinstance(status, int) and is_transient_status(status)
            raise EndpointFailed(
                f"{self.name} failed: {one_line(error)}", transient=busy, limited=status == 429
            ) from error

    async def _written(self, text: str, reply: Any) -> Any:
        if any("a_generate" in vars(kind) for kind in type(self._model).__mro__ if kind.__name__ != _BASE):
            return await self._model.a_generate(text, **_schema_for(self._model.a_generate, reply))
        return await run_in_thread(self._model.generate, text, **_schema_for(self._model.generate, reply))


def _schema_for(method: Any, reply: Any) -> dict[str, Any]:
    """`schema=`, for a method that takes it."""
    taken = inspect.signature(method).parameters
    takes = "schema" in taken or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    return {"schema": reply} if takes and reply is not None else {}


def _as_text(prompt: Prompt) -> str:
    """One text, which is all that such models take."""
    corrections = [f"{reply}\n\n{complaint}" for reply, complaint in prompt.corrections]
    return "\n\n".join([prompt.system, prompt.user, *corrections])


def _completion(written: Any, name: str) -> Completion:
    """The reply: text, an instance of the schema, data, or any of these with its cost."""
    said, cost = written if isinstance(written, tuple) and len(written) == 2 else (written, None)
    usage = Usage(cost_usd=float(cost)) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else Usage()
    if isinstance(said, str):
        return Completion(said, usage, name)
    return Completion(json.dumps(to_json(said), ensure_ascii=False), usage, name)
