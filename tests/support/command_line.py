"""The `proctor` command for tests: called in this process, or started as a process of its own.

    done = run_proctor("test", "suite.yaml", cwd=tmp_path)
    assert done.code == 0, done.out

Tests use the fixtures `proctor` and `proctor_process` of `support_plugin.py`, or `run_proctor` where no fixture fits.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "proctor")
NO_HYPOTHESIS = ("-p", "no:hypothesispytest")
"""For pytest in a process of its own: the plugin of Hypothesis, which users rarely have, takes half of the start."""
PYTEST = (sys.executable, "-m", "pytest", *NO_HYPOTHESIS, "-p", "no:cacheprovider")
SETTINGS = ("PROCTOR_", "HOLODECK_", "GITHUB_", "OPENAI_")
"""Environment variables with these prefixes change what Proctor does; no test inherits them."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command. A user never sees a traceback, whatever happens."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.out + self.err, self.out + self.err


def run_proctor(
    *arguments: object,
    cwd: Path,
    stdin: str = "",
    timeout: float = 300,
    memory: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run `python -m proctor` to its end.

    `timeout` only ends a command that hangs, so it is generous: a busy machine is slow. `memory` limits the address
    space, in megabytes; `environment` replaces the one of this process.
    """

    def limit_memory() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))

    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=dict(os.environ if environment is None else environment),
        input=stdin.encode(),
        capture_output=True,
        timeout=timeout,
        check=False,
        preexec_fn=limit_memory,
    )
    out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
    return CommandResult(done.returncode, out, err)
