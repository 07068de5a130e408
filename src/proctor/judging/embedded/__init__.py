"""The embedded judge: reads text by rules anybody can follow, with no model, no download and no account."""

from __future__ import annotations

from proctor.judging.embedded.agreement import AGREES_FROM, Agreement, agreement, alternatives
from proctor.judging.embedded.entities import entities
from proctor.judging.embedded.findings import Finding
from proctor.judging.embedded.injection import Injection, prompt_injection
from proctor.judging.embedded.pii import find_pii
from proctor.judging.embedded.relevance import RELEVANT_FROM, context_relevance, noncommittal, relevance
from proctor.judging.embedded.secrets import find_secrets
from proctor.judging.embedded.statements import statements
from proctor.judging.embedded.support import SUPPORTED_FROM, Grounding, Support, attributable, grounding, support

__all__ = [
    "AGREES_FROM",
    "RELEVANT_FROM",
    "SUPPORTED_FROM",
    "Agreement",
    "Finding",
    "Grounding",
    "Injection",
    "Support",
    "agreement",
    "alternatives",
    "attributable",
    "context_relevance",
    "entities",
    "find_pii",
    "find_secrets",
    "grounding",
    "noncommittal",
    "prompt_injection",
    "relevance",
    "statements",
    "support",
]
