"""A folder with hostile agents in it, and the `proctor` command as a process of its own, as CI runs it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

AGENTS = Path(__file__).with_name("hostile_agents.py")


@dataclass(frozen=True)
class Ended:
    """How a command ended; a traceback never comes out of one."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.out + self.err, self.out + self.err


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_bytes(AGENTS.read_bytes())
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROCTOR_", "GITHUB_"))}
    return kept | {"PYTHONUTF8": "1"}


@pytest.fixture
def shell(here: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Runs `python -m proctor`; `memory` limits its address space, in megabytes."""

    def run(*arguments: object, memory: int | None = None, timeout: float = 40, **more: str) -> Ended:
        def limit() -> None:
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))

        command = [sys.executable, "-m", "proctor", *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=here,
            env=environment | more,
            capture_output=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            preexec_fn=limit,
        )
        return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    return run


@pytest.fixture
def suite(here: Path) -> Callable[..., Path]:
    """Writes a suite of `count` cases `c1`, `c2`, … whose input is also what is expected."""

    def write(agent: str, count: int = 4, evaluators: str = "[ExactMatch]", settings: str = "{parallel: 1}") -> Path:
        cases = "".join(f"  - {{id: c{n}, input: q{n}, expected: q{n}}}\n" for n in range(1, count + 1))
        head = f"name: desk\nagent: agents.py:{agent}\nevaluators: {evaluators}\nsettings: {settings}\ncases:\n"
        path = here / "suite.yaml"
        path.write_text(head + cases, encoding="utf-8")
        return path

    return write
