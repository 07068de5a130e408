"""Proctor's AgentEvaluator on an EvalSet file, results kept on disk. Arguments: MODULE FILE."""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)  # as for the peer: ADK warns of every answer that tells no tokens

from proctor.compat.adk import AgentEvaluator  # noqa: E402


def main(agent: str, path: str) -> None:
    with tempfile.TemporaryDirectory() as store:
        AgentEvaluator.evaluate_sync(agent, path, 1, store=store)


if __name__ == "__main__":
    main(*sys.argv[1:])
