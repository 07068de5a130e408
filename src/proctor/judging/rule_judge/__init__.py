"""The embedded judge: compares texts by written rules, with no model, no download and no account."""

from __future__ import annotations

from proctor.judging.rule_judge.agreement import Agreement, agreement, alternatives
from proctor.judging.rule_judge.injection import Injection, prompt_injection
from proctor.judging.rule_judge.passage_reading import entities
from proctor.judging.rule_judge.pii import Finding, find_pii, find_secrets
from proctor.judging.rule_judge.relevance import Relevance, makes_claim, noncommittal, relevances
from proctor.judging.rule_judge.statements import statements
from proctor.judging.rule_judge.support import Support, support

__all__ = [
    "Agreement",
    "Finding",
    "Injection",
    "Relevance",
    "Support",
    "agreement",
    "alternatives",
    "entities",
    "find_pii",
    "find_secrets",
    "makes_claim",
    "noncommittal",
    "prompt_injection",
    "relevances",
    "statements",
    "support",
]
