"""HoloDeck's TestExecutor on the same agent.yaml with the same backend. Arguments: FILE TESTS.

ROUGE comes from a script that the library `evaluate` downloads; without a network it cannot be measured, and a local
computation by `rouge_score`, with the aggregator that script uses, takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import evaluate  # noqa: E402
from holodeck.config.loader import ConfigLoader  # noqa: E402
from holodeck.lib.backends.base import ExecutionResult  # noqa: E402
from holodeck.lib.test_runner.executor import TestExecutor  # noqa: E402
from holodeck.lib.test_runner.reporter import generate_markdown_report  # noqa: E402
from rouge_score import rouge_scorer, scoring  # noqa: E402

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


class Rouge:
    def compute(self, predictions: list[str], references: list[Any], **options: Any) -> dict[str, float]:
        scorer, aggregator = rouge_scorer.RougeScorer(KINDS), scoring.BootstrapAggregator()
        for prediction, reference in zip(predictions, references, strict=True):
            text = reference[0] if isinstance(reference, list) else reference
            aggregator.add_scores(scorer.score(text, prediction))
        return {name: score.mid.fmeasure for name, score in aggregator.aggregate().items()}


class Echo:
    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message, [{"name": "look_up", "arguments": {}}], [{"name": "look_up", "result": "1"}])

    async def create_session(self, **options: Any) -> Any:
        raise NotImplementedError

    async def teardown(self) -> None: ...


async def main(path: str, wanted: int) -> None:
    evaluate.load = lambda name, *args, **options: Rouge()
    agent = ConfigLoader().load_agent_yaml(path)
    known = agent.test_cases or []
    agent = agent.model_copy(update={"test_cases": [known[n % len(known)] for n in range(wanted)]})
    executor = TestExecutor(path, agent_config=agent, backend=Echo())
    report = await executor.execute_tests()
    assert report.summary.total_tests == wanted
    Path("holodeck.md").write_text(generate_markdown_report(report), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
