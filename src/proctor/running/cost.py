"""The cost of a run: its judges share one cache and one budget, and no trial starts once the budget is spent."""

from __future__ import annotations

from proctor.agents.pricing import unknown_cost_reason
from proctor.agents.reply import Usage
from proctor.judging.budget import Budget, UncappedBudget
from proctor.judging.judges import Judges
from proctor.results.judge_usage import JudgeUsage
from proctor.results.run import Run
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.trial import Trial
from proctor.running.plan import Plan
from proctor.running.resume import OpenRun
from proctor.running.settings import RunOptions
from proctor.running.suite_judges import judge_names


class RunCosts:
    """The judges, the budget and the judge usage of a run; only needed if a model is used or a budget is set."""

    def __init__(self, plan: Plan, options: RunOptions, open_run: OpenRun) -> None:
        self._budget = Budget(options.budget_usd)
        self._call_store: StoredJudgeCalls | None = None
        self._tally: JudgeUsage | None = None
        self.judges = self._open_judges(open_run) if any(item.asks_models for item in plan.suites) else None

    def _open_judges(self, open_run: OpenRun) -> Judges:
        store = open_run.store
        self._call_store = None if store is None else StoredJudgeCalls(store.path)
        self._tally = JudgeUsage(() if store is None or not open_run.stored else store.trials(open_run.run.no))
        return Judges(self._call_store, UncappedBudget(self._budget))

    def judges_text(self, plan: Plan) -> str:
        """The names of the judges that will be used, as text."""
        return judge_names(evaluator for item in plan.suites for evaluator in item.evaluators)

    def unknown_cost_note(self, plan: Plan) -> str:
        """A note about agents whose cost is unknown, so that the budget may not count them."""
        if self._budget.limit_usd is None:
            return ""
        agents = {item.agent.name: item.agent for item in plan.suites}
        unknown = [f"{name}: {why}" for name, agent in agents.items() if (why := unknown_cost_reason(agent))]
        return f"the budget may not include the cost of agents ({'; '.join(unknown)})" if unknown else ""

    def count(self, trial: Trial) -> None:
        """Add what a finished trial cost; what judges cost is counted call by call."""
        if self._tally is not None:
            self._tally.add(trial)
        # Reply by reply: if the cost of one were unknown, so would be the sum, and the others would not count.
        for reply in () if trial.reused else trial.replies:
            if reply.error is None or reply.usage is not None:
                self._budget.spend(reply.usage, "agent")

    def count_lost(self, usage: Usage | None) -> None:
        """Add the cost of an answer that is in no trial, such as the slower one of two."""
        self._budget.spend(usage, "agent")

    @property
    def is_spent(self) -> bool:
        return self._budget.is_exhausted

    def sum_up(self, run: Run, planned: int) -> None:
        """Add to the run the usage of its judges, costs that are unknown, and whether the budget stopped the run."""
        run.judges = () if self._tally is None else tuple(self._tally)
        run.unpriced_note = "" if self._budget.limit_usd is None else self._budget.uncounted_notice()
        run.note = run.note or self._note(planned, len(run.summaries))

    def _note(self, planned: int, finished: int) -> str:
        """The note of a run whose budget was spent before all trials ran; else empty."""
        if not self._budget.is_exhausted or finished >= planned:
            return ""
        budget = f"the budget of ${self._budget.limit_usd:,.2f} is spent (${_dollars_text(self._budget.spent)})"
        return f"stopped: {budget}; {planned - finished:,} of {planned:,} trials did not run; continue with --resume"

    def close(self) -> None:
        """Close the file of the call store."""
        if self._call_store is not None:
            self._call_store.close()


def _dollars_text(dollars: float) -> str:
    """To the cent, or for less than a cent, to two significant digits."""
    return f"{dollars:,.2f}" if dollars >= 0.01 else f"{dollars:.2g}"
