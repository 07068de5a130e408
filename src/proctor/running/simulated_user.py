"""Simulated users: a model says what the user of a scenario would say next, until the plan is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from proctor.agents.reply import Reply
from proctor.base.errors import JudgeFailed, Problem
from proctor.base.json_data import Json
from proctor.cases.scenario import SIMULATION_KEY, Scenario
from proctor.cases.suite import Case, Suite, Turn
from proctor.evaluators.judged_evaluator import call_details, total_usage
from proctor.judging.call_log import call_log
from proctor.judging.choosing import EVALUATOR, InvalidJudge, JudgeChoice, WrittenJudge, choose_judge
from proctor.judging.judge import Judge, JudgeCall, is_rule_based
from proctor.judging.judges import Judges
from proctor.running.conversation import ScriptedUser, User
from proctor.running.failures import ConversationInvalid
from proctor.running.settings import RunOptions
from proctor.running.suite_judges import judge_sources, position_of, why_unavailable
from proctor.tracing.capture import suppress_tracing

WITHOUT_MODEL = "its user is simulated, which needs a model: name one with --judge or as the scenario's model"


def user_factory(case: Case, sample: int, player: JudgeChoice, judges: Judges | None) -> Callable[[], User]:
    """Makes the user that talks to the agent, anew for each try of one trial; `sample` tells repetitions apart."""
    scenario = case.scenario
    calls: list[JudgeCall] = []
    if scenario is None or judges is None:
        return lambda: ScriptedUser(case)
    return lambda: SimulatedUser(scenario, _first_model(judges, player), sample, calls)


def user_model_for(case: Case, options: RunOptions, suite: Suite) -> JudgeChoice:
    """Who plays the user of a case: chosen as the judge of an evaluator is, with the scenario's model as its own."""
    own = None if case.scenario is None else case.scenario.model
    written = None if own is None else WrittenJudge(own, EVALUATOR, case.position)
    return choose_judge(judge_sources(options, suite), written)


def user_model_problems(suite: Suite, options: RunOptions) -> list[Problem]:
    """Models that are to play a user and cannot be had."""
    problems: list[Problem] = []
    for case in suite.cases:
        if case.scenario is None or case.skip is not None or options.fast:
            continue
        try:
            player = user_model_for(case, options, suite)
            reason, written = why_unavailable(player), player.written
        except InvalidJudge as error:
            reason, written = str(error), error.written
        if reason:
            if written.origin == EVALUATOR:
                place = f"case {case.id!r}: scenario: model:"
                problem = Problem.at(case.position, reason, place, path=suite.path)
            else:
                position = position_of(suite, "judge", written.judge, reason)
                problem = Problem.at(position, reason, "judge:", path=suite.path)
            problems += [] if problem in problems else [problem]
    return problems


class SimulatedUser:
    """Asks a model for each message but the first; what it says is checked, and the end is its own to choose."""

    def __init__(self, scenario: Scenario, judge: Judge, sample: int, calls: list[JudgeCall]) -> None:
        self._scenario = scenario
        self._judge = judge
        self._sample = sample
        self._turns: list[Turn] = []
        self._calls = calls
        """Those of earlier tries as well, which were paid for too."""
        self._ended: dict[str, Json] = {}
        self._before = 0.0
        self._since: float | None = None

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        if not self._turns:
            message: str | None = self._scenario.start
        elif len(self._turns) >= self._scenario.max_turns:
            self._ended = {"ended": f"the limit of {self._scenario.max_turns} turns was reached"}
            message = None
        else:
            message = await self._made_up(replies)
        if message is None:
            return None
        self._turns.append(Turn(message))
        return self._turns[-1]

    @property
    def thinking_seconds(self) -> float:
        return self._before + (0.0 if self._since is None else time.monotonic() - self._since)

    @property
    def turns(self) -> tuple[Turn, ...]:
        if not self._turns:
            return (Turn(self._scenario.start),)
        first, *others = self._turns
        return (replace(first, extra={SIMULATION_KEY: self._account()}), *others)

    async def _made_up(self, replies: Sequence[Reply]) -> str | None:
        from proctor.running.user_prompt import next_message  # heavy (pydantic), and few suites simulate users

        question = next_message(self._scenario, [turn.input for turn in self._turns], replies)
        with self._thinking(), call_log() as calls, suppress_tracing():
            try:
                reply = await self._judge.ask(question, sample=self._sample)
            except JudgeFailed as error:
                raise ConversationInvalid(f"the simulated user ({self._judge.name}) broke down: {error}") from error
            finally:
                self._calls += calls
        if reply.status == "finished" or self._scenario.stop in reply.message:
            closing = reply.message.replace(self._scenario.stop, "").strip()
            self._ended = {"ended": "the user ended it", "closing": closing}
            return None
        return reply.message.strip()

    @contextmanager
    def _thinking(self) -> Iterator[None]:
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._before, self._since = self.thinking_seconds, None

    def _account(self) -> dict[str, Json]:
        return {
            "model": self._judge.name,
            "calls": [call_details(call) for call in self._calls],
            "usage": total_usage(self._calls),
            **self._ended,
        }


def _first_model(judges: Judges, player: JudgeChoice) -> Judge:
    """The first of the judges that can write messages."""
    members: Sequence[Judge] = judges.panel(player.panel).judges
    return next((judge for judge in members if not is_rule_based(judge.name)), members[0])


def why_not_simulated(case: Case, options: RunOptions, suite: Suite) -> str:
    """Why the user of a case cannot be simulated in a run; empty where it can."""
    if options.fast:
        return "its user is simulated, which needs a language model (--fast)"
    return "" if user_model_for(case, options, suite).needs_model else WITHOUT_MODEL
