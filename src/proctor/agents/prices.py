"""What tokens cost where nothing else says so: a maintained price list that comes with its package and asks no network.

What comes of it is marked as an estimate: discounts, cached tokens and prices of one's own are not in any list.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from proctor.agents.agent import Usage

_NAMES = ("model_name", "model", "model_id", "id", "name")
"""Where objects of model libraries keep the name of the model."""
_SEPARATORS = (":", "/")


def priced(usage: Usage, model: str | None = None) -> Usage:
    """The usage with its cost; the same where the cost is known already, or tokens or a price are missing.

    `model` is the agent's, for a usage that names none.
    """
    name = usage.model or model
    if usage.cost_usd is not None or name is None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    cost = price(name, usage.input_tokens, usage.output_tokens)
    return usage if cost is None else replace(usage, cost_usd=cost, model=name, estimated=True)


def price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars by the list; `None` for a model that is not on it."""
    reference = _reference(model)
    if reference is None:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(input_tokens=max(0, input_tokens), output_tokens=max(0, output_tokens))
    try:
        return float(calc_price(tokens, model_ref=reference[0], provider_id=reference[1]).total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def is_priced(model: str) -> bool:
    return _reference(model) is not None


@functools.lru_cache(maxsize=256)
def _reference(model: str) -> tuple[str, str | None] | None:
    """The name of a model as the list has it, and the provider where the name says one: `openai:gpt-5`, `models/x`."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    candidates: list[tuple[str, str | None]] = [(model, None)]
    for separator in _SEPARATORS:
        provider, found, rest = model.partition(separator)
        if found and rest:
            candidates += [(rest, provider), (rest, None)]
    for name, provider_id in candidates:
        try:
            calc_price(Tokens(input_tokens=1, output_tokens=1), model_ref=name, provider_id=provider_id)
        except (LookupError, ValueError, AssertionError):
            continue
        return name, provider_id
    return None


def model_of(agent: Any) -> str | None:
    """The model that an agent says it asks, before it has answered; `None` where it does not say."""
    for owner in (agent, getattr(agent, "target", None)):
        if (model := getattr(owner, "model", None)) is not None:
            return _name_of(model)
    return None


def _name_of(model: Any) -> str | None:
    if isinstance(model, str):
        return model or None
    for name in _NAMES:
        found = getattr(model, name, None)
        if isinstance(found, str) and found:
            return found
    return None


def unknown_cost(agent: Any) -> str:
    """Why nothing will be known of an agent's cost, as far as can be said before it answers; empty where it will."""
    if getattr(agent, "tells_cost", False):
        return ""
    model = model_of(agent)
    if model is None:
        return "it names no model, so that its cost counts only if its answers tell it"
    return "" if is_priced(model) else f"the price list does not have its model {model!r}"
