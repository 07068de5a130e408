"""ADK's `AgentEvaluator` for any agent Proctor can drive: instances, callables, modules, `module:name`, addresses.

Every file is run before anything is raised, and the one error lists every failure of every file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.base.threads import without_loop
from proctor.cases.formats import adk
from proctor.cases.formats.adk.test_config import DEFAULT_CRITERIA, read_config
from proctor.cases.suite import Settings, Suite
from proctor.compat.adk.agent_loading import agent_of
from proctor.compat.adk.eval_files import read_eval_set, read_files, with_app_name
from proctor.compat.adk.failures import AgentEvaluationFailed, failures_of, unmeasured_criteria
from proctor.results.run import Run
from proctor.running.options import RunOptions
from proctor.running.run_suites import Request, run_suites_async

NUM_RUNS = 2

__all__ = ["DEFAULT_CRITERIA", "NUM_RUNS", "AgentEvaluationFailed", "AgentEvaluator"]


@record
class _Options:
    """The parameters of an evaluation that all methods take."""

    num_runs: int = NUM_RUNS
    agent_name: str | None = None
    print_detailed_results: bool = False
    output_file: str | Path | None = None
    app_name: str | None = None
    """The name of the application in sessions for which a case names none."""
    judge: Any = None
    store: str | Path | None = None
    parallel: int | None = None
    timeout: float | None = None


class AgentEvaluator:
    """Runs EvalSets against an agent and raises if a metric stays below its threshold.

    The methods are coroutines, as ADK documents them; those whose name ends in `_sync` are for code without a loop.
    Beyond ADK's parameters, `judge` names the judge, `store` a folder that keeps the run, `parallel` how many
    conversations are held at once, and `timeout` the seconds each may take.
    """

    @staticmethod
    async def evaluate(
        agent: Any = None,
        eval_dataset_file_path_or_dir: str | Path = "",
        num_runs: int = NUM_RUNS,
        *,
        agent_module: Any = None,
        initial_session_file: str | Path | None = None,
        **options: Any,
    ) -> Run:
        """Run every case of a file, or of all `*.test.json` under a folder, `num_runs` times each.

        A metric is held against its mean over runs and turns. `agent_name` picks a sub-agent, `output_file` gets one
        CSV row per score, and `print_detailed_results` prints every conversation with what was expected beside it.
        """
        __tracebackhide__ = True
        given = _snake_case(options)
        path = given.pop("eval_dataset_file_path_or_dir", eval_dataset_file_path_or_dir)
        session = given.pop("initial_session_file", initial_session_file)
        wanted, target = _options(given.pop("num_runs", num_runs), given), _one_of(agent, agent_module)
        return await _evaluate(read_files(path, session), target, wanted)

    @staticmethod
    async def evaluate_eval_set(
        agent: Any = None,
        eval_set: Any = None,
        criteria: Mapping[str, Json] | None = None,
        num_runs: int = NUM_RUNS,
        print_detailed_results: bool = False,
        *,
        agent_module: Any = None,
        eval_config: Any = None,
        **options: Any,
    ) -> Run:
        """The same for an EvalSet in memory: a mapping in either spelling, or an object of ADK's own class.

        `criteria` are as in a `test_config.json`, `eval_config` is the whole of one; without either, ADK's defaults
        hold. No file is read.
        """
        __tracebackhide__ = True
        given = {"print_detailed_results": print_detailed_results, **_snake_case(options)}
        eval_set, eval_config = given.pop("eval_set", eval_set), given.pop("eval_config", eval_config)
        wanted = _options(given.pop("num_runs", num_runs), given)
        suite = read_eval_set(eval_set, criteria, eval_config)
        return await _evaluate([suite], _one_of(agent, agent_module), wanted)

    @staticmethod
    async def find_config_for_test_file(test_file: str | Path) -> dict[str, Json]:
        """The criteria in force for a file: those of `test_config.json` beside it, or ADK's defaults without one.

        A config that cannot be used raises `InvalidSuite`; it is never replaced by the defaults.
        """
        path = Path(test_file).parent / adk.CONFIG_NAME
        if not path.exists():
            return dict(DEFAULT_CRITERIA)
        from proctor.base.fields import Document
        from proctor.base.source import read_text

        config = Document(path, read_text(path))
        read_config(config)
        config.finish()
        return dict(config.data["criteria"])

    @staticmethod
    async def migrate_eval_data_to_new_schema(
        old_eval_data_file: str | Path = "",
        new_eval_data_file: str | Path = "",
        initial_session_file: str | Path | None = None,
        *,
        to: str = adk.NAME,
        **options: Any,
    ) -> None:
        """Write a file of the older array format as an EvalSet: `to="adk-python"` in snake_case, for adk-python."""
        write = {adk.NAME: adk.write, **adk.DECLARED.dialects}.get(to)
        if write is None:
            raise UsageError(f"an EvalSet is written for adk or adk-python, not for {to!r}")
        given = _snake_case(options)
        old_eval_data_file = given.pop("old_eval_data_file", old_eval_data_file)
        new_eval_data_file = given.pop("new_eval_data_file", new_eval_data_file)
        initial_session_file = given.pop("initial_session_file", initial_session_file)
        if given:
            raise TypeError(f"migrate_eval_data_to_new_schema has no parameter {next(iter(given))!r}")
        if not str(old_eval_data_file) or not str(new_eval_data_file):
            raise UsageError("name both the old file and the new one")
        suites = read_files(old_eval_data_file, initial_session_file, announce=False)
        target = Path(new_eval_data_file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(write(suites).text, encoding="utf-8")

    evaluate_sync = staticmethod(without_loop(evaluate, __name__))
    evaluate_eval_set_sync = staticmethod(without_loop(evaluate_eval_set, __name__))
    find_config_for_test_file_sync = staticmethod(without_loop(find_config_for_test_file, __name__))
    migrate_eval_data_to_new_schema_sync = staticmethod(without_loop(migrate_eval_data_to_new_schema, __name__))

    evaluateEvalSet = evaluate_eval_set  # noqa: N815  ADK-TS spells them so
    findConfigForTestFile = find_config_for_test_file  # noqa: N815
    migrateEvalDataToNewSchema = migrate_eval_data_to_new_schema  # noqa: N815


def _options(num_runs: Any, given: Mapping[str, Any]) -> _Options:
    from dataclasses import fields

    known = {item.name for item in fields(_Options)} - {"num_runs"}
    if refused := next((name for name in given if name in REFUSED and given[name] is not None), None):
        raise TypeError(f"AgentEvaluator takes no {refused}: {REFUSED[refused]}")
    given = {name: value for name, value in given.items() if name not in REFUSED}
    if unknown := [name for name in given if name not in known]:
        raise TypeError(f"AgentEvaluator has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}")
    if isinstance(num_runs, bool) or not isinstance(num_runs, int) or num_runs < 1:
        raise UsageError(f"num_runs must be a whole number of at least 1, not {num_runs!r:.80}")
    return _Options(num_runs, **given)


REFUSED = {
    "artifact_service": "each conversation gets its own in memory; give the agent as an App or Runner that has yours",
    "eval_set_results_manager": "results are kept with store=, and read again with `proctor show`",
}
"""Parameters of adk-python that are not taken, and what to do instead."""


def _snake_case(options: Mapping[str, Any]) -> dict[str, Any]:
    """ADK-TS's names of the parameters as adk-python has them."""
    return {re.sub(r"[A-Z]", lambda upper: f"_{upper[0].lower()}", name): value for name, value in options.items()}


