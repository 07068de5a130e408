"""Keeps keys out of everything people see or that is kept: providers repeat them in their error messages."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable

HIDDEN = "***"

SHORTEST = 8
"""Values shorter than this are no keys, and would be found in ordinary words."""


def conceal(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets, those of the environment, and whatever else looks like a key."""
    return _key_like().sub(_hidden, blotted(text, [*secrets, *_environment_secrets()]))


def blotted(text: str, secrets: Iterable[str]) -> str:
    """`text` without the given secrets, and otherwise as it is."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def _environment_secrets() -> list[str]:
    return [value for name, value in os.environ.items() if _tells_of_a_secret().search(name)]


def _hidden(match: re.Match[str]) -> str:
    return f"{match.group('before') or ''}{HIDDEN}"


@functools.cache
def _tells_of_a_secret() -> re.Pattern[str]:
    return re.compile(r"(?i)(api_?key|token|secret|password|credential)")


@functools.cache
def _key_like() -> re.Pattern[str]:
    """Tokens with the marks of well-known issuers, also where the issuer has masked part of them, and auth headers."""
    return re.compile(
        r"""(?ix)
        (?P<before>
            \b(?:proxy-)?authorization['"]?\s*[:=]\s*['"]?(?:(?:bearer|basic|token)\s+)?
          | \b(?:bearer|basic)\s+(?=[\w.~+/*-]*[\d=])
          | \b(?:x-)?(?:goog-)?api[-_ ]?key['"]?\s*[:=]\s*['"]?
        )
        [\w.~+/=*-]+
        | \b(?:sk|pk|rk|gsk|xai|hf|pplx|r8|nvapi|csk)[-_](?=[\w*.-]*[\d*])[\w*.-]{6,}
        | \bAIza[\w*-]{10,}
        | \bya29\.[\w.*-]{10,}
        | \b(?:AKIA|ASIA)[A-Z0-9*]{8,}
        | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?
        """
    )
