"""What `evaluation_dataset` gives a test: every case with what the agent answered, tools and results included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from proctor.base.errors import UsageError
from proctor.cases.formats.keywords import from_python
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.running.python_api.agent_runner import AgentRun


class EvaluationDataset(Sequence[AgentRun]):
    """The runs in the order of their cases; also by the id of a case: `dataset["loan_calculation_basic"]`."""

    __test__ = False

    def __init__(self, runs: Iterable[AgentRun], on_look: Callable[[AgentRun], None]) -> None:
        self._runs = list(runs)
        self._on_look = on_look

    @property
    def test_cases(self) -> list[AgentRun]:
        return self._runs

    @property
    def ids(self) -> list[str]:
        return [run["id"] for run in self._runs]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[AgentRun]:
        return map(self._seen, self._runs)

    @overload
    def __getitem__(self, index: int | str) -> AgentRun: ...

    @overload
    def __getitem__(self, index: slice) -> list[AgentRun]: ...

    def __getitem__(self, index: int | str | slice) -> AgentRun | list[AgentRun]:
        __tracebackhide__ = True
        if isinstance(index, slice):
            return self._runs[index]
        if isinstance(index, int):
            return self._seen(self._runs[index])
        for run in self._runs:
            if run["id"] == index:
                return self._seen(run)
        raise KeyError(f"no case {index!r}; there are {', '.join(self.ids)}")

    def _seen(self, run: AgentRun) -> AgentRun:
        self._on_look(run)
        return run


def suites_of(given: Any, module: Path) -> list[Suite]:
    """The suites that a test asks for: a list of cases, suites, or the files that hold them; raises `InvalidSuite`.

    Files are looked for beside the test's `module`, then in the working folder.
    """
    items = [given] if isinstance(given, (str, Path, Suite)) else list(given)
    if items and all(isinstance(item, dict) for item in items):
        return [from_python("TEST_CASES", items, module)]
    suites: list[Suite] = []
    for item in items:
        if isinstance(item, Suite):
            suites.append(item)
        elif isinstance(item, (str, Path)):
            beside = module.parent / item
            suites += load([beside if beside.exists() else item])
        else:
            raise UsageError(f"{item!r} is no suite: give TEST_CASES, a Suite, or the file of one")
    if not suites:
        raise UsageError("there are no cases: the list is empty")
    return suites
