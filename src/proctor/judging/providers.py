"""Endpoints for the models of every provider that `pydantic-ai-slim` supports.

In this package, only this file and `provider_errors` import that library.
"""

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
"""Sent to an address for which the user set no key: keys in the environment are sent only to their own provider."""

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
    """A model behind a provider's API.

    The constructor checks packages, address and key, and sends nothing. `for_sampling` leaves the temperature to the
    model unless the user set one, so that samples vary.
    """

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
        """Send one request; repeat it only if the model refuses a setting that can be left out."""
        try:
            with _uninstrumented():
                model = await self._model()
                while True:
                    accepted = self._accepted = self._accepted or _accepted_by(model.profile)
                    try:
                        response = await self._request(model, accepted, prompt, schema, timeout)
                        return self._without_key(_completion(response))
                    except Exception as error:
                        fallback = fallback_settings(error, accepted)
                        if fallback is None:
                            raise
                        self._accepted = fallback
        except EndpointFailed as failure:
            raise self._masked_failure(failure) from None
        except Exception as error:
            raise self._masked_failure(endpoint_failure(error)) from None

    def _masked_failure(self, failure: EndpointFailed) -> EndpointFailed:
        """The failure with the judge's name and without its key."""
        return failure.with_message(mask(f"{self.name} {failure}", self._keys()))

    def _without_key(self, completion: Completion) -> Completion:
        """The completion without the key, which a server may repeat in its reply: replies are shown and stored."""
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
        open_model = self._models.get(loop)
        if open_model is None:
            model = build_model(self._spec)
            lifetime = _lifetime(model)
            _OPEN_CLIENTS[id(model)] = lifetime
            open_model = self._models[loop] = (model, lifetime)
            await anext(lifetime)
        return open_model[0]


_OPEN_CLIENTS: dict[int, Any] = {}
"""The lifetimes of open clients, by the id of the model. Without these references an endpoint and its client could be
garbage collected together while their event loop goes on, as the one of a test session does, and the connections would
never be closed."""


async def _lifetime(model: Any) -> AsyncIterator[None]:
    """Keep the client open until the event loop ends, which closes its asynchronous generators."""
    try:
        async with model:
            yield
    finally:
        _OPEN_CLIENTS.pop(id(model), None)


def _parameters(spec: ModelSpec, for_sampling: bool) -> dict[str, Json]:
    """The parameters of a request: temperature 0 for stable answers, unless the user set another or for sampling."""
    temperature = spec.temperature if spec.temperature is not None or for_sampling else 0.0
    parameters = {
        "temperature": temperature,
        "top_p": spec.top_p,
        "max_tokens": spec.max_tokens or PROVIDERS[spec.provider].max_tokens,
        "base_url": spec.base_url,
        "api_version": spec.api_version,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def build_model(spec: ModelSpec) -> Any:
    """The library's model for a spec."""
    from pydantic_ai.models import infer_model

    # Every OpenAI-compatible server has the chat API; `openai-responses` is the other one.
    kind = "openai-chat" if spec.provider == "openai" else spec.provider
    return infer_model(f"{kind}:{spec.model}", provider_factory=lambda name: _provider(name, spec))


def _provider(name: str, spec: ModelSpec) -> Any:
    from pydantic_ai.providers import infer_provider_class

    provider_class = infer_provider_class(name)
    accepted = inspect.signature(provider_class).parameters
    arguments: dict[str, Any] = {}
    address = spec.base_url or _default_address(spec.provider)
    if address is not None:
        parameter = next((parameter for parameter in _ADDRESS_PARAMETERS if parameter in accepted), None)
        if parameter is None:
            raise UsageError(f"{name} has a fixed address; remove base_url")
        arguments[parameter] = with_api_path(name, address)
    if spec.api_key is not None or (spec.base_url is not None and "api_key" in accepted):
        arguments["api_key"] = spec.api_key or NO_KEY
    if spec.api_version is not None:
        arguments["api_version"] = spec.api_version
    return provider_class(**arguments)


def with_api_path(provider: str, address: str) -> str:
    """The address with the path of the chat API, which users often leave out for Ollama."""
    lacks_path = provider == "ollama" and urlsplit(address).path in ("", "/")
    return f"{address.rstrip('/')}/v1" if lacks_path else address


def _default_address(provider: str) -> str | None:
    """The default address of a provider; `None` if an environment variable or the library has one."""
    row = PROVIDERS[provider]
    return None if any(os.environ.get(name) for name in row.addresses) else row.default_address


def _accepted_by(profile: Mapping[str, Any]) -> AcceptedSettings:
    """The settings that the model accepts, as far as the library knows; reasoning models accept no temperature."""
    reasons = profile.get("openai_supports_reasoning") and not (
        profile.get("openai_supports_reasoning_effort_none") and not profile.get("thinking_enabled_by_default")
    )
    refuses = reasons or profile.get("anthropic_disallows_sampling_settings") or profile.get("thinking_always_enabled")
    by_schema, by_object = profile.get("supports_json_schema_output"), profile.get("supports_json_object_output")
    return AcceptedSettings("schema" if by_schema else "object" if by_object else "text", temperature=not refuses)


def _request_parameters(accepted: AcceptedSettings, schema: Mapping[str, Json]) -> Any:
    """Parameters that enforce the schema of the reply; it is in the prompt, too, for models that cannot enforce it."""
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

    messages: list[Any] = [ModelRequest(parts=[SystemPromptPart(prompt.system), UserPromptPart(prompt.user)])]
    for reply, complaint in prompt.corrections:
        messages.append(ModelResponse(parts=[TextPart(reply)]))
        messages.append(ModelRequest(parts=[UserPromptPart(complaint)]))
    return messages


def _completion(response: Any) -> Completion:
    refusal = (response.provider_details or {}).get("refusal")
    return Completion(
        text=response.text or (str(refusal) if refusal else ""),
        usage=_usage(response),
        model=response.model_name or "",
        finish_reason=response.finish_reason,
    )


def _usage(response: Any) -> Usage:
    """The usage that the provider reported; a missing count is unknown, not zero."""
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
    suppressed = context.get_current()
    for key in keys:
        suppressed = suppressed if key is None else context.set_value(key, True, suppressed)
    token = context.attach(suppressed)
    try:
        yield
    finally:
        context.detach(token)
