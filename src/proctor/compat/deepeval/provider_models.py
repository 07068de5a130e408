"""DeepEval's model classes, such as `OpenAIModel`: each names a judge of Proctor."""

from __future__ import annotations

from typing import Any, ClassVar

from proctor.base.errors import UsageError
from proctor.compat.deepeval.models import DeepEvalBaseLLM
from proctor.judging.model_judge import ModelJudge
from proctor.judging.providers import ModelSpec, ProviderEndpoint

NO_EFFECT = ("cost_per_input_token", "cost_per_output_token", "generation_kwargs", "format", "location", "region")
"""Parameters that are accepted and not used: prices are known here, and the rest is set in the environment."""


class ProviderModel(DeepEvalBaseLLM):
    """A model of a provider. A metric that has one asks it as its judge; it does not generate text here.

    `model` is the name of the model, `temperature` and `base_url` are passed on. Without `api_key`, the key is in the
    provider's variable, such as `OPENAI_API_KEY`.
    """

    provider: ClassVar[str] = ""
    default_model: ClassVar[str] = ""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: Any = None,
        temperature: float | None = None,
        api_version: str | None = None,
        **options: Any,
    ) -> None:
        if unknown := [name for name in options if name not in NO_EFFECT]:
            raise TypeError(f"{type(self).__name__} does not take {unknown[0]!r} here; see docs/judges.md for judges")
        name = model or self.default_model
        if not name:
            raise UsageError(f"{type(self).__name__} needs the name of a model: {type(self).__name__}(model=...)")
        self.name: str = str(name)
        self.model = None
        self.temperature = temperature
        self.base_url = None if base_url is None else str(base_url)
        self.api_version = api_version
        self._api_key = api_key

    def get_model_name(self, *args: Any, **kwargs: Any) -> str:
        return f"{self.provider}:{self.name}"

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(f"{type(self).__name__} is used as a judge and does not generate text; use the model's client")

    async def a_generate(self, *args: Any, **kwargs: Any) -> Any:
        self.generate()

    def judge(self) -> Any:
        """The judge: its name and options, or one that has the key, if there is one."""
        if self._api_key is None and self.api_version is None:
            options = {"model": self.get_model_name(), "base_url": self.base_url, "temperature": self.temperature}
            return {name: value for name, value in options.items() if value is not None}
        spec = ModelSpec(
            self.provider, self.name, self.base_url, self._api_key, self.api_version, temperature=self.temperature
        )
        return ModelJudge(ProviderEndpoint(spec))


class OpenAIModel(ProviderModel):
    provider = "openai"
    default_model = "gpt-4.1"


GPTModel = OpenAIModel


class AnthropicModel(ProviderModel):
    provider = "anthropic"


class GeminiModel(ProviderModel):
    provider = "google"


class AzureOpenAIModel(ProviderModel):
    """The model's deployment; `base_url` is the endpoint, and `AZURE_OPENAI_API_KEY` the variable of the key."""

    provider = "azure"

    def __init__(self, model: str | None = None, *, deployment_name: str | None = None, **options: Any) -> None:
        super().__init__(deployment_name or model, **options)


class AmazonBedrockModel(ProviderModel):
    provider = "bedrock"


class OllamaModel(ProviderModel):
    provider = "ollama"


class LocalModel(ProviderModel):
    """A server with OpenAI's chat API at `base_url`."""

    provider = "openai"


class DeepSeekModel(ProviderModel):
    provider = "deepseek"


class GrokModel(ProviderModel):
    provider = "xai"


class KimiModel(ProviderModel):
    provider = "moonshotai"


class OpenRouterModel(ProviderModel):
    provider = "openrouter"


class LiteLLMModel(ProviderModel):
    """A LiteLLM proxy at `base_url`."""

    provider = "litellm"
