"""The version of the agent that an arm runs, as far as it is known before its process starts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from proctor.agents.agent import BaseAgent, Session
from proctor.base.git import Commit, GitProblem, find_commit
from proctor.base.json_data import Json, fingerprint
from proctor.cases.arms import Arm
from proctor.cases.suite import Case

SHORT_COMMIT = 10


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """The process that an arm runs in. Suites whose arms have equal ones share a process."""

    arm: str
    ref: str = ""
    """The git reference, if the arm is checked out."""
    commit: Commit | None = None
    """What the reference meant when the run was planned."""
    problem: str = ""
    """Why the reference means no commit, if it does not."""
    env: tuple[tuple[str, str], ...] = ()
    venv: bool = False

    @property
    def version(self) -> str:
        """The version, as reports show it: `main (1a2b3c4d5e)`; empty for the working folder."""
        if self.commit is None or self.commit.id.startswith(self.ref):
            return self.ref[:40]
        return f"{self.ref} ({self.commit.id[:SHORT_COMMIT]})"


def own_process(name: str, arm: Arm, folders: list[Path], *, venv: bool = False) -> OwnProcess:
    """The process of an arm. The first of `folders` that is in a git repository decides which repository is meant.

    `venv` gives each arm that is checked out a virtual environment.
    """
    env = tuple(sorted(arm.env.items()))
    if not arm.is_checked_out:
        return OwnProcess(name, env=env)
    problem = ""
    for folder in folders:
        try:
            return OwnProcess(name, arm.ref, find_commit(folder, arm.ref), env=env, venv=arm.venv or venv)
        except GitProblem as error:
            problem = problem or str(error)
    return OwnProcess(name, arm.ref, problem=problem, env=env)


class VersionAgent(BaseAgent):
    """An agent at another version of the repository. Its code is loaded in the process of its arm, and only there."""

    def __init__(self, name: str, description: Json, process: OwnProcess) -> None:
        self.name = name
        commit = "" if process.commit is None else process.commit.id
        self.fingerprint = fingerprint("version", commit or process.ref, description, process.venv)

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        raise AssertionError(f"{self.name} runs in the process of its arm")


def agent_name(description: Json) -> str:
    """What an agent is called whose code is not loaded: its reference."""
    if isinstance(description, Mapping):
        name = description.get("name") or description.get("python")
        return str(name) if name else next(iter(description), "agent")
    return str(description)
