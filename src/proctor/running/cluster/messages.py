"""What travels between the process of a run and its workers: the suites' agents, trials to make, and answers."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.records import record
from proctor.base.references import is_reference
from proctor.cases.evaluator_specs import spec_key
from proctor.cases.suite import Case, EvaluatorSpec, Suite, Turn
from proctor.running.engine.plan import Plan, PlannedSuite, PlannedTrial
from proctor.running.options import ClusterOptions, Limits
from proctor.version import __version__

MOST_UPLOADED_BYTES = 50_000_000
_NOT_UPLOADED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".proctor", ".tox"})


@record
class SuiteOrder:
    """What a worker needs to ask the agent of one suite."""

    suite: Suite
    """Without its cases, which come one by one."""
    given_agent: Any
    """Instead of the suite's own."""
    fingerprint: str
    """What the agent's identity must be on the worker."""
    limits: Limits
    code: tuple[tuple[EvaluatorSpec, str], ...]
    """Evaluators in files, each with its fingerprint; an agent's own one covers what is loaded beside it."""


@record
class RunOrder:
    """What a worker needs once, before the first trial."""

    suites: tuple[SuiteOrder, ...]
    folder: Path
    """The working folder of the run."""
    version: str
    same_machine: bool
    scores: bool
    """Whether workers score answers."""


@record
class TrialOrder:
    """One trial for a worker to make."""

    key: int
    suite: int
    case: Case
    number: int
    limits: Limits
    backoff: float
    goes_on: bool
    scored: bool
    """Whether the worker scores the answer too."""
    turns: tuple[Turn, ...]
    """What is said to the agent: the turns of the case, with the text of their files where it takes none."""


def order_of(plan: Plan, options: ClusterOptions) -> bytes:
    """The order of a run, packed; raises `UsageError` where an agent cannot leave this process."""
    import cloudpickle

    order = RunOrder(
        tuple(_suite_order(item) for item in plan.suites),
        Path.cwd(),
        __version__,
        same_machine=bool(options.workers),
        scores=options.score,
    )
    try:
        packed: bytes = cloudpickle.dumps(order)
    except Exception as error:
        raise UsageError(
            f"the agent cannot be sent to workers ({error}); name it as file.py:name or package.module:name"
        ) from error
    return packed


def _suite_order(item: PlannedSuite) -> SuiteOrder:
    bounds = {spec_key(bound.spec): bound for bound in item.bound.values() if is_reference(bound.spec.name)}
    thin = replace(item.suite, cases=(), evaluators=(), warnings=())
    code = tuple((bound.spec, bound.fingerprint) for bound in bounds.values())
    return SuiteOrder(thin, item.given_agent, item.agent_fingerprint, item.limits, code)


def can_be_scored_there(planned: PlannedTrial) -> bool:
    """Whether no evaluator of a trial asks a judge, and nothing is added to its answer in the process of the run."""
    suite, case = planned.suite, planned.case
    if suite.suite.reexecute is not None or any(turn.attachments for turn in case.turns):
        return False
    lists = (suite.suite.evaluators_of(case, turn) for turn in case.turns)
    bounds = [bound for specs in (suite.suite.evaluators_of(case), *lists) for bound in suite.evaluators(specs)]
    return not any(bound.needs_judge or bound.judged for bound in bounds)


def unpacked(data: bytes) -> Any:
    """What the other side packed: both sides run the user's own code, and only the network in between is not theirs."""
    return pickle.loads(data)  # noqa: S301  docs/scale.md says who can reach the workers


def zipped(folder: Path) -> bytes:
    """The files of a folder, without what is installed or stored in it."""
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for top, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not _left_out(Path(top, name)))
            for name in sorted(names):
                path = Path(top, name)
                if not path.is_file() or path.is_symlink() or name.startswith(".env"):
                    continue  # keys belong into the environment of the workers
                total += path.stat().st_size
                if total > MOST_UPLOADED_BYTES:
                    raise UsageError(
                        f"--upload: {folder} holds more than {MOST_UPLOADED_BYTES // 1_000_000} MB; start in a smaller "
                        "folder, or install the agent on the workers"
                    )
                archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def _left_out(folder: Path) -> bool:
    return folder.name in _NOT_UPLOADED or folder.is_symlink() or (folder / "pyvenv.cfg").is_file()
