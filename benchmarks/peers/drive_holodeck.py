"""HoloDeck's TestExecutor on the same files with the same backend. Arguments: `bootstrap` or `plain`, FILES.

Its ROUGE is a script that the library `evaluate` downloads. So that no network is needed, a metric of `evaluate` that
does the same takes its place here: `rouge_score`, whose four kinds go through a bootstrap over the one pair there is.
With `plain` the bootstrap is left out, which HoloDeck has no setting for; the numbers are the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import datasets  # noqa: E402
import evaluate  # noqa: E402
from holodeck.config.loader import ConfigLoader  # noqa: E402
from holodeck.lib.backends.base import ExecutionResult  # noqa: E402
from holodeck.lib.test_runner.executor import TestExecutor  # noqa: E402
from holodeck.lib.test_runner.reporter import generate_markdown_report  # noqa: E402
from rouge_score import rouge_scorer, scoring  # noqa: E402

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


class Rouge(evaluate.Metric):
    bootstrap = True
    seen: ClassVar[list[float]] = []

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string", id="sequence")
        # `evaluate` tries both shapes of references at every call, so that both are part of the cost.
        shapes = [datasets.Features({"predictions": text, "references": it}) for it in (datasets.Sequence(text), text)]
        return evaluate.MetricInfo(description="ROUGE", citation="", features=shapes)

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        scorer = rouge_scorer.RougeScorer(KINDS)
        pairs = [scorer.score(reference, said) for reference, said in zip(references, predictions, strict=True)]
        found = self._bootstrapped(pairs) if self.bootstrap else self._averaged(pairs)
        self.seen.append(found["rougeL"])
        return found

    def _bootstrapped(self, pairs: list[dict[str, Any]]) -> dict[str, float]:
        aggregator = scoring.BootstrapAggregator()
        for pair in pairs:
            aggregator.add_scores(pair)
        return {kind: float(score.mid.fmeasure) for kind, score in aggregator.aggregate().items()}

    def _averaged(self, pairs: list[dict[str, Any]]) -> dict[str, float]:
        return {kind: statistics.fmean(pair[kind].fmeasure for pair in pairs) for kind in KINDS}


class Echo:
    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return ExecutionResult(message, [{"name": "look_up", "arguments": {}}], [{"name": "look_up", "result": "1"}])

    async def create_session(self, **options: Any) -> Any:
        raise NotImplementedError

    async def teardown(self) -> None: ...


async def main(mode: str, paths: list[str]) -> None:
    Rouge.bootstrap = mode == "bootstrap"
    evaluate.load = lambda name, *args, **options: Rouge()
    agents = [ConfigLoader().load_agent_yaml(path) for path in paths]
    tests = [test for agent in agents for test in agent.test_cases or ()]
    agent = agents[0].model_copy(update={"test_cases": tests})
    report = await TestExecutor(paths[0], agent_config=agent, backend=Echo()).execute_tests()
    Path("report.md").write_text(generate_markdown_report(report), encoding="utf-8")
    Path("report.json").write_text(report.model_dump_json(), encoding="utf-8")
    print(json.dumps({"rouge": statistics.fmean(Rouge.seen)}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
