"""DeepEval against the loopback provider, with a metric that needs no model. Argument: default or tuned.

DeepEval takes answers: its quick start calls the agent in a loop, one case after another. Tuned, 20 cases run at a time
(its own limit for metrics), and the openai client retries eight times, since DeepEval retries only its judge. With five
retries, some cases give up before the outage is over. A case whose agent raised has no answer and is an error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import provider_agent
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI, OpenAIError


async def ask_all(rows: list[dict[str, str]], at_once: int) -> list[LLMTestCase]:
    places = asyncio.Semaphore(at_once)

    async def ask(row: dict[str, str]) -> LLMTestCase | None:
        async with places:
            try:
                text = await provider_agent.answer(row["input"])
            except OpenAIError:
                return None
        return LLMTestCase(name=row["id"], input=row["input"], actual_output=text, expected_output=row["expected"])

    return [case for case in await asyncio.gather(*map(ask, rows)) if case is not None]


def main(kind: str) -> None:
    rows = json.loads(Path("cases.json").read_text(encoding="utf-8"))
    if kind == "tuned":
        provider_agent._client = AsyncOpenAI(max_retries=8)
    outcomes = {row["id"]: "error" for row in rows}
    tests = asyncio.run(ask_all(rows, 20 if kind == "tuned" else 1))
    result = evaluate(
        tests,
        [ExactMatchMetric()],
        async_config=AsyncConfig(run_async=True),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    outcomes |= {test.name: "passed" if test.success else "failed" for test in result.test_results}
    Path("outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
