"""HoloDeck's spelling of a judge: the model block of an agent.yaml."""

from __future__ import annotations

from proctor.base.documents import Fields
from proctor.compat.holodeck.variables import MASKED
from proctor.judging.provider_table import parse_model_name
from proctor.judging.providers import ModelSpec
from proctor.judging.specs import JudgeSpec, PanelSpec, read_address, read_expanded


def read_judge(fields: Fields) -> PanelSpec | None:
    """Read `{provider, name, endpoint, api_key, api_version, temperature, top_p, max_tokens}`."""
    provider, name = fields.text("provider", blank=False), fields.text("name", required=True, blank=False)
    endpoint, key = fields.text("endpoint", blank=False), fields.text("api_key")
    version = fields.text("api_version")
    if fields.text("auth_provider") not in (None, "api_key"):
        fields.problem("auth_provider", "is not supported; set provider to the service itself, such as bedrock")
    temperature = fields.number("temperature", least=0, most=2)
    top_p, max_tokens = fields.number("top_p", least=0, most=1), fields.integer("max_tokens", least=1)
    if key == MASKED:
        fields.problem("api_key", "is a secret; put it in an environment variable and write ${ITS_NAME}")
    if name is None or provider is None or key == MASKED:
        return None
    provider, model = parse_model_name(f"{provider}:{name}")
    if version is not None and provider not in ("azure", "azure-responses"):
        fields.problem("api_version", f"does not apply to {provider}")
    address = read_address(fields, "endpoint", endpoint)
    secret = read_expanded(fields, "api_key", key) if key else None
    spec = ModelSpec(provider, model, address, secret, version, temperature, top_p, max_tokens)
    return PanelSpec((JudgeSpec(spec),))