def _one_of(agent: Any, agent_module: Any) -> Any:
    """adk-python calls it `agent_module`."""
    if (agent is None) == (agent_module is None):
        raise UsageError("name the agent to evaluate, once")
    return agent_module if agent is None else agent


async def _evaluate(suites: list[Suite], agent: Any, wanted: _Options) -> Run:
    __tracebackhide__ = True  # what failed is in the message, and not in our source
    if wanted.app_name is not None:
        suites = [with_app_name(suite, wanted.app_name) for suite in suites]
    async with AsyncExitStack() as cleanup:
        request = Request(
            suites,
            RunOptions(
                given=Settings(repeat=wanted.num_runs, parallel=wanted.parallel, timeout=wanted.timeout),
                judge=wanted.judge,
            ),
            agent=await agent_of(agent, wanted.agent_name, cleanup),
            store=None if wanted.store is None else Path(wanted.store),
        )
        run, verdict = await run_suites_async(request)
    if wanted.print_detailed_results:
        from proctor.compat.adk.failures import print_conversations

        print_conversations(run)
    if wanted.output_file is not None:
        from proctor.reporting.tables import append

        append(run, Path(wanted.output_file))
    for unmeasured in unmeasured_criteria(run):
        warnings.warn(unmeasured, UserWarning, stacklevel=3)
    if verdict.outcome != "passed":
        raise AgentEvaluationFailed(failures_of(run, verdict), run)
    return run
