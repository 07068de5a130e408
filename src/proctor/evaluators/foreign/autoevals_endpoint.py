"""Where a scorer of `autoevals` would send what it is given, and the refusal to let it go where nobody said.

Left to itself, autoevals sends questions, answers and `OPENAI_API_KEY` to the gateway of the company behind it, unless
a client, `OPENAI_BASE_URL` or `BRAINTRUST_AI_GATEWAY_URL` says otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proctor.errors import JudgeFailed

ASKING = frozenset(("OpenAIScorer", "EmbeddingSimilarity"))
"""The classes of autoevals under which everything that asks a model stands."""

ADDRESSES = ("OPENAI_BASE_URL", "BRAINTRUST_AI_GATEWAY_URL")


def parts_of(scorer: Any) -> list[Any]:
    """A scorer and the scorers it is made of, such as the one that compares the texts in a JSON document."""
    found: list[Any] = []
    waiting = [scorer]
    while waiting:
        part = waiting.pop(0)
        if all(part is not known for known in found):
            found.append(part)
            waiting += [value for value in getattr(part, "__dict__", {}).values() if hasattr(value, "eval_async")]
    return found


def asks_a_model(scorer: Any) -> bool:
    return any(_asks(part) for part in parts_of(scorer))


def require_endpoint(scorer: Any, name: str) -> None:
    """Refuse to ask a model that the user has not named an address for."""
    if global_client() is not None or any(os.environ.get(variable, "").strip() for variable in ADDRESSES):
        return
    if all(_has_address(part) for part in parts_of(scorer) if _asks(part) and is_theirs(type(part))):
        return
    raise JudgeFailed(
        f"{name} asks a language model, and nothing says where: autoevals would send the question, the answer and"
        " OPENAI_API_KEY to gateway.braintrust.dev. Give the scorer a client (client=openai.AsyncOpenAI()), call"
        " autoevals.init(client=...), or set OPENAI_BASE_URL (https://api.openai.com/v1 for OpenAI)"
    )


def is_async_client(scorer: Any) -> bool:
    """Whether the scorer has to be awaited: with a client that is, and without one, as autoevals then makes its own."""
    clients = [client for part in parts_of(scorer) if (client := getattr(part, "client", None)) is not None]
    client = clients[0] if clients else global_client()
    if client is None or getattr(client, "is_async", False):
        return True
    inner = getattr(client, "openai", client)  # `init` does not notice that the client it wraps is async
    return type(inner).__name__.startswith("Async")


def global_client() -> Any:
    """What `autoevals.init(client=...)` has set, if anything."""
    variable = _client_variable()
    return None if variable is None else variable.get(None)


@contextmanager
def using_client(client: Any) -> Iterator[None]:
    """As if `autoevals.init(client=...)` had been called in this context."""
    variable = _client_variable()
    token = variable.set(client)
    try:
        yield
    finally:
        variable.reset(token)


def _client_variable() -> Any:
    return getattr(sys.modules.get("autoevals.oai"), "_client_var", None)


def _asks(part: Any) -> bool:
    said = getattr(part, "needs_judge", None)
    if said is not None:
        return bool(said)
    return any(kind.__name__ in ASKING and is_theirs(kind) for kind in type(part).__mro__)


def _has_address(part: Any) -> bool:
    """A base URL does not count for the RAGAS scorers: they do not pass it on to the embeddings they ask for."""
    if getattr(part, "client", None) is not None:
        return True
    return "base_url" in getattr(part, "extra_args", {}) and not type(part).__module__.endswith(".ragas")


def is_theirs(kind: type) -> bool:
    """Whether a class comes with autoevals."""
    return kind.__module__.partition(".")[0] == "autoevals"
