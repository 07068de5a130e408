"""Virtual environments in `.venv-peers/`: for each original one, with Proctor next to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = Path(__file__).resolve().parent / "drivers"
FOLDER = ROOT / ".venv-peers"
TIMEOUT_SECONDS = 1800


class PeerFailed(Exception):
    """An original could not be installed or a driver did not end well; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of one original."""

    name: str
    python: Path

    def call(self, driver: str, data: Any, timeout: float = TIMEOUT_SECONDS) -> Any:
        """Run a script in `drivers/` on data; returns what it writes."""
        with tempfile.TemporaryDirectory(prefix="proctor-peers.") as folder:
            inputs, outputs = Path(folder) / "inputs.json", Path(folder) / "outputs.json"
            inputs.write_text(json.dumps(data), encoding="utf-8")
            work = Path(folder) / "work"
            work.mkdir()
            # -P: the folder of the driver is not a place to import from.
            done = self.run(["-P", str(DRIVERS / driver), str(inputs), str(outputs)], work, timeout)
            if done.returncode or not outputs.is_file():
                raise PeerFailed(f"{driver} exited with {done.returncode}:\n{_end(done.stdout)}\n{_end(done.stderr)}")
            return json.loads(outputs.read_text(encoding="utf-8"))

    def run(
        self, arguments: Sequence[str], folder: Path, timeout: float = TIMEOUT_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run the Python of the environment in a folder, which is its HOME too."""
        command = [str(self.python), *arguments]
        return subprocess.run(
            command,
            cwd=folder,
            env=_variables(self.python, folder),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def version(self, distribution: str) -> str:
        code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
        return subprocess.run([str(self.python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def prepare(name: str, packages: Sequence[str], *, with_proctor: bool = True) -> Environment:
    """The environment with the given packages; made on the first call, or if the packages changed."""
    folder = FOLDER / name
    environment = Environment(name, folder / "bin" / "python")
    mark, state = FOLDER / f"{name}.state", " ".join([*packages, str(with_proctor)])
    if environment.python.exists() and mark.is_file() and mark.read_text(encoding="utf-8") == state:
        return environment
    FOLDER.mkdir(exist_ok=True)
    _check([sys.executable, "-m", "venv", "--clear", str(folder)])
    arguments = [*packages, *(["--editable", str(ROOT)] if with_proctor else [])]
    try:
        uv = str(Path(sys.executable).parent / "uv")
        _check([uv, "pip", "install", "--quiet", "--python", str(environment.python), *arguments])
    except (OSError, PeerFailed):  # uv does not read pip's settings, such as the address of another index
        pip = [str(environment.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _check([*pip, *arguments])
    mark.write_text(state, encoding="utf-8")
    return environment


def _check(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerFailed(f"{' '.join(command)} exited with {done.returncode}:\n{_end(done.stderr)}")


def _variables(python: Path, folder: Path) -> dict[str, str]:
    """The environment variables of a driver: no keys of providers, no telemetry, none of the user's settings."""
    passed = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {
        **passed,
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder),
        "PYTHONUTF8": "1",
        "DO_NOT_TRACK": "1",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "PIXIE_TELEMETRY": "0",
    }


def _end(text: str, lines: int = 25) -> str:
    return "\n".join(text.rstrip().split("\n")[-lines:])
