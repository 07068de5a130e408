"""The embedded judge: compares texts by written rules, with no model, no download and no account."""

from __future__ import annotations

from proctor.judging.rule_judge.agreement import AGREES_FROM, Agreement, agreement, alternatives
from proctor.judging.rule_judge.injection import Injection, prompt_injection
from proctor.judging.rule_judge.passage_reading import entities
from proctor.judging.rule_judge.pii import Finding, find_pii, find_secrets
from proctor.judging.rule_judge.relevance import RELEVANT_FROM, context_relevance, noncommittal, relevance
from proctor.judging.rule_judge.statements import statements
from proctor.judging.rule_judge.support import SUPPORTED_FROM, Grounding, Support, attributable, grounding, support

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
