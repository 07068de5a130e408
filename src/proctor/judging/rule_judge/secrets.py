"""Finds secrets in a text: keys of known vendors, private keys, tokens, passwords in addresses and assignments."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

from proctor.judging.rule_judge.pii import Finding, masked, without_overlaps

_VENDORS = {
    "private_key": r"-----BEGIN (?:[A-Z]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{16,1000}",
    "anthropic_key": r"\bsk-ant-[A-Za-z0-9_-]{20,200}",
    "openai_key": r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,200}",
    "aws_access_key": r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
    "github_token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{40,255})",
    "gitlab_token": r"\bglpat-[A-Za-z0-9_-]{20,60}",
    "slack_token": r"\bxox[abeprs]-[A-Za-z0-9-]{10,250}",
    "stripe_key": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}",
    "google_key": r"\bAIza[A-Za-z0-9_-]{35}",
    "huggingface_token": r"\bhf_[A-Za-z0-9]{30,60}",
    "npm_token": r"\bnpm_[A-Za-z0-9]{36}",
    "pypi_token": r"\bpypi-[A-Za-z0-9_-]{50,400}",
    "sendgrid_key": r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}",
    "url_password": r"(?<=://)[^\s:/@]{1,100}:[^\s/@]{1,100}(?=@)",
}
_ENTROPY = 3.5


def find_secrets(text: str) -> list[Finding]:
    """Secrets in the order of the text, each masked."""
    found = [
        Finding(kind, masked(match[0]), match.start(), match.end())
        for kind in _VENDORS
        for match in _pattern(kind).finditer(text)
    ]
    found.extend(
        Finding("assigned_secret", masked(match["value"]), match.start("value"), match.end("value"))
        for match in _assignment().finditer(text)
        if _looks_random(match["value"]) or match["name"].lower().endswith(("password", "passwd", "pwd"))
    )
    return without_overlaps(found)


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(_VENDORS[kind])


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(
        r"(?P<name>\b(?:[A-Za-z0-9]{1,20}[_-]){0,4}(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|auth))"
        r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>[^\s\"',;<>{}()\[\]]{8,200})",
        re.IGNORECASE,
    )


def _looks_random(value: str) -> bool:
    """Long, of mixed characters, and with more information per character than words have."""
    if len(value) < 16 or not any(character.isdigit() for character in value):
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy >= _ENTROPY and not re.fullmatch(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", value)
