"""The providers of judges, one row each: packages, variables for key and address, and other names.

To add a provider that `pydantic-ai-slim` supports, add a row to `PROVIDERS`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.installation import install_command, pip_command

LIBRARY = "pydantic_ai"
ANTHROPIC_MAX_TOKENS = 16_000
"""For Anthropic, whose API requires a limit; the library would set the highest possible one."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, under the name that users write before the colon."""

    module: str = "openai"
    """The provider's own package, which must be installed."""
    extra: str = "judge"
    """What to install: an extra of this package, or of `pydantic-ai-slim` if it starts with `+`."""
    keys: tuple[str, ...] = ()
    """The variables that may hold the key; empty if it is found in another way or not needed."""
    addresses: tuple[str, ...] = ()
    """The variables that may hold the address; if one is set, a key may not be needed."""
    takes_base_url: bool = True
    """Whether the user can set another address."""
    needs_address: bool = False
    """Whether the user or a variable must set the address."""
    default_address: str | None = None
    """The address if neither the user nor a variable sets one, and the library has none."""
    max_tokens: int | None = None
    """The default limit on the tokens of a reply, if the API requires one."""
    suggestion: str = "MODEL"
    """A model to name in hints; a placeholder for most providers."""
    aliases: tuple[str, ...] = ()
    """Other names that users write before the colon."""

    @property
    def install_command(self) -> str:
        """The command that installs the packages this provider needs."""
        if self.extra.startswith("+"):
            return pip_command(f"pydantic-ai-slim[{self.extra[1:]}]")
        return install_command(self.extra)


def _openai_compatible(*keys: str) -> Provider:
    return Provider(keys=keys)


def _azure(suggestion: str = "MODEL", *aliases: str) -> Provider:
    keys = ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    return Provider(
        keys=keys, addresses=("AZURE_OPENAI_ENDPOINT",), needs_address=True, suggestion=suggestion, aliases=aliases
    )


