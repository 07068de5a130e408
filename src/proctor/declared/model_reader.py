"""Reads `model` and `embedding_provider` blocks: which model answers, where, with which key and options."""

from __future__ import annotations

import importlib.util
import os
from urllib.parse import urlsplit

from proctor.base.environment import CONCEALED, expand_with, unset
from proctor.base.errors import UsageError
from proctor.base.fields import Fields
from proctor.judging.providers import ModelSpec
from proctor.judging.services import LIBRARY, SERVICES, require_address, split_name

TEMPERATURE = 0.3
MAX_TOKENS = 1000
"""What HoloDeck asks models with by default."""
SAMPLED = ("temperature", "max_tokens", "top_p")
"""What is said of models that write."""


def read_model(fields: Fields, *, sampled: bool = True) -> ModelSpec | None:
    """The model a block describes; `None` where something is wrong with it, which its document is told.

    An embedding model is not `sampled`: it has no temperature to speak of.
    """
    before = len(fields.document.problems)
    provider, name = (
        fields.text("provider", required=True, blank=False),
        fields.text("name", required=True, blank=False),
    )
    for unfit in () if sampled else (*SAMPLED, "api_version"):
        if fields.take(unfit) is not None:
            fields.problem(unfit, "has no meaning for an embedding model")
    temperature = fields.number("temperature", TEMPERATURE if sampled else None, least=0, most=2)
    if fields.has("temperature") and fields.take("temperature") is None:
        temperature = None
    longest = fields.integer("max_tokens", MAX_TOKENS if sampled else None, least=1)
    if fields.has("max_tokens") and fields.take("max_tokens") is None:
        longest = None
    top_p = fields.number("top_p", least=0, most=1)
    endpoint = read_address(fields, "endpoint")
    key = read_secret(fields, "api_key")
    version = fields.text("api_version", blank=False)
    if fields.text("auth_provider") not in (None, "api_key"):
        fields.problem("auth_provider", "is not known here; name the service itself as the provider, such as bedrock")
    fields.done()
    if provider is None or name is None or len(fields.document.problems) > before:
        return None
    try:
        provider, name = split_name(f"{provider}:{name}")
        require_address(provider, endpoint)
    except UsageError as error:
        fields.problem("provider", _as_here(str(error)))
        return None
    if version is not None and provider not in ("azure", "azure-responses"):
        fields.problem("api_version", f"has no meaning for {provider}")
    return ModelSpec(provider, name, endpoint, key, version, temperature, top_p, longest)


def _as_here(message: str) -> str:
    """What judges call `base_url` is called `endpoint` in a model block."""
    return f"cannot be used: {message}".replace("base_url", "endpoint").replace("the judge ", "the model ")


def missing_for(model: ModelSpec) -> str | None:
    """What has to be there before the model can be asked, and is not."""
    service = SERVICES[model.provider]
    if not (_is_there(LIBRARY) and _is_there(service.module)):
        extra = service.extra
        wanted = f"pydantic-ai-slim[{extra[1:]}]" if extra.startswith("+") else f"proctor[{extra}]"
        return f"asking {model.provider} needs more packages: pip install '{wanted}'"
    return missing_key(model)


def missing_key(model: ModelSpec) -> str | None:
    """The variable to set, where the model cannot be asked without."""
    service = SERVICES[model.provider]
    if model.base_url is not None or model.api_key is not None or not service.keys:
        return None
    instead = () if service.needs_address else service.addresses
    if any(os.environ.get(name) for name in (*service.keys, *instead)):
        return None
    return f"asking {model.provider} needs a key: set {' or '.join(service.keys)}, or write api_key: ${{ITS_NAME}}"


def read_address(fields: Fields, name: str) -> str | None:
    """An address of the web, without a key in it."""
    given = fields.text(name, blank=False)
    if given is None:
        return None
    try:
        parts = urlsplit(given.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        fields.problem(name, "must be an address that begins with http:// or https://")
        return None
    if parts.username or parts.password:
        fields.problem(name, "must hold no key or password")
        return None
    return str(given.strip().rstrip("/"))


def read_secret(fields: Fields, name: str) -> str | None:
    """The value of `${NAME}`, looked up now; one that was written out is not known any more."""
    given = fields.text(name)
    return None if not given else filled(fields, name, given)


def filled(fields: Fields, name: str, text: str) -> str | None:
    """`text` with its variables; a problem where one is not set, or where a secret was written out."""
    if text == CONCEALED:
        fields.problem(name, "was written out; put it in an environment variable, and write ${ITS_NAME}")
        return None

    def value(variable: str) -> str:
        known = os.environ.get(variable)
        if not known:
            fields.problem(name, unset(variable))
        return known or ""

    return expand_with(text, value)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
