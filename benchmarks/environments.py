"""Virtual environments under `.venvs/`: one with the base install of Proctor, one for each peer."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from measuring import clean_environment

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENVS = HERE / ".venvs"

PEERS = {
    "pixie-qa": ("pixie-qa==0.8.6",),
    "deepeval": ("deepeval", "rapidfuzz"),
    "pydantic-evals": ("pydantic-evals", "rapidfuzz"),
}
"""What each peer's environment gets; those without a fast edit distance get the library that Proctor uses."""
TABLE_PEERS = {"inspect-ai": ("inspect-ai", "rapidfuzz")}
NODE_PEERS = ("promptfoo",)
"""Peers of the table with all of them alone: a case takes them too long for thousands, and npm installs 1.4 GB."""
ON_REQUEST = {"google-adk": ("google-adk[eval]",), "holodeck-ai": ("holodeck-ai", "exceptiongroup")}
"""Peers too large to be installed unless somebody asks for them."""
HOSTS = {"pytest": ("pytest",)}
"""What Proctor is put into, to see what it adds there."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with what is installed beside it."""

    python: Path

    @property
    def folder(self) -> Path:
        return self.python.parent

    def script(self, name: str) -> list[str]:
        return [str(self.folder / name)]

    def module(self, name: str) -> list[str]:
        return [str(self.python), "-m", name]


def base_install() -> Interpreter:
    """Proctor as its users get it: built, installed with its dependencies and nothing else, compiled by pip.

    Installed anew whenever a source file has changed.
    """
    venv = _venv("proctor")
    mark, state = VENVS / "proctor.state", _state_of_sources()
    if not mark.is_file() or mark.read_text() != state:
        _pip(venv, "install", "--force-reinstall", "--no-deps", str(ROOT))
        _pip(venv, "install", str(ROOT))
        mark.write_text(state)
    return venv


def peer(name: str) -> Interpreter | None:
    """The environment of a peer, or `None` when it cannot be installed."""
    mark = VENVS / f"{name}.state"
    packages = (PEERS | TABLE_PEERS | ON_REQUEST | HOSTS)[name]
    wanted = " ".join(packages)
    if not mark.is_file() or mark.read_text() != wanted:
        try:
            _pip(_venv(name), "install", *packages)
        except subprocess.CalledProcessError:
            return None
        mark.write_text(wanted)
    return _venv(name)


def node_peer(name: str) -> Path | None:
    """The program of a peer that npm installs, or `None` when it cannot be installed."""
    folder, mark = VENVS / name, VENVS / f"{name}.state"
    if not mark.is_file():
        try:
            subprocess.run(["npm", "install", "--prefix", str(folder), name], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        mark.write_text(name)
    return folder / "node_modules" / ".bin" / name


def node_version(name: str) -> str:
    described = VENVS / name / "node_modules" / name / "package.json"
    return str(json.loads(described.read_text(encoding="utf-8"))["version"])


def install_here(interpreter: Interpreter, project: Path) -> None:
    """Put a project from its sources into an environment that is there already."""
    _pip(interpreter, "install", "--force-reinstall", "--no-deps", str(project))
    _pip(interpreter, "install", str(project))


def install_apart(interpreter: Interpreter, project: Path, folder: Path) -> None:
    """Put a project alone into a folder, which `PYTHONPATH` then adds to an environment or leaves out."""
    _pip(interpreter, "install", "--no-deps", "--target", str(folder), str(project))
    subprocess.run([str(interpreter.python), "-m", "compileall", "-q", str(folder)], check=True)


def installed_version(interpreter: Interpreter, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return subprocess.run(
        [str(interpreter.python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def _venv(name: str) -> Interpreter:
    folder = VENVS / name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, env=clean_environment())
    return Interpreter(python)


def _pip(interpreter: Interpreter, *arguments: str) -> None:
    command = [*interpreter.module("pip"), "-q", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, capture_output=True, env=clean_environment())


def _state_of_sources() -> str:
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted([ROOT / "pyproject.toml", *(ROOT / "src").rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()
