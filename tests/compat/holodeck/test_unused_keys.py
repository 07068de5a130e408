"""Keys of an agent.yaml that have no effect here are refused or warned of, never ignored in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from declared_projects import project

from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.compat.holodeck.agent_reader import UNUSED_KEYS
from proctor.running.plan import make_plan
from proctor.running.settings import RunOptions

NOWHERE = "http://127.0.0.1:1/v1"
MODEL = {"provider": "openai", "name": "m", "endpoint": "http://127.0.0.1:1/v1"}
CLAUDE = {"provider": "anthropic", "name": "m", "endpoint": "http://127.0.0.1:1"}
STORE = {"name": "t", "type": "vectorstore", "source": "faq.md", "embedding_model": "e"}
SERVER = {"name": "t", "type": "mcp", "transport": "http", "url": "http://127.0.0.1:1/mcp"}
TREE = {"name": "t", "type": "hierarchical_document", "source": "faq.md"}
UNSAMPLED = ("temperature", "max_tokens", "top_p", "api_version")


def _embedder(key: str, value: Any) -> dict[str, Any]:
    return {"tools": [STORE], "embedding_provider": {**MODEL, key: value}}


REFUSED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("model", "auth_provider"): ({"model": {**MODEL, "auth_provider": "bedrock"}}, "auth_provider is not"),
    ("embedding_provider", "auth_provider"): (_embedder("auth_provider", "vertex"), "auth_provider is not"),
    **{("embedding_provider", key): (_embedder(key, 1), f"{key} does not apply") for key in UNSAMPLED[:3]},
    ("embedding_provider", "api_version"): (_embedder("api_version", "1"), "api_version does not apply"),
    ("evaluations.model", "auth_provider"): (
        {"evaluations": {"metrics": [{"type": "standard", "metric": "fluency"}],
                         "model": {**MODEL, "auth_provider": "bedrock"}}},
        "auth_provider is not",
    ),
    **{("claude", key): ({"model": CLAUDE, "claude": {key: 1}}, f"claude.{key} is not") for key in UNUSED_KEYS},
    **{("openai", key): ({"openai": {key: 1}}, f"openai.{key} is not") for key in UNUSED_KEYS},
    ("tools.vectorstore", "record_prefix"): ({"tools": [{**STORE, "record_prefix": "r"}]}, "record_prefix is not"),
    ("tools.mcp", "load_tools"): ({"tools": [{**SERVER, "load_tools": False}]}, "load_tools is false"),
    ("tools.mcp", "load_prompts"): ({"tools": [{**SERVER, "load_prompts": True}]}, "load_prompts is true"),
    **{("tools.hierarchical_document", key): ({"tools": [{key: 1, **TREE}]}, "does not support") for key in
       ("chunking_strategy", "search_mode", "top_k", "enable_reranking")},
}  # fmt: skip
"""By level and key: a file that has it, and what is said of it before anything runs."""

WARNED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("agent", "observability"): ({"observability": {"enabled": True}}, "has no effect"),
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
