"""adk-python's AgentEvaluator on the same file and agent, its detailed table off. Arguments: MODULE FILE."""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from google.adk.evaluation.agent_evaluator import AgentEvaluator  # noqa: E402


def main(agent: str, path: str) -> None:
    asyncio.run(AgentEvaluator.evaluate(agent, path, num_runs=1, print_detailed_results=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
