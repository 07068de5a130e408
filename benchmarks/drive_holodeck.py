"""Proctor's TestExecutor on the tests of agent.yaml files; its backend repeats the message. Arguments: FILES."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from proctor.compat.holodeck import ConfigLoader, ExecutionResult, TestExecutor, generate_markdown_report


class Echo:
    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message, [{"name": "look_up", "arguments": {}}], [{"name": "look_up", "result": "1"}])

    async def teardown(self) -> None: ...


async def main(paths: list[str]) -> None:
    agents = [ConfigLoader().load_agent_yaml(path) for path in paths]
    agents[0].test_cases = [test for agent in agents for test in agent.test_cases or ()]
    report = await TestExecutor(paths[0], agent_config=agents[0], backend=Echo()).execute_tests()
    Path("report.md").write_text(generate_markdown_report(report), encoding="utf-8")
    Path("report.json").write_text(report.model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
