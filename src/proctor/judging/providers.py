"""Endpoints for the models of every provider that `pydantic-ai-slim` knows."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from proctor.agents.reply import Usage
from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.masking import mask, mask_values
from proctor.judging.judge import Completion, EndpointFailed, Prompt
from proctor.judging.provider_errors import AcceptedSettings, endpoint_failure, fallback_settings
from proctor.judging.provider_table import PROVIDERS, require_address, require_key, require_packages

NO_KEY = "no-key"
"""Sent where the user named an address and no key: a key of the environment goes only to its own provider."""

_ADDRESS_PARAMETERS = ("base_url", "azure_endpoint", "api_base")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of a provider, and its parameters."""

    provider: str
    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"


class ProviderEndpoint:
    """A model behind a provider's API. Making one checks packages, address and key, and sends nothing."""

    def __init__(self, spec: ModelSpec, *, for_sampling: bool = False) -> None:
        require_packages(spec.provider)
        require_address(spec.provider, spec.base_url)
        if spec.base_url is None and spec.api_key is None:
            require_key(spec.provider)
        self.name = spec.name
        self.address = spec.base_url or spec.name
        self.parameters: Mapping[str, Json] = _parameters(spec, for_sampling)
        self._spec = spec
        self._accepted: AcceptedSettings | None = None
        self._models: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, Any]] = WeakKeyDictionary()

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        """One request; repeated only where the model refuses a setting that can be left out."""
        try:
            with _uninstrumented():
                model = await self._model()
                while True:
                    accepted = self._accepted = self._accepted or _accepted_by(model.profile)
                    try:
                        response = await self._request(model, accepted, prompt, schema, timeout)
                        return self._without_key(_completion(response))
                    except Exception as error:
                        less = fallback_settings(error, accepted)
                        if less is None:
                            raise
                        self._accepted = less
        except EndpointFailed as failure:
            raise self._named_failure(failure) from None
        except Exception as error:
            raise self._named_failure(endpoint_failure(error)) from None

    def _named_failure(self, failure: EndpointFailed) -> EndpointFailed:
        """With the judge's name and without its key; the provider's exception, which holds the key, is dropped."""
        return failure.with_message(mask(f"{self.name} {failure}", self._keys()))

    def _without_key(self, completion: Completion) -> Completion:
        """Without the key, which a server may repeat in its reply: replies are shown and kept."""
        hide = partial(mask_values, secrets=self._keys())
        return replace(completion, text=hide(completion.text), model=hide(completion.model))

    def _keys(self) -> list[str]:
        variables = PROVIDERS[self._spec.provider].keys if self._spec.base_url is None else ()
        return [key for key in (self._spec.api_key, *map(os.environ.get, variables)) if key]

    async def _request(
        self, model: Any, accepted: AcceptedSettings, prompt: Prompt, schema: Mapping[str, Json], timeout: float
    ) -> Any:
        from pydantic_ai.direct import model_request

        settings: dict[str, Any] = {"request_timeout": timeout, "timeout": timeout, "max_retries": 0}
        settings |= {name: value for name, value in self.parameters.items() if name not in ("base_url", "api_version")}
        if not accepted.temperature:
            settings.pop("temperature", None)
            settings.pop("top_p", None)
        for name in model.unsupported_settings:
            settings.pop(name, None)
        settings["request_timeout"] = timeout
        return await model_request(
            model,
            _messages(prompt),
            model_settings=settings,  # type: ignore[arg-type]
            model_request_parameters=_request_parameters(accepted, schema),
            instrument=False,
        )

    async def _model(self) -> Any:
        """The model with a client for the running event loop; its connections are closed when the loop ends."""
        loop = asyncio.get_running_loop()
        kept = self._models.get(loop)
        if kept is None:
            model = build_model(self._spec)
            itself: list[Any] = []
            lifetime = _lifetime(model, itself)
            itself.append(lifetime)
            kept = self._models[loop] = (model, lifetime)
            await anext(lifetime)
        return kept[0]


async def _lifetime(model: Any, itself: list[Any]) -> AsyncIterator[None]:
    """Keeps the client open until the event loop ends: a loop closes its open asynchronous generators then.

    The list `itself` holds a reference to this generator, since the endpoint may be collected before.
    """
    async with model:
        yield
    itself.clear()


def _parameters(spec: ModelSpec, for_sampling: bool) -> dict[str, Json]:
    """Temperature 0, so that answers repeat, unless the user set another or samples are to vary."""
    temperature = spec.temperature if spec.temperature is not None or for_sampling else 0.0
    given = {
        "temperature": temperature,
        "top_p": spec.top_p,
        "max_tokens": spec.max_tokens or PROVIDERS[spec.provider].max_tokens,
        "base_url": spec.base_url,
        "api_version": spec.api_version,
    }
    return {name: value for name, value in given.items() if value is not None}


