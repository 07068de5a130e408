"""The results of a run by case: `CaseResult`, and `CaseResults`, which finds them by position or by id."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from proctor.agents.reply import ToolCall
from proctor.base.documents import did_you_mean
from proctor.base.errors import Inconclusive, MissingKey
from proctor.base.json_data import Json
from proctor.cases.identity import CaseAddress
from proctor.cases.suite import Case
from proctor.results.reasons import headline_of_case
from proctor.results.score import Outcome, Scores
from proctor.results.statistics import Rate
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import LazySequence, Trial
from proctor.results.verdict import CaseVerdict, RunVerdict


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case over all its trials.

    >>> run = proctor.run("shop.yaml")
    >>> case = run["lost"]
    >>> case.outcome.value, case.passed, case.output
    ('failed', False, 'Your order A-17 is shipped.')
    """

    id: str
    suite: str
    arm: str
    """Which version of the agent ran, if the run compares several; otherwise empty."""
    outcome: Outcome
    pass_rate: Rate
    """The share of trials that passed, of those that passed or failed."""
    is_flaky: bool
    """Whether it both passed and failed."""
    is_quarantined: bool
    """Whether it ran and is reported, but does not affect the verdict."""
    trials: Sequence[Trial] = field(repr=False)
    """Its trials; of a stored run, read when they are first used."""

    @property
    def passed(self) -> bool:
        """Whether the outcome is `passed`."""
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> list[Trial]:
        """The trials that failed."""
        return [trial for trial in self.trials if trial.outcome is Outcome.FAILED]

    @property
    def reason(self) -> str:
        """Why the case did not pass, in one line, as reports show it; empty for one that passed."""
        if self.passed:
            return ""
        return headline_of_case(Counter((trial.outcome, trial.reason) for trial in self.trials if not trial.passed))

    @property
    def case(self) -> Case:
        """The case with its input and expectations."""
        return self.trials[0].case

    @property
    def trial(self) -> Trial:
        """The trial that reports show: the first that did not pass, else the first."""
        return next((trial for trial in self.trials if not trial.passed), self.trials[0])

    @property
    def output(self) -> Json:
        """The answer in `trial`."""
        return self.trial.output

    @property
    def scores(self) -> Scores:
        """The scores of `trial`."""
        return self.trial.scores

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in `trial`."""
        return self.trial.tool_calls


class CaseResults(Sequence[CaseResult]):
    """The cases of a run, in the order of the plan, by position, by id, or by suite and id."""

    def __init__(
        self,
        verdict: RunVerdict,
        suites: Iterable[SuiteInfo],
        read: Callable[[CaseAddress], Iterable[Trial]],
    ) -> None:
        infos = {info.name: info for info in suites}
        self._cases = [_case_result(case, infos[suite.name], read) for suite in verdict.suites for case in suite.cases]
        self._by_id: dict[str, list[CaseResult]] = {}
        for case in self._cases:
            self._by_id.setdefault(case.id, []).append(case)

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self._cases)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseResult]: ...
    def __getitem__(self, index: int | slice) -> CaseResult | Sequence[CaseResult]:
        return self._cases[index]

    def has(self, case_id: object) -> bool:
        """Whether there is a case with this id."""
        return case_id in self._by_id

    def find(self, case_id: str, suite: str | None = None) -> CaseResult:
        """The case with this id, in this suite if one is named. Raises `MissingKey` if there is none or several."""
        cases = [case for case in self._by_id.get(case_id, ()) if suite in (None, case.suite)]
        if not cases:
            place = "this run" if suite is None else f"the suite {suite!r} of this run"
            raise MissingKey(f"no case {case_id!r} in {place}{did_you_mean(case_id, self._by_id)}")
        if len(cases) == 1:
            return cases[0]
        if cases[0].arm:
            raise MissingKey(f"{case_id!r} ran in several arms; write run.arms[{cases[-1].arm!r}][{case_id!r}]")
        names = ", ".join(case.suite for case in cases)
        raise MissingKey(f"{case_id!r} is in several suites ({names}); write run[{cases[0].suite!r}, {case_id!r}]")

    def with_outcome(self, outcome: Outcome) -> list[CaseResult]:
        return [case for case in self._cases if case.outcome is outcome]

    @property
    def failed(self) -> FailedCases:
        return FailedCases(self)


def _case_result(case: CaseVerdict, info: SuiteInfo, read: Callable[[CaseAddress], Iterable[Trial]]) -> CaseResult:
    address = (case.suite, case.case_id)
    return CaseResult(
        id=case.case_id,
        suite=info.source or info.name,
        arm=info.agent if info.source else "",
        outcome=case.outcome,
        pass_rate=Rate.of_share(case.passed, case.passed + case.failed),
        is_flaky=case.is_flaky,
        is_quarantined=case.quarantined,
        trials=LazySequence(lambda: read(address)),
    )


class FailedCases(list[CaseResult]):
    """The cases that failed.

    `assert not run.failed` would be green for a run of nothing but errors. So an empty list warns when it is used as a
    condition although cases have no verdict.
    """

    def __init__(self, cases: CaseResults) -> None:
        super().__init__(cases.with_outcome(Outcome.FAILED))
        self._total = len(cases)
        self._open = [*cases.with_outcome(Outcome.ERROR), *cases.with_outcome(Outcome.PENDING)]

    def __bool__(self) -> bool:
        if not len(self) and self._open:
            first = self._open[0]
            warnings.warn(
                f"no case failed, but {len(self._open)} of {self._total} have no verdict"
                f' ({first.id}: {first.reason}); use "assert run"',
                Inconclusive,
                stacklevel=2,
            )
        return len(self) > 0