def _fixed_address(*keys: str) -> Provider:
    return Provider(keys=keys, takes_base_url=False)


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider(keys=("OPENAI_API_KEY",), addresses=("OPENAI_BASE_URL",), suggestion="gpt-5-mini"),
    "openai-chat": Provider(keys=("OPENAI_API_KEY",), addresses=("OPENAI_BASE_URL",)),
    "openai-responses": Provider(keys=("OPENAI_API_KEY",), addresses=("OPENAI_BASE_URL",)),
    "azure": _azure("YOUR-DEPLOYMENT", "azure_openai"),
    "azure-responses": _azure(),
    "anthropic": Provider(
        "anthropic", "anthropic", ("ANTHROPIC_API_KEY",), max_tokens=ANTHROPIC_MAX_TOKENS, suggestion="claude-sonnet-5"
    ),
    "google": Provider(
        "google.genai",
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        suggestion="gemini-2.5-flash",
        aliases=("gemini", "google-gla"),
    ),
    "google-cloud": Provider("google.genai", "google", aliases=("google-vertex", "vertex")),
    "bedrock": Provider("boto3", "bedrock", aliases=("aws",)),
    "mistral": Provider("mistralai", "mistral", ("MISTRAL_API_KEY",)),
    "groq": Provider("groq", "groq", ("GROQ_API_KEY",)),
    "cohere": Provider("cohere", "+cohere", ("CO_API_KEY",), takes_base_url=False),
    "huggingface": Provider("huggingface_hub", "+huggingface", ("HF_TOKEN",)),
    "xai": Provider("xai_sdk", "+xai", ("XAI_API_KEY",), takes_base_url=False, aliases=("x-ai", "grok")),
    "ollama": Provider(addresses=("OLLAMA_BASE_URL",), default_address="http://localhost:11434/v1"),
    "vllm": Provider(addresses=("VLLM_BASE_URL",), needs_address=True),
    "litellm": Provider(needs_address=True),
    "openrouter": _fixed_address("OPENROUTER_API_KEY"),
    "deepseek": _fixed_address("DEEPSEEK_API_KEY"),
    "moonshotai": _openai_compatible("MOONSHOTAI_API_KEY"),
    "fireworks": _fixed_address("FIREWORKS_API_KEY"),
    "together": _fixed_address("TOGETHER_API_KEY"),
    "heroku": _openai_compatible("HEROKU_INFERENCE_KEY"),
    "nebius": _fixed_address("NEBIUS_API_KEY"),
    "ovhcloud": _fixed_address("OVHCLOUD_API_KEY"),
    "alibaba": _openai_compatible("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "sambanova": _openai_compatible("SAMBANOVA_API_KEY"),
    "vercel": _fixed_address("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "cerebras": _fixed_address("CEREBRAS_API_KEY"),
    "meta": _fixed_address("META_API_KEY"),
    "crusoe": _fixed_address("CRUSOE_API_KEY"),
    "zai": _openai_compatible("ZAI_API_KEY"),
}

ALIASES: Final[Mapping[str, str]] = {alias: name for name, row in PROVIDERS.items() for alias in row.aliases}


def parse_model_name(name: str) -> tuple[str, str]:
    """Provider and model of `provider:model`; raises `UsageError` for an unknown provider."""
    provider, colon, model = name.partition(":")
    provider = provider.strip().lower()
    if provider.startswith("gateway/"):
        raise UsageError(
            f"the judge {name!r} uses a gateway, which sees all prompts; name the provider itself: "
            f"{provider.removeprefix('gateway/')}:{model}"
        )
    provider = ALIASES.get(provider, provider)
    if not colon or not model.strip():
        raise UsageError(
            f"the judge {name!r} is not of the form provider:model; write for example openai:gpt-5-mini, "
            "anthropic:claude-sonnet-5, ollama:qwen3, or rules"
        )
    if provider not in PROVIDERS:
        hint = did_you_mean(provider, [*PROVIDERS, *ALIASES]) or f"; providers: {', '.join(PROVIDERS)}"
        raise UsageError(f"no provider is called {provider!r}{hint}")
    return provider, model.strip()


def available_judges() -> list[tuple[str, str]]:
    """The judges whose keys are set in the environment, as users write them, each with its variable."""
    found: dict[str, str] = {}
    for provider, row in PROVIDERS.items():
        for variable in row.keys:
            if os.environ.get(variable):
                found.setdefault(variable, f"{provider}:{row.suggestion}")
    return [(name, variable) for variable, name in found.items()]


def require_packages(provider: str) -> None:
    """Raise `UsageError` with what to install if a package of the provider is missing."""
    row = PROVIDERS[provider]
    if not (_is_installed(LIBRARY) and _is_installed(row.module)):
        raise UsageError(f"a judge from {provider} needs more packages: {row.install_command}")


def require_address(provider: str, address: str | None) -> None:
    """Raise `UsageError` if an address is missing, or is set for a provider with a fixed one."""
    row = PROVIDERS[provider]
    if address is None and row.needs_address and not any(os.environ.get(name) for name in row.addresses):
        variables = f", or set {' or '.join(row.addresses)}" if row.addresses else ""
        raise UsageError(f"{provider} has no default address; set base_url{variables}")
    if address is not None and not row.takes_base_url:
        raise UsageError(
            f"{provider} has a fixed address; remove base_url, or write openai:MODEL for an OpenAI-compatible server "
            "at that address"
        )


def require_key(provider: str) -> None:
    """Raise `UsageError` with the variable to set if the provider needs a key and none is set."""
    row = PROVIDERS[provider]
    substitutes = () if row.needs_address else row.addresses
    if row.keys and not any(os.environ.get(name) for name in (*row.keys, *substitutes)):
        raise UsageError(
            f"asking {provider} as a judge needs a key: set {' or '.join(row.keys)}, or name another variable with "
            "api_key_env"
        )


def address_problem(address: str) -> str:
    """What is wrong with a base URL; empty if nothing is. A key in it would be shown in reports."""
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return "must start with http:// or https://"
    if not is_valid:
        return "must start with http:// or https://"
    if parts.username or parts.password or parts.query:
        return "must not contain a key or password; put the key in a variable and name that in api_key_env"
    return ""


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
