"""Proctor's TestExecutor on an agent.yaml with a backend that repeats the message. Arguments: FILE TESTS."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.compat.holodeck import (
    ConfigLoader,
    ExecutionResult,
    TestCaseModel,
    TestExecutor,
    generate_markdown_report,
)


class Echo:
    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message, [{"name": "look_up", "arguments": {}}], [{"name": "look_up", "result": "1"}])

    async def teardown(self) -> None: ...


async def main(path: str, wanted: int) -> None:
    agent = ConfigLoader().load_agent_yaml(path)
    known = agent.test_cases or []
    cases = (known[n % len(known)].case for n in range(wanted))
    agent.test_cases = [TestCaseModel(replace(case, id=f"case-{n}")) for n, case in enumerate(cases)]
    report = await TestExecutor(path, agent_config=agent, backend=Echo()).execute_tests()
    assert report.summary.passed == wanted, report.summary
    Path("proctor.md").write_text(generate_markdown_report(report), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
