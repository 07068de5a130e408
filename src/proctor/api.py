"""Proctor from Python: load suites, run them, get the run back; ask an agent one question and check its reply."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from proctor.agents.reply import Reply
from proctor.base.documents import did_you_mean
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.event_loops import is_loop_running, run_blocking
from proctor.base.json_data import UNSET, Json, Unset, to_json
from proctor.base.open_checks import record_open_check
from proctor.cases.arms import read_arm
from proctor.cases.constructing import checked_arguments
from proctor.cases.formats.folders import SkippedFile
from proctor.cases.formats.loading import load as load_paths
from proctor.cases.identity import with_masked_ids
from proctor.cases.mappings import AgentLike, CallLike, ContainsLike, EvaluatorLike, ExpectedLike, JudgeLike
from proctor.cases.suite import Case, Expected, Settings, Suite, Turn
from proctor.gate.settings import GateSettings
from proctor.reporting.failed_run import reply_details
from proctor.reporting.html.notebook import NotebookProgress, is_notebook
from proctor.reporting.terminal.progress import choose_terminal
from proctor.results.comparison.compare import compare_runs
from proctor.results.comparison.comparison import Comparison
from proctor.results.open_results import open_check_of
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.run_files import open_run_reference
from proctor.running.assertions.agent_runner import AgentRun, AgentRunner
from proctor.running.plan import Selection
from proctor.running.run import RunRequest, raise_if_stopped, run_suites_async
from proctor.running.selection import check_names, names_case
from proctor.running.settings import Listener, RunOptions

Suites: TypeAlias = (
    "Suite | Case | Mapping[str, Any] | str | Path | Iterable[Suite | Case | Mapping[str, Any] | str | Path]"
)
"""What can be run: suites, the files that hold them, or cases."""

DEFAULT_STORE = Path(".proctor")
SETTINGS = ("repeat", "parallel", "timeout", "evaluator_timeout", "retries", "retry_seconds")


def load(*paths: str | Path) -> list[Suite]:
    """Read the suites in files, folders, Python files (`shop.py`) or `shop.py:suite` references.

    - `paths` may be of any format that Proctor knows; a folder stands for the suites in it, a Python file for every
      `Suite` that it defines.

    Raises `InvalidSuite` with every problem found in all of them, each with its file and line.

    >>> [suite] = proctor.load("shop.yaml")
    >>> [case.id for case in suite.cases]
    ['shipped', 'lost']
    """
    return load_paths(paths)


class RunParameters(TypedDict, total=False):
    """The keyword parameters of `run`, `run_async`, `Suite.run` and `Suite.run_async`; `run` says what each does."""

    arms: Mapping[str, Any] | None
    case: str | Iterable[str] | None
    tag: str | Iterable[str] | None
    select: Callable[[Case], bool] | None
    repeat: int | None
    parallel: int | None
    timeout: float | None
    evaluator_timeout: float | None
    retries: int | None
    retry_seconds: float | None
    judge: Any
    fast: bool
    maxfail: int | None
    budget: float | None
    rate: float | None
    hedge: bool
    isolate: bool
    store: str | Path | bool | None
    resume: bool
    reuse: bool
    gate: bool | GateSettings
    name: str
    progress: bool | None
    listener: Listener | None
    keep_secrets: bool
    capture: bool | None


def run(suites: Suites, agent: AgentLike = None, **parameters: Unpack[RunParameters]) -> Run:
    """Run suites and return the run, which is true if it passed.

    It works in scripts, tests and notebooks, also while an event loop is running: that loop waits until the run is
    over. Code that should not wait can await `run_async`, which takes the same parameters:

    - `suites`: a suite, a file or folder, a mapping as in a file, or a list of these. A list of cases is one suite.
    - `agent` is tested instead of the agents that suites name: a function, an object of a framework, `app.py:agent`,
      an address, a command.
    - `arms` are versions of the agent by name: functions, `app.py:agent`, a git reference such as `main`, or `.` for
      the working folder. Each answers every case, interleaved; `run.arms["new"]` has the results of one. The last one
      decides whether the run passed.
    - `case`, `tag`: only these cases, by id (`*` matches anything) or by tag. `select` is called with a case, and
      returns whether it runs.
    - `repeat`, `parallel`, `timeout`, `evaluator_timeout`, `retries`, `retry_seconds`: as in the settings of a suite,
      which they override.
    - `judge` answers for evaluators that need a model: `"openai:gpt-5-mini"`, `"rules"`, or a mapping with options.
    - `fast` leaves out evaluators that need a model.
    - `maxfail` stops the run after this many trials that did not pass.
    - `budget` limits the cost of agents and judges together, in US dollars; when it is spent, no more trials start.
    - `rate` limits the turns per second to each endpoint.
    - `hedge` asks again if an answer takes much longer than others, and takes the first answer. The suites have to say
      that their agents have no side effects: `settings={"side_effects": False}`.
    - `isolate` runs every trial in its own process.
    - `store` is where results are stored: a folder, or `True` for `.proctor`. By default they stay in memory.
    - `resume` continues the latest run of the same suites in the `store` that was interrupted.
    - `reuse` takes answers from the `store` if the agent and the input are unchanged.
    - `gate` compares the run with the baseline and re-runs only suspects: `True`, or a `GateSettings` with options. The
      result is `run.gate`.
    - `name` is your name for the run, in lists and for `compare`.
    - `progress` shows a bar in notebooks (the default), also on a terminal (`True`), or never (`False`).
    - `listener` is called when the run starts, with each trial, and when the run ends.
    - `keep_secrets` stores secrets unmasked.
    - `capture`: what agents and evaluators print is stored with each trial (`trial.captured`) and shown with failures.
      With `False` it is also shown while they run, and they can use the keyboard; so it is in a test of pytest, which
      captures it itself.

    >>> run = proctor.run("shop.yaml", repeat=2)
    >>> run.passed, run.reason, len(run.trials)
    (False, '1 of 2 cases passed', 4)

    An agent can be any function:

    >>> run = proctor.run("shop.yaml", agent=lambda question: "It is shipped.", case="shipped")
    >>> run["shipped"].output
    'It is shipped.'
    """
    return run_for("run", suites, agent, parameters)


def run_for(function: str, suites: Suites, agent: Any, parameters: RunParameters) -> Run:
    """Run suites for the public `function`, which messages about its arguments name."""
    request, listener = _request(suites, agent, parameters, function)
    result, _ = run_blocking(run_suites_async(request, listener))
    raise_if_stopped(result)
    return result


async def run_async(suites: Suites, agent: AgentLike = None, **parameters: Unpack[RunParameters]) -> Run:
    """Run suites in the event loop that is running, and return the run; the parameters are those of `run`.

    >>> run = asyncio.run(proctor.run_async("shop.yaml", agent="oracle"))
    >>> run.passed
    True
    """
    return await run_for_async("run_async", suites, agent, parameters)


async def run_for_async(function: str, suites: Suites, agent: Any, parameters: RunParameters) -> Run:
    """Run suites for the public `function` in the event loop that is running."""
    request, listener = _request(suites, agent, parameters, function)
    result, _ = await run_suites_async(request, listener)
    raise_if_stopped(result)
    return result


def _with_new_names(parameters: Mapping[str, Any], function: str) -> RunParameters:
    """The parameters under their current names. Raises `TypeError` for one that does not exist."""
    values = dict(parameters)
    for old, new in (("agents", "arms"), ("budget_usd", "budget")):
        if old in values:
            _warn_renamed(f"{function}({old}=...) is now {function}({new}=...)")
            values[new] = values.pop(old)
    if "settings" in values:
        _warn_renamed(f"{function}(settings=Settings(repeat=3)) is now {function}(repeat=3)")
        settings = values.pop("settings") or Settings()
        values = {name: value for name in SETTINGS if (value := getattr(settings, name)) is not None} | values
    known = RunParameters.__annotations__
    if unknown := next((name for name in values if name not in known), None):
        raise TypeError(f"{function}() has no argument {unknown!r}{did_you_mean(unknown, known)}")
    return cast(RunParameters, values)


def _warn_renamed(message: str) -> None:
    # The frames between here and the user's call are _with_new_names, _request, run_for and run.
    warnings.warn(message, DeprecationWarning, stacklevel=6)


def _request(
    suites: Suites, agent: Any, parameters: RunParameters, function: str
) -> tuple[RunRequest, Listener | None]:
    """What to run, and who follows the run, from the arguments of `function`."""
    every_arm_counts = "agents" in parameters  # what the old name means
    parameters = _with_new_names(parameters, function)
    arms = parameters.get("arms") or {}
    if agent is not None and arms and all(read_arm(arm).agent is not None for arm in arms.values()):
        raise TypeError(f"{function}() takes an agent or arms, not both, if each arm has its own agent")
    folder = parameters.get("store")
    store = None if folder is None or folder is False else DEFAULT_STORE if folder is True else Path(folder)
    if store is None and (parameters.get("resume") or parameters.get("reuse")):
        raise UsageError("resume and reuse need the store with the earlier runs; pass its folder as store=")
    gate = parameters.get("gate", False)
    skipped: list[SkippedFile] = []
    chosen = as_suites(suites, skipped)
    if every_arm_counts:
        chosen = [replace(suite, criteria=replace(suite.criteria, arms="all")) for suite in chosen]
    request = RunRequest(
        suites=chosen,
        skipped_files={str(item.path): item.reason for item in skipped},
        options=RunOptions(
            overrides=Settings(
                repeat=parameters.get("repeat"),
                parallel=parameters.get("parallel"),
                timeout=parameters.get("timeout"),
                evaluator_timeout=parameters.get("evaluator_timeout"),
                retries=parameters.get("retries"),
                retry_seconds=parameters.get("retry_seconds"),
            ),
            fast=parameters.get("fast", False),
            maxfail=parameters.get("maxfail"),
            judge=parameters.get("judge"),
            budget_usd=parameters.get("budget"),
            rate=parameters.get("rate"),
            hedge=parameters.get("hedge", False),
            isolate=parameters.get("isolate", False),
            keep_secrets=parameters.get("keep_secrets", False),
            live_output=_shows_output(parameters.get("capture")),
        ),
        agent=agent,
        arms=arms,
        select=_selection(chosen, parameters),
        store=store,
        resume=parameters.get("resume", False),
        reuse=parameters.get("reuse", False),
        name=parameters.get("name", ""),
        gate=gate if isinstance(gate, GateSettings) else GateSettings() if gate else None,
    )
    return request, _listener(parameters.get("listener"), parameters.get("progress"))


def _shows_output(capture: bool | None) -> bool:
    """Whether to show what is printed during the run: in a test, pytest captures it and shows it for failures."""
    is_in_test = "PYTEST_CURRENT_TEST" in os.environ and "pytest" in sys.modules
    return is_in_test if capture is None else not capture


def _selection(suites: Sequence[Suite], parameters: RunParameters) -> Selection | None:
    """The cases that `case`, `tag` and `select` choose, or `None` for all. Raises `UsageError` for an unknown id."""
    ids, tags = _texts(parameters.get("case")), _texts(parameters.get("tag"))
    select = _one_argument(parameters.get("select"))
    if ids is None and tags is None and select is None:
        return None
    named = [with_masked_ids(suite) for suite in suites]
    check_names(ids or (), ((suite.name, suite.path, case.id) for suite in named for case in suite.cases))

    def is_selected(suite: Suite, case: Case) -> bool:
        return (
            (ids is None or any(names_case(name, suite.name, suite.path, case.id) for name in ids))
            and (tags is None or any(tag in case.tags for tag in tags))
            and (select is None or select(suite, case))
        )

    return is_selected


def _texts(value: str | Iterable[str] | None) -> list[str] | None:
    return None if value is None else [value] if isinstance(value, str) else list(value)


def _one_argument(select: Callable[..., bool] | None) -> Selection | None:
    """`select` as a function of the suite and the case. Earlier versions called it with both."""
    if select is None:
        return None
    try:
        required = [
            item
            for item in inspect.signature(select).parameters.values()
            if item.default is item.empty and item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        required = []
    if len(required) == 2:
        warnings.warn("select is now called with the case alone", DeprecationWarning, stacklevel=6)
        return select
    return lambda suite, case: select(case)


@checked_arguments
def ask(
    agent: AgentLike,
    input: Json,  # noqa: A002  as cases call it
    *,
    state: Mapping[str, Json] | None = None,
    timeout: float | None = None,
) -> Reply:
    """Ask an agent one question and return its reply, with tool calls and usage as in a trial.

    - `agent` is a function, an object of a framework, `app.py:agent`, an address or a command.
    - `state` is the state of the session before the question.
    - `timeout` is in seconds.

    Raises `AgentFailed` if the agent raises, takes too long or cannot be reached.

    >>> reply = proctor.ask(lambda question: "It is shipped.", "Where is A-17?")
    >>> reply.text
    'It is shipped.'
    """
    __tracebackhide__ = True
    runner, cases = AgentRunner(agent, timeout=timeout), [_question(input, state)]
    # A loop that is running, as in a notebook, waits; otherwise all questions share one loop, and so do async clients.
    [run] = run_blocking(runner.run_cases_async(cases)) if is_loop_running() else runner.run_cases(cases)
    return _answer_of(run)


async def ask_async(
    agent: AgentLike,
    input: Json,  # noqa: A002  as cases call it
    *,
    state: Mapping[str, Json] | None = None,
    timeout: float | None = None,
) -> Reply:
    """The same as `ask`, for code that has an event loop."""
    __tracebackhide__ = True
    [run] = await AgentRunner(agent, timeout=timeout).run_cases_async([_question(input, state)])
    return _answer_of(run)


def _question(value: Json, state: Mapping[str, Json] | None) -> Case:
    return Case(id="question", turns=(Turn(input=to_json(value)),), state=dict(state or {}))


def _answer_of(run: AgentRun) -> Reply:
    __tracebackhide__ = True
    if run["error"] is not None:
        raise AgentFailed(run["error"])
    return run.trial.replies[-1]


@checked_arguments
def expect(
    reply: Reply | str,
    expected: ExpectedLike | None = None,
    *,
    output: Json | Unset = UNSET,
    contains: ContainsLike | None = None,
    tools: Sequence[CallLike] | None = None,
    evaluators: Sequence[EvaluatorLike] = (),
    judge: JudgeLike | None = None,
) -> None:
    """Check one reply against expectations, in the words of a case. Raises `AssertionError` with what differs.

    If a score is pending and nothing failed, a test of pytest goes on and is pending at its end.

    - `reply` is what `ask` returned, or the text of an answer.
    - `expected` is what a case has under this name: a text, or a mapping with `output`, `contains` and `tools`, which
      can be passed by name as well.
    - `evaluators` score the reply in addition; `judge` answers for those that need a model.

    >>> reply = proctor.ask(lambda question: "It is shipped.", "Where is A-17?")
    >>> proctor.expect(reply, contains=["shipped"], tools=[])
    """
    __tracebackhide__ = True
    parts = Expected(output, contains=contains, tools=tools)
    if expected is not None and parts:
        raise TypeError("expect() takes expected, or its parts output, contains and tools, not both")
    if expected is None and not parts and not evaluators:
        raise TypeError("expect() needs something to check: expect(reply, contains=[...])")
    answer = reply if isinstance(reply, Reply) else Reply(reply)
    case = Case("reply", parts if expected is None else expected, evaluators=list(evaluators) or None)
    trial = run_for("expect", Suite("expect", [case]), lambda question: answer, {"judge": judge}).trials[0]
    message = f"{trial.reason}\n\n{reply_details(trial)}"
    is_pending = trial.outcome is Outcome.PENDING
    if not trial.passed and not (is_pending and record_open_check(open_check_of([trial], message))):
        raise AssertionError(message)


@checked_arguments
def compare(
    before: Run | str | Path, after: Run | str | Path = "last", *, store: str | Path = ".proctor"
) -> Comparison:
    """What changed from one run to another, with a verdict.

    - `before` and `after` are runs, or what the command line calls them: an id or the beginning of one, a name, `last`,
      `last~1`, or the path of a file that `proctor runs export` wrote; `last@careful` is what one of its agents
      answered.
    - `store` is the folder in which runs that are not files are looked for.

    >>> before = proctor.run("shop.yaml", store=".proctor")
    >>> after = proctor.run("shop.yaml", agent="oracle", store=".proctor")
    >>> changed = proctor.compare(before, after)
    >>> changed.verdict, [case.case_id for case in changed.groups["fixed"]]
    ('no difference', ['lost'])
    >>> proctor.compare("last~1", "last").sentence == changed.sentence
    True
    """
    (first, before_agent), (second, after_agent) = (
        (side, None) if isinstance(side, Run) else open_run_reference(Path(store), str(side))
        for side in (before, after)
    )
    return compare_runs(first, second, before_agent=before_agent, after_agent=after_agent)


def as_suites(suites: Suites, skipped: list[SkippedFile] | None = None) -> list[Suite]:
    """The suites that a caller means: a suite, a file, a mapping as in a file, cases, or a list of these.

    `skipped` gets the files in folders that are not suites.
    """
    items: list[Any] = [suites] if isinstance(suites, (Suite, Case, Mapping, str, Path)) else list(suites)
    cases: list[Any] = [
        item for item in items if isinstance(item, Case) or (isinstance(item, Mapping) and "cases" not in item)
    ]
    if cases and len(cases) < len(items):
        raise TypeError("a list to run holds suites and files, or cases, not both; put the cases into a Suite")
    if cases:
        return [Suite(name="suite", cases=tuple(cases))]
    in_memory = [item if isinstance(item, Suite) else Suite.from_dict(item) for item in items if not _is_path(item)]
    return in_memory + load_paths((item for item in items if _is_path(item)), skipped=skipped)


def _is_path(item: Any) -> bool:
    return not isinstance(item, (Suite, Mapping))


def _listener(listener: Listener | None, progress: bool | None) -> Listener | None:
    """The listener of a run: the user's, a bar in a notebook, or the terminal."""
    if listener is not None or progress is False:
        return listener
    if "IPython" in sys.modules and is_notebook():
        return NotebookProgress()
    if not progress:
        return None
    return choose_terminal(sys.stderr)
