"""Keys of an agent.yaml that have no effect here are refused or warned of, never ignored in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from declared_projects import project

from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.running.plan import make_plan
from proctor.running.settings import RunOptions

NOWHERE = "http://127.0.0.1:1/v1"
MODEL = {"provider": "openai", "name": "m", "endpoint": "http://127.0.0.1:1/v1"}
CLAUDE = {"provider": "anthropic", "name": "m", "endpoint": "http://127.0.0.1:1"}
STORE = {"name": "t", "type": "vectorstore", "source": "faq.md", "embedding_model": "e"}
SERVER = {"name": "t", "type": "mcp", "transport": "http", "url": "http://127.0.0.1:1/mcp"}
TREE = {"name": "t", "type": "hierarchical_document", "source": "faq.md"}
CLAUDE_CODE = {
    "bash": {"enabled": True},
    "file_system": {"read": True},
    "web_search": True,
    "agents": {"helper": {"description": "Helps.", "prompt": "Help."}},
    "setting_sources": ["project"],
    "allowed_tools": ["Read"],
}
"""What only Claude Code can do; the SDK is not installed here."""
SERVED = ("max_concurrent_sessions", "session_memory_estimate_mib")
UNSAMPLED = ("temperature", "max_tokens", "top_p", "api_version")


def _embedder(key: str, value: Any) -> dict[str, Any]:
    return {"tools": [STORE], "embedding_provider": {**MODEL, key: value}}


REFUSED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("model", "auth_provider"): ({"model": {**CLAUDE, "auth_provider": "bedrock"}}, "needs Claude Code: pip install"),
    **{("embedding_provider", key): (_embedder(key, 1), f"{key} does not apply") for key in UNSAMPLED[:3]},
    ("embedding_provider", "api_version"): (_embedder("api_version", "1"), "api_version does not apply"),
    ("evaluations.model", "auth_provider"): (
        {"evaluations": {"metrics": [{"type": "standard", "metric": "fluency"}],
                         "model": {**MODEL, "auth_provider": "bedrock"}}},
        "auth_provider is not",
    ),
    ("claude", "permission_mode"): (
        {"model": CLAUDE, "claude": {"permission_mode": "acceptAll"}}, "add 'i_understand_this_is_unsafe: true'"
    ),
    **{("claude", key): ({"model": CLAUDE, "claude": {key: value}}, f"claude.{key} needs Claude Code: pip install")
       for key, value in CLAUDE_CODE.items()},
    ("tools.vectorstore", "record_prefix"): ({"tools": [{**STORE, "record_prefix": "r"}]}, "record_prefix is not"),
    ("tools.mcp", "load_tools"): ({"tools": [{**SERVER, "load_tools": False}]}, "load_tools is false"),
    ("tools.mcp", "load_prompts"): ({"tools": [{**SERVER, "load_prompts": True}]}, "load_prompts is true"),
    **{("tools.hierarchical_document", key): ({"tools": [{key: 1, **TREE}]}, "does not support") for key in
       ("chunking_strategy", "search_mode", "top_k", "enable_reranking")},
}  # fmt: skip
"""By level and key: a file that has it, and what is said of it before anything runs."""

WARNED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("agent", "observability"): ({"observability": {"enabled": True}}, "has no effect"),
    ("model", "auth_provider"): ({"model": {**MODEL, "auth_provider": "bedrock"}}, "has no effect on models of openai"),
    **{("claude", key): ({"model": CLAUDE, "claude": {key: 100}}, "only on an agent that is served") for key in SERVED},
    **{("openai", key): ({"openai": {key: 100}}, "only on an agent that is served") for key in SERVED},
    ("claude", "disable_default_hooks"): (
        {"model": CLAUDE, "claude": {"disable_default_hooks": True}},
        "Proctor adds no hooks",
    ),
    ("openai", "disable_default_hooks"): ({"openai": {"disable_default_hooks": True}}, "Proctor adds no hooks"),
    ("openai", "disable_subprocess_env_scrub"): ({"openai": {"disable_subprocess_env_scrub": True}}, "sees only PATH"),
    ("openai", "max_budget_usd"): ({"openai": {"max_budget_usd": 3}}, "limit the cost of the run with --budget"),
    ("claude", "max_budget_usd"): (
        {"model": CLAUDE, "claude": {"max_budget_usd": 0.5}},
        "limit the cost of the run with --budget",
    ),
    ("claude", "permission_mode"): (
        {"model": CLAUDE, "claude": {"permission_mode": "acceptEdits"}},
        "only with Claude Code",
    ),
    ("claude", "working_directory"): ({"model": CLAUDE, "claude": {"working_directory": "."}}, "only with Claude Code"),
    ("claude.bash", "allow_unsafe"): (
        {"model": CLAUDE, "claude": {"bash": {"enabled": False, "allow_unsafe": True}}},
        "excluded_commands",
    ),
    ("agent", "deployment"): ({"deployment": {"port": 1}}, "has no effect"),
    ("tools.mcp", "registry_name"): ({"tools": [{**SERVER, "registry_name": "r"}]}, "has no effect"),
    ("tools.mcp", "description"): ({"tools": [{**SERVER, "description": "d"}]}, "the server describes its tools"),
    ("evaluations", "optimizer"): (
        {"evaluations": {"metrics": [{"type": "standard", "metric": "equality"}], "optimizer": {"seed": 1}}},
        "Proctor does not optimize",
    ),
    ("metrics.rag", "include_reason"): (
        {"evaluations": {"metrics": [{"type": "rag", "metric_type": "faithfulness", "include_reason": False}]}},
        "the reason is always stored",
    ),
}
"""By level and key: a file that has it, and the warning that it changes nothing in a test."""


def problems_and_warnings(folder: Path, more: dict[str, Any]) -> tuple[list[str], list[str]]:
    (folder / "faq.md").write_text("A refund takes 30 days.")
    [suite] = load([project(folder, NOWHERE, **more)])
    try:
        make_plan([suite], RunOptions())
    except InvalidSuite as error:
        return [str(problem) for problem in error.problems], [str(warning) for warning in suite.warnings]
    return [], [str(warning) for warning in suite.warnings]


@pytest.mark.parametrize(("level", "key"), sorted(REFUSED))
def test_a_key_that_cannot_be_honoured_is_refused_with_the_reason(tmp_path: Path, level: str, key: str) -> None:
    more, complaint = REFUSED[level, key]
    found, _ = problems_and_warnings(tmp_path, more)
    assert any(complaint in problem for problem in found), found


@pytest.mark.parametrize(("level", "key"), sorted(WARNED))
def test_a_key_that_changes_nothing_in_a_test_is_warned_about(tmp_path: Path, level: str, key: str) -> None:
    more, complaint = WARNED[level, key]
    found, warnings = problems_and_warnings(tmp_path, more)
    assert found == []
    assert any(key in warning and complaint in warning for warning in warnings), warnings


@pytest.mark.parametrize(
    "block",
    [
        {"bash": {"enabled": False, "excluded_commands": ["rm"]}},
        {"file_system": {"read": False, "write": False, "edit": False}},
        {"web_search": False},
        {"agents": {}},
        {"setting_sources": []},
        {"i_understand_this_is_unsafe": True},
    ],
)
def test_what_is_turned_off_needs_nothing(tmp_path: Path, block: dict[str, Any]) -> None:
    assert problems_and_warnings(tmp_path, {"model": CLAUDE, "claude": block}) == ([], [])
