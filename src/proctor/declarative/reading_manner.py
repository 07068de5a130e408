"""Reads the blocks `openai` and `claude`: how many rounds, how much thought, which tools."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.cases.fields import Fields, nearest
from proctor.declarative.spec import Manner
from proctor.judging.providers import ModelSpec

EFFORTS = ("low", "medium", "high", "max")
LEAST_THINKING, MOST_THINKING = 1_000, 100_000
OF_CLAUDE = frozenset({"anthropic", "ollama", "bedrock"})
OF_OPENAI = frozenset({"openai", "openai-chat", "openai-responses", "azure", "azure-responses"})

ELSEWHERE = {
    "max_budget_usd": "limit what a whole run may cost with --budget instead",
    "permission_mode": "nobody is there to be asked in a test",
    "agents": "agents below this one are not built from a file; name one with 'agent' instead",
    "setting_sources": "settings of the person who runs the tests would change what is measured",
    "bash": "give the agent a tool of its own for that",
    "file_system": "give the agent a tool of its own for that",
    "web_search": "give the agent a tool of its own for that",
}
"""What these blocks may also say, and what to do instead of saying it."""


def read_manner(root: Fields, model: ModelSpec, offered: Sequence[str]) -> Manner:
    """What the block of the model's own vendor says; a block for another vendor is a mistake."""
    found = Manner()
    for key, providers in (("claude", OF_CLAUDE), ("openai", OF_OPENAI)):
        inside = root.inside(key)
        if inside is None or not inside.valid:
            continue
        if model.provider not in providers:
            root.problem(key, f"has no meaning for a model of {model.provider}")
            continue
        found = _read(inside, claude=key == "claude")
        if not root.document.problems:
            _require_tools(inside, found, offered)
    return found


def _read(inside: Fields, *, claude: bool) -> Manner:
    for key, instead in ELSEWHERE.items():
        if inside.take(key) is not None:
            inside.problem(key, f"is not used here; {instead}")
    permissions = None if claude else inside.inside("permissions")
    allowed = inside.texts("allowed_tools") if claude else None
    denied = inside.texts("disallowed_tools", ())
    if permissions is not None and permissions.valid:
        allowed = permissions.texts("allowed_tools")
        denied = (*denied, *permissions.texts("disallowed_tools", ()))
        permissions.done()
    manner = Manner(
        max_turns=inside.integer("max_turns", least=1),
        effort=inside.choice("effort", EFFORTS),
        thinking_tokens=_thinking(inside) if claude else None,
        fallback_model=inside.text("fallback_model", blank=False),
        allowed_tools=allowed,
        disallowed_tools=denied,
    )
    inside.done()
    return manner


def _require_tools(inside: Fields, manner: Manner, offered: Sequence[str]) -> None:
    """A tool that is not there cannot be allowed; forbidding one does no harm, unless another was meant."""
    for name in manner.allowed_tools or ():
        if not _is_offered(name, offered):
            message = f"allows {name!r}, which the agent does not have{nearest(name, offered)}"
            inside.document.problem(inside.pointer, message)
    for name in manner.disallowed_tools:
        meant = "" if _is_offered(name, offered) else nearest(name, offered)
        if meant:
            inside.document.problem(inside.pointer, f"disallows {name!r}, which the agent does not have{meant}")


def _is_offered(name: str, offered: Sequence[str]) -> bool:
    """What a server offers is not known before it is asked, only how the names begin."""
    return name in offered or name.startswith(tuple(begin for begin in offered if begin.endswith("__")))


def _thinking(inside: Fields) -> int | None:
    block = inside.inside("extended_thinking")
    if block is None or not block.valid:
        return None
    enabled, tokens = block.flag("enabled", False), block.integer("budget_tokens", 10_000, least=LEAST_THINKING)
    if tokens > MOST_THINKING:
        block.problem("budget_tokens", f"must be at most {MOST_THINKING}, not {tokens}")
    block.done()
    return tokens if enabled else None
