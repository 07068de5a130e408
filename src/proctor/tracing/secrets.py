"""What must not be kept: credentials, which instrumentations and applications let slip into what they record."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from proctor.base.json_data import Json

REDACTED = "[redacted]"
SECRET_KEYS = tuple(
    """authorization cookie api_key apikey api_token password passwd secret secret_key client_secret access_key
    access_token accesstoken refresh_token refreshtoken auth_token authtoken id_token bearer_token session_token
    private_key privatekey""".split()
)
"""How the name of a secret ends, in lower case and with underscores."""
HINTS = tuple(
    """authorization cookie api_key api-key apikey api_token api-token password passwd secret access_key access-key
    access_token access-token accesstoken refresh_token refresh-token refreshtoken auth_token auth-token authtoken
    id_token id-token bearer session_token session-token private_key private-key privatekey
    sk- pk- rk- ghp_ gho_ ghu_ ghs_ ghr_ akia xox aiza eyj""".split()
)
"""Without any of these, a text holds nothing to hide; looking for them is much faster than reading it."""


def may_hold_secrets(text: str) -> bool:
    """Whether it is worth a closer look."""
    lowered = text.lower()
    return any(hint in lowered for hint in HINTS)


def without_secrets(value: Json) -> Json:
    """The same data with credentials blotted out: values under the names of secrets, and texts that look like keys."""
    if isinstance(value, str):
        return _blotted(value) if may_hold_secrets(value) else value
    if isinstance(value, Mapping):
        return {
            key: _hidden(item) if isinstance(key, str) and is_secret(key) else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value


def is_secret(key: str) -> bool:
    """Whether values of that name are credentials: `http.request.header.authorization`, `X-Api-Key`, `apiKey`."""
    return key.rpartition(".")[2].lower().replace("-", "_").endswith(SECRET_KEYS)


def _hidden(value: Json) -> Json:
    """Texts, also in a list as headers come; an object under such a name describes a secret rather than being one."""
    if isinstance(value, str):
        return REDACTED if value else value
    if isinstance(value, (list, tuple)):
        return [_hidden(item) for item in value]
    return without_secrets(value)


def _blotted(text: str) -> str:
    for pattern in _patterns():
        text = pattern.sub(rf"\g<1>{REDACTED}", text)
    return text


@functools.cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"""(authorization["']?\s*[:=]\s*["']?)(?:\w+\s+)?[^\s"',;]+""", re.IGNORECASE),
        re.compile(r"(\bbearer\s+)(?=\S*[\d._-])[A-Za-z0-9+/=._~-]{16,}", re.IGNORECASE),
        re.compile(
            r"()\b(?:[spr]k-[\w-]{16,}|gh[pousr]_\w{20,}|AKIA[0-9A-Z]{16}|xox[abpr]-[\w-]{10,}|AIza[\w-]{30,}"
            r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
        ),
    )
