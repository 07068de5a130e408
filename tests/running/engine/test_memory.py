from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from agents_under_test import cases, suite

from proctor.running.options import RunOptions
from proctor.running.run_suites import Request, run_suites

CASES = 2_000
LARGEST_GROWTH = 2048
"""Bytes for each case."""


async def talkative(question: str) -> object:
    return {"text": question, "usage": {"input_tokens": 1, "output_tokens": 2}, "state": {"said": question * 100}}


def test_a_large_run_keeps_summaries_in_memory_and_no_replies(tmp_path: Path) -> None:
    large = suite(cases(CASES))
    warm_up = Request([suite(cases(10))], RunOptions(), agent=talkative, store=tmp_path)
    run_suites(warm_up)
    gc.collect()
    tracemalloc.start()
    try:
        run, verdict = run_suites(Request([large], RunOptions(), agent=talkative, store=tmp_path))
        gc.collect()
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert verdict.exit_code == 0
    assert kept / CASES < LARGEST_GROWTH
    assert most / CASES < LARGEST_GROWTH
    assert sum(1 for _ in run.trials) == CASES