def build_model(spec: ModelSpec) -> Any:
    from pydantic_ai.models import infer_model

    # Every OpenAI-compatible server has the chat API; for the other one users write `openai-responses`.
    kind = "openai-chat" if spec.provider == "openai" else spec.provider
    return infer_model(f"{kind}:{spec.model}", provider_factory=lambda name: _provider(name, spec))


def _provider(name: str, spec: ModelSpec) -> Any:
    from pydantic_ai.providers import infer_provider_class

    made = infer_provider_class(name)
    accepted = inspect.signature(made).parameters
    given: dict[str, Any] = {}
    address = spec.base_url or _default_address(spec.provider)
    if address is not None:
        parameter = next((known for known in _ADDRESS_PARAMETERS if known in accepted), None)
        if parameter is None:
            raise UsageError(f"{name} is at one address only; base_url has no meaning for it")
        given[parameter] = with_api_path(name, address)
    if spec.api_key is not None or (spec.base_url is not None and "api_key" in accepted):
        given["api_key"] = spec.api_key or NO_KEY
    if spec.api_version is not None:
        given["api_version"] = spec.api_version
    return made(**given)


def with_api_path(provider: str, address: str) -> str:
    """The address with the path of the chat API, which users often leave out for Ollama."""
    bare = provider == "ollama" and urlsplit(address).path in ("", "/")
    return f"{address.rstrip('/')}/v1" if bare else address


def _default_address(provider: str) -> str | None:
    """Where a provider is asked if nobody says; `None` if a variable or the library says it."""
    row = PROVIDERS[provider]
    return None if any(os.environ.get(name) for name in row.addresses) else row.default_address


def _accepted_by(profile: Mapping[str, Any]) -> AcceptedSettings:
    """What the library knows of the model; a model that always reasons accepts no temperature."""
    reasons = profile.get("openai_supports_reasoning") and not (
        profile.get("openai_supports_reasoning_effort_none") and not profile.get("thinking_enabled_by_default")
    )
    refuses = reasons or profile.get("anthropic_disallows_sampling_settings") or profile.get("thinking_always_enabled")
    by_schema, by_object = profile.get("supports_json_schema_output"), profile.get("supports_json_object_output")
    return AcceptedSettings("schema" if by_schema else "object" if by_object else "text", temperature=not refuses)


def _request_parameters(accepted: AcceptedSettings, schema: Mapping[str, Json]) -> Any:
    """How the reply is constrained; the prompt shows the schema too, for models that cannot be constrained."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    if accepted.reply == "text":
        return ModelRequestParameters()
    strict = True if _is_closed(schema) else None
    shape = OutputObjectDefinition(json_schema=dict(schema), name="reply", strict=strict)
    mode: Any = "native" if accepted.reply == "schema" else "prompted"
    return ModelRequestParameters(output_mode=mode, output_object=shape, prompted_output_template=False)


def _is_closed(schema: Json) -> bool:
    """Whether every key is declared: only such a schema can be enforced strictly."""
    if isinstance(schema, list):
        return all(_is_closed(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" and ("properties" not in schema or schema.get("additionalProperties")):
        return False
    return all(_is_closed(item) for item in schema.values())


def _messages(prompt: Prompt) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    said: list[Any] = [ModelRequest(parts=[SystemPromptPart(prompt.system), UserPromptPart(prompt.user)])]
    for reply, complaint in prompt.corrections:
        said.append(ModelResponse(parts=[TextPart(reply)]))
        said.append(ModelRequest(parts=[UserPromptPart(complaint)]))
    return said


def _completion(response: Any) -> Completion:
    refusal = (response.provider_details or {}).get("refusal")
    return Completion(
        text=response.text or (str(refusal) if refusal else ""),
        usage=_usage(response),
        model=response.model_name or "",
        finish_reason=response.finish_reason,
    )


def _usage(response: Any) -> Usage:
    """The usage that the provider reported; a missing count stays unknown and is not zero."""
    if response.usage.unmeasured_requests:
        return Usage(model_calls=1)
    cost = None
    try:
        cost = float(response.cost().total_price) or None
    except (LookupError, ValueError, AssertionError):
        pass  # the price list does not have this model
    return Usage(response.usage.input_tokens, response.usage.output_tokens, cost, 1)


@contextmanager
def _uninstrumented() -> Iterator[None]:
    """Keep the judge's requests out of the traces of the agent, which may run in the same process."""
    from opentelemetry import context

    names = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
    keys = [getattr(context, name, None) for name in names]
    quiet = context.get_current()
    for key in keys:
        quiet = quiet if key is None else context.set_value(key, True, quiet)
    token = context.attach(quiet)
    try:
        yield
    finally:
        context.detach(token)
