"""What a finding in a text looks like, and how it is shown without giving away what was found."""

from __future__ import annotations

from proctor.records import record


@record
class Finding:
    """Something that should not be in a text: its kind, where it is, and a form fit to be shown."""

    kind: str
    text_masked: str
    start: int
    end: int


def masked(text: str) -> str:
    """The first two characters and the length; of short texts nothing but the length."""
    return (text[:2] if len(text) >= 8 else "") + "*" * min(len(text), 12)


def without_overlaps(findings: list[Finding]) -> list[Finding]:
    """The findings in order of place; of two that overlap, the one that was found first."""
    kept: list[Finding] = []
    for finding in findings:
        if all(finding.end <= other.start or other.end <= finding.start for other in kept[-50:]):
            kept.append(finding)
    return sorted(kept, key=lambda finding: finding.start)
