"""The CI workflow that `proctor init --ci` writes, with all that it needs to pass on a fresh repository.

A job needs Proctor and the agent's packages. Where Proctor came from an index or a public address, the workflow names
that. Where it came from a checkout or a file of this machine, no other machine can install it by name, so a wheel of
it is written into the repository. The action of GitHub is written too: the workflow then refers to nothing that has
to be found somewhere else.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from proctor.base.errors import UsageError
from proctor.base.installation import installation
from proctor.cli.own_wheel import own_wheel

CI_FILES = {"github": ".github/workflows/proctor.yml", "gitlab": ".gitlab-ci.yml"}
ACTION_FOLDER = ".github/actions/proctor"
WHEEL_FOLDER = ".gitlab"
REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True, slots=True)
class Job:
    """What a workflow runs."""

    folder: Path
    """The folder of the suite, below the root of the repository."""
    arguments: Sequence[str]
    """The arguments of `proctor test`, from where it runs."""
    node_command: str = ""
    """The command that installs the packages of an agent that runs on Node.js, in the folder of the suite."""

    @property
    def working_folder(self) -> str:
        """Where it runs, if that is not the root: a project of Node.js is found from its own folder only."""
        return self.folder.as_posix() if self.node_command and self.folder != Path() else ""

    @property
    def requirements(self) -> str:
        """The requirements file of the agent, from where it runs."""
        return REQUIREMENTS if self.node_command else (self.folder / REQUIREMENTS).as_posix()


def repository_root() -> Path:
    """The folder in which the workflow belongs: the root of this repository, or else the working folder."""
    here = Path.cwd()
    return next((up for up in (here, *here.parents) if (up / ".git").exists()), here)


def folder_in_repository(folder: Path, ci: str) -> Path:
    """A folder, relative to the root of its repository; raises `UsageError` if it is outside of it."""
    root = repository_root()
    try:
        return folder.resolve().relative_to(root.resolve())
    except ValueError:
        raise UsageError(f"{folder} is outside of {root}, where the {ci} workflow belongs") from None


def ci_files(ci: str, job: Job) -> dict[str, str | bytes]:
    """The files of a workflow, by their place in the repository."""
    return _github(job) if ci == "github" else _gitlab(job)


def _template(name: str) -> str:
    return (resources.files("proctor") / "templates" / "ci" / f"{name}.tmpl").read_text(encoding="utf-8")


def _fill(template: str, **values: str) -> str:
    """The template with its fields filled in; `str.format` would trip over the braces of YAML and of expressions."""
    text = _template(template)
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _yaml(text: str) -> str:
    """A text as a value in YAML, in quotes only if it needs them."""
    try:
        return text if yaml.safe_load(f"- {text}") == [text] else json.dumps(text)
    except yaml.YAMLError:
        return json.dumps(text)


def _proctor(folder: str) -> tuple[str, str, dict[str, str | bytes]]:
    """What pip installs Proctor from in a job, the words for it, and the wheel that has to be in `folder`."""
    requirement = installation().portable_requirement()
    if requirement is not None:
        return shlex.quote(requirement), "the Proctor that wrote it", {}
    name, content = own_wheel()
    return f"./{name}", "the Proctor that wrote it, from a copy in this repository", {f"{folder}/{name}": content}


def _github(job: Job) -> dict[str, str | bytes]:
    proctor, source, wheel = _proctor(ACTION_FOLDER)
    prepare = ""
    if job.node_command:
        prepare = "\n      - uses: actions/setup-node@v4\n        with: {node-version: 22}"
        prepare += f"\n      - run: {job.node_command}"
        prepare += f"\n        working-directory: {_yaml(job.working_folder)}" if job.working_folder else ""
    where = f"\n          working-directory: {_yaml(job.working_folder)}" if job.working_folder else ""
    where += f"\n          requirements: {_yaml(job.requirements)} # the packages of the agent"
    lines = "".join(f"\n            {word}" for word in job.arguments)
    workflow = _fill("github", prepare=prepare, source=source, where=where, lines=lines)
    return {CI_FILES["github"]: workflow, f"{ACTION_FOLDER}/action.yml": _fill("action.yml", proctor=proctor), **wheel}


def _gitlab(job: Job) -> dict[str, str | bytes]:
    proctor, source, wheel = _proctor(WHEEL_FOLDER)
    proctor = proctor.replace("./", f"{WHEEL_FOLDER}/", 1) if wheel else proctor
    image, prepare = "python:3.12", ""
    steps = []
    if job.node_command:  # the image of Node.js has Python, but neither pip nor venv
        image = "node:22"
        prepare = "\n    - apt-get update -qq && apt-get install -y -qq python3-venv"
        prepare += "\n    - python3 -m venv /opt/venv && . /opt/venv/bin/activate"
        steps = [*([f"cd {shlex.quote(job.working_folder)}"] if job.working_folder else []), job.node_command]
    steps.append(f"pip install -r {shlex.quote(job.requirements)}")
    folder = f"{job.working_folder}/" if job.working_folder else ""
    install = "".join(f"\n    - {_yaml(step)}" for step in steps)
    values = {"image": image, "prepare": prepare, "proctor": _yaml(f"pip install {proctor}"), "source": source}
    values |= {"install": install}
    reports = {"html": "report.html", "junit": "junit.xml", "quality": "quality.json", "recorded": ".proctor-base"}
    values |= {name: _yaml(f"{folder}{file}") for name, file in reports.items()}
    return {CI_FILES["gitlab"]: _fill("gitlab", **values, words=shlex.join(job.arguments)), **wheel}
