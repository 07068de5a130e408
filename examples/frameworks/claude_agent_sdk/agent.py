"""The loan desk with the Claude Agent SDK; a real one is the options alone: `agent = options`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, tool

from proctor.agents.frameworks.claude_agent_sdk import ClaudeAgent

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from claude_code import RuledClaudeCode
from loan_desk import INSTRUCTIONS, TOOLS, next_step


def _as_tool(function: Any) -> Any:
    given = {name: kind for name, kind in _KINDS.items() if name in function.__annotations__}

    @tool(function.__name__, function.__doc__, given)
    async def used(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": json.dumps(function(**arguments))}]}

    return used


_KINDS = {
    "loan_amount": float,
    "annual_interest_rate": float,
    "loan_term_months": int,
    "credit_score": int,
    "annual_income": float,
}

options = ClaudeAgentOptions(
    system_prompt=INSTRUCTIONS,
    tools=[],
    mcp_servers={"loans": create_sdk_mcp_server("loans", tools=[_as_tool(function) for function in TOOLS])},
    allowed_tools=["mcp__loans__*"],
)
agent = ClaudeAgent(options, "loan desk", lambda given: ClaudeSDKClient(given, RuledClaudeCode("loans", next_step)))
