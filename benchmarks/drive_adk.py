"""Proctor's AgentEvaluator on an EvalSet file, results kept on disk. Arguments: MODULE FILE."""

from __future__ import annotations

import sys
import tempfile

from proctor.compat.adk import AgentEvaluator


def main(agent: str, path: str) -> None:
    with tempfile.TemporaryDirectory() as store:
        AgentEvaluator.evaluate_sync(agent, path, 1, store=store)


if __name__ == "__main__":
    main(*sys.argv[1:])
