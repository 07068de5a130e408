"""HoloDeck's token counts in one line."""

from __future__ import annotations

from proctor.compat.holodeck import TokenUsage


def tokens(prompt: int, completion: int, total: int, cache_creation: int = 0, cache_read: int = 0) -> TokenUsage:
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cache_creation_tokens=cache_creation,
        cache_read_tokens=cache_read,
    )
