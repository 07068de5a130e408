"""How a run is gated. Light to import: every run has these settings, and most are not gated."""

from __future__ import annotations

from dataclasses import dataclass

SUITE_TEST_SHARES = (0.07, 0.07, 0.07)
"""How alpha is spent: on all suspects together, and on each look at the whole suite. The rest is a reserve for what the
suspects' test assumes about the rates of a suite; it keeps the measured false alarms below alpha for other mixtures."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """How a run is gated: how sure the gate has to be, and how much it may spend."""

    alpha: float = 0.05
    """The probability of a red build without a regression stays at or below this."""
    max_trials: int = 10
    """At most so many further trials of one case."""
    baseline: str | None = None
    """A file, or a run in the store; by default the files beside the suites."""
    budget: int | None = None
    """At most so many further trials altogether."""

    @property
    def max_trials_per_case(self) -> int:
        """How many trials of one case the gate can ask for, the first included."""
        return 1 + self.max_trials + len(SUITE_TEST_SHARES)
