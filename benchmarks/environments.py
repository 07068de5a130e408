"""Virtual environments under `.venvs/`: one with the base install of Proctor, one for each peer and each rival gate."""

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
    "pydantic-evals": ("pydantic-evals", "rapidfuzz"),
    "pixie-qa": ("pixie-qa",),
    "deepeval": ("deepeval", "rapidfuzz"),
    "inspect-ai": ("inspect-ai", "rapidfuzz"),
}
"""The packages of each peer's environment; those without a fast edit distance get the library that Proctor uses."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and the packages that are installed in it."""

    python: Path

    def script(self, name: str) -> list[str]:
        return [str(self.python.parent / name)]

    def module(self, name: str) -> list[str]:
        return [str(self.python), "-m", name]


def base_install() -> Interpreter:
    """Proctor as users install it: built, with its dependencies and nothing else; again if a source file changed."""
    venv, mark, state = _venv("proctor"), VENVS / "proctor.state", _state_of_sources()
    if not mark.is_file() or mark.read_text() != state:
        _pip(venv, "install", "--force-reinstall", "--no-deps", str(ROOT))
        _pip(venv, "install", str(ROOT))
        mark.write_text(state)
    return venv


def peer(name: str) -> Interpreter | None:
    """The environment of a peer, or None if it cannot be installed."""
    return environment_with(name, PEERS[name])


def environment_with(name: str, packages: tuple[str, ...], folder: Path = VENVS) -> Interpreter | None:
    """An environment in `folder` with these packages, or None if they cannot be installed."""
    mark = folder / f"{name}.state"
    if not mark.is_file() or mark.read_text() != " ".join(packages):
        try:
            _pip(_venv(name, folder), "install", *packages)
        except subprocess.CalledProcessError:
            return None
        mark.write_text(" ".join(packages))
    return _venv(name, folder)


def node_peer(name: str) -> Path | None:
    """The program of a peer that npm installs, or None if it cannot be installed."""
    folder, mark = VENVS / name, VENVS / f"{name}.state"
    if not mark.is_file():
        try:
            subprocess.run(["npm", "install", "--prefix", str(folder), name], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        mark.write_text(name)
    return folder / "node_modules" / ".bin" / name


def node_version(name: str) -> str:
    package = VENVS / name / "node_modules" / name / "package.json"
    return str(json.loads(package.read_text(encoding="utf-8"))["version"])


def installed_version(interpreter: Interpreter, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    command = [str(interpreter.python), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _venv(name: str, folder: Path = VENVS) -> Interpreter:
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True, env=clean_environment())
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
