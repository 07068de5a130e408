"""Counts what a run costs in money, and says when it has cost enough."""

from __future__ import annotations

from typing import Literal

from proctor.agents.model import Usage

Payee = Literal["judge", "agent"]


class Budget:
    """What was spent on judges and agents. A cost that nobody knows is counted as such, never as zero."""

    def __init__(self, limit_usd: float | None = None) -> None:
        self.limit_usd = limit_usd
        self.spent = 0.0
        self.unknown: dict[Payee, int] = {"judge": 0, "agent": 0}
        """How many calls of judges, or answers of agents, came without a cost."""

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        """Count one call of a judge, or one answer of an agent."""
        cost = None if usage is None else usage.cost_usd
        if cost is None:
            self.unknown[payee] += 1
        else:
            self.spent += cost

    @property
    def exhausted(self) -> bool:
        """Whether nothing more should be begun."""
        return self.limit_usd is not None and self.spent >= self.limit_usd

    def uncounted(self) -> str:
        """What the sum leaves out, as people read it; empty when it leaves out nothing."""
        nouns: dict[Payee, tuple[str, str]] = {"judge": ("judge call", "judge calls"), "agent": ("answer", "answers")}
        parts = [f"{count:,} {nouns[who][count != 1]}" for who, count in self.unknown.items() if count]
        return f"the cost of {' and '.join(parts)} is not known and not counted" if parts else ""


class Tab(Budget):
    """What trials under way spend: it is counted in `budget`, and none of them is cut short when that is spent."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        self._budget.spend(usage, payee)
