"""What a run costs: its judges share one cache and one budget, and when that is spent no further trial is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor.results.run import TrialResult
from proctor.running.engine.judges import Bar
from proctor.running.engine.plan import Plan
from proctor.running.engine.store_writer import OpenRun
from proctor.running.options import RunOptions

if TYPE_CHECKING:
    from proctor.judging.limits import Budget
    from proctor.results.judge_calls import JudgeCalls, JudgeSummary, Tally


class RunCosts:
    """Costs nothing itself where nobody judges and no budget is set: then nothing of it is loaded."""

    def __init__(self, plan: Plan, options: RunOptions, open_run: OpenRun) -> None:
        is_judged = any(
            any(bound.needs_judge and not bound.inline for bound in item.bound.values())
            or any(case.scenario is not None for case in item.suite.cases)
            for item in plan.suites
        )
        self._budget = _budget(options) if is_judged or options.budget_usd is not None else None
        self._ledger: JudgeCalls | None = None
        self._tally: Tally | None = None
        self.bar = self._open_bar(open_run) if is_judged else None

    def _open_bar(self, open_run: OpenRun) -> Bar:
        from proctor.judging.judge_cache import Recall
        from proctor.judging.judge_factory import SharedChambers
        from proctor.judging.limits import Tab
        from proctor.results.judge_calls import JudgeCalls, Tally

        store = open_run.store
        self._ledger = None if store is None else JudgeCalls(store.path)
        self._tally = Tally(() if store is None or not open_run.kept else store.trials(open_run.no))
        tab = None if self._budget is None else Tab(self._budget)
        return Bar(SharedChambers(ledger=self._ledger, budget=tab), Recall(self._ledger), tab)

    def count(self, trial: TrialResult) -> None:
        """Add what a finished trial cost; what judges cost is counted call by call."""
        if self._tally is not None:
            self._tally.add(trial)
        if self._budget is not None and trial.replies and not trial.reused:
            self._budget.spend(trial.usage, "agent")

    @property
    def is_spent(self) -> bool:
        return self._budget is not None and self._budget.exhausted

    def note(self, planned: int, made: int) -> str:
        """Why trials were not made, where the reason is that the budget was spent."""
        if self._budget is None or not self._budget.exhausted or made >= planned:
            return ""
        budget = f"the budget of ${self._budget.limit_usd:,.2f} is spent (${_rounded(self._budget.spent)})"
        return f"stopped: {budget}; {planned - made:,} of {planned:,} trials were not made; --resume goes on"

    @property
    def judges(self) -> tuple[JudgeSummary, ...]:
        return () if self._tally is None else tuple(self._tally)

    @property
    def uncounted(self) -> str:
        """What a budget did not cover, since nobody knows what it cost."""
        return "" if self._budget is None or self._budget.limit_usd is None else self._budget.uncounted()

    async def close(self) -> None:
        """Give back what judges hold: connections, and the ledger's file."""
        close: Any = None if self.bar is None else getattr(self.bar.chambers, "close", None)
        if close is not None:
            await close()
        if self._ledger is not None:
            self._ledger.close()


def _budget(options: RunOptions) -> Budget:
    from proctor.judging.limits import Budget

    return Budget(options.budget_usd)


def _rounded(dollars: float) -> str:
    """To the cent, or where that would say nothing, to the first digits that do."""
    return f"{dollars:,.2f}" if dollars >= 0.01 else f"{dollars:.2g}"
