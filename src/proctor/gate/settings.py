"""The settings of the gate, apart from its code, because every run imports them and most runs are not gated."""

from __future__ import annotations

from dataclasses import dataclass

SUITE_TEST_SHARES = (0.08, 0.08, 0.08, 0.08)
"""The share of alpha that is spent on each look at the whole suite; all suspects together get `SUSPECTS_SHARE`. The
rest is a reserve for suites whose rates differ from what the test of suspects assumes, which keeps their false alarms
below alpha."""

NEW_CASE_TRIALS = 5
"""How often a case without a baseline runs if it fails."""

MAX_ROUNDS, WORLD_TRIALS = 8, 6
"""With two versions: the most rounds of the whole suite, and how many failures of the old version show that the world
changed."""

MAX_TRIALS, MAX_PAIRS = 10, 14
"""The most re-runs of one suspect: of the new version alone, and of both versions."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """How certain the gate has to be, and how many trials it may use."""

    alpha: float = 0.05
    """The highest probability of a red build without a regression."""
    max_trials: int = MAX_TRIALS
    """The most re-runs of one case; with two versions, `MAX_PAIRS` on each by default."""
    baseline: str | None = None
    """A file, or a run in the store; by default the files next to the suites."""
    budget: int | None = None
    """The most re-runs of all cases together; `None` for no limit."""
    against: str | None = None
    """The version of the agent to compare with, in the same minutes: a git reference or another agent."""
    strict_world: bool = False
    """Whether a change of the world, which is not the fault of this version, makes the run inconclusive."""

    @property
    def max_pairs(self) -> int:
        """The most pairs of one suspect, if two versions are compared."""
        return self.max_trials if self.max_trials != MAX_TRIALS else MAX_PAIRS

    @property
    def max_trials_per_arm(self) -> int:
        """The most trials of one case on one version that the gate can request, the first included."""
        if self.against is None:
            return 1 + max(self.max_trials, NEW_CASE_TRIALS) + len(SUITE_TEST_SHARES)
        return 2 + self.max_pairs + MAX_ROUNDS + WORLD_TRIALS

    @property
    def max_trials_per_case(self) -> int:
        """The most trials of one case that the gate can request, on all versions."""
        return self.max_trials_per_arm * (1 if self.against is None else 2)
