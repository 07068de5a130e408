"""What a run costs: its judges share one cache and one budget, and when that is spent no further trial is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor.results.run import TrialResult
from proctor.running.engine.judges import RunJudges
from proctor.running.engine.plan import Plan
from proctor.running.engine.store_writer import Booking
from proctor.running.options import RunOptions

if TYPE_CHECKING:
    from proctor.judging.limits import Budget
    from proctor.results.judge_calls import JudgeCalls, JudgeSummary, Tally


class Economy:
    """Costs nothing itself where nobody judges and no budget is set: then nothing of it is loaded."""

    def __init__(self, plan: Plan, options: RunOptions, booking: Booking) -> None:
        is_judged = any(
            any(bound.needs_judge and not bound.inline for bound in item.bound.values())
            or any(case.scenario is not None for case in item.suite.cases)
            for item in plan.suites
        )
        self._budget = _budget(options) if is_judged or options.budget_usd is not None else None
        self._call_store: JudgeCalls | None = None
        self._tally: Tally | None = None
        self.run_judges = self._open_judges(booking) if is_judged else None

    def _open_judges(self, booking: Booking) -> RunJudges:
        from proctor.judging.judge_cache import JudgeCache
        from proctor.judging.judge_factory import SharedJudges
        from proctor.judging.limits import UncappedBudget
        from proctor.results.judge_calls import JudgeCalls, Tally

        store = booking.store
        self._call_store = None if store is None else JudgeCalls(store.path)
        self._tally = Tally(() if store is None or not booking.kept else store.trials(booking.no))
        uncapped = None if self._budget is None else UncappedBudget(self._budget)
        return RunJudges(
            SharedJudges(call_store=self._call_store, budget=uncapped), JudgeCache(self._call_store), uncapped
        )

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
        """Give back what judges hold: connections, and the file of the call store."""
        close: Any = None if self.run_judges is None else getattr(self.run_judges.judges, "close", None)
        if close is not None:
            await close()
        if self._call_store is not None:
            self._call_store.close()


def _budget(options: RunOptions) -> Budget:
    from proctor.judging.limits import Budget

    return Budget(options.budget_usd)


def _rounded(dollars: float) -> str:
    """To the cent, or where that would say nothing, to the first digits that do."""
    return f"{dollars:,.2f}" if dollars >= 0.01 else f"{dollars:.2g}"
