"""HoloDeck's descriptions of a judge in Python: `DeepEvalModelConfig` and Azure's `ModelConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from proctor.cases.validation import problem_at
from proctor.compat.holodeck.enums import ProviderEnum
from proctor.compat.holodeck.models import HoloDeckModel, LLMProvider


class DeepEvalModelConfig(HoloDeckModel):
    """The judge of an evaluator; by default a local model of Ollama, as in HoloDeck."""

    provider: ProviderEnum = ProviderEnum.OLLAMA
    model_name: str = "gpt-oss:20b"
    api_key: str | None = None
    endpoint: str | None = None
    api_version: str | None = "2025-04-01-preview"
    deployment_name: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0

    @model_validator(mode="after")
    def _check_azure(self) -> Self:
        if self.provider is ProviderEnum.AZURE_OPENAI:
            for name in ("endpoint", "deployment_name", "api_key"):
                if not getattr(self, name):
                    raise problem_at((), f"needs {name!r} for a model of Azure")
        return self

    def judge(self) -> dict[str, Any]:
        """The judge as Proctor reads it."""
        is_azure = self.provider is ProviderEnum.AZURE_OPENAI
        judge = {
            "provider": self.provider.value,
            "name": self.deployment_name if is_azure else self.model_name,
            "endpoint": self.endpoint,
            "api_key": self.api_key,
            "api_version": self.api_version if is_azure else None,
            "temperature": self.temperature,
        }
        return {key: value for key, value in judge.items() if value is not None}


DEFAULT_MODEL_CONFIG = DeepEvalModelConfig()


class ModelConfig(HoloDeckModel):
    """A judge that runs on Azure."""

    azure_endpoint: str
    api_key: str
    azure_deployment: str
    api_version: str = "2024-02-15-preview"

    def judge(self) -> dict[str, Any]:
        """The judge as Proctor reads it."""
        return {
            "provider": ProviderEnum.AZURE_OPENAI.value,
            "name": self.azure_deployment,
            "endpoint": self.azure_endpoint,
            "api_key": self.api_key,
            "api_version": self.api_version,
        }


def judge_of(model: Any) -> Any:
    """The judge that a `model_config` describes: a name, a mapping, one of the models, or an object like them."""
    if isinstance(model, DeepEvalModelConfig | ModelConfig):
        return model.judge()
    if isinstance(model, LLMProvider):
        return model.file_data()
    if isinstance(model, (str, Mapping)) or not hasattr(model, "provider"):
        return model
    name = getattr(model, "model_name", None) or getattr(model, "name", None)
    judge = {"provider": str(getattr(model.provider, "value", model.provider)), "name": name}
    rest = {key: getattr(model, key, None) for key in ("endpoint", "api_key", "api_version", "temperature")}
    return judge | {key: value for key, value in rest.items() if value is not None}
