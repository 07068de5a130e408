"""The money that a run has spent on its judges and agents, and whether it may spend more."""

from __future__ import annotations

from typing import Literal

from proctor.agents.reply import Usage

Payee = Literal["judge", "agent"]


class Budget:
    """The money spent on judges and agents. An unknown cost is counted as unknown, never as zero."""

    def __init__(self, limit_usd: float | None = None) -> None:
        self.limit_usd = limit_usd
        self.spent = 0.0
        self.unknown: dict[Payee, int] = {"judge": 0, "agent": 0}
        """The number of judge calls and of agents' answers with an unknown cost."""

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        """Count one call of a judge, or one answer of an agent."""
        cost = None if usage is None else usage.cost_usd
        if cost is None:
            self.unknown[payee] += 1
        else:
            self.spent += cost

    @property
    def is_exhausted(self) -> bool:
        """Whether no further request or trial should start."""
        return self.limit_usd is not None and self.spent >= self.limit_usd

    def uncounted_notice(self) -> str:
        """A notice about unknown costs, which are not in the sum; empty if there are none."""
        nouns: dict[Payee, tuple[str, str]] = {"judge": ("judge call", "judge calls"), "agent": ("answer", "answers")}
        parts = [f"{count:,} {nouns[payee][count != 1]}" for payee, count in self.unknown.items() if count]
        return f"the cost of {' and '.join(parts)} is unknown and not counted" if parts else ""


class UncappedBudget(Budget):
    """Adds to another budget but is never exhausted, so that running trials finish when the run's budget is spent."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        self._budget.spend(usage, payee)
