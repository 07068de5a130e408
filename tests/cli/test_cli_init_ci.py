"""The workflows of `proctor init --ci`: they refer to what is there, and pass in a fresh clone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import COMMAND
from github_runner import GitHub, Runner, serve_github
from repository import ROOT

from proctor.base.installation import Installation
from proctor.cli import ci_files
from proctor.cli.init import TEMPLATES

Command = Callable[..., Any]
WORKFLOW = ".github/workflows/proctor.yml"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_action_of_this_repository_is_the_one_that_init_writes() -> None:
    template = (ROOT / "src/proctor/templates/ci/action.yml.tmpl").read_text(encoding="utf-8")
    assert template.replace("{proctor}", ".") == (ROOT / "action.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_workflow_for_github_refers_to_files_that_exist(proctor: Command, project: Path, name: str) -> None:
    (project / ".git").mkdir()
    ended = proctor("init", "deep/my suite", "-t", name, "--ci", "github")
    assert ended.code == 0, ended.err
    *earlier, step = read(project / WORKFLOW)["jobs"]["agent"]["steps"]
    assert earlier[0] == {"uses": "actions/checkout@v4", "with": {"fetch-depth": 0}}
    action_folder = project / step["uses"]
    action = read(action_folder / "action.yml")
    assert set(step["with"]) <= set(action["inputs"])
    folder = project / step["with"].get("working-directory", ".")
    assert (folder / step["with"]["requirements"]).is_file()
    check_arguments(folder, step["with"]["paths"].splitlines())
    [install] = [item["run"] for item in action["runs"]["steps"] if item["name"] == "Install Proctor"]
    wheel = next(word for word in shlex.split(install.replace(")", " ")) if word.endswith(".whl"))
    assert (action_folder / wheel).is_file()
    for other in earlier[1:]:  # a project of Node.js
        assert "uses" in other or (project / other["working-directory"] / "package.json").is_file()
    assert "OWNER" not in (project / WORKFLOW).read_text(encoding="utf-8")
    again = proctor("init", "other", "--ci", "github")
    assert (again.code, (project / "other").exists()) == (2, False)
    assert "proctor.yml already exists" in again.err


def check_arguments(folder: Path, arguments: list[str]) -> None:
    """Every argument of `proctor test` that is a path, or an agent in a file, exists."""
    paths = [argument.partition(":")[0] for argument in arguments if not argument.startswith("-")]
    assert paths
    assert all((folder / path).exists() for path in paths)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_pipeline_for_gitlab_refers_to_files_that_exist(proctor: Command, project: Path, name: str) -> None:
    ended = proctor("init", "my suite", "-t", name, "--ci", "gitlab")
    assert ended.code == 0, ended.err
    job = read(project / ".gitlab-ci.yml")["agent"]
    folder = project
    for line in job["script"]:
        words = shlex.split(line)
        if words[0] == "cd":
            folder = folder / words[1]
        elif words[:2] == ["pip", "install"]:
            assert (folder / words[-1]).is_file()
        elif words[0] == "proctor":
            own = words[2 : words.index("--junit")]
            check_arguments(folder, own)
    files = [*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()]
    assert [(project / name).parent for name in files] == [folder] * 3


@pytest.mark.parametrize(
    ("installed", "line"),
    [
        (Installation(), "pip install agent-proctor==0.1.0"),
        (
            Installation("git+https://git.example/p@c0ffee"),
            "pip install 'agent-proctor @ git+https://git.example/p@c0ffee'",
        ),
    ],
    ids=["index", "git"],
)
def test_a_proctor_that_others_can_install_is_installed_from_there(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch, installed: Installation, line: str
) -> None:
    monkeypatch.setattr(ci_files, "installation", lambda: installed)
    assert proctor("init", "made", "--ci", "gitlab").code == 0
    assert read(project / ".gitlab-ci.yml")["agent"]["script"][0] == line
    assert not (project / ".gitlab").exists()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh repository, as `proctor init` leaves it, committed."""
    folder = tmp_path_factory.mktemp("fresh") / "repository"
    folder.mkdir()
    run(["git", "init", "--quiet", "--initial-branch=main"], folder)
    author = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    run(["git", *author, "commit", "--quiet", "--allow-empty", "--message", "before there was an agent"], folder)
    for ci in ("github", "gitlab"):
        run([*COMMAND, "init", f"for_{ci}", "--ci", ci], folder)
    run(["git", "add", "--all"], folder)
    run(["git", *author, "commit", "--quiet", "--message", "first"], folder)
    return folder


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a Python without any package."""
    folder = tmp_path_factory.mktemp("python")
    run([sys.executable, "-m", "venv", str(folder)], folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def hub() -> Iterator[GitHub]:
    with serve_github() as server:
        yield server


INDEX = {
    name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")
}
"""Where pip finds packages on this machine."""
INDEX["PIP_NO_COMPILE"] = "1"  # Python compiles the few modules that it needs

needs_tools = pytest.mark.skipif(not (shutil.which("git") and shutil.which("bash")), reason="needs git and bash")


@needs_tools
@pytest.mark.process
def test_the_steps_for_github_pass_in_a_clean_clone_and_a_missing_secret_is_named(
    repository: Path, programs: Path, hub: GitHub, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    run(["git", "clone", "--quiet", str(repository), str(work)], tmp_path)
    step = read(work / WORKFLOW)["jobs"]["agent"]["steps"][-1]
    action_path = work / step["uses"]
    action = read(action_path / "action.yml")
    runner = Runner(tmp_path, hub, action, action_path, programs, INDEX)
    inputs = {name: str(value) for name, value in step["with"].items()}
    on_main = runner.run("push", **inputs)
    assert on_main.code == 0, on_main.said
    assert "gate: NO REGRESSION" in on_main.said, "a new suite is compared with itself"
    assert "Save the baseline" in on_main.ran

    agent = work / "for_github" / "agent.py"
    agent.write_text("import os\n\n\ndef agent(question):\n    return os.environ['OPENAI_API_KEY']\n")
    action["runs"]["steps"] = [step for step in action["runs"]["steps"] if step["name"] != "Install Proctor"]  # again
    no_secret = runner.run("pull_request", **inputs)
    assert no_secret.code == 4, no_secret.said
    assert (
        "::error title=OPENAI_API_KEY is not set::Add a secret called OPENAI_API_KEY under Settings" in no_secret.said
    )
    assert "regression" not in hub.comments[0]["body"].splitlines()[1]


GITLAB = {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": "c0ffee"}


@needs_tools
@pytest.mark.process
def test_the_steps_for_gitlab_pass_in_a_clean_clone(repository: Path, programs: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    run(["git", "clone", "--quiet", str(repository), str(work)], tmp_path)
    job = read(work / ".gitlab-ci.yml")["agent"]
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), **INDEX}
    run(["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])], work, environment | GITLAB)
    files = [*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()]
    assert all((work / name).is_file() for name in files)
    [recorded] = job["cache"]["paths"]
    assert "c0ffee" in (work / recorded / "cached.baseline.jsonl").read_text(), "pushes record the baseline"
    (work / "for_gitlab" / "agent.py").write_text("import os\n\n\ndef agent(q):\n    return os.environ['DESK_TOKEN']\n")
    start = next(number for number, line in enumerate(job["script"]) if line.startswith("git fetch"))
    script = "\n".join(["(", *job["script"][start:], ") || echo exit code $?"])
    said = run(["bash", "-c", script], work, environment | GITLAB)
    assert "exit code 4" in said
    assert "DESK_TOKEN is not set; add it as a masked variable under Settings > CI/CD > Variables" in said
