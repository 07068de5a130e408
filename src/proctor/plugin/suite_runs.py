"""What `proctor_run` gives a test: the trials of a suite, and whether they passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from proctor.plugin.failures import story_of, title_of
from proctor.records import record
from proctor.reporting.wording import counts_text
from proctor.results.model import Outcome, TrialResult


@record
class SuiteRun:
    """Trials, in the order of their cases."""

    trials: tuple[TrialResult, ...]
    notes: Sequence[str] = ()

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def passed(self) -> bool:
        """Whether something passed and nothing did not; what was skipped says nothing."""
        return self.counts[Outcome.PASSED] > 0 and not self._bad

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(trial.outcome for trial in self.trials)

    @property
    def _bad(self) -> list[TrialResult]:
        return [trial for trial in self.trials if trial.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]

    def assert_passed(self) -> None:
        """Raise `AssertionError` with the whole story of every trial that did not pass."""
        __tracebackhide__ = True
        if self.passed:
            return
        stories = [f"{title_of(trial)}\n{story_of(trial, verbose=False)}" for trial in self._bad]
        raise AssertionError("\n\n".join([counts_text(self.counts), *self.notes, *stories]))
