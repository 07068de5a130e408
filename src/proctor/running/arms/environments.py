"""Builds the virtual environment of an arm from what its version requires.

The environment has the Python version of the run. It is made with `uv` if that is installed, else with `venv` and pip.
A `pyproject.toml` with a project is installed in development mode, so that its code is the worktree's;
`requirements.txt` is installed as well if there is one. Proctor itself is not installed there: the process of the arm
takes it from the environment of the run, which is searched after its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from proctor.base.errors import AgentFailed

SHOWN_LINES = 6
"""Lines of output that the message about a failed step has."""


async def build_environment(worktree: Path, folder: Path) -> Path:
    """Build the environment in `folder` and return its interpreter. Raises `AgentFailed`."""
    requirements = _requirements(worktree)
    if not requirements:
        raise AgentFailed(
            "no virtual environment can be built: it has no requirements.txt and no project in pyproject.toml"
        )
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if uv := shutil.which("uv"):
        await _run(worktree, uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        await _run(worktree, uv, "pip", "install", "--quiet", "--python", str(python), *requirements)
        return python
    # The pip of the run installs into another environment too, which saves installing pip there.
    has_pip = find_spec("pip") is not None
    await _run(worktree, sys.executable, "-m", "venv", *(["--without-pip"] if has_pip else []), str(folder))
    pip = ["-m", "pip", "--disable-pip-version-check", *(["--python", str(python)] if has_pip else [])]
    await _run(worktree, sys.executable if has_pip else str(python), *pip, "install", "--quiet", *requirements)
    return python


def _requirements(worktree: Path) -> list[str]:
    """What to install, as arguments of pip."""
    arguments: list[str] = []
    project = worktree / "pyproject.toml"
    if project.is_file():
        try:
            if "project" in tomllib.loads(project.read_text(encoding="utf-8")):
                arguments += ["--editable", str(worktree)]
        except (ValueError, OSError) as error:
            raise AgentFailed(f"no virtual environment can be built: pyproject.toml cannot be read: {error}") from None
    if (worktree / "requirements.txt").is_file():
        arguments += ["--requirement", str(worktree / "requirements.txt")]
    return arguments


async def _run(folder: Path, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
        reason = "; ".join(lines[-SHOWN_LINES:])
        raise AgentFailed(f"its virtual environment could not be built: {Path(command[0]).name}: {reason}")
