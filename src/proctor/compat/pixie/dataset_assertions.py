"""pixie's `assert_dataset_pass`: `assert_pass` for every entry of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proctor.base.event_loops import sync_version
from proctor.compat.pixie.datasets import DatasetStore
from proctor.running.assertions.assert_pass import DEFAULT_CRITERIA, BatchAssertion, assertion_limits
from proctor.running.assertions.observed_call import FromTrace, dataset_entry_input
from proctor.running.assertions.score_matrix import EvaluatorLike, PassCriteria, named_evaluators


async def assert_dataset_pass(
    runnable: Callable[..., Any],
    dataset_name: str,
    evaluators: Sequence[EvaluatorLike],
    *,
    dataset_dir: str | Path | None = None,
    pass_criteria: PassCriteria | None = None,
    from_trace: FromTrace | None = None,
    parallel: int | None = None,
    timeout: float | None = None,
) -> None:
    """`assert_pass` for every entry of a dataset; raises `FileNotFoundError` if there is no such dataset.

    `runnable` is called with the entry's arguments by name if its signature has them, as in `proctor test`; otherwise
    with its `eval_input`.
    """
    dataset = DatasetStore(dataset_dir).get(dataset_name)
    entries = zip(dataset.cases, dataset.items, strict=True)
    items = [dataset_entry_input(runnable, case, item) for case, item in entries]
    assertion = BatchAssertion(runnable, named_evaluators(evaluators), from_trace, assertion_limits(timeout, parallel))
    await assertion.check(items, pass_criteria or DEFAULT_CRITERIA)


assert_dataset_pass_sync = sync_version(assert_dataset_pass, __name__)
