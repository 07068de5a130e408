"""Simulated users: a model writes the user's next message from a scenario, until its plan is done."""

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

WITHOUT_MODEL = "its simulated user needs a model: set --judge or the scenario's model"


def user_factory(case: Case, sample: int, user_model: JudgeChoice, judges: Judges | None) -> Callable[[], User]:
    """A function that makes the user of a conversation, for each attempt of one trial.

    `sample` is the index of the trial: with another sample, the model is asked again instead of taken from the cache.
    """
    scenario = case.scenario
    calls: list[JudgeCall] = []
    if scenario is None or judges is None:
        return lambda: ScriptedUser(case)
    return lambda: SimulatedUser(scenario, _first_model(judges, user_model), sample, calls)


def user_model_for(case: Case, options: RunOptions, suite: Suite) -> JudgeChoice:
    """The model that simulates the user of a case: the scenario's own model, else chosen like a judge."""
    own = None if case.scenario is None else case.scenario.model
    written = None if own is None else WrittenJudge(own, EVALUATOR, case.position)
    return choose_judge(judge_sources(options, suite), written)


def user_model_problems(suite: Suite, options: RunOptions) -> list[Problem]:
    """Problems of the models that simulate users."""
    problems: list[Problem] = []
    for case in suite.cases:
        if case.scenario is None or case.skip is not None or options.fast:
            continue
        try:
            user_model = user_model_for(case, options, suite)
            reason, written = why_unavailable(user_model), user_model.written
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
    """A user whose messages, except the first, are written by a model. The model also decides when to stop."""

    def __init__(self, scenario: Scenario, judge: Judge, sample: int, calls: list[JudgeCall]) -> None:
        self._scenario = scenario
        self._judge = judge
        self._sample = sample
        self._turns: list[Turn] = []
        self._calls = calls
        """The calls of all attempts, since each one has a cost."""
        self._ended: dict[str, Json] = {}
        self._seconds_before = 0.0
        self._thinking_since: float | None = None

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        if not self._turns:
            message: str | None = self._scenario.start
        elif len(self._turns) >= self._scenario.max_turns:
            self._ended = {"ended": f"the limit of {self._scenario.max_turns} turns was reached"}
            message = None
        else:
            message = await self._generate_message(replies)
        if message is None:
            return None
        self._turns.append(Turn(message))
        return self._turns[-1]

    @property
    def thinking_seconds(self) -> float:
        return self._seconds_before + (0.0 if self._thinking_since is None else time.monotonic() - self._thinking_since)

    @property
    def turns(self) -> tuple[Turn, ...]:
        if not self._turns:
            return (Turn(self._scenario.start),)
        first, *others = self._turns
        return (replace(first, extra={SIMULATION_KEY: self._account()}), *others)

    async def _generate_message(self, replies: Sequence[Reply]) -> str | None:
        from proctor.running.user_prompt import next_message  # slow to import (pydantic), and few suites simulate users

        question = next_message(self._scenario, [turn.input for turn in self._turns], replies)
        with self._thinking(), call_log() as calls, suppress_tracing():
            try:
                reply = await self._judge.ask(question, sample=self._sample)
            except JudgeFailed as error:
                raise ConversationInvalid(f"the simulated user ({self._judge.name}) failed: {error}") from error
            finally:
                self._calls += calls
        if reply.status == "finished" or self._scenario.stop in reply.message:
            closing = reply.message.replace(self._scenario.stop, "").strip()
            self._ended = {"ended": "the user ended it", "closing": closing}
            return None
        return reply.message.strip()

    @contextmanager
    def _thinking(self) -> Iterator[None]:
        self._thinking_since = time.monotonic()
        try:
            yield
        finally:
            self._seconds_before, self._thinking_since = self.thinking_seconds, None

    def _account(self) -> dict[str, Json]:
        return {
            "model": self._judge.name,
            "calls": [call_details(call) for call in self._calls],
            "usage": total_usage(self._calls),
            **self._ended,
        }


def _first_model(judges: Judges, user_model: JudgeChoice) -> Judge:
    """The first judge that is a model, and so can write messages."""
    members: Sequence[Judge] = judges.panel(user_model.panel).judges
    return next((judge for judge in members if not is_rule_based(judge.name)), members[0])


def why_not_simulated(case: Case, options: RunOptions, suite: Suite) -> str:
    """Why the user of a case cannot be simulated in this run; empty if it can."""
    if options.fast:
        return "its simulated user needs a language model (--fast)"
    return "" if user_model_for(case, options, suite).needs_model else WITHOUT_MODEL
