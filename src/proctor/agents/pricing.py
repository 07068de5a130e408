"""Estimates the cost of tokens from the price list of the package `genai-prices`, for agents that do not report it.

No network is involved. An estimate ignores discounts, cached tokens and negotiated prices, so every cost from here is
marked as estimated. The cost of a model that is not on the list is unknown, which is not the same as zero.
"""

from __future__ import annotations

import functools
from typing import Any

_NAME_ATTRIBUTES = ("model_name", "model", "model_id", "id", "name")
"""Attributes in which model objects of libraries have the name of the model."""
_SEPARATORS = (":", "/")


def estimate_cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """The estimated cost in dollars, or `None` if the model is not on the price list."""
    entry = _price_entry(model)
    if entry is None:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(input_tokens=max(0, input_tokens), output_tokens=max(0, output_tokens))
    try:
        return float(calc_price(tokens, model_ref=entry[0], provider_id=entry[1]).total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def has_price(model: str) -> bool:
    """Whether the model is on the price list."""
    return _price_entry(model) is not None


@functools.lru_cache(maxsize=256)
def _price_entry(model: str) -> tuple[str, str | None] | None:
    """The model's name on the list, and its provider if the name has one, as in `openai:gpt-5` or `models/x`."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    candidates: list[tuple[str, str | None]] = [(model, None)]
    for separator in _SEPARATORS:
        provider, _, rest = model.partition(separator)
        if rest:
            candidates += [(rest, provider), (rest, None)]
    for name, provider_id in candidates:
        try:
            calc_price(Tokens(input_tokens=1, output_tokens=1), model_ref=name, provider_id=provider_id)
        except (LookupError, ValueError, AssertionError):
            continue
        return name, provider_id
    return None


def model_name_of(agent: Any) -> str | None:
    """The name of the model in the agent's attribute `model`, or in that of the object it wraps."""
    for owner in (agent, getattr(agent, "target", None)):
        if (model := getattr(owner, "model", None)) is not None:
            return _model_name(model)
    return None


def _model_name(model: Any) -> str | None:
    if isinstance(model, str):
        return model or None
    for attribute in _NAME_ATTRIBUTES:
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None


def unknown_cost_reason(agent: Any) -> str:
    """Why the cost of an agent will stay unknown, as far as that is clear before it answers; empty if it is known."""
    if getattr(agent, "reports_cost", False):
        return ""
    model = model_name_of(agent)
    if model is None:
        return "it names no model, so its cost counts only if its replies report it"
    return "" if has_price(model) else f"the price list does not have its model {model!r}"
